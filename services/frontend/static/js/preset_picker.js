// Task presets: which one the next message goes through, and its variables.

import { byId, h } from "./dom.js";

/** @typedef {import("./types.js").Preset} Preset */

const NONE = "";

export class PresetPicker {
  #select = byId("preset", HTMLSelectElement);
  #fields = byId("preset-variables", HTMLElement);
  #cards = byId("preset-cards", HTMLElement);
  /** @type {Preset[]} */
  #presets = [];

  /** @param {() => void} onPicked */
  constructor(onPicked) {
    this.onPicked = onPicked;
    this.#select.addEventListener("change", () => this.#showFields());
  }

  /**
   * Read the presets; a service without any shows no picker.
   *
   * @param {import("./api.js").Api} api
   */
  async load(api) {
    try {
      this.#presets = await api.presets();
    } catch {
      this.#presets = [];
    }
    const options = this.#presets.map(({ name, title }) => new Option(title || name, name));
    this.#select.replaceChildren(new Option("No preset", NONE), ...options);
    byId("preset-row", HTMLElement).hidden = !this.#presets.length;
    this.#cards.replaceChildren(...this.#presets.map((preset) => this.#card(preset)));
    this.#showFields();
  }

  /** @returns {Record<string, unknown>} fields of the request that the chosen preset takes */
  requestFields() {
    const preset = this.#chosen;
    if (!preset) return {};
    const inputs = this.#fields.querySelectorAll("input, select");
    const values = [...inputs].map((input) => {
      const { name, value } = /** @type {HTMLInputElement | HTMLSelectElement} */ (input);
      return [name, value];
    });
    const filled = Object.fromEntries(values.filter(([, value]) => value !== ""));
    return { preset: preset.name, ...(Object.keys(filled).length ? { preset_variables: filled } : {}) };
  }

  /** @returns {boolean} whether all variables that must be set are; if not, the browser shows which one */
  reportValidity() {
    const fields = [...this.#fields.querySelectorAll("input")];
    return fields.every((field) => field.reportValidity());
  }

  get #chosen() {
    return this.#presets.find(({ name }) => name === this.#select.value);
  }

  /** @param {Preset} preset */
  #card({ name, title, description }) {
    const pick = () => {
      this.#select.value = name;
      this.#showFields();
      this.onPicked();
    };
    return h("button", { type: "button", class: "preset-card", onclick: pick }, h("b", {}, title || name), h("span", {}, description));
  }

  #showFields() {
    const preset = this.#chosen;
    this.#select.title = preset?.description ?? "";
    const fields = (preset?.variables ?? []).map(({ name, description, default: preferred, choices }) => {
      const id = `preset-${name}`;
      const field = choices?.length ? h("select", { id, name }) : h("input", { id, name, type: "text", required: preferred === undefined || preferred === null, placeholder: description });
      if (field instanceof HTMLSelectElement) field.append(...(choices ?? []).map((choice) => new Option(choice, choice)));
      if (preferred !== undefined && preferred !== null) field.value = preferred;
      return h("label", { class: "preset-variable", title: description ?? "" }, h("span", {}, name.replaceAll("_", " ")), field);
    });
    this.#fields.replaceChildren(...fields);
    this.#fields.hidden = !fields.length;
  }
}
