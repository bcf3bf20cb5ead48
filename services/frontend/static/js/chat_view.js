// The messages of a conversation on the page, and the turn that runs in it.

import { AnswerView } from "./answer_view.js";
import { errorView } from "./error_view.js";
import { noteFocus } from "./focus_place.js";
import { UserView } from "./user_view.js";

/** @typedef {import("./conversation.js").Conversation} Conversation */
/** @typedef {import("./turn.js").Turn} Turn */

// Keys of what is not stored yet.
const NEW_MESSAGE = "new message";
const NEW_ANSWER = "new answer";

export class ChatView {
  /** @type {Map<string, UserView | AnswerView>} by the ids of their messages */
  #views = new Map();
  #frame = 0;

  /**
   * @param {HTMLElement} list
   * @param {HTMLElement} empty shown where there is no message
   * @param {import("./message_parts.js").Actions} actions
   * @param {{retry: (turn: Turn) => void, edit: (turn: Turn) => void}} onFailed
   * @param {(turn: Turn) => void} onGrown what has come of it is shown
   */
  constructor(list, empty, actions, onFailed, onGrown) {
    this.list = list;
    this.empty = empty;
    this.actions = actions;
    this.onFailed = onFailed;
    this.onGrown = onGrown;
  }

  /** Forget all that is shown. */
  clear() {
    this.#views.clear();
    this.list.replaceChildren();
  }

  /**
   * Show a conversation, with the views that are there already.
   *
   * @param {Conversation} conversation
   */
  render(conversation) {
    const { turn, failure } = conversation;
    const isBusy = turn !== null && !turn.isOver;
    const giveFocusBack = noteFocus(this.list);
    /** @type {Map<string, UserView | AnswerView>} */
    const shown = new Map();
    for (const message of conversation.shown()) {
      if (message.role !== "user" && message.role !== "assistant") continue;
      const view = this.#view(message.id, message.role === "user");
      view.settle(message, isBusy);
      shown.set(message.id, view);
    }
    if (turn) this.#addTurn(turn, shown);
    this.#views = shown;
    const elements = [...shown.values()].map((view) => view.element);
    if (failure) elements.push(errorView(failure.error, { retry: failure.retry }));
    this.#place(elements);
    this.empty.hidden = elements.length > 0;
    giveFocusBack();
  }

  /**
   * Show what has come of a turn, with the next frame.
   *
   * @param {Turn} turn
   */
  grow(turn) {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      const view = this.#views.get(turn.answerId ?? NEW_ANSWER);
      if (!(view instanceof AnswerView) || turn.isOver) return;
      this.#stream(view, turn);
      this.onGrown(turn);
    });
  }

  /** Begin editing the user's last message. */
  editLast() {
    const last = [...this.#views.values()].findLast((view) => view instanceof UserView);
    /** @type {HTMLButtonElement | null | undefined} */ (last?.element.querySelector("button.edit"))?.click();
  }

  /**
   * @param {Turn} turn
   * @param {Map<string, UserView | AnswerView>} shown
   */
  #addTurn(turn, shown) {
    // The service has given ids to what had none.
    this.#rename(NEW_MESSAGE, turn.userId);
    this.#rename(NEW_ANSWER, turn.answerId);
    const { text } = turn.asked;
    const userKey = turn.userId ?? NEW_MESSAGE;
    if (text !== null && !shown.has(userKey)) {
      const view = /** @type {UserView} */ (this.#view(userKey, true));
      view.pending(text);
      shown.set(userKey, view);
    }
    const key = turn.answerId ?? NEW_ANSWER;
    const view = /** @type {AnswerView} */ (this.#view(key, false));
    this.#stream(view, turn);
    shown.set(key, view);
  }

  /**
   * @param {AnswerView} view
   * @param {Turn} turn
   */
  #stream(view, turn) {
    const edit = turn.asked.text === null ? undefined : () => this.onFailed.edit(turn);
    view.stream(turn, { retry: () => this.onFailed.retry(turn), edit });
  }

  /**
   * @param {string} key
   * @param {boolean} isUser
   */
  #view(key, isUser) {
    return this.#views.get(key) ?? (isUser ? new UserView(this.actions) : new AnswerView(this.actions));
  }

  /**
   * @param {string} key
   * @param {string | null} id
   */
  #rename(key, id) {
    const view = this.#views.get(key);
    if (id === null || !view) return;
    this.#views.delete(key);
    this.#views.set(id, view);
  }

  /** @param {HTMLElement[]} elements */
  #place(elements) {
    const wanted = new Set(elements);
    for (const child of [...this.list.children]) {
      if (!wanted.has(/** @type {HTMLElement} */ (child))) child.remove();
    }
    // Moving an element that is in place would take the focus from it.
    elements.forEach((element, index) => {
      if (this.list.children[index] !== element) this.list.insertBefore(element, this.list.children[index] ?? null);
    });
  }
}
