// Which model answers, and how it is. The list has the models that are ready; of one that left it the service tells why.

import { byId } from "./dom.js";
import { ApiError } from "./errors.js";
import { read, write } from "./storage.js";

const NAME = "model";
const KEY_NEEDED = "key needed";
const CALM_MS = 10_000;
const WAITING_MS = 1500;

export class ModelPicker {
  #select = byId("model", HTMLSelectElement);
  #state = byId("model-state", HTMLElement);
  /** @type {import("./types.js").Model[]} */
  #models = [];
  /** @type {string | null} */
  #chosen = read(localStorage, NAME);
  #timer = 0;
  #isReady = false;

  /**
   * @param {import("./api.js").Api} api
   * @param {() => void} onChange
   * @param {(name: string) => void} onChosen
   */
  constructor(api, onChange, onChosen) {
    this.api = api;
    this.onChange = onChange;
    this.#select.addEventListener("change", () => {
      this.#chosen = this.#select.value;
      write(localStorage, NAME, this.#chosen);
      onChosen(this.#chosen);
      void this.follow();
    });
    addEventListener("online", () => void this.follow());
    addEventListener("offline", () => void this.follow());
  }

  get name() {
    return this.#select.value;
  }

  /** In tokens, where the model is known. */
  get contextLength() {
    return this.#models.find(({ id }) => id === this.name)?.max_model_len ?? null;
  }

  /**
   * Choose a model by its name, if it is there.
   *
   * @param {string | null | undefined} name
   */
  choose(name) {
    if (!name || name === this.#chosen) return;
    this.#chosen = name;
    void this.follow();
  }

  /** Ask now how the models are, and again after a while. */
  async follow() {
    clearTimeout(this.#timer);
    try {
      this.#models = await this.api.models();
      await this.#showModels();
    } catch (error) {
      const asksForKey = error instanceof ApiError && error.status === 401;
      this.#show(asksForKey ? KEY_NEEDED : "unreachable", "failed", /** @type {Error} */ (error).message);
    }
    clearTimeout(this.#timer);
    const isCalm = this.#isReady || this.#state.textContent === KEY_NEEDED;
    this.#timer = window.setTimeout(() => void this.follow(), isCalm ? CALM_MS : WAITING_MS);
  }

  async #showModels() {
    const names = this.#models.map(({ id }) => id);
    const missing = this.#chosen && !names.includes(this.#chosen) ? this.#chosen : null;
    const state = missing ? await this.#stateOf(missing) : null;
    // A model that does not exist any more is not waited for.
    const isGone = state?.text === "gone";
    if (isGone && names.length) this.#chosen = names[0];
    const listed = state && missing && !isGone ? [...names, missing] : names;
    const chosen = this.#chosen ?? names[0] ?? "";
    const options = listed.map((name) => new Option(name === missing && state ? `${name} (${state.text})` : name, name));
    if (!options.length) options.push(new Option("no model", ""));
    const present = [...this.#select.options].map(({ text, value }) => `${text} ${value}`).join("\n");
    if (present !== options.map(({ text, value }) => `${text} ${value}`).join("\n")) this.#select.replaceChildren(...options);
    this.#select.value = chosen;
    this.#select.disabled = !listed.length;
    if (state && !isGone) this.#show(state.text, state.kind, state.message);
    else if (names.length) this.#show("ready", "ready", "");
    else this.#show("loading", "loading", "No model is ready yet.");
  }

  /**
   * @param {string} name
   * @returns {Promise<{text: string, kind: string, message: string} | null>} null when it is ready after all
   */
  async #stateOf(name) {
    try {
      await this.api.model(name);
      return null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { message, status, code } = error;
      if (status === 404) return { text: "gone", kind: "failed", message };
      if (code === "loading") return { text: "loading", kind: "loading", message };
      const text = /draining|failed/.exec(message)?.[0] ?? "not available";
      return { text, kind: "failed", message };
    }
  }

  /**
   * @param {string} text
   * @param {string} kind
   * @param {string} message
   */
  #show(text, kind, message) {
    this.#isReady = kind === "ready";
    if (this.#state.textContent !== text) this.#state.textContent = text;
    this.#state.dataset.state = kind;
    this.#state.title = message;
    this.onChange();
  }
}
