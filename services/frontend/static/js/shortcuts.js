// Keys, and the table of them in the help.

import { byId, h } from "./dom.js";

const IS_MAC = navigator.userAgent.includes("Mac");
const COMMAND = IS_MAC ? "⌘" : "Ctrl";

/**
 * @typedef {object} ShortcutActions
 * @property {() => void} newChat
 * @property {() => void} search
 * @property {() => void} help
 * @property {() => void} settings
 * @property {() => void} prompt
 * @property {() => boolean} stop whether there was something to stop
 */

/** @type {[string[], string][]} */
const TABLE = [
  [["Enter"], "Send the message"],
  [["Shift", "Enter"], "New line"],
  [["Esc"], "Stop the answer"],
  [["↑"], "Edit the last message (in an empty field)"],
  [[COMMAND, "Shift", "O"], "New chat"],
  [[COMMAND, "K"], "Search chats"],
  [[COMMAND, ","], "Settings"],
  [["/"], "Go to the message field"],
  [["?"], "This help"],
];

/** @param {ShortcutActions} actions */
export function startShortcuts(actions) {
  byId("shortcuts", HTMLElement).replaceChildren(...TABLE.map(([keys, text]) => {
    const pressed = keys.flatMap((key, index) => (index ? [" + ", h("kbd", {}, key)] : [h("kbd", {}, key)]));
    return h("div", {}, h("dt", {}, ...pressed), h("dd", {}, text));
  }));
  document.addEventListener("keydown", (event) => {
    // In a dialog Escape closes it, and nothing else is meant for the page behind.
    if (event.isComposing || document.querySelector("dialog[open]")) return;
    const action = actionOf(event, actions);
    if (!action) return;
    if (action() !== false) event.preventDefault();
  });
}

/**
 * @param {KeyboardEvent} event
 * @param {ShortcutActions} actions
 * @returns {(() => unknown) | null}
 */
function actionOf(event, actions) {
  const key = event.key.toLowerCase();
  if (key === "escape") return actions.stop;
  if (IS_MAC ? event.metaKey : event.ctrlKey) {
    if (key === "o" && event.shiftKey) return actions.newChat;
    if (key === "k" && !event.shiftKey) return actions.search;
    if (key === ",") return actions.settings;
    return null;
  }
  const target = /** @type {Element} */ (event.target);
  if (target.closest("input, textarea, select") || event.altKey) return null;
  if (key === "?") return actions.help;
  if (key === "/") return actions.prompt;
  return null;
}
