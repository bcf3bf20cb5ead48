// The list of conversations: searched, renamed, exported, deleted.

import { byId, h } from "./dom.js";
import { iconButton } from "./icons.js";

/** @typedef {import("./types.js").Session} Session */

const TYPING_MS = 200;
const NOT_KEPT = "This service keeps no chats: they are gone when this page is left.";
const DAY_MS = 86_400_000;

/**
 * @typedef {object} ListActions
 * @property {(session: Session, title: string) => Promise<void>} rename
 * @property {(session: Session) => void} exportSession
 * @property {(session: Session) => void} remove
 */

export class SessionList {
  #list = byId("sessions", HTMLElement);
  #note = byId("sessions-note", HTMLElement);
  #search = byId("search", HTMLInputElement);
  #more = byId("more-sessions", HTMLButtonElement);
  /** @type {Session[]} */
  #sessions = [];
  /** @type {string | null} */
  #current = null;
  #typing = 0;
  /** Counts the questions asked, so that a late answer to an old one is not shown. */
  #asked = 0;
  #isRenaming = false;

  /**
   * @param {import("./api.js").Api} api
   * @param {ListActions} actions
   */
  constructor(api, actions) {
    this.api = api;
    this.actions = actions;
    this.#search.addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#typing = window.setTimeout(() => void this.load(), TYPING_MS);
    });
    this.#search.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.#search.value) return;
      event.stopPropagation();
      this.#search.value = "";
      void this.load();
    });
    this.#more.addEventListener("click", () => void this.#load(this.#sessions.at(-1)?.id));
  }

  /** Ask for the list anew. */
  load() {
    return this.#load(undefined);
  }

  /** @param {string | null} id of the session that is shown */
  setCurrent(id) {
    if (id === this.#current) return;
    this.#current = id;
    this.#render();
  }

  /** @param {string | undefined} after id of the last session of the page before */
  async #load(after) {
    const asked = ++this.#asked;
    const q = this.#search.value.trim();
    try {
      const page = await this.api.sessions.list({ q, after });
      if (asked !== this.#asked) return;
      this.#sessions = after ? [...this.#sessions, ...page.data] : page.data;
      this.#more.hidden = !page.has_more;
      const none = this.#sessions.length ? "" : q ? "No chat matches." : "No chats yet.";
      this.#note.textContent = this.api.sessions.ofPage ? `${none} ${NOT_KEPT}`.trim() : none;
      this.#render();
    } catch (error) {
      if (asked === this.#asked) this.#note.textContent = `The chats cannot be listed: ${/** @type {Error} */ (error).message}`;
    }
  }

  #render() {
    if (this.#isRenaming) return;
    const focused = /** @type {HTMLElement | null} */ (document.activeElement?.closest("#sessions li"))?.dataset.id;
    /** @type {Node[]} */
    const items = [];
    let group = "";
    for (const session of this.#sessions) {
      const next = groupOf(session.updated_at * 1000);
      if (next !== group) items.push(h("li", { class: "session-group", role: "presentation" }, next));
      group = next;
      items.push(this.#item(session));
    }
    this.#list.replaceChildren(...items);
    if (focused) /** @type {HTMLElement | null} */ (this.#list.querySelector(`li[data-id="${CSS.escape(focused)}"] a`))?.focus();
  }

  /** @param {Session} session */
  #item(session) {
    const title = session.title || "New chat";
    const isCurrent = session.id === this.#current;
    const link = h("a", { href: `#/${session.id}`, "aria-current": isCurrent && "page", title }, title);
    const item = h("li", { class: `session${isCurrent ? " current" : ""}`, "data-id": session.id });
    item.append(
      link,
      h(
        "span",
        { class: "session-actions" },
        iconButton("edit", `Rename ${title}`, () => this.#rename(session, item, link), "rename"),
        iconButton("export", `Export ${title}`, () => this.actions.exportSession(session), "export"),
        iconButton("trash", `Delete ${title}`, () => this.actions.remove(session), "delete"),
      ),
    );
    return item;
  }

  /**
   * @param {Session} session
   * @param {HTMLElement} item
   * @param {HTMLElement} link
   */
  #rename(session, item, link) {
    const field = h("input", { type: "text", class: "rename-field", "aria-label": "Title", maxlength: 200 });
    field.value = session.title;
    this.#isRenaming = true;
    /** @param {boolean} keep */
    const end = async (keep) => {
      if (!this.#isRenaming) return;
      this.#isRenaming = false;
      const title = field.value.trim();
      if (keep && title && title !== session.title) await this.actions.rename(session, title);
      await this.load();
      /** @type {HTMLElement | null} */ (this.#list.querySelector(`li[data-id="${CSS.escape(session.id)}"] a`))?.focus();
    };
    field.addEventListener("blur", () => void end(true));
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      void end(event.key === "Enter");
    });
    link.replaceWith(field);
    item.classList.add("renaming");
    field.select();
  }
}

/**
 * @param {number} time in milliseconds
 * @returns {string}
 */
function groupOf(time) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  if (time >= midnight) return "Today";
  if (time >= midnight - DAY_MS) return "Yesterday";
  if (time >= midnight - 7 * DAY_MS) return "This week";
  return "Earlier";
}
