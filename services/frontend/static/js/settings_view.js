// What belongs to a conversation beside its messages: the system prompt, and what happens when the context is full.

import { byId } from "./dom.js";
import { read, write } from "./storage.js";

const NAME = "new-session";

export class SettingsView {
  #system = byId("system", HTMLTextAreaElement);
  #policy = byId("context-policy", HTMLSelectElement);
  #problem = byId("settings-error", HTMLElement);
  /** @type {import("./conversation.js").Conversation | null} */
  #conversation = null;

  /** @param {import("./api.js").Api} api */
  constructor(api) {
    this.api = api;
    this.#system.addEventListener("change", () => this.#change());
    this.#policy.addEventListener("change", () => this.#change());
    byId("reset-system", HTMLButtonElement).addEventListener("click", () => {
      this.#system.value = "";
      this.#change();
    });
  }

  /** @param {import("./conversation.js").Conversation} conversation */
  show(conversation) {
    if (conversation === this.#conversation && document.activeElement === this.#system) return;
    this.#conversation = conversation;
    const { system, context_policy: policy } = conversation.session ?? { ...this.newSession() };
    this.#system.value = system ?? "";
    this.#policy.value = policy ?? "sliding_window";
    this.#problem.textContent = "";
  }

  /** @returns {{system?: string | null, context_policy?: string}} fields of a session to be made */
  newSession() {
    return { context_policy: "sliding_window", ...read(localStorage, NAME) };
  }

  async #change() {
    const fields = { system: this.#system.value.trim() || null, context_policy: this.#policy.value };
    const session = this.#conversation?.session;
    if (!this.#conversation || !session) {
      // Kept for the conversations to come.
      write(localStorage, NAME, fields);
      return;
    }
    try {
      this.#conversation.session = await this.api.sessions.change(session.id, fields);
      this.#problem.textContent = "";
    } catch (error) {
      this.#problem.textContent = `Not saved: ${/** @type {Error} */ (error).message}`;
    }
  }
}
