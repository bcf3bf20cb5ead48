// Runs turns in conversations, and puts what the service stored of them into their places when they are over.

import { announce } from "./announcer.js";
import { keepStream, keptStream } from "./kept_streams.js";
import { Turn } from "./turn.js";

/** @typedef {import("./conversation.js").Conversation} Conversation */

const POLL_MS = 1000;

export class Turns {
  /** @type {Map<string, Conversation>} by session, those whose turns run */
  running = new Map();

  /**
   * @param {import("./api.js").Api} api
   * @param {object} listener
   * @param {(conversation: Conversation) => void} listener.onChange
   * @param {(conversation: Conversation, turn: Turn) => void} listener.onText a turn got text
   * @param {(conversation: Conversation, turn: Turn, isStored: boolean) => void} listener.onOver
   * @param {() => void} listener.onTitle a session got its title
   * @param {(conversation: Conversation, userId: string) => void} listener.onRetry answer a stored message again
   */
  constructor(api, listener) {
    this.api = api;
    this.listener = listener;
  }

  /**
   * @param {Conversation} conversation
   * @param {import("./types.js").Asked} asked
   * @param {string | null} [answerId] where it is known
   */
  async run(conversation, asked, answerId = null) {
    const known = new Set(conversation.messages.keys());
    let told = "";
    const turn = new Turn(this.api, asked, () => {
      const present = `${turn.state} ${turn.answerId} ${turn.retryAt}`;
      if (present === told) return this.listener.onText(conversation, turn);
      told = present;
      const { session } = conversation;
      if (session) this.running.set(session.id, conversation);
      if (session && turn.streamId) keepStream(session.id, turn.streamId);
      this.listener.onChange(conversation);
      if (session && !session.title && turn.userId) void this.#learnTitle(conversation);
    });
    turn.answerId = answerId;
    conversation.turn = turn;
    conversation.failure = null;
    this.listener.onChange(conversation);
    announce("Answering…");
    await turn.run();
    await this.#conclude(conversation, turn, known);
  }

  /**
   * Follow an answer that runs at the service though no turn of this page does.
   *
   * @param {Conversation} conversation
   */
  pickUp(conversation) {
    const { session } = conversation;
    const last = conversation.shown().at(-1);
    if (conversation.turn || !session || last?.status !== "running") return;
    const streamId = keptStream(session.id);
    if (streamId) {
      void this.run(conversation, { afterId: last.parent_id, text: null, body: null, streamId }, last.id);
      return;
    }
    setTimeout(async () => {
      if (conversation.turn) return;
      await conversation.load().catch(() => {});
      this.listener.onChange(conversation);
      this.pickUp(conversation);
    }, POLL_MS);
  }

  /**
   * Show the title that the service made of the first message, before its answer has ended.
   *
   * @param {Conversation} conversation
   */
  async #learnTitle(conversation) {
    if (!conversation.session) return;
    conversation.session = await this.api.sessions.get(conversation.session.id).catch(() => conversation.session);
    this.listener.onChange(conversation);
    this.listener.onTitle();
  }

  /**
   * @param {Conversation} conversation
   * @param {Turn} turn
   * @param {Set<string>} known ids of the messages before it
   */
  async #conclude(conversation, turn, known) {
    const { session } = conversation;
    if (session) {
      this.running.delete(session.id);
      keepStream(session.id, null);
      this.api.sessions.ofPage?.record(session.id, turn);
    }
    try {
      await conversation.load();
    } catch {
      // What came stays as it is shown, until the service is there again.
      this.listener.onChange(conversation);
      setTimeout(() => conversation.turn === turn && void this.#conclude(conversation, turn, known), POLL_MS);
      return;
    }
    const isStored = turn.answerId !== null || holdsNew(conversation, turn.asked, known);
    // A turn of which nothing is stored keeps its place with its error, and can be tried again as it was.
    if (turn.state !== "failed" || isStored) conversation.turn = null;
    if (turn.state === "failed" && isStored) this.#fail(conversation, turn);
    if (turn.state === "done") announce(turn.text || "The answer is empty.");
    if (turn.state === "stopped") announce("Stopped.");
    this.listener.onChange(conversation);
    this.listener.onOver(conversation, turn, isStored);
    this.pickUp(conversation);
  }

  /**
   * @param {Conversation} conversation
   * @param {Turn} turn
   */
  #fail(conversation, turn) {
    const user = conversation.shown().findLast(({ role }) => role === "user");
    // A stream that is picked up may be gone; its answer is followed in the session then.
    if (turn.asked.streamId || !user || !turn.error) return;
    conversation.failure = { error: turn.error, retry: () => this.listener.onRetry(conversation, user.id) };
  }
}

/**
 * Whether the user's message of a turn is stored, though no answer to it began.
 *
 * @param {Conversation} conversation
 * @param {import("./types.js").Asked} asked
 * @param {Set<string>} known ids of the messages before it
 */
function holdsNew(conversation, { text, afterId }, known) {
  const added = [...conversation.messages.values()].filter(({ id }) => !known.has(id));
  return added.some(({ role, content, parent_id }) => role === "user" && content === text && parent_id === afterId);
}
