// What can go wrong between the page and the service.

/** The service answered with an error; the fields are those of OpenAI's error object and of its headers. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {{status: number, code?: string | null, requestId?: string | null, retryAfterMs?: number | null}} told
   */
  constructor(message, told) {
    super(message);
    this.status = told.status;
    this.code = told.code ?? null;
    this.requestId = told.requestId ?? null;
    this.retryAfterMs = told.retryAfterMs ?? null;
  }

  /** Whether the same request may be taken a little later. */
  get isBusy() {
    return this.status === 429 || this.status === 503;
  }
}

/** The service was not reached, or the connection was lost. */
export class NetworkError extends Error {
  constructor(message = "The service cannot be reached. Check the connection and try again.") {
    super(message);
    /** @type {string | null} */
    this.requestId = null;
  }
}

/**
 * The error that a response tells.
 *
 * @param {Response} response
 * @returns {Promise<ApiError>}
 */
export async function errorOf(response) {
  let message = `The service answered with HTTP ${response.status}.`;
  let code = null;
  try {
    const { error } = await response.json();
    message = error.message;
    code = error.code;
  } catch { /* the status alone must do */ }
  const requestId = response.headers.get("x-request-id");
  return new ApiError(message, { status: response.status, code, requestId, retryAfterMs: retryAfterMs(response.headers) });
}

/**
 * Milliseconds to wait, of `retry-after-ms` or `Retry-After` (seconds, or a date: RFC 9110, 10.2.3).
 *
 * @param {Headers} headers
 * @returns {number | null}
 */
function retryAfterMs(headers) {
  const exact = headers.get("retry-after-ms");
  if (exact !== null && Number(exact) >= 0) return Number(exact);
  const told = headers.get("retry-after");
  if (told === null) return null;
  const wait = /^\d+$/.test(told) ? Number(told) * 1000 : Date.parse(told) - Date.now();
  return Number.isFinite(wait) ? Math.max(0, wait) : null;
}
