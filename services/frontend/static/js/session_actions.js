// What is done with a conversation in the list. What fails is told in a dialog.

import { confirm, tell } from "./dialogs.js";
import { readExport, saveExport } from "./session_files.js";

/** @typedef {import("./types.js").Session} Session */
/** @typedef {import("./api.js").Api} Api */
/** @typedef {import("./chat.js").Chat} Chat */

/**
 * @param {Session} session
 * @param {string} title
 * @param {{api: Api, chat: Chat, onShown: (conversation: Chat["conversation"]) => void}} page
 */
export async function rename(session, title, { api, chat, onShown }) {
  const renamed = await api.sessions.change(session.id, { title }).catch(tell);
  if (!renamed || chat.conversation.session?.id !== session.id) return;
  chat.conversation.session = renamed;
  onShown(chat.conversation);
}

/**
 * @param {Session} session
 * @param {Api} api
 */
export async function exportSession(session, api) {
  const exported = await api.sessions.exported(session.id).catch(tell);
  if (exported) saveExport(exported, session.title);
}

/**
 * Delete a conversation, if the user means it.
 *
 * @param {Session} session
 * @param {{api: Api, chat: Chat, newChat: () => void}} page
 */
export async function remove(session, { api, chat, newChat }) {
  const text = `“${session.title || "New chat"}” and all its messages will be gone.`;
  if (!(await confirm("Delete this chat?", text, "Delete"))) return;
  const isShown = chat.conversation.session?.id === session.id;
  // What runs in it would be refused its place.
  if (isShown) await chat.stop();
  await api.sessions.remove(session.id).then(() => isShown && newChat(), tell);
}

/**
 * @param {HTMLInputElement} field with the file that the user chose
 * @param {Api} api
 * @returns {Promise<Session | null>} the new conversation
 */
export async function importSession(field, api) {
  try {
    return await api.sessions.imported(await readExport(field));
  } catch (error) {
    tell(error);
    return null;
  }
}
