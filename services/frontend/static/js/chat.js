// What the user does with conversations: opening, asking, regenerating, editing, continuing, stopping.

import { Conversation } from "./conversation.js";
import { Turns } from "./turns.js";

/** @typedef {import("./turn.js").Turn} Turn */

/**
 * What the chat needs of the rest of the page.
 *
 * @typedef {object} Surroundings
 * @property {import("./api.js").Api} api
 * @property {() => Record<string, unknown>} newSession fields of a session to be made
 * @property {() => Record<string, unknown>} requestFields model and parameters
 * @property {(conversation: Conversation) => void} onShown something changed in the conversation that is shown
 * @property {(turn: Turn) => void} onText a turn of it got text
 * @property {() => void} onSessions the list of sessions changed
 * @property {(text: string) => void} giveBack puts an unsent message into the field
 */

export class Chat {
  /** @type {Conversation} the one that is shown */
  conversation;
  #turns;
  /** Counts what was opened, so that what comes late is not shown. */
  #opened = 0;
  /** @type {Map<string, Record<string, unknown>>} fields with which messages were sent (their presets), by their ids */
  #fields = new Map();

  /** @param {Surroundings} surroundings */
  constructor(surroundings) {
    this.page = surroundings;
    this.conversation = new Conversation(surroundings.api, null);
    this.#turns = new Turns(surroundings.api, {
      onChange: (conversation) => this.#shown(conversation),
      onText: (conversation, turn) => conversation === this.conversation && this.page.onText(turn),
      onOver: (conversation, turn, isStored) => {
        if (turn.userId && turn.asked.fields) this.#fields.set(turn.userId, turn.asked.fields);
        const isUnsent = turn.state === "stopped" && !isStored && turn.asked.text !== null;
        if (isUnsent && conversation === this.conversation) this.page.giveBack(turn.asked.text ?? "");
        this.page.onSessions();
      },
      onTitle: () => this.page.onSessions(),
      onRetry: (conversation, userId) => {
        const fields = this.#fields.get(userId);
        this.#ask(conversation, { afterId: userId, text: null, fields }, { parent_message_id: userId });
      },
    });
  }

  /** Begin a new conversation; what runs in the last one goes on. */
  begin() {
    this.#opened += 1;
    this.conversation = new Conversation(this.page.api, null);
    this.page.onShown(this.conversation);
  }

  /**
   * Show a session.
   *
   * @param {string} id
   * @throws {import("./errors.js").ApiError | import("./errors.js").NetworkError}
   */
  async open(id) {
    const place = ++this.#opened;
    const known = this.#turns.running.get(id);
    if (known) this.conversation = known;
    else {
      const opened = new Conversation(this.page.api, await this.page.api.sessions.get(id));
      await opened.load();
      if (place !== this.#opened) return;
      this.conversation = opened;
      this.#turns.pickUp(opened);
    }
    this.page.onShown(this.conversation);
  }

  /**
   * Send a user's message after the last one.
   *
   * @param {string} text
   * @param {Record<string, unknown>} [fields] of the request, beside those of every one
   */
  send(text, fields) {
    const afterId = this.conversation.session?.head ?? null;
    this.#ask(this.conversation, { afterId, text, fields }, { messages: [{ role: "user", content: text }] });
  }

  /** @param {string} answerId */
  regenerate(answerId) {
    const afterId = this.conversation.messages.get(answerId)?.parent_id ?? null;
    const fields = this.#fields.get(afterId ?? "");
    this.#ask(this.conversation, { afterId, text: null, fields }, { parent_message_id: afterId });
  }

  /** @param {string} answerId */
  continueAnswer(answerId) {
    const answer = this.conversation.messages.get(answerId);
    if (!answer) return;
    const fields = this.#fields.get(answer.parent_id ?? "");
    const asked = { afterId: answer.parent_id, text: null, baseText: answer.content ?? "", fields };
    this.#ask(this.conversation, asked, { continue_message_id: answerId });
  }

  /**
   * @param {string} userId
   * @param {string} text
   */
  edit(userId, text) {
    const afterId = this.conversation.messages.get(userId)?.parent_id ?? null;
    const turnFields = { messages: [{ role: "user", content: text }], parent_message_id: afterId };
    this.#ask(this.conversation, { afterId, text, fields: this.#fields.get(userId) }, turnFields);
  }

  /** @param {string} id of the version to show */
  async choose(id) {
    await this.conversation.choose(id);
    this.page.onShown(this.conversation);
  }

  /** Stop what runs in the conversation that is shown. */
  async stop() {
    await this.conversation.turn?.stop();
  }

  /** @param {Turn} turn that failed before anything of it was stored */
  retry(turn) {
    if (this.conversation.turn === turn) void this.#turns.run(this.conversation, turn.asked);
  }

  /** @param {Turn} turn that failed, whose message goes back into the field */
  withdraw(turn) {
    if (this.conversation.turn !== turn) return;
    this.conversation.turn = null;
    this.page.giveBack(turn.asked.text ?? "");
    this.page.onShown(this.conversation);
  }

  /**
   * @param {Conversation} conversation
   * @param {Omit<import("./types.js").Asked, "body">} asked
   * @param {Record<string, unknown>} turnFields what is new, as a session takes it
   */
  #ask(conversation, asked, turnFields) {
    if (conversation.turn && !conversation.turn.isOver) return;
    const body = async () => {
      if (!conversation.session) {
        conversation.session = await this.page.api.sessions.create(this.page.newSession());
        this.#shown(conversation);
        this.page.onSessions();
      }
      const options = { include_usage: true, continuous_usage_stats: true, resumable: true };
      const { session } = conversation;
      const ofPage = this.page.api.sessions.ofPage?.requestFields(session, asked);
      const what = ofPage ?? { session_id: session.id, ...turnFields };
      return { ...this.page.requestFields(), stream: true, stream_options: options, ...what, ...asked.fields };
    };
    void this.#turns.run(conversation, { ...asked, body });
  }

  /** @param {Conversation} conversation */
  #shown(conversation) {
    if (conversation === this.conversation) this.page.onShown(conversation);
  }
}
