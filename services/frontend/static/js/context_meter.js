// How much of the model's context the conversation takes.

import { byId } from "./dom.js";
import { count } from "./stats.js";

// From this share on, the next answers may not fit.
const NEARLY_FULL = 0.85;

/**
 * @param {import("./types.js").Usage | null} usage of the last answer
 * @param {number | null} contextLength in tokens
 */
export function showContext(usage, contextLength) {
  const meter = byId("context", HTMLElement);
  meter.hidden = !contextLength;
  if (!contextLength) return;
  const used = usage ? usage.prompt_tokens + usage.completion_tokens : 0;
  const share = Math.min(1, used / contextLength);
  const told = `${count(used)} of ${count(contextLength)} tokens of context`;
  meter.setAttribute("aria-valuemax", String(contextLength));
  meter.setAttribute("aria-valuenow", String(used));
  meter.setAttribute("aria-valuetext", told);
  meter.classList.toggle("nearly-full", share >= NEARLY_FULL);
  byId("context-bar", HTMLElement).style.width = `${share * 100}%`;
  byId("context-text", HTMLElement).textContent = told;
}
