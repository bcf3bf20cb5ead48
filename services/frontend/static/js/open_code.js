// A block of code whose end has not come. Only what is new of it is coloured, line by line: what stands before a line
// may give it another colour, which it gets when the block is closed and coloured as a whole.

import { coloured } from "./code_block.js";
import { h } from "./dom.js";

// Shorter ones are rendered whole each time, which is exact.
const LEAST_CHARACTERS = 1500;
const OPENING = /^(`{3,}|~{3,})([^\n]*)\n/;

/**
 * @param {string} text
 * @returns {{code: string, language: string} | null} what the text holds, if it is nothing but one long open block
 */
export function openCode(text) {
  const opening = OPENING.exec(text);
  if (!opening || text.length < LEAST_CHARACTERS) return null;
  const [line, fence, info] = opening;
  const isClosed = new RegExp(`^ {0,3}${fence[0]}{${fence.length},}[ \\t]*$`, "m").test(text.slice(line.length));
  // Backticks after backticks begin code within a line: https://spec.commonmark.org/0.31.2/#fenced-code-blocks
  if (isClosed || (fence[0] === "`" && info.includes("`"))) return null;
  return { code: text.slice(line.length), language: info.trim().split(/\s/)[0] };
}

export class OpenCode {
  #partial = document.createTextNode("");
  #complete = 0;

  /**
   * @param {Element} element
   * @param {string} language
   */
  constructor(element, language) {
    this.element = element;
    this.language = language;
    element.replaceChildren(this.#partial);
  }

  /** @param {string} code all of it so far */
  grow(code) {
    const complete = code.lastIndexOf("\n") + 1;
    if (complete > this.#complete) {
      const lines = coloured(code.slice(this.#complete, complete), this.language);
      // A block of its own, so that the browser lays out no line twice.
      this.#partial.before(h("span", { class: "code-lines" }, lines));
      this.#complete = complete;
    }
    this.#partial.data = code.slice(complete);
  }
}
