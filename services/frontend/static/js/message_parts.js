// What messages of both sides have: variants to go through, and a row of actions.

import { h } from "./dom.js";
import { icon, iconButton } from "./icons.js";

/**
 * What can be done with messages.
 *
 * @typedef {object} Actions
 * @property {(id: string) => void} choose show another version
 * @property {(id: string) => void} regenerate
 * @property {(id: string) => void} continueAnswer
 * @property {(id: string, text: string) => void} edit send another version of a user's message
 */

/**
 * Buttons through the versions of a message, where there are several.
 *
 * @param {import("./types.js").Message} message
 * @param {Actions} actions
 * @returns {HTMLElement | null}
 */
export function variants(message, actions) {
  const { siblings, id } = message;
  const place = siblings.indexOf(id);
  if (siblings.length < 2 || place < 0) return null;
  const before = iconButton("left", "Previous version", () => actions.choose(siblings[place - 1]), "variant-before");
  const after = iconButton("right", "Next version", () => actions.choose(siblings[place + 1]), "variant-after");
  before.disabled = place === 0;
  after.disabled = place === siblings.length - 1;
  const text = h("span", { class: "variant-count" }, `${place + 1}/${siblings.length}`);
  const label = `Version ${place + 1} of ${siblings.length}`;
  return h("div", { class: "variants", role: "group", "aria-label": label }, before, text, after);
}

/**
 * @param {string} sign
 * @param {string} label
 * @param {() => void} onclick
 * @param {string} kind
 */
export function labelled(sign, label, onclick, kind) {
  return h("button", { type: "button", class: `quiet-button ${kind}`, onclick }, icon(sign), label);
}
