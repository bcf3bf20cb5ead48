"use strict";

const $ = (id) => document.getElementById(id);
const list = $("messages"), prompt = $("prompt"), model = $("model"), errorLine = $("error");
const key = $("key");

// The conversation as the API takes it.
let conversation = [];
// Ends the answer under way; null while there is none.
let answering = null;

function showError(text) {
  errorLine.textContent = text;
  errorLine.hidden = !text;
}

// Kept until the tab is closed. A service that asks for no key gets none.
key.value = sessionStorage.getItem("api-key") ?? "";

function authorization() {
  return key.value ? { authorization: `Bearer ${key.value}` } : {};
}

async function errorOf(response) {
  // Shown once a key is asked for.
  if (response.status === 401) key.hidden = false;
  let text = `HTTP ${response.status}`;
  try {
    text = (await response.json()).error.message;
  } catch { /* the status alone must do */ }
  return new Error(`${text} (request ${response.headers.get("x-request-id") ?? "unknown"})`);
}

function addMessage(role, text) {
  $("empty")?.remove();
  const bubble = document.createElement("div");
  bubble.className = `message ${role}`;
  // Text of people and models is never taken for HTML.
  bubble.textContent = text;
  list.append(bubble);
  list.scrollTop = list.scrollHeight;
  return bubble;
}

function addNote(bubble, text) {
  const note = document.createElement("span");
  note.className = "note";
  note.textContent = text;
  bubble.append(note);
}

// Yields the data of each server-sent event.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      for (const line of block.split("\n")) {
        if (line.startsWith("data: ")) yield line.slice(6);
      }
    }
  }
}

async function streamAnswer(bubble, signal) {
  const response = await fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", ...authorization() },
    body: JSON.stringify({ model: model.value, messages: conversation, stream: true }),
    signal,
  });
  if (!response.ok) throw await errorOf(response);
  const requestId = response.headers.get("x-request-id");
  for await (const event of events(response.body)) {
    if (event === "[DONE]") return;
    const chunk = JSON.parse(event);
    if (chunk.error) throw new Error(`${chunk.error.message} (request ${requestId})`);
    const text = chunk.choices[0]?.delta.content;
    if (text) {
      const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
      bubble.append(text);
      if (atEnd) list.scrollTop = list.scrollHeight;
    }
  }
  throw new Error(`the answer broke off (request ${requestId})`);
}

async function send() {
  const text = prompt.value.trim();
  if (!text || answering || !model.value) return;
  showError("");
  prompt.value = "";
  resize();
  conversation.push({ role: "user", content: text });
  addMessage("user", text);
  const bubble = addMessage("assistant", "");
  bubble.classList.add("streaming");
  const control = answering = new AbortController();
  toggle();
  let note = "";
  try {
    await streamAnswer(bubble, control.signal);
  } catch (error) {
    note = control.signal.aborted ? "stopped" : "failed";
    if (!control.signal.aborted) showError(error.message);
  }
  // A new conversation has begun meanwhile, and this answer is not part of it.
  if (answering !== control) return;
  answering = null;
  toggle();
  bubble.classList.remove("streaming");
  const answer = bubble.textContent;
  if (answer || !note) {
    conversation.push({ role: "assistant", content: answer });
    if (note || !answer) addNote(bubble, note || "no text");
  } else {
    // Without an answer the question can be sent again.
    conversation.pop();
    bubble.previousElementSibling.remove();
    bubble.remove();
    if (!prompt.value) prompt.value = text;
    resize();
  }
  list.scrollTop = list.scrollHeight;
  prompt.focus();
}

function toggle() {
  $("send").hidden = answering !== null;
  $("stop").hidden = answering === null;
}

function resize() {
  prompt.style.height = "auto";
  prompt.style.height = `${prompt.scrollHeight + 2}px`;
}

function clear() {
  answering?.abort();
  answering = null;
  conversation = [];
  list.replaceChildren();
  showError("");
  toggle();
  prompt.focus();
}

async function loadModels() {
  try {
    const response = await fetch("/v1/models", { headers: authorization() });
    if (response.status === 401) {
      key.hidden = false;
      showError(key.value ? "This API key is not accepted." : "This service asks for an API key.");
      key.focus();
      return;
    }
    if (!response.ok) throw await errorOf(response);
    const names = (await response.json()).data.map((entry) => entry.id);
    if (!names.length) throw new Error("no model is ready yet");
    model.replaceChildren(...names.map((name) => new Option(name, name)));
    model.disabled = false;
    showError("");
  } catch (error) {
    showError(`${error.message}; trying again`);
    setTimeout(loadModels, 2000);
  }
}

$("composer").addEventListener("submit", (event) => { event.preventDefault(); send(); });
$("stop").addEventListener("click", () => answering?.abort());
$("clear").addEventListener("click", clear);
key.addEventListener("change", () => {
  key.value = key.value.trim();
  sessionStorage.setItem("api-key", key.value);
  loadModels();
});
prompt.addEventListener("input", resize);
prompt.addEventListener("keydown", (event) => {
  // Enter that ends the composition of a character is not meant to send.
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send();
  }
});
loadModels();
