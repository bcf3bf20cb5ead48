// Copies text and says so on the button.

import { announce } from "./announcer.js";

const SHOWN_MS = 1500;

/**
 * @param {string} text
 * @param {HTMLElement} button
 */
export async function copy(text, button) {
  const isCopied = await put(text);
  button.classList.toggle("copied", isCopied);
  announce(isCopied ? "Copied" : "Copying failed");
  setTimeout(() => button.classList.remove("copied"), SHOWN_MS);
}

/**
 * @param {string} text
 * @returns {Promise<boolean>}
 */
async function put(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers give the clipboard to secure origins only; the old way works on all.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "visually-hidden";
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  }
}
