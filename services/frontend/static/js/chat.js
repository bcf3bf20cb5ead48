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

  /** @param {Surroundings} surroundings */
  constructor(surroundings) {
    this.page = surroundings;
    this.conversation = new Conversation(surroundings.api, null);
    this.#turns = new Turns(surroundings.api, {
      onChange: (conversation) => this.#shown(conversation),
      onText: (conversation, turn) => conversation === this.conversation && this.page.onText(turn),
      onOver: (conversation, turn, isStored) => {
        const isUnsent = turn.state === "stopped" && !isStored && turn.asked.text !== null;
        if (isUnsent && conversation === this.conversation) this.page.giveBack(turn.asked.text ?? "");
        this.page.onSessions();
      },
      onTitle: () => this.page.onSessions(),
      onRetry: (conversation, userId) => {
        this.#ask(conversation, { afterId: userId, text: null }, { parent_message_id: userId });
      },
    });
  }

  /** Begin a new conversation; what runs in the last one goes on. */
  begin() {
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
    const known = this.#turns.running.get(id);
    if (known) this.conversation = known;
    else {
      const opened = new Conversation(this.page.api, await this.page.api.sessions.get(id));
      await opened.load();
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
  send(text, fields = {}) {
    const afterId = this.conversation.session?.head ?? null;
    this.#ask(this.conversation, { afterId, text }, { messages: [{ role: "user", content: text }] }, fields);
  }

  /** @param {string} answerId */
  regenerate(answerId) {
    const afterId = this.conversation.messages.get(answerId)?.parent_id ?? null;
    this.#ask(this.conversation, { afterId, text: null }, { parent_message_id: afterId });
  }

  /** @param {string} answerId */
  continueAnswer(answerId) {
    const answer = this.conversation.messages.get(answerId);
    if (!answer) return;
    const asked = { afterId: answer.parent_id, text: null, baseText: answer.content ?? "" };
    this.#ask(this.conversation, asked, { continue_message_id: answerId });
  }

  /**
   * @param {string} userId
   * @param {string} text
   */
  edit(userId, text) {
    const afterId = this.conversation.messages.get(userId)?.parent_id ?? null;
    const fields = { messages: [{ role: "user", content: text }], parent_message_id: afterId };
    this.#ask(this.conversation, { afterId, text }, fields);
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
   * @param {{afterId: string | null, text: string | null, baseText?: string}} asked
   * @param {Record<string, unknown>} turnFields what is new, as a session takes it
   * @param {Record<string, unknown>} [fields] more of the request
   */
  #ask(conversation, asked, turnFields, fields = {}) {
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
      return { ...this.page.requestFields(), stream: true, stream_options: options, ...what, ...fields };
    };
    void this.#turns.run(conversation, { ...asked, body });
  }

  /** @param {Conversation} conversation */
  #shown(conversation) {
    if (conversation === this.conversation) this.page.onShown(conversation);
  }
}
