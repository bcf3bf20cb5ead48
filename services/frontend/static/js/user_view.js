// A user's message, which can be edited and sent anew.

import { copy } from "./clipboard.js";
import { h } from "./dom.js";
import { iconButton } from "./icons.js";
import { variants } from "./message_parts.js";

export class UserView {
  #text = h("div", { class: "text" });
  #row = h("div", { class: "message-actions" });
  element = h("article", { class: "message user", "aria-label": "You" }, this.#text, this.#row);
  #isEditing = false;

  /** @param {import("./message_parts.js").Actions} actions */
  constructor(actions) {
    this.actions = actions;
  }

  /**
   * Show a message that is not stored yet.
   *
   * @param {string} text
   */
  pending(text) {
    this.#text.textContent = text;
    this.#row.replaceChildren();
  }

  /**
   * @param {import("./types.js").Message} message
   * @param {boolean} isBusy whether a turn runs
   */
  settle(message, isBusy) {
    this.element.dataset.id = message.id;
    if (this.#isEditing) return;
    this.#text.textContent = message.content ?? "";
    const edit = iconButton("edit", "Edit", () => this.#edit(message), "edit");
    edit.disabled = isBusy;
    const copying = iconButton("copy", "Copy", () => void copy(message.content ?? "", copying), "copy");
    const versions = variants(message, this.actions);
    for (const button of isBusy && versions ? versions.querySelectorAll("button") : []) button.disabled = true;
    this.#row.replaceChildren(copying, edit, ...(versions ? [versions] : []));
  }

  /** @param {import("./types.js").Message} message */
  #edit(message) {
    this.#isEditing = true;
    const field = h("textarea", { class: "edit-field", "aria-label": "Edit message", rows: 1 });
    field.value = message.content ?? "";
    const close = () => {
      this.#isEditing = false;
      form.replaceWith(this.#text);
      this.#row.hidden = false;
      /** @type {HTMLElement | null} */ (this.#row.querySelector(".edit"))?.focus();
    };
    const send = () => {
      const text = field.value.trim();
      if (!text) return;
      close();
      this.actions.edit(message.id, text);
    };
    const cancel = h("button", { type: "button", class: "plain", onclick: close }, "Cancel");
    const submit = h("button", { type: "submit", class: "primary" }, "Send");
    const form = h("form", { class: "edit-form" }, field, h("div", { class: "edit-actions" }, cancel, submit));
    form.addEventListener("submit", (event) => (event.preventDefault(), send()));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        close();
      } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        send();
      }
    });
    const fit = () => {
      field.style.height = "auto";
      field.style.height = `${field.scrollHeight + 2}px`;
    };
    field.addEventListener("input", fit);
    this.#text.replaceWith(form);
    this.#row.hidden = true;
    fit();
    field.focus();
  }
}
