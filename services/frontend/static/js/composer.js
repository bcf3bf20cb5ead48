// The field for messages, with the buttons that send and stop.

import { byId } from "./dom.js";
import { read, write } from "./storage.js";

const DRAFT = "draft";

export class Composer {
  #field = byId("prompt", HTMLTextAreaElement);
  #send = byId("send", HTMLButtonElement);
  #stop = byId("stop", HTMLButtonElement);
  #isBusy = false;
  #canSend = false;

  /**
   * @param {object} actions
   * @param {(text: string) => void} actions.send
   * @param {() => void} actions.stop
   * @param {() => void} actions.editLast
   */
  constructor({ send, stop, editLast }) {
    this.send = send;
    byId("composer", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#stop.addEventListener("click", stop);
    this.#field.addEventListener("input", () => this.#changed());
    this.#field.addEventListener("keydown", (event) => {
      // Enter that ends the composition of a character is not meant to send.
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.#submit();
      } else if (event.key === "ArrowUp" && !this.#field.value && !this.#isBusy) {
        event.preventDefault();
        editLast();
      }
    });
    this.#field.value = read(sessionStorage, DRAFT) ?? "";
    this.#changed();
  }

  /** @param {boolean} isBusy whether an answer comes */
  setBusy(isBusy) {
    this.#isBusy = isBusy;
    const hadFocus = document.activeElement === this.#send || document.activeElement === this.#stop;
    this.#send.hidden = isBusy;
    this.#stop.hidden = !isBusy;
    // The button that had the focus is gone.
    if (hadFocus) this.focus();
  }

  /** @param {boolean} canSend whether there is a model to send to */
  setReady(canSend) {
    this.#canSend = canSend;
    this.#changed();
  }

  focus() {
    this.#field.focus();
  }

  /**
   * Put a text into the field, before what was typed meanwhile.
   *
   * @param {string} text
   */
  giveBack(text) {
    this.#field.value = [text, this.#field.value].filter(Boolean).join("\n");
    this.#changed();
    this.focus();
  }

  #submit() {
    const text = this.#field.value.trim();
    if (!text || this.#isBusy || !this.#canSend) return;
    this.#field.value = "";
    this.#changed();
    this.send(text);
  }

  #changed() {
    write(sessionStorage, DRAFT, this.#field.value || null);
    this.#send.disabled = !this.#canSend || !this.#field.value.trim();
    this.#field.style.height = "auto";
    this.#field.style.height = `${this.#field.scrollHeight}px`;
  }
}
