// An error in the place of the answer, with what to do about it.

import { copy } from "./clipboard.js";
import { h } from "./dom.js";
import { ApiError } from "./errors.js";
import { icon } from "./icons.js";

const TICK_MS = 250;

/**
 * @typedef {object} Choices
 * @property {() => void} [retry]
 * @property {() => void} [edit] puts the message back into the field
 */

/**
 * @param {import("./errors.js").ApiError | import("./errors.js").NetworkError} error
 * @param {Choices} choices
 * @returns {HTMLElement}
 */
export function errorView(error, { retry, edit }) {
  const row = h("div", { class: "error-actions" });
  if (retry) row.append(h("button", { type: "button", class: "retry", onclick: retry }, icon("again"), "Retry"));
  if (edit) row.append(h("button", { type: "button", class: "edit-again", onclick: edit }, icon("edit"), "Edit message"));
  return h("div", { class: "error", role: "alert" }, icon("warning"), h("div", {}, h("p", { class: "error-text" }, error.message), origin(error), row));
}

/**
 * A busy service: counts down to the next try.
 *
 * @param {import("./turn.js").Turn} turn
 * @returns {HTMLElement}
 */
export function busyView(turn) {
  const left = h("p", { class: "countdown" });
  const text = h("p", { class: "error-text" }, turn.error?.message ?? "");
  const now = h("button", { type: "button", class: "retry", onclick: () => turn.retryNow() }, icon("again"), "Try now");
  const cancel = h("button", { type: "button", onclick: () => void turn.stop() }, "Cancel");
  const actions = h("div", { class: "error-actions" }, now, cancel);
  const body = h("div", {}, text, left, turn.error && origin(turn.error), actions);
  // Its figure changes each second, which nobody wants read out; the begin is announced.
  const view = h("div", { class: "error busy" }, icon("warning"), body);
  const show = () => {
    const seconds = Math.max(0, Math.ceil((turn.retryAt - Date.now()) / 1000));
    left.textContent = `Trying again in ${seconds} s.`;
    if (turn.state === "busy") setTimeout(show, TICK_MS);
  };
  show();
  return view;
}

/** @param {import("./errors.js").ApiError | import("./errors.js").NetworkError} error */
function origin(error) {
  const parts = [];
  if (error instanceof ApiError && error.status !== 200) parts.push(`HTTP ${error.status}`);
  if (error instanceof ApiError && error.code) parts.push(error.code);
  const { requestId } = error;
  if (!requestId) return parts.length ? h("p", { class: "error-origin" }, parts.join(" · ")) : null;
  const id = h("button", { type: "button", class: "request-id", title: "Copy the request's id" }, requestId);
  id.addEventListener("click", () => void copy(requestId, id));
  return h("p", { class: "error-origin" }, [...parts, "request "].join(" · "), id);
}
