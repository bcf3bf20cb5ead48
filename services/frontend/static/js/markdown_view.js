// Shows a text of markdown that grows. Blocks that can no longer change are made once; only what follows them is
// rendered again, at most once a frame and more seldom where that takes long.

import { copyOnClick, dressCode } from "./code_block.js";
import { parse, render } from "./markdown.js";
import { OpenCode, openCode } from "./open_code.js";
import { reconcile } from "./reconcile.js";

// Of the time, rendering takes at most one part of these.
const SHARE = 6;

// Most characters that a frame adds: what came all at once is shown over several.
const MOST_CHARACTERS = 3000;

export class MarkdownView {
  /** What is shown. */
  #text = "";
  /** What is to be shown. */
  #wanted = "";
  /** Characters of the text whose blocks are settled. */
  #settled = 0;
  /** Where the complete lines ended when blocks were last settled. */
  #triedAt = 0;
  /** @type {import("./markdown.js").Environment} */
  #environment = { references: {} };
  /** @type {Node | null} the last settled node */
  #lastSettled = null;
  #frame = 0;
  /** @type {OpenCode | null} the last block, while it is code without an end */
  #code = null;
  /** Whether all of the text is shown as it will stay. */
  #isWhole = false;
  #notBefore = 0;

  /**
   * @param {HTMLElement} element
   * @param {(text: string, button: HTMLElement) => void} copy
   */
  constructor(element, copy) {
    this.element = element;
    copyOnClick(element, copy);
  }

  /**
   * Show a text, soon where it goes on from the last one, else at once.
   *
   * @param {string} text
   * @returns {void}
   */
  grow(text) {
    text = withPlainLines(text);
    if (text === this.#wanted) return;
    if (!text.startsWith(this.#text)) return this.show(text);
    this.#wanted = text;
    this.#isWhole = false;
    if (!this.#frame) this.#frame = requestAnimationFrame((time) => this.#onFrame(time));
  }

  /**
   * Show a text, whole and now; where much of it is still to come on the page, that goes on coming.
   *
   * @param {string} text
   * @returns {void}
   */
  show(text) {
    text = withPlainLines(text);
    if (this.#isWhole && text === this.#text) return;
    // A link may be defined after its use, in blocks that are settled by now.
    const isOther = !text.startsWith(this.#text) || /^ {0,3}\[[^\]]+\]:/m.test(text);
    if (!isOther && this.#text && text.length - this.#text.length > MOST_CHARACTERS) return this.grow(text);
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#text = this.#wanted = text;
    if (isOther) this.#restart();
    this.#render();
    this.#isWhole = true;
  }

  /** @param {number} time */
  #onFrame(time) {
    this.#frame = 0;
    if (time < this.#notBefore) {
      this.#frame = requestAnimationFrame((later) => this.#onFrame(later));
      return;
    }
    const begin = performance.now();
    this.#text = this.#wanted.slice(0, this.#text.length + MOST_CHARACTERS);
    if (!this.#growCode()) this.#render();
    if (this.#text !== this.#wanted) this.#frame = requestAnimationFrame((later) => this.#onFrame(later));
    const end = performance.now();
    this.#notBefore = end + (end - begin) * SHARE;
  }

  get #firstOfTail() {
    return this.#lastSettled ? this.#lastSettled.nextSibling : this.element.firstChild;
  }

  #restart() {
    this.element.replaceChildren();
    this.#settled = this.#triedAt = 0;
    this.#environment = { references: {} };
    this.#lastSettled = null;
  }

  /** @returns {boolean} whether all that is new belongs to a block of code that goes on, and is shown */
  #growCode() {
    const tail = openCode(this.#text.slice(this.#settled));
    if (!tail) return false;
    if (!this.#code) {
      this.#render();
      const element = this.element.lastElementChild?.querySelector("code");
      if (!element) return true;
      this.#code = new OpenCode(element, tail.language);
    }
    this.#code.grow(tail.code);
    return true;
  }

  #render() {
    this.#code = null;
    this.#settle();
    // The rest may hold half a link definition, which must not count later.
    const environment = { references: { ...this.#environment.references } };
    const tail = render(parse(this.#text.slice(this.#settled), environment), environment);
    dressCode(tail);
    reconcile(this.element, this.#firstOfTail, tail);
  }

  /** Settle all blocks but the last. The parser goes by lines, so a block that another one follows is closed. */
  #settle() {
    const complete = this.#text.lastIndexOf("\n") + 1;
    if (complete <= this.#triedAt) return;
    this.#triedAt = complete;
    const text = this.#text.slice(this.#settled, complete);
    const trial = { references: { ...this.#environment.references } };
    const tokens = parse(text, trial);
    const last = tokens.findLastIndex((token) => token.level === 0 && token.nesting >= 0 && token.map);
    const line = last > 0 ? /** @type {[number, number]} */ (tokens[last].map)[0] : 0;
    if (line === 0) return;
    const closed = text.slice(0, startOfLine(text, line));
    const blocks = render(parse(closed, this.#environment), this.#environment);
    dressCode(blocks);
    const first = this.#firstOfTail;
    // What the tail showed becomes what is settled; the nodes after it stay for what comes next.
    let end = first;
    for (let left = blocks.childNodes.length; end && left > 0; left -= 1) end = end.nextSibling;
    reconcile(this.element, first, blocks, end);
    this.#lastSettled = end ? end.previousSibling : this.element.lastChild;
    this.#settled += closed.length;
  }
}

/**
 * @param {string} text
 * @param {number} line
 * @returns {number} where the line begins
 */
function startOfLine(text, line) {
  let at = 0;
  for (let passed = 0; passed < line; passed += 1) at = text.indexOf("\n", at) + 1;
  return at;
}

/**
 * @param {string} text
 * @returns {string} the text as the parser counts its lines
 */
function withPlainLines(text) {
  return text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
}
