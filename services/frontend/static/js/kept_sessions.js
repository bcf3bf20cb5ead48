// Sessions that the service keeps.

/** @typedef {import("./types.js").Session} Session */
/** @typedef {import("./types.js").Message} Message */

export class KeptSessions {
  /** @param {import("./api.js").Api} api */
  constructor(api) {
    this.api = api;
  }

  /**
   * @param {{q?: string, after?: string, limit?: number}} asked
   * @returns {Promise<{data: Session[], has_more: boolean, last_id: string | null}>}
   */
  list({ q, after, limit = 40 }) {
    const query = new URLSearchParams({ limit: String(limit) });
    if (q) query.set("q", q);
    if (after) query.set("after", after);
    return this.api.json(`/v1/sessions?${query}`);
  }

  /**
   * @param {Partial<Session>} fields
   * @returns {Promise<Session>}
   */
  create(fields) {
    return this.api.json("/v1/sessions", { method: "POST", body: fields });
  }

  /**
   * @param {string} id
   * @returns {Promise<Session>}
   */
  get(id) {
    return this.api.json(`/v1/sessions/${encodeURIComponent(id)}`);
  }

  /**
   * @param {string} id
   * @param {Partial<Session>} fields
   * @returns {Promise<Session>}
   */
  change(id, fields) {
    return this.api.json(`/v1/sessions/${encodeURIComponent(id)}`, { method: "PATCH", body: fields });
  }

  /** @param {string} id */
  async remove(id) {
    await this.api.send(`/v1/sessions/${encodeURIComponent(id)}`, { method: "DELETE" });
  }

  /**
   * @param {string} id
   * @returns {Promise<Message[]>} the whole tree
   */
  async messages(id) {
    return (await this.api.json(`/v1/sessions/${encodeURIComponent(id)}/messages?all=true`)).data;
  }

  /** @param {string} id */
  exported(id) {
    return this.api.json(`/v1/sessions/${encodeURIComponent(id)}/export`);
  }

  /**
   * @param {unknown} exported
   * @returns {Promise<Session>}
   */
  imported(exported) {
    return this.api.json("/v1/sessions/import", { method: "POST", body: exported });
  }
}
