// An answer: as it comes, and as it is stored.

import { copy } from "./clipboard.js";
import { h } from "./dom.js";
import { busyView, errorView } from "./error_view.js";
import { iconButton } from "./icons.js";
import { MarkdownView } from "./markdown_view.js";
import { labelled, variants } from "./message_parts.js";
import { notices } from "./notices.js";
import { figuresOfMessage, figuresOfTurn, inOneLine } from "./stats.js";

/** @typedef {import("./turn.js").Turn} Turn */

const STATUS = { waiting: "Waiting for the first token…", reconnecting: "Connection lost. Reconnecting…", stopping: "Stopping…" };

export class AnswerView {
  #notices = h("div", { class: "notices" });
  #reasoningText = h("div", { class: "reasoning-text" });
  #reasoning = h("details", { class: "reasoning", hidden: true }, h("summary", {}, "Reasoning"), this.#reasoningText);
  #text = h("div", { class: "text markdown" });
  #status = h("p", { class: "status", hidden: true });
  #problem = h("div", { class: "problem" });
  #row = h("div", { class: "message-actions" });
  #stats = h("p", { class: "stats" });
  #markdown = new MarkdownView(this.#text, copy);
  /** @type {string} what the notices show */
  #noticed = "";
  /** @type {unknown} what the problem shows */
  #shownProblem = null;
  element = h(
    "article",
    { class: "message assistant", "aria-label": "Answer" },
    this.#notices, this.#reasoning, this.#text, this.#status, this.#problem, this.#row, this.#stats,
  );

  /** @param {import("./message_parts.js").Actions} actions */
  constructor(actions) {
    this.actions = actions;
  }

  /**
   * Show an answer that comes.
   *
   * @param {Turn} turn
   * @param {import("./error_view.js").Choices} choices for when it fails
   */
  stream(turn, choices) {
    const { state } = turn;
    this.#markdown.grow(turn.text);
    this.#showReasoning(turn.reasoning, !turn.text);
    this.#notice(turn);
    const status = STATUS[/** @type {keyof typeof STATUS} */ (state)] ?? "";
    this.#status.hidden = !status;
    if (this.#status.textContent !== status) this.#status.textContent = status;
    this.#showProblem(state === "busy" || state === "failed" ? turn.error : null, turn, choices);
    this.element.classList.toggle("streaming", state === "streaming");
    this.element.setAttribute("aria-busy", String(!turn.isOver));
    this.#row.replaceChildren();
    const stats = inOneLine(figuresOfTurn(turn));
    if (this.#stats.textContent !== stats) this.#stats.textContent = stats;
  }

  /**
   * Show a stored answer.
   *
   * @param {import("./types.js").Message} message
   * @param {boolean} isBusy whether a turn runs
   */
  settle(message, isBusy) {
    this.element.dataset.id = message.id;
    this.#markdown.show(message.content ?? "");
    this.#showReasoning(message.reasoning ?? "", false);
    this.#notice({
      context: message.context,
      filterMatches: message.filter_matches ?? [],
      formatFaults: message.format_faults ?? [],
      finishReason: message.finish_reason,
    });
    this.#showProblem(null, null, {});
    const runs = message.status === "running";
    this.element.classList.remove("streaming");
    this.element.setAttribute("aria-busy", String(runs));
    const status = runs ? "Being answered…" : message.status === "partial" ? "Stopped before its end." : cutNote(message);
    this.#status.hidden = !status;
    this.#status.textContent = status;
    this.#row.replaceChildren(...(runs ? [] : this.#actionsFor(message, isBusy)));
    const stats = inOneLine(figuresOfMessage(message));
    if (stats) this.#stats.textContent = stats;
  }

  /**
   * @param {import("./types.js").Message} message
   * @param {boolean} isBusy
   */
  #actionsFor(message, isBusy) {
    const copying = iconButton("copy", "Copy", () => void copy(message.content ?? "", copying), "copy");
    const again = iconButton("again", "Regenerate", () => this.actions.regenerate(message.id), "regenerate");
    const versions = variants(message, this.actions);
    const isCut = message.status === "partial" || message.finish_reason === "length";
    const onward = isCut ? labelled("onward", "Continue", () => this.actions.continueAnswer(message.id), "continue") : null;
    again.disabled = isBusy;
    for (const button of isBusy ? [onward, ...(versions?.querySelectorAll("button") ?? [])] : []) {
      if (button) button.disabled = true;
    }
    return [versions, copying, again, onward].filter((part) => part !== null);
  }

  /**
   * @param {string} text
   * @param {boolean} isOpen
   */
  #showReasoning(text, isOpen) {
    if (this.#reasoningText.textContent === text) return;
    this.#reasoningText.textContent = text;
    this.#reasoning.hidden = !text;
    if (isOpen) this.#reasoning.open = true;
  }

  /** @param {import("./notices.js").Told} told */
  #notice(told) {
    const { context, filterMatches, formatFaults, finishReason } = told;
    const key = JSON.stringify([context, filterMatches, formatFaults, finishReason]);
    if (key === this.#noticed) return;
    this.#noticed = key;
    this.#notices.replaceChildren(...notices(told));
  }

  /**
   * @param {Turn["error"]} error
   * @param {Turn | null} turn
   * @param {import("./error_view.js").Choices} choices
   */
  #showProblem(error, turn, choices) {
    const shown = error && `${turn?.state} ${turn?.retryAt}`;
    if (shown === this.#shownProblem) return;
    this.#shownProblem = shown;
    if (!error || !turn) this.#problem.replaceChildren();
    else this.#problem.replaceChildren(turn.state === "busy" ? busyView(turn) : errorView(error, choices));
  }
}

/** @param {import("./types.js").Message} message */
function cutNote(message) {
  return message.finish_reason === "length" ? "Cut at the most tokens allowed." : "";
}
