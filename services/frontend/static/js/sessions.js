// Sessions, wherever they are kept: by the service, or by the page where the service keeps none.

import { ApiError } from "./errors.js";
import { KeptSessions } from "./kept_sessions.js";
import { PageSessions } from "./page_sessions.js";

/** @typedef {import("./types.js").Session} Session */

export class Sessions {
  /** @type {PageSessions | null} those of the page, where the service keeps none */
  ofPage = null;
  #kept;

  /** @param {import("./api.js").Api} api */
  constructor(api) {
    this.#kept = new KeptSessions(api);
  }

  /** @param {{q?: string, after?: string}} asked */
  list(asked) {
    return this.#use((store) => store.list(asked));
  }

  /** @param {Partial<Session>} fields */
  create(fields) {
    return this.#use((store) => store.create(fields));
  }

  /** @param {string} id */
  get(id) {
    return this.#use((store) => store.get(id));
  }

  /**
   * @param {string} id
   * @param {Partial<Session>} fields
   */
  change(id, fields) {
    return this.#use((store) => store.change(id, fields));
  }

  /** @param {string} id */
  remove(id) {
    return this.#use((store) => store.remove(id));
  }

  /** @param {string} id */
  messages(id) {
    return this.#use((store) => store.messages(id));
  }

  /** @param {string} id */
  exported(id) {
    return this.#use((store) => store.exported(id));
  }

  /** @param {unknown} document */
  imported(document) {
    return this.#use((store) => store.imported(document));
  }

  /**
   * @template Result
   * @param {(store: KeptSessions | PageSessions) => Promise<Result>} use
   * @returns {Promise<Result>}
   */
  async #use(use) {
    try {
      return await use(this.ofPage ?? this.#kept);
    } catch (error) {
      if (!(error instanceof ApiError && error.code === "sessions_disabled")) throw error;
      this.ofPage ??= new PageSessions();
      return use(this.ofPage);
    }
  }
}
