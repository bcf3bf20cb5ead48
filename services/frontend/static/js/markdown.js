// Markdown to elements. What models write is never taken for HTML: the parser escapes it, the sanitizer lets through
// only what is listed here, and the page's policy runs no script but the page's own.

import DOMPurify from "../vendor/dompurify-3.5.0/purify.es.mjs";
import markdownIt from "../vendor/markdown-it-15.0.3/markdown-it.esm.min.mjs";

/** @typedef {{references?: Record<string, unknown>}} Environment link definitions by their labels */
/** @typedef {{level: number, nesting: number, map: [number, number] | null}} Token */

const TEXT_TAGS = ["a", "br", "code", "del", "em", "s", "strong"];
const BLOCK_TAGS = ["blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "ul"];
const TABLE_TAGS = ["table", "tbody", "td", "th", "thead", "tr"];
// A relative address would lead into this service, which the model does not know.
const ADDRESS = /^(?:https?|mailto):/i;
const SANITIZED = {
  ALLOWED_TAGS: [...TEXT_TAGS, ...BLOCK_TAGS, ...TABLE_TAGS, "span"],
  ALLOWED_ATTR: ["class", "href", "start", "title"],
  ALLOWED_URI_REGEXP: ADDRESS,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

const parser = markdownIt({ html: false, linkify: true, breaks: true });
parser.validateLink = (/** @type {string} */ address) => ADDRESS.test(address);
// Names of files look like hosts: main.py, run.sh.
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
parser.renderer.rules.image = (/** @type {any[]} */ tokens, /** @type {number} */ index) => {
  // A picture would be a request to elsewhere that nobody asked for, so it is a link.
  const { attrs, content } = tokens[index];
  const address = Object.fromEntries(attrs).src;
  const { escapeHtml } = parser.utils;
  return `<a href="${escapeHtml(address)}">${escapeHtml(content || address)}</a>`;
};
for (const rule of ["th_open", "td_open"]) {
  parser.renderer.rules[rule] = (/** @type {any[]} */ tokens, /** @type {number} */ index) => {
    const [, alignment] = /text-align:(\w+)/.exec(tokens[index].attrGet("style") ?? "") ?? [];
    return `<${tokens[index].tag}${alignment ? ` class="align-${alignment}"` : ""}>`;
  };
}

DOMPurify.addHook("afterSanitizeAttributes", (/** @type {Element} */ element) => {
  if (element.tagName !== "A") return;
  element.setAttribute("target", "_blank");
  element.setAttribute("rel", "noopener noreferrer");
});

/**
 * @param {string} text
 * @param {Environment} environment link definitions that are known; those of the text are added
 * @returns {Token[]}
 */
export function parse(text, environment) {
  return parser.parse(text, environment);
}

/**
 * @param {Token[]} tokens
 * @param {Environment} environment
 * @returns {DocumentFragment}
 */
export function render(tokens, environment) {
  return sanitized(parser.renderer.render(tokens, parser.options, environment));
}

/**
 * @param {string} html
 * @returns {DocumentFragment} elements of what is allowed in it
 */
export function sanitized(html) {
  return /** @type {any} */ (DOMPurify).sanitize(html, SANITIZED);
}
