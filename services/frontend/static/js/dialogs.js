// Dialogs: the browser keeps the focus in them, gives it back and closes them with Escape.

import { byId } from "./dom.js";

/**
 * Open the dialog that a button names, and close dialogs by their buttons or a click beside them.
 */
export function startDialogs() {
  for (const opener of document.querySelectorAll("[data-opens]")) {
    opener.addEventListener("click", () => openDialog(/** @type {HTMLElement} */ (opener).dataset.opens ?? ""));
  }
  for (const dialog of document.querySelectorAll("dialog")) {
    for (const closer of dialog.querySelectorAll("[data-closes]")) closer.addEventListener("click", () => dialog.close());
    dialog.addEventListener("mousedown", (event) => event.target === dialog && dialog.close());
  }
}

/** @param {string} id */
export function openDialog(id) {
  const dialog = byId(id, HTMLDialogElement);
  if (!dialog.open) dialog.showModal();
}

/**
 * Ask whether something shall be done.
 *
 * @param {string} title
 * @param {string} text
 * @param {string} action what the button that does it is called
 * @returns {Promise<boolean>}
 */
export function confirm(title, text, action) {
  const dialog = byId("confirm-dialog", HTMLDialogElement);
  byId("confirm-title", HTMLElement).textContent = title;
  byId("confirm-text", HTMLElement).textContent = text;
  const button = byId("confirm-action", HTMLButtonElement);
  button.textContent = action;
  return new Promise((decided) => {
    let isConfirmed = false;
    button.onclick = () => {
      isConfirmed = true;
      dialog.close();
    };
    dialog.addEventListener("close", () => decided(isConfirmed), { once: true });
    dialog.showModal();
  });
}

/**
 * Tell of an error that has no place of its own.
 *
 * @param {unknown} error
 */
export function tell(error) {
  const { message, requestId } = /** @type {import("./errors.js").ApiError} */ (error);
  byId("error-text", HTMLElement).textContent = requestId ? `${message} (request ${requestId})` : message;
  openDialog("error-dialog");
}
