// One session as the page knows it: its tree of messages and the turn that runs in it.

/** @typedef {import("./types.js").Message} Message */
/** @typedef {import("./types.js").Session} Session */
/** @typedef {import("./turn.js").Turn} Turn */
/** @typedef {{error: import("./errors.js").ApiError | import("./errors.js").NetworkError, retry: () => void}} Failure */

export class Conversation {
  /** @type {Map<string, Message>} parents before children */
  messages = new Map();
  /** @type {Turn | null} */
  turn = null;
  /** @type {Failure | null} of the last turn, whose messages are stored */
  failure = null;

  /**
   * @param {import("./api.js").Api} api
   * @param {Session | null} session null until its first message is sent
   */
  constructor(api, session) {
    this.api = api;
    this.session = session;
  }

  /** Take over what the service has. */
  async load() {
    if (!this.session) return;
    const { id } = this.session;
    const [session, messages] = await Promise.all([this.api.sessions.get(id), this.api.sessions.messages(id)]);
    this.session = session;
    this.messages = new Map(messages.map((message) => [message.id, message]));
  }

  /** @returns {Message[]} of the branch that is shown, oldest first, without those that the running turn replaces */
  shown() {
    return this.pathTo(this.turn ? this.turn.asked.afterId : (this.session?.head ?? null));
  }

  /**
   * @param {string | null} id
   * @returns {Message[]} from the root to this message
   */
  pathTo(id) {
    const path = [];
    for (let message = this.#message(id); message; message = this.#message(message.parent_id)) path.unshift(message);
    return path;
  }

  /**
   * @param {string} id
   * @returns {string} the latest message that follows from it, or itself
   */
  leafOf(id) {
    let leaf = id;
    for (let next = this.#lastChildOf(leaf); next; next = this.#lastChildOf(leaf)) leaf = next.id;
    return leaf;
  }

  /**
   * Show another version of a message, with what followed it.
   *
   * @param {string} id
   */
  async choose(id) {
    if (!this.session) return;
    this.failure = null;
    this.session = await this.api.sessions.change(this.session.id, { head: this.leafOf(id) });
    // What a message is one of may have changed by other clients.
    await this.load();
  }

  /** @param {string} parentId */
  #lastChildOf(parentId) {
    return [...this.messages.values()].findLast((message) => message.parent_id === parentId);
  }

  /** @param {string | null} id */
  #message(id) {
    return id === null ? undefined : this.messages.get(id);
  }
}
