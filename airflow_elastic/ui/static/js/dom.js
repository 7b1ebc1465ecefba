// Elements without markup strings: every text goes in as a text node, since DAG ids and messages are not ours.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element. `props` may hold class, text, on<Event>, data-*, aria-* and plain attributes; null leaves one out. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Make an SVG element in the same way. */
export function s(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2).toLowerCase(), value);
    else if (name === "vars") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else element.setAttribute(name === "cls" ? "class" : name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Set text only where it differs: an unchanged node costs no layout and keeps a person's selection. */
export function setText(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** Set or remove an attribute only where it differs. */
export function setAttr(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, String(value));
  }
}

export const show = (element, visible) => { element.hidden = !visible; };

/**
 * Bring a container's children in line with `items`: elements are kept by key, made once, updated in place, moved only
 * when their order changed. What makes a thousand nodes cheap.
 */
export function keyed(container, items, keyOf, make, update) {
  const kept = container.keyedElements ?? (container.keyedElements = new Map());
  if (kept.size === 0) container.replaceChildren();
  const wanted = new Set();
  let place = container.firstChild;
  for (const item of items) {
    let key = keyOf(item);
    while (wanted.has(key)) key += "\u0001"; // two of one name: a broken document must not break the page
    wanted.add(key);
    let element = kept.get(key);
    if (!element) kept.set(key, (element = make(item)));
    update?.(element, item);
    if (element !== place && place && element === place.nextSibling) {
      // One element left its place: move that one instead of everything behind it.
      container.append(place);
      place = element;
    }
    if (element === place) place = place.nextSibling;
    else container.insertBefore(element, place);
  }
  for (const [key, element] of kept) {
    if (!wanted.has(key)) {
      kept.delete(key);
      element.remove();
    }
  }
}

/** Replace a keyed container's content by an empty state; the next `keyed` call starts afresh. */
export function emptyState(container, title, text) {
  container.keyedElements?.clear();
  if (container.emptyTitle === title && container.firstChild?.classList?.contains("empty")) return;
  container.emptyTitle = title;
  container.replaceChildren(h("div", { cls: "empty" }, h("strong", { text: title }), h("p", {}, withCode(text))));
}

/** Split a sentence at backticks into text and <code> nodes. */
export function withCode(text) {
  return String(text).split("`").map((part, index) => (index % 2 ? h("code", { text: part }) : part));
}
