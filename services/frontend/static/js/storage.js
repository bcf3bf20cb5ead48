// What the browser keeps for this page. Without storage (a browser may refuse it) everything lasts until the page is left.

/**
 * @param {Storage} storage
 * @param {string} name
 * @returns {any} what was kept, or null
 */
export function read(storage, name) {
  try {
    return JSON.parse(storage.getItem(name) ?? "null");
  } catch {
    return null;
  }
}

/**
 * @param {Storage} storage
 * @param {string} name
 * @param {unknown} value null forgets it
 */
export function write(storage, name, value) {
  try {
    if (value === null) storage.removeItem(name);
    else storage.setItem(name, JSON.stringify(value));
  } catch { /* it is full or refused; the page works on without */ }
}
