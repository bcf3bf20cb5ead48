// One answer as it comes: from the request, over waits and lost connections, to its end.

import { AnswerStream } from "./answer_stream.js";
import { ApiError, NetworkError } from "./errors.js";

const MOST_RETRIES = 5;

/** @typedef {import("./types.js").Asked} Asked */

export class Turn {
  /** @type {"waiting" | "streaming" | "reconnecting" | "busy" | "stopping" | "done" | "stopped" | "failed"} */
  state = "waiting";
  text = "";
  reasoning = "";
  /** @type {import("./types.js").Usage | null} */
  usage = null;
  /** @type {import("./types.js").ContextReport | null} */
  context = null;
  /** @type {import("./types.js").FilterMatch[]} */
  filterMatches = [];
  /** @type {import("./types.js").FormatFault[]} */
  formatFaults = [];
  /** @type {string | null} */
  finishReason = null;
  /** @type {string | null} */
  userId = null;
  /** @type {string | null} */
  answerId = null;
  /** @type {ApiError | NetworkError | null} */
  error = null;
  /** Time of the next try while `busy`, in milliseconds. */
  retryAt = 0;
  sentAt = 0;
  firstTokenAt = 0;
  lastTokenAt = 0;
  #retries = 0;
  /** @type {(() => void) | null} ends a wait */
  #endWait = null;
  /** @type {AnswerStream} */
  #stream;

  /**
   * @param {import("./api.js").Api} api
   * @param {Asked} asked
   * @param {(turn: Turn) => void} onChange
   */
  constructor(api, asked, onChange) {
    this.api = api;
    this.asked = asked;
    this.onChange = onChange;
    this.text = asked.baseText ?? "";
    this.#stream = this.#newStream();
  }

  get isOver() {
    return this.state === "done" || this.state === "stopped" || this.state === "failed";
  }

  get streamId() {
    return this.#stream.id;
  }

  /** Run to the end. Does not throw: `state` and `error` tell. */
  async run() {
    for (;;) {
      try {
        await this.#attempt();
        this.#become(this.#isStopping ? "stopped" : "done");
        return;
      } catch (error) {
        if (this.#isStopping || isCancelled(error)) return this.#become("stopped");
        if (!(error instanceof ApiError || error instanceof NetworkError)) {
          this.error = new NetworkError(`The page failed: ${/** @type {Error} */ (error).message}`);
          console.error(error);
          return this.#become("failed");
        }
        this.error = error;
        const busy = error instanceof ApiError && error.isBusy && this.answerId === null;
        if (!busy || this.#retries >= MOST_RETRIES) return this.#become("failed");
        this.#retries += 1;
        await this.#wait(error.retryAfterMs ?? 1000);
        if (this.#isStopping) return this.#become("failed");
      }
    }
  }

  /** Stop the answer; what has come stays. While it waits for its next try, give up. */
  async stop() {
    if (this.isOver || this.#isStopping) return;
    this.#become("stopping");
    this.#endWait?.();
    try {
      await this.#stream.cancel();
    } catch (error) {
      // It may have ended by itself meanwhile, or the network is away: the reader has left all the same.
      console.warn("the answer could not be cancelled:", error);
    }
  }

  /** Try again at once while `busy`. */
  retryNow() {
    this.#endWait?.();
  }

  get #isStopping() {
    return this.state === "stopping";
  }

  #newStream() {
    return new AnswerStream(this.api, (connected) => {
      if (!this.#isStopping) this.#become(connected ? "streaming" : "reconnecting");
    });
  }

  async #attempt() {
    this.#stream = this.#newStream();
    this.sentAt = performance.now();
    this.error = null;
    this.#become("waiting");
    const { body, streamId } = this.asked;
    const chunks = body ? this.#stream.start(await body()) : this.#stream.resume(streamId ?? "");
    for await (const chunk of chunks) {
      this.#take(chunk);
      this.onChange(this);
    }
  }

  /** @param {any} chunk */
  #take(chunk) {
    if (chunk.session) {
      this.userId = chunk.session.message_ids?.[0] ?? null;
      this.answerId = chunk.session.answer_id;
    }
    this.context = chunk.context ?? this.context;
    this.usage = chunk.usage ?? this.usage;
    const choice = chunk.choices?.[0];
    if (!choice) return;
    const text = choice.delta?.content ?? "";
    const reasoning = choice.delta?.reasoning ?? "";
    if (text || reasoning) {
      this.lastTokenAt = performance.now();
      this.firstTokenAt ||= this.lastTokenAt;
      this.text += text;
      this.reasoning += reasoning;
    }
    // The closing chunk repeats all of them.
    const closing = Boolean(choice.finish_reason);
    this.filterMatches = joined(this.filterMatches, choice.filter_matches, closing);
    this.formatFaults = joined(this.formatFaults, choice.format_faults, closing);
    this.finishReason = choice.finish_reason ?? this.finishReason;
  }

  /**
   * @param {number} milliseconds
   * @returns {Promise<void>}
   */
  #wait(milliseconds) {
    this.retryAt = Date.now() + milliseconds;
    this.#become("busy");
    return new Promise((passed) => {
      const end = () => {
        clearTimeout(timer);
        this.#endWait = null;
        passed();
      };
      const timer = setTimeout(end, milliseconds);
      this.#endWait = end;
    });
  }

  /** @param {Turn["state"]} state */
  #become(state) {
    this.state = state;
    this.onChange(this);
  }
}

/**
 * @param {unknown} error
 * @returns {boolean} whether the answer was stopped from elsewhere, such as another tab
 */
function isCancelled(error) {
  return error instanceof ApiError && error.code === "cancelled";
}

/**
 * @template Item
 * @param {Item[]} known
 * @param {Item[] | undefined} told
 * @param {boolean} closing
 * @returns {Item[]}
 */
function joined(known, told, closing) {
  if (!told) return known;
  return closing ? told : [...known, ...told];
}
