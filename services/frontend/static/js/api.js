// The service's HTTP API, the part that the page uses.

import { errorOf, NetworkError } from "./errors.js";
import { Sessions } from "./sessions.js";

/** @typedef {import("./types.js").Preset} Preset */
/** @typedef {import("./types.js").Model} Model */

export class Api {
  /**
   * @param {import("./api_key.js").ApiKey} key
   * @param {() => void} onUnauthorized called when the key is missing or wrong
   */
  constructor(key, onUnauthorized) {
    this.key = key;
    this.onUnauthorized = onUnauthorized;
    this.sessions = new Sessions(this);
  }

  /**
   * @param {string} path
   * @param {{method?: string, body?: unknown, signal?: AbortSignal, headers?: Record<string, string>}} [options]
   * @returns {Promise<Response>} a response of success
   * @throws {import("./errors.js").ApiError | NetworkError | DOMException} the last when the signal aborts it
   */
  async send(path, { method = "GET", body, signal, headers = {} } = {}) {
    /** @type {Record<string, string>} */
    const json = body === undefined ? {} : { "content-type": "application/json" };
    let response;
    try {
      response = await fetch(path, {
        method,
        headers: { ...this.key.headers(), ...json, ...headers },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal,
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new NetworkError();
    }
    if (response.ok) return response;
    if (response.status === 401) this.onUnauthorized();
    throw await errorOf(response);
  }

  /**
   * @param {string} path
   * @param {{method?: string, body?: unknown}} [options]
   * @returns {Promise<any>}
   */
  async json(path, options) {
    const response = await this.send(path, options);
    try {
      return await response.json();
    } catch {
      throw new NetworkError();
    }
  }

  /** @returns {Promise<Model[]>} models that are ready */
  async models() {
    return (await this.json("/v1/models")).data;
  }

  /**
   * @param {string} name
   * @returns {Promise<Model>}
   */
  model(name) {
    return this.json(`/v1/models/${encodeURIComponent(name)}`);
  }

  /** @returns {Promise<Preset[]>} */
  async presets() {
    return (await this.json("/v1/presets")).data;
  }

  /**
   * @param {unknown} body
   * @param {AbortSignal} signal
   */
  startAnswer(body, signal) {
    return this.send("/v1/chat/completions", { method: "POST", body, signal });
  }

  /**
   * @param {string} streamId
   * @param {string} lastEventId
   * @param {AbortSignal} signal
   */
  resumeAnswer(streamId, lastEventId, signal) {
    const headers = { "last-event-id": lastEventId };
    return this.send(`/v1/streams/${encodeURIComponent(streamId)}`, { headers, signal });
  }

  /** @param {string} streamId */
  async cancelAnswer(streamId) {
    await this.send(`/v1/streams/${encodeURIComponent(streamId)}/cancel`, { method: "POST" });
  }
}
