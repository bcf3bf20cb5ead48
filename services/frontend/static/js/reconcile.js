// Makes elements equal to newer ones and leaves alone what is equal, so that a selection in them lasts.

/**
 * Make the children of `parent` from `first` on equal to those of `wanted`.
 *
 * @param {Node} parent
 * @param {Node | null} first
 * @param {Node} wanted its children are taken away
 * @param {Node | null} [end] the child that follows them and stays
 */
export function reconcile(parent, first, wanted, end = null) {
  let present = first;
  for (let next = wanted.firstChild; next; next = wanted.firstChild) {
    if (present === end || present === null) {
      parent.insertBefore(next, end);
      continue;
    }
    const following = present.nextSibling;
    if (isAlike(present, next)) {
      adopt(present, next);
      next.remove();
    } else {
      parent.replaceChild(next, present);
    }
    present = following;
  }
  while (present && present !== end) {
    const following = present.nextSibling;
    parent.removeChild(present);
    present = following;
  }
}

/**
 * @param {Node} present
 * @param {Node} next
 * @returns {present is ChildNode}
 */
function isAlike(present, next) {
  return present.nodeType === next.nodeType && present.nodeName === next.nodeName;
}

/**
 * @param {Node} present
 * @param {ChildNode} next
 */
function adopt(present, next) {
  if (present instanceof Text && next instanceof Text) {
    if (next.data === present.data) return;
    if (next.data.startsWith(present.data)) present.appendData(next.data.slice(present.length));
    else present.data = next.data;
  } else if (present instanceof Element && next instanceof Element) {
    for (const { name } of [...present.attributes]) {
      if (!next.hasAttribute(name)) present.removeAttribute(name);
    }
    for (const { name, value } of next.attributes) {
      if (present.getAttribute(name) !== value) present.setAttribute(name, value);
    }
    reconcile(present, present.firstChild, next);
  }
}
