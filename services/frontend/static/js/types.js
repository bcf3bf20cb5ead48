// The API's objects, as far as the page reads them, and what the page asks for.

/**
 * @typedef {{id: string, max_model_len: number}} Model
 * @typedef {{prompt_tokens: number, completion_tokens: number, total_tokens: number,
 *   prompt_tokens_details?: {cached_tokens?: number}}} Usage
 * @typedef {{policy: string, dropped_messages: number, dropped_tokens: number, summary?: string, unsummarized_messages?: number}} ContextReport
 * @typedef {{action: string, rule: string, start: number, length: number}} FilterMatch
 * @typedef {{check: string, position: number, message: string}} FormatFault
 * @typedef {{ttft_ms?: number | null, tokens_per_second?: number | null}} Stats
 */

/**
 * @typedef {object} Session
 * @property {string} id
 * @property {string} title
 * @property {string | null} model
 * @property {string | null} system
 * @property {string} context_policy
 * @property {number} updated_at Unix time in seconds
 * @property {string | null} head id of the last message of the branch that is shown
 * @property {string | null} summary
 */

/**
 * @typedef {object} Message
 * @property {string} id
 * @property {string | null} parent_id
 * @property {string} role
 * @property {string | null} content
 * @property {string | null} [reasoning]
 * @property {"complete" | "partial" | "running"} status
 * @property {string | null} finish_reason
 * @property {number} created_at
 * @property {string | null} model
 * @property {Usage | null} usage
 * @property {Stats | null} stats
 * @property {ContextReport | null} context
 * @property {FilterMatch[] | null} [filter_matches]
 * @property {FormatFault[] | null} [format_faults]
 * @property {string[]} siblings
 */

/**
 * @typedef {{name: string, description?: string, default?: string, choices?: string[]}} PresetVariable
 * @typedef {{name: string, title: string, description: string, variables: PresetVariable[],
 *   parameters: Record<string, unknown>}} Preset
 */

/**
 * What a turn asks for.
 *
 * @typedef {object} Asked
 * @property {string | null} afterId the message after which it goes
 * @property {string | null} text the user's new message, if there is one
 * @property {string} [baseText] text of the answer that goes on
 * @property {Record<string, unknown>} [fields] of the request, beside those of every one
 * @property {(() => Promise<Record<string, unknown>>) | null} body makes the request's body; null with `streamId`
 * @property {string} [streamId] of an answer that was asked for before
 */

export {};
