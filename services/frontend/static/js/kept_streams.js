// Streams that this tab began, by session, so that a page that is loaded again picks them up.

import { read, write } from "./storage.js";

const NAME = "streams";

/**
 * @param {string} sessionId
 * @returns {string | null} id of the stream that runs in it
 */
export function keptStream(sessionId) {
  return read(sessionStorage, NAME)?.[sessionId] ?? null;
}

/**
 * @param {string} sessionId
 * @param {string | null} streamId null forgets it
 */
export function keepStream(sessionId, streamId) {
  const { [sessionId]: present = null, ...others } = read(sessionStorage, NAME) ?? {};
  if (present === streamId) return;
  write(sessionStorage, NAME, streamId === null ? others : { ...others, [sessionId]: streamId });
}
