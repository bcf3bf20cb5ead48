// Builds the page's parts and connects them.

import { Api } from "./api.js";
import { ApiKey } from "./api_key.js";
import { Chat } from "./chat.js";
import { ChatView } from "./chat_view.js";
import { Composer } from "./composer.js";
import { showContext } from "./context_meter.js";
import { openDialog, startDialogs, tell } from "./dialogs.js";
import { byId } from "./dom.js";
import { fillIcons } from "./icons.js";
import { ModelPicker } from "./model_picker.js";
import { Parameters } from "./parameters.js";
import { ParametersView } from "./parameters_view.js";
import { PresetPicker } from "./preset_picker.js";
import { ScrollFollow } from "./scroll_follow.js";
import { exportSession, importSession, remove, rename } from "./session_actions.js";
import { SessionList } from "./session_list.js";
import { SettingsView } from "./settings_view.js";
import { startShortcuts } from "./shortcuts.js";
import { Sidebar } from "./sidebar.js";
import { startTheme } from "./theme.js";

fillIcons();
startTheme();
startDialogs();

const key = new ApiKey();
/** @type {string | null} the last key, or none, that was refused */
let refusedKey = null;
const api = new Api(key, () => void askForKey());
const sidebar = new Sidebar();
const parameters = new Parameters();
const settings = new SettingsView(api);
const composer = new Composer({ send, stop: () => void chat.stop(), editLast: () => view.editLast() });
const presets = new PresetPicker(() => composer.focus());
const models = new ModelPicker(api, onModel, (name) => void keepModel(name));
new ParametersView(parameters, () => {
  byId("settings-count", HTMLElement).textContent = parameters.count ? String(parameters.count) : "";
});

const chat = new Chat({
  api,
  newSession: () => ({ model: models.name, ...settings.newSession() }),
  requestFields: () => ({ model: models.name, ...parameters.requestFields() }),
  onShown,
  onText: (turn) => view.grow(turn),
  onSessions: () => void list.load(),
  giveBack: (text) => composer.giveBack(text),
});

const view = new ChatView(
  byId("messages", HTMLElement),
  byId("empty", HTMLElement),
  {
    choose: (id) => void chat.choose(id).catch(tell),
    regenerate: (id) => (scroll.toLatest(), chat.regenerate(id)),
    continueAnswer: (id) => chat.continueAnswer(id),
    edit: (id, text) => (scroll.toLatest(), chat.edit(id, text)),
  },
  { retry: (turn) => chat.retry(turn), edit: (turn) => chat.withdraw(turn) },
  (turn) => showContext(turn.usage, models.contextLength),
);
const scroll = new ScrollFollow(byId("scroller", HTMLElement), byId("messages", HTMLElement), byId("jump", HTMLButtonElement));

const list = new SessionList(api, {
  rename: (session, title) => rename(session, title, { api, chat, onShown }),
  exportSession: (session) => void exportSession(session, api),
  remove: (session) => void remove(session, { api, chat, newChat }).then(() => list.load()),
});

/** @param {string} text */
function send(text) {
  if (!presets.reportValidity()) {
    composer.giveBack(text);
    presets.reportValidity();
    return;
  }
  scroll.toLatest();
  chat.send(text, presets.requestFields());
}

function newChat() {
  history.replaceState(null, "", location.pathname);
  chat.begin();
  sidebar.closeWhereNarrow();
  composer.focus();
}

/** @param {import("./conversation.js").Conversation} conversation */
function onShown(conversation) {
  const { session, turn } = conversation;
  view.render(conversation);
  settings.show(conversation);
  composer.setBusy(turn !== null && !turn.isOver);
  showContext(turn?.usage ?? conversation.shown().findLast(({ usage }) => usage)?.usage ?? null, models.contextLength);
  const title = session?.title || "New chat";
  byId("title", HTMLElement).textContent = title;
  document.title = session?.title ? `${title} – Stream-Omni` : "Stream-Omni";
  list.setCurrent(session?.id ?? null);
  // The session's address, so that it is found again after a reload.
  if (session && location.hash !== `#/${session.id}`) history.replaceState(null, "", `#/${session.id}`);
}

function onModel() {
  // A model that is not ready is asked all the same: the service tells when to try again.
  composer.setReady(Boolean(models.name));
  const usage = chat.conversation.turn?.usage ?? chat.conversation.shown().findLast((message) => message.usage)?.usage;
  showContext(usage ?? null, models.contextLength);
}

/** @param {string} name */
async function keepModel(name) {
  const { conversation } = chat;
  if (conversation.session) await api.sessions.change(conversation.session.id, { model: name }).catch(tell);
}

/** Show what the page's address names. */
async function route() {
  const [, id = null] = /^#\/(.+)$/.exec(location.hash) ?? [];
  sidebar.closeWhereNarrow();
  if (id === (chat.conversation.session?.id ?? null)) return;
  if (id === null) return location.hash ? undefined : newChat();
  view.clear();
  try {
    await chat.open(id);
    models.choose(chat.conversation.session?.model);
    scroll.toLatest();
  } catch (error) {
    newChat();
    if (!api.sessions.ofPage) tell(error);
  }
}

/** Ask for a key, once for each that was refused: who closes the dialog is not asked again and again. */
async function askForKey() {
  if (key.value === refusedKey) return;
  refusedKey = key.value;
  await key.ask(key.value ? "This API key is not accepted." : "This service asks for an API key.");
  if (key.value !== refusedKey) load();
}

function load() {
  void models.follow();
  void presets.load(api);
  void list.load();
  void route();
}

startShortcuts({
  newChat,
  search() {
    sidebar.open();
    byId("search", HTMLInputElement).select();
  },
  help: () => openDialog("help-dialog"),
  settings: () => openDialog("settings-dialog"),
  prompt: () => composer.focus(),
  stop() {
    const { turn } = chat.conversation;
    if (!turn || turn.isOver) return false;
    void chat.stop();
    return true;
  },
});

byId("new-chat", HTMLButtonElement).addEventListener("click", newChat);
byId("new-chat-top", HTMLButtonElement).addEventListener("click", newChat);
byId("key-button", HTMLButtonElement).addEventListener("click", () => void key.ask("The key goes with each request.").then(load));

const file = byId("import-file", HTMLInputElement);
byId("import", HTMLButtonElement).addEventListener("click", () => file.click());
file.addEventListener("change", async () => {
  const session = await importSession(file, api);
  if (!session) return;
  await list.load();
  location.hash = `#/${session.id}`;
});
addEventListener("hashchange", () => void route());
onShown(chat.conversation);
load();
// On a touch screen it would bring up the keyboard before anything was read.
if (matchMedia("(pointer: fine)").matches) composer.focus();
