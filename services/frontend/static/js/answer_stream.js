// One answer's stream of chunks, which outlives its connections.

import { ApiError, NetworkError } from "./errors.js";
import { events } from "./sse.js";

// The service keeps a stream for this long without a reader.
const KEPT_MS = 60_000;
// It sends a comment every 15 s, so a connection that is silent for longer is dead.
const SILENCE_MS = 40_000;

export class AnswerStream {
  /** @type {string | null} */
  id = null;
  /** @type {string | null} */
  requestId = null;
  #lastEventId = "0";
  #ended = new AbortController();
  /** @type {AbortController | null} of the connection at hand */
  #connection = null;

  /**
   * @param {import("./api.js").Api} api
   * @param {(isConnected: boolean) => void} onConnection
   */
  constructor(api, onConnection) {
    this.api = api;
    this.onConnection = onConnection;
  }

  /**
   * Ask for an answer and yield its chunks.
   *
   * @param {object} body of the request
   * @returns {AsyncGenerator<any, void, void>}
   * @throws {ApiError | NetworkError}
   */
  async *start(body) {
    yield* this.#chunks((signal) => this.api.startAnswer(body, signal));
  }

  /**
   * Yield the chunks of an answer that was asked for before, from its begin.
   *
   * @param {string} id
   * @returns {AsyncGenerator<any, void, void>}
   * @throws {ApiError | NetworkError}
   */
  async *resume(id) {
    this.id = id;
    yield* this.#chunks((signal) => this.api.resumeAnswer(id, this.#lastEventId, signal));
  }

  /** End the answer: at the service where its stream is known there, and here. */
  async cancel() {
    try {
      if (this.id !== null) await this.api.cancelAnswer(this.id);
    } finally {
      this.#ended.abort();
      this.#connection?.abort();
    }
  }

  /**
   * @param {(signal: AbortSignal) => Promise<Response>} open
   * @returns {AsyncGenerator<any, void, void>}
   */
  async *#chunks(open) {
    let response = await this.#connect(open);
    for (;;) {
      this.id = response.headers.get("x-stream-id") ?? this.id;
      this.requestId = response.headers.get("x-request-id") ?? this.requestId;
      this.onConnection(true);
      // The stream is over, and all of it has come.
      if (response.status === 204) return;
      for await (const event of this.#read(response)) {
        if (event.id) this.#lastEventId = event.id;
        if (event.data === "[DONE]") return;
        const chunk = JSON.parse(event.data);
        if (chunk.error) {
          const { message, code } = chunk.error;
          throw new ApiError(message, { status: 200, code, requestId: this.requestId });
        }
        yield chunk;
      }
      if (this.#ended.signal.aborted) return;
      this.onConnection(false);
      response = await this.#reconnect();
    }
  }

  /** @param {(signal: AbortSignal) => Promise<Response>} open */
  #connect(open) {
    this.#ended.signal.throwIfAborted();
    this.#connection = new AbortController();
    return open(this.#connection.signal);
  }

  /**
   * Yield events until the connection ends, in whatever way.
   *
   * @param {Response} response
   */
  async *#read(response) {
    const connection = /** @type {AbortController} */ (this.#connection);
    const lose = () => connection.abort();
    let silence = setTimeout(lose, SILENCE_MS);
    addEventListener("offline", lose);
    try {
      const body = /** @type {ReadableStream<Uint8Array>} */ (response.body);
      yield* events(body, () => {
        clearTimeout(silence);
        silence = setTimeout(lose, SILENCE_MS);
      });
    } catch (error) {
      // A body that breaks off rejects with one of these, whatever the cause.
      if (!(error instanceof TypeError || error instanceof DOMException)) throw error;
    } finally {
      clearTimeout(silence);
      removeEventListener("offline", lose);
    }
  }

  async #reconnect() {
    const lost = Date.now();
    for (let wait = 250; ; wait = Math.min(2 * wait, 4000)) {
      const id = this.id;
      if (id === null) throw new NetworkError("The connection was lost and the answer broke off.");
      await pause(wait, this.#ended.signal);
      try {
        return await this.#connect((signal) => this.api.resumeAnswer(id, this.#lastEventId, signal));
      } catch (error) {
        const passing = error instanceof NetworkError || (error instanceof ApiError && error.isBusy);
        if (!passing || Date.now() - lost > KEPT_MS) throw error;
      }
    }
  }
}

/**
 * Wait for a time, or for the network to come back, whichever is first.
 *
 * @param {number} milliseconds
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function pause(milliseconds, signal) {
  return new Promise((passed, failed) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      signal.removeEventListener("abort", end);
      if (signal.aborted) failed(signal.reason);
      else passed();
    };
    const timer = setTimeout(end, milliseconds);
    addEventListener("online", end);
    signal.addEventListener("abort", end);
  });
}
