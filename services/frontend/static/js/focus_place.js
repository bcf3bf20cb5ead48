// Gives the focus back to the button that took the place of the one that had it.

/**
 * Note which button of which message has the focus.
 *
 * @param {HTMLElement} list of messages
 * @returns {() => void} gives the focus to its counterpart, if it was lost meanwhile
 */
export function noteFocus(list) {
  const { activeElement: active } = document;
  const message = active?.closest("#messages > article");
  if (!active || !message || !list.contains(active)) return () => {};
  const place = [...list.children].indexOf(message);
  const kind = [...active.classList].find((name) => KINDS.includes(name));
  return () => {
    if (!kind || document.activeElement !== document.body) return;
    const counterparts = list.children[place]?.querySelectorAll(KINDS.map((name) => `.${name}`).join()) ?? [];
    const buttons = /** @type {HTMLButtonElement[]} */ ([...counterparts]).filter((button) => !button.disabled);
    (buttons.find((button) => button.classList.contains(kind)) ?? buttons[0])?.focus();
  };
}

const KINDS = ["variant-before", "variant-after", "copy", "edit", "regenerate", "continue"];
