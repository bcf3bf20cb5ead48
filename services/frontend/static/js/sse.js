// Server-sent events from a response's body: https://html.spec.whatwg.org/multipage/server-sent-events.html

// Events that came at once are taken at most this long in a row, so that the page is drawn meanwhile.
const AT_A_TIME_MS = 8;

/**
 * Yield each event with text.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @param {() => void} onBytes called for all that arrives, comments too
 * @returns {AsyncGenerator<{id: string, data: string}, void, void>}
 */
export async function* events(body, onBytes) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let id = "";
  let since = performance.now();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      since = performance.now();
      onBytes();
      rest += decoder.decode(value, { stream: true });
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const lines = [];
        for (const line of block.split(/\r?\n/)) {
          const [, name, text] = /^([^:]*): ?(.*)$/s.exec(line) ?? ["", line, ""];
          if (name === "data") lines.push(text);
          if (name === "id") id = text;
        }
        if (lines.length) yield { id, data: lines.join("\n") };
        if (performance.now() - since > AT_A_TIME_MS) {
          await nextTask();
          since = performance.now();
        }
      }
    }
  } finally {
    // A reader that is left takes its connection along.
    reader.cancel().catch(() => {});
  }
}

/** @returns {Promise<void>} settled after the browser had its turn */
function nextTask() {
  return new Promise((passed) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      passed();
    };
    port2.postMessage(null);
  });
}
