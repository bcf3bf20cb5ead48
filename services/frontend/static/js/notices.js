// Notices at an answer: what was left out of its prompt, filtered out of it, or is wrong with its format.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { count } from "./stats.js";

/**
 * @typedef {object} Told
 * @property {import("./types.js").ContextReport | null} context
 * @property {import("./types.js").FilterMatch[]} filterMatches
 * @property {import("./types.js").FormatFault[]} formatFaults
 * @property {string | null} finishReason
 */

/**
 * @param {Told} told
 * @returns {HTMLElement[]}
 */
export function notices({ context, filterMatches, formatFaults, finishReason }) {
  const all = [];
  if (context && context.dropped_messages > 0) all.push(trimmed(context));
  if (filterMatches.length) all.push(filtered(filterMatches));
  for (const { check, message, position } of formatFaults) {
    const kind = check === "json" ? "JSON" : "code blocks";
    all.push(notice("warning", "fault", `Faulty ${kind} at character ${count(position)}: ${message}`));
  }
  if (finishReason === "content_filter" && !filterMatches.length && !formatFaults.length) {
    all.push(notice("warning", "filtered", "The answer was ended by a filter."));
  }
  return all;
}

/** @param {import("./types.js").ContextReport} context */
function trimmed(context) {
  const { dropped_messages: messages, dropped_tokens: tokens, summary, unsummarized_messages: lost = 0 } = context;
  const what = `${count(messages)} earlier ${messages === 1 ? "message" : "messages"} (${count(tokens)} tokens)`;
  const was = messages === 1 ? "was" : "were";
  if (!summary) return notice("info", "trimmed", `${what} did not fit the context and ${was} left out.`);
  const but = lost ? ` ${count(lost)} of them did not fit the summary either.` : "";
  const text = `${what} did not fit the context; the model was told a summary.${but}`;
  return notice("info", "trimmed", text, h("details", {}, h("summary", {}, "Show summary"), h("p", {}, summary)));
}

/** @param {import("./types.js").FilterMatch[]} matches */
function filtered(matches) {
  const said = { mask: "masked", stop: "the answer was ended", report: "reported" };
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { rule, action } of matches) {
    const what = `${rule}: ${said[/** @type {keyof typeof said} */ (action)] ?? action}`;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  const each = [...counts].map(([what, times]) => (times > 1 ? `${what} (${times} times)` : what));
  return notice("warning", "filtered", `Filtered – ${each.join("; ")}.`);
}

/**
 * @param {string} sign
 * @param {string} kind
 * @param {string} text
 * @param {...Node} more
 */
function notice(sign, kind, text, ...more) {
  return h("div", { class: `notice ${kind}`, role: "note" }, icon(sign), h("div", {}, text, ...more));
}
