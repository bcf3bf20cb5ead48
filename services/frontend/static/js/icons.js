// Icons as drawn lines, 24 by 24.

import { h } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

/** @type {Record<string, string>} */
const PATHS = {
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
  settings: "M4 7h9M19 7h1M4 17h1M11 17h9M13 7a3 3 0 1 0 6 0a3 3 0 1 0-6 0M5 17a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
  light: "M12 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8M12 3v1M12 20v1M3 12h1M20 12h1M5.6 5.6l.7.7M17.7 17.7l.7.7M5.6 18.4l.7-.7M17.7 6.3l.7-.7",
  dark: "M20 14.5A8.5 8.5 0 1 1 9.5 4a7 7 0 0 0 10.5 10.5z",
  help: "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M9.5 9.5a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.9-1.1 1.8M12 16.8v.2",
  send: "M12 19V6M6 12l6-6l6 6",
  stop: "M8 8h8v8H8z",
  copy: "M9 9h10v11H9zM5 15V4h10",
  check: "M5 12.5l4.5 4.5L19 7.5",
  again: "M4 12a8 8 0 0 1 14-5.3L20 9M20 4v5h-5M20 12a8 8 0 0 1-14 5.3L4 15M4 20v-5h5",
  edit: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  more: "M12 4v12M7 11l5 5l5-5M5 20h14",
  onward: "M5 6l7 6l-7 6zM14 6l6 6l-6 6z",
  export: "M12 15V4M8 8l4-4l4 4M5 14v6h14v-6",
  import: "M12 4v11M8 11l4 4l4-4M5 14v6h14v-6",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5",
  close: "M6 6l12 12M18 6L6 18",
  left: "M14.5 6l-6 6l6 6",
  right: "M9.5 6l6 6l-6 6",
  down: "M12 5v13M6 12.5l6 6l6-6",
  key: "M14.5 4a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11M10.5 13.5L4 20M7 17l2.5 2.5",
  warning: "M12 4l9 16H3zM12 10v5M12 17.5v.2",
  info: "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M12 11v6M12 7.6v.2",
};

/**
 * An icon that screen readers pass over.
 *
 * @param {string} name
 * @returns {SVGSVGElement}
 */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name] ?? "");
  svg.append(path);
  return svg;
}

/**
 * A button that shows an icon alone; `label` is what it is called.
 *
 * @param {string} name
 * @param {string} label
 * @param {(event: MouseEvent) => void} onclick
 * @param {string} [kind] more classes
 * @returns {HTMLButtonElement}
 */
export function iconButton(name, label, onclick, kind = "") {
  const attributes = { type: "button", class: `icon-button ${kind}`.trim(), "aria-label": label, title: label, onclick };
  return h("button", attributes, icon(name));
}

/** Draw the icons that the page's own text names. */
export function fillIcons() {
  for (const place of document.querySelectorAll("[data-icon]")) {
    place.prepend(icon(/** @type {HTMLElement} */ (place).dataset.icon ?? ""));
  }
}
