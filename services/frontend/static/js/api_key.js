// The API key, where the service asks for one: kept for this tab, or on this device if the user wants that.

import { byId } from "./dom.js";
import { read, write } from "./storage.js";

const NAME = "api-key";

export class ApiKey {
  /** @type {string} */
  value = read(sessionStorage, NAME) ?? read(localStorage, NAME) ?? "";
  /** @type {(() => void) | null} */
  #given = null;
  /** @type {Promise<void> | null} */
  #asking = null;

  constructor() {
    const dialog = byId("key-dialog", HTMLDialogElement);
    const field = byId("key", HTMLInputElement);
    const remember = byId("key-remember", HTMLInputElement);
    dialog.querySelector("form")?.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#keep(field.value.trim(), remember.checked);
      dialog.close();
    });
    byId("key-forget", HTMLButtonElement).addEventListener("click", () => {
      field.value = "";
      this.#keep("", false);
      dialog.close();
    });
    dialog.addEventListener("close", () => this.#given?.());
  }

  /** @returns {Record<string, string>} what goes with each request; without a key nothing does */
  headers() {
    return this.value ? { authorization: `Bearer ${this.value}` } : {};
  }

  /**
   * Ask for a key; many may ask at once and one dialog opens.
   *
   * @param {string} reason why, in one sentence
   * @returns {Promise<void>} settled when the dialog is closed
   */
  ask(reason) {
    this.#asking ??= new Promise((given) => {
      this.#given = () => {
        this.#asking = this.#given = null;
        given();
      };
      byId("key-reason", HTMLElement).textContent = reason;
      byId("key", HTMLInputElement).value = this.value;
      byId("key-remember", HTMLInputElement).checked = read(localStorage, NAME) !== null;
      byId("key-dialog", HTMLDialogElement).showModal();
      byId("key", HTMLInputElement).select();
    });
    return this.#asking;
  }

  /**
   * @param {string} value
   * @param {boolean} remember
   */
  #keep(value, remember) {
    this.value = value;
    write(sessionStorage, NAME, value || null);
    write(localStorage, NAME, remember && value ? value : null);
  }
}
