// Dark and light: the system's, until the user chooses.

import { byId } from "./dom.js";
import { icon } from "./icons.js";
import { read, write } from "./storage.js";

const NAME = "theme";
const CHOICES = ["system", "light", "dark"];

/** Make the button that goes from one theme to the next. */
export function startTheme() {
  const button = byId("theme", HTMLButtonElement);
  /** @param {string} theme */
  const show = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const label = `Theme: ${theme}`;
    button.replaceChildren(icon(theme));
    button.setAttribute("aria-label", label);
    button.title = label;
  };
  button.addEventListener("click", () => {
    const next = CHOICES[(CHOICES.indexOf(chosen()) + 1) % CHOICES.length];
    write(localStorage, NAME, next === "system" ? null : next);
    show(next);
  });
  show(chosen());
}

/** @returns {string} */
function chosen() {
  const kept = read(localStorage, NAME);
  return CHOICES.includes(kept) ? kept : "system";
}
