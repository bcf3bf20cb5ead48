// Sessions that the page itself keeps, for a service that keeps none. They are gone with the page.

import { figuresOfTurn } from "./stats.js";

/** @typedef {import("./types.js").Session} Session */
/** @typedef {import("./types.js").Message} Message */

export class PageSessions {
  /** @type {Map<string, Session>} */
  #sessions = new Map();
  /** @type {Map<string, Message[]>} by session, parents before children */
  #messages = new Map();
  #number = 0;

  /** @param {{q?: string}} asked */
  async list({ q = "" }) {
    const said = q.toLowerCase();
    const data = [...this.#sessions.values()].filter(({ id, title }) => {
      const texts = [title, ...this.#messagesOf(id).map(({ content }) => content ?? "")];
      return texts.some((text) => text.toLowerCase().includes(said));
    });
    data.sort((one, other) => other.updated_at - one.updated_at);
    return { data, has_more: false, last_id: null };
  }

  /** @param {Partial<Session>} fields */
  async create(fields) {
    const id = this.#newId("session");
    const empty = { title: "", model: null, system: null, context_policy: "error", head: null, summary: null };
    const session = { ...empty, ...fields, id, updated_at: Date.now() / 1000 };
    this.#sessions.set(id, session);
    this.#messages.set(id, []);
    return session;
  }

  /** @param {string} id */
  async get(id) {
    const session = this.#sessions.get(id);
    if (!session) throw new Error("This chat was kept by the page alone and is gone.");
    return session;
  }

  /**
   * @param {string} id
   * @param {Partial<Session>} fields
   */
  async change(id, fields) {
    const changed = { ...(await this.get(id)), ...fields };
    this.#sessions.set(id, changed);
    return changed;
  }

  /** @param {string} id */
  async remove(id) {
    this.#sessions.delete(id);
    this.#messages.delete(id);
  }

  /** @param {string} id */
  async messages(id) {
    const all = this.#messagesOf(id);
    return all.map((message) => {
      const siblings = all.filter((other) => other.parent_id === message.parent_id && other.role === message.role);
      return { ...message, siblings: siblings.map((sibling) => sibling.id) };
    });
  }

  /** @param {string} id */
  async exported(id) {
    return { session: await this.get(id), messages: this.#messagesOf(id) };
  }

  /** @param {any} document */
  async imported({ session, messages }) {
    const created = await this.create(session);
    this.#messages.set(created.id, messages);
    return created;
  }

  /**
   * The fields of a request that has no session: all messages that the model shall see.
   *
   * @param {Session} session
   * @param {Omit<import("./types.js").Asked, "body">} asked
   */
  requestFields({ id, system, context_policy }, { afterId, text, baseText }) {
    const messages = system ? [{ role: "system", content: system }] : [];
    const all = new Map(this.#messagesOf(id).map((message) => [message.id, message]));
    const path = [];
    for (let at = all.get(afterId ?? ""); at; at = all.get(at.parent_id ?? "")) path.unshift(at);
    for (const { role, content } of path) messages.push({ role, content: content ?? "" });
    if (text !== null) messages.push({ role: "user", content: text });
    if (!baseText) return { messages, context_policy };
    messages.push({ role: "assistant", content: baseText });
    return { messages, context_policy, continue_final_message: true, add_generation_prompt: false };
  }

  /**
   * Keep what came of a turn, if anything did.
   *
   * @param {string} id of the session
   * @param {import("./turn.js").Turn} turn
   */
  record(id, turn) {
    const session = this.#sessions.get(id);
    if (!session || (!turn.text && turn.state !== "done")) return;
    const { asked, text, finishReason, usage, context, filterMatches, formatFaults } = turn;
    const common = { created_at: Date.now() / 1000, siblings: [], model: session.model };
    const nothing = { finish_reason: null, usage: null, stats: null, context: null };
    let parent = asked.afterId;
    if (asked.text !== null) {
      const user = { ...common, ...nothing, id: this.#newId("message"), role: "user", status: "complete" };
      this.#messagesOf(id).push(/** @type {Message} */ ({ ...user, parent_id: parent, content: asked.text }));
      parent = user.id;
    }
    const { ttftMs, tokensPerSecond } = figuresOfTurn(turn);
    const stats = { ttft_ms: ttftMs, tokens_per_second: tokensPerSecond };
    const told = { usage, context, stats, filter_matches: filterMatches, format_faults: formatFaults };
    const status = turn.state === "done" ? "complete" : "partial";
    const answer = { ...common, ...told, id: this.#newId("message"), role: "assistant", status, finish_reason: finishReason };
    this.#messagesOf(id).push(/** @type {Message} */ ({ ...answer, parent_id: parent, content: text, reasoning: turn.reasoning }));
    const title = session.title || (asked.text ?? "").slice(0, 60);
    this.#sessions.set(id, { ...session, title, head: answer.id, updated_at: common.created_at });
  }

  /** @param {string} id */
  #messagesOf(id) {
    return this.#messages.get(id) ?? [];
  }

  /** @param {string} kind */
  #newId(kind) {
    this.#number += 1;
    return `page-${kind}-${this.#number}`;
  }
}
