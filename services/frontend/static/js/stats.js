// Times and counts of answers, live while they come and kept afterwards.

const NUMBER = new Intl.NumberFormat("en");

/**
 * @typedef {object} Figures
 * @property {number | null} ttftMs
 * @property {number | null} tokensPerSecond
 * @property {import("./types.js").Usage | null} usage
 */

/**
 * @param {import("./turn.js").Turn} turn
 * @returns {Figures}
 */
export function figuresOfTurn(turn) {
  const seconds = (turn.lastTokenAt - turn.firstTokenAt) / 1000;
  const tokens = (turn.usage?.completion_tokens ?? 0) - 1;
  return {
    ttftMs: turn.firstTokenAt ? turn.firstTokenAt - turn.sentAt : null,
    tokensPerSecond: seconds > 0.05 && tokens > 0 ? tokens / seconds : null,
    usage: turn.usage,
  };
}

/**
 * @param {import("./types.js").Message} message
 * @returns {Figures}
 */
export function figuresOfMessage(message) {
  const { stats, usage } = message;
  return { ttftMs: stats?.ttft_ms ?? null, tokensPerSecond: stats?.tokens_per_second ?? null, usage };
}

/**
 * @param {Figures} figures
 * @returns {string} what is known of them, in one line
 */
export function inOneLine({ ttftMs, tokensPerSecond, usage }) {
  const parts = [];
  if (ttftMs !== null) parts.push(`${seconds(ttftMs)} to first token`);
  if (tokensPerSecond !== null) parts.push(`${tokensPerSecond.toFixed(1)} tokens/s`);
  if (usage) {
    const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
    const ofCache = cached ? ` (${count(cached)} cached)` : "";
    parts.push(`${count(usage.prompt_tokens)} prompt tokens${ofCache}`, `${count(usage.completion_tokens)} answer tokens`);
  }
  return parts.join(" · ");
}

/** @param {number} number */
export function count(number) {
  return NUMBER.format(number);
}

/** @param {number} milliseconds */
function seconds(milliseconds) {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(2)} s`;
}
