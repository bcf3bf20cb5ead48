// Sampling parameters. What is not set is left to the preset and to the model.

import { read, write } from "./storage.js";

const NAME = "parameters";

/**
 * @typedef {object} Parameter
 * @property {string} name the API's
 * @property {string} label
 * @property {string} hint
 * @property {number} min
 * @property {number} max
 * @property {number} step
 * @property {boolean} [slides] whether it has a slider
 * @property {number} [rests] where the slider rests while it is not set
 */

/** @type {Parameter[]} */
export const PARAMETERS = [
  { name: "temperature", label: "Temperature", hint: "Higher is more varied, 0 always takes the likeliest token.", min: 0, max: 2, step: 0.05, slides: true, rests: 1 },
  { name: "top_p", label: "Top p", hint: "Only the likeliest tokens that together have this probability.", min: 0.01, max: 1, step: 0.01, slides: true, rests: 1 },
  { name: "min_p", label: "Min p", hint: "Only tokens with this share of the likeliest one's probability.", min: 0, max: 1, step: 0.01, slides: true, rests: 0 },
  { name: "top_k", label: "Top k", hint: "Only this many of the likeliest tokens; -1 takes all.", min: -1, max: 100000, step: 1 },
  { name: "max_tokens", label: "Most tokens", hint: "The answer is cut after this many tokens.", min: 1, max: 1000000, step: 1 },
  { name: "presence_penalty", label: "Presence penalty", hint: "Above 0, new words are preferred.", min: -2, max: 2, step: 0.05, slides: true, rests: 0 },
  { name: "frequency_penalty", label: "Frequency penalty", hint: "Above 0, words count less the more often they came.", min: -2, max: 2, step: 0.05, slides: true, rests: 0 },
  { name: "repetition_penalty", label: "Repetition penalty", hint: "Above 1, repeating is less likely.", min: 0.05, max: 2, step: 0.05, slides: true, rests: 1 },
  { name: "seed", label: "Seed", hint: "The same number gives the same answer.", min: -9007199254740991, max: 9007199254740991, step: 1 },
];

export const MOST_STOPS = 4;

/** Format checks: [the API's name, what it is called]. */
export const FORMAT_CHECKS = [["json", "Answers must be JSON"], ["code_blocks", "Brackets and quotes in code blocks"]];

export class Parameters {
  /** @type {Record<string, any>} by the API's names */
  #values = read(localStorage, NAME) ?? {};

  /** @param {string} name */
  get(name) {
    return this.#values[name] ?? null;
  }

  /**
   * @param {string} name
   * @param {unknown} value null unsets it
   */
  set(name, value) {
    if (value === null) delete this.#values[name];
    else this.#values[name] = value;
    write(localStorage, NAME, this.count ? this.#values : null);
  }

  /** Unset all. */
  reset() {
    this.#values = {};
    write(localStorage, NAME, null);
  }

  /** How many are set. */
  get count() {
    return Object.keys(this.#values).length;
  }

  /** @returns {Record<string, unknown>} the request's fields */
  requestFields() {
    return { ...this.#values };
  }
}
