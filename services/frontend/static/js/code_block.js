// Blocks of code: coloured, with their language and a button that copies.

import hljs from "../vendor/highlight.js-11.12.0/highlight.min.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { sanitized } from "./markdown.js";

// Colouring takes about a millisecond for each of these thousands of characters.
const MOST_COLOURED_CHARACTERS = 60_000;

/**
 * Dress all code blocks of a fragment. Their buttons are served by `copyOnClick`.
 *
 * @param {DocumentFragment} fragment
 */
export function dressCode(fragment) {
  for (const pre of fragment.querySelectorAll("pre")) {
    const code = pre.firstElementChild;
    if (!code) continue;
    const language = /language-(\S+)/.exec(code.className)?.[1] ?? "";
    code.replaceChildren(coloured(code.textContent ?? "", language));
    const figure = h("div", { class: "code-block", role: "group", "aria-label": `Code${language && `, ${language}`}` });
    pre.replaceWith(figure);
    pre.tabIndex = 0;
    const copy = h("button", { type: "button", class: "copy-code" }, icon("copy"), h("span", {}, "Copy"));
    figure.append(h("div", { class: "code-head" }, h("span", { class: "code-language" }, language || "text"), copy), pre);
  }
  for (const table of fragment.querySelectorAll("table")) {
    // Wide tables scroll by themselves.
    const frame = h("div", { class: "table-frame", tabindex: "0", role: "group", "aria-label": "Table" });
    table.replaceWith(frame);
    frame.append(table);
  }
}

/**
 * Copy the code whose button is clicked within an element.
 *
 * @param {HTMLElement} element
 * @param {(text: string, button: HTMLElement) => void} copy
 */
export function copyOnClick(element, copy) {
  element.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const button = /** @type {HTMLElement | null} */ (target.closest(".copy-code"));
    const text = button?.closest(".code-block")?.querySelector("code")?.textContent;
    if (button && text !== null && text !== undefined) copy(text, button);
  });
}

/**
 * @param {string} text
 * @param {string} language
 * @returns {Node}
 */
export function coloured(text, language) {
  if (!hljs.getLanguage(language) || text.length > MOST_COLOURED_CHARACTERS) return document.createTextNode(text);
  return sanitized(hljs.highlight(text, { language, ignoreIllegals: true }).value);
}
