// The form of the sampling parameters.

import { byId, h } from "./dom.js";
import { iconButton } from "./icons.js";
import { FORMAT_CHECKS, MOST_STOPS, PARAMETERS } from "./parameters.js";

/** @typedef {import("./parameters.js").Parameter} Parameter */

export class ParametersView {
  /** @type {(() => void)[]} each shows what is set */
  #shows = [];

  /**
   * @param {import("./parameters.js").Parameters} parameters
   * @param {() => void} onChange
   */
  constructor(parameters, onChange) {
    this.parameters = parameters;
    this.onChange = onChange;
    const rows = PARAMETERS.map((parameter) => this.#row(parameter));
    byId("parameters", HTMLElement).replaceChildren(...rows, this.#stops(), this.#checks());
    byId("reset-parameters", HTMLButtonElement).addEventListener("click", () => {
      parameters.reset();
      this.#showAll();
    });
    this.#showAll();
  }

  /** @param {Parameter} parameter */
  #row({ name, label, hint, min, max, step, slides, rests }) {
    const id = `parameter-${name}`;
    const field = h("input", { id, type: "number", min, max, step: "any", placeholder: "default", "aria-describedby": `${id}-hint` });
    const slider = slides ? h("input", { type: "range", min, max, step, "aria-label": `${label}, slider` }) : null;
    const problem = h("p", { class: "field-error", role: "alert" });
    const reset = iconButton("close", `Reset ${label}`, () => this.#set(name, null), "reset");
    field.addEventListener("change", () => {
      const value = field.value === "" && !field.validity.badInput ? null : field.valueAsNumber;
      const isWhole = value === null || step !== 1 || Number.isInteger(value);
      const isValid = field.validity.valid && isWhole;
      problem.textContent = isValid ? "" : `${label} must be ${isWhole && step !== 1 ? "a number" : "a whole number"} from ${min} to ${max}.`;
      if (isValid) this.#set(name, value);
    });
    slider?.addEventListener("input", () => this.#set(name, slider.valueAsNumber));
    this.#shows.push(() => {
      const value = this.parameters.get(name);
      field.value = value === null ? "" : String(value);
      problem.textContent = "";
      if (slider) slider.value = String(value ?? rests);
      slider?.classList.toggle("unset", value === null);
      reset.hidden = value === null;
    });
    const hinted = h("p", { class: "hint", id: `${id}-hint` }, hint);
    const line = h("div", { class: "parameter-line" }, h("label", { for: id }, label), reset, field);
    return h("div", { class: "parameter" }, line, slider, hinted, problem);
  }

  #stops() {
    const field = h("textarea", { id: "parameter-stop", rows: 2, "aria-describedby": "parameter-stop-hint" });
    field.addEventListener("change", () => {
      const stops = field.value.split("\n").filter(Boolean).slice(0, MOST_STOPS);
      this.#set("stop", stops.length ? stops : null);
    });
    this.#shows.push(() => { field.value = (this.parameters.get("stop") ?? []).join("\n"); });
    const hint = `The answer ends before one of these; one a line, at most ${MOST_STOPS}.`;
    return h("div", { class: "parameter" }, h("label", { for: "parameter-stop" }, "Stop texts"), field, h("p", { class: "hint", id: "parameter-stop-hint" }, hint));
  }

  #checks() {
    const boxes = FORMAT_CHECKS.map(([check, label]) => {
      const box = h("input", { type: "checkbox" });
      box.addEventListener("change", () => {
        const others = (this.parameters.get("format_checks") ?? []).filter((/** @type {string} */ other) => other !== check);
        const checks = box.checked ? [...others, check] : others;
        this.#set("format_checks", checks.length ? checks : null);
        if (!checks.length) this.#set("stop_on_format_fault", null);
      });
      this.#shows.push(() => { box.checked = (this.parameters.get("format_checks") ?? []).includes(check); });
      return h("label", { class: "check" }, box, label);
    });
    const stops = h("input", { type: "checkbox" });
    stops.addEventListener("change", () => this.#set("stop_on_format_fault", stops.checked || null));
    this.#shows.push(() => {
      stops.checked = this.parameters.get("stop_on_format_fault") ?? false;
      stops.disabled = !this.parameters.get("format_checks");
    });
    const last = h("label", { class: "check" }, stops, "Stop at the first fault");
    return h("fieldset", { class: "parameter" }, h("legend", {}, "Check the format"), ...boxes, last);
  }

  /**
   * @param {string} name
   * @param {unknown} value
   */
  #set(name, value) {
    this.parameters.set(name, value);
    this.#showAll();
  }

  #showAll() {
    for (const show of this.#shows) show();
    this.onChange();
  }
}
