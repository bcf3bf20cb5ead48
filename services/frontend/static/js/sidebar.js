// The sidebar: beside the chat where there is room, over it where there is not.

import { byId } from "./dom.js";

const NARROW = matchMedia("(max-width: 52rem)");

export class Sidebar {
  #panel = byId("sidebar", HTMLElement);
  #backdrop = byId("backdrop", HTMLElement);
  #button = byId("menu", HTMLButtonElement);
  #isOpen = !NARROW.matches;

  constructor() {
    this.#button.addEventListener("click", () => this.#set(!this.#isOpen));
    this.#backdrop.addEventListener("click", () => this.#set(false));
    this.#panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !NARROW.matches) return;
      event.stopPropagation();
      this.closeWhereNarrow();
      this.#button.focus();
    });
    NARROW.addEventListener("change", () => this.#set(!NARROW.matches));
    this.#set(this.#isOpen);
  }

  open() {
    this.#set(true);
  }

  closeWhereNarrow() {
    if (NARROW.matches) this.#set(false);
  }

  /** @param {boolean} isOpen */
  #set(isOpen) {
    this.#isOpen = isOpen;
    document.body.classList.toggle("sidebar-open", isOpen);
    this.#button.setAttribute("aria-expanded", String(isOpen));
    // What is out of sight takes no focus.
    this.#panel.inert = !isOpen;
    this.#backdrop.hidden = !isOpen || !NARROW.matches;
  }
}
