// Conversations to files and back.

import { h } from "./dom.js";

/**
 * Save a document as a file of the user's.
 *
 * @param {unknown} exported
 * @param {string} title
 */
export function saveExport(exported, title) {
  const name = title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "chat";
  const address = URL.createObjectURL(new Blob([JSON.stringify(exported, null, 2)], { type: "application/json" }));
  const link = h("a", { href: address, download: `${name}.json` });
  link.click();
  URL.revokeObjectURL(address);
}

/**
 * Let the user choose a file that was exported.
 *
 * @param {HTMLInputElement} field
 * @returns {Promise<unknown>} its document
 * @throws {Error} it is no JSON
 */
export async function readExport(field) {
  const file = field.files?.[0];
  field.value = "";
  if (!file) throw new Error("no file was chosen");
  try {
    return JSON.parse(await file.text());
  } catch {
    throw new Error(`${file.name} is no JSON; choose a file that was exported here`);
  }
}
