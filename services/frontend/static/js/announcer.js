// Tells screen readers what happened. A stream read out word by word would help nobody: its begin and end are told.

import { byId } from "./dom.js";

const MOST_CHARACTERS = 600;

/** @param {string} text */
export function announce(text) {
  const told = text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)} …` : text;
  const place = byId("announcer", HTMLElement);
  // The same text twice is told twice only when the place changes.
  place.textContent = place.textContent === told ? `${told}\u00a0` : told;
}
