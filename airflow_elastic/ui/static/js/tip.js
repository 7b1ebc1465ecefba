// One tooltip for everything that has more to say than room: hover and keyboard focus both show it.

import { h } from "./dom.js";

const tip = document.getElementById("tip");
let owner = null;

/** Show `lines` (first one strong) beside an element. */
function showTip(element, lines) {
  const [title, ...rest] = lines.filter(Boolean);
  tip.replaceChildren(h("strong", { text: title }), ...rest.map((line) => h("p", { text: line })));
  tip.hidden = false;
  const at = element.getBoundingClientRect();
  const size = tip.getBoundingClientRect();
  const left = Math.min(Math.max(6, at.left + at.width / 2 - size.width / 2), innerWidth - size.width - 6);
  const below = at.bottom + 8 + size.height < innerHeight;
  tip.style.left = `${left}px`;
  tip.style.top = `${below ? at.bottom + 8 : Math.max(6, at.top - size.height - 8)}px`;
  if (owner && owner !== element) owner.removeAttribute("aria-describedby");
  element.setAttribute("aria-describedby", "tip");
  owner = element;
}

export function hideTip() {
  owner?.removeAttribute("aria-describedby");
  owner = null;
  tip.hidden = true;
}

/** Let every descendant that matches `selector` have a tip; `linesOf(element)` is asked when it is wanted. */
export function tips(container, selector, linesOf) {
  const over = (event) => {
    const element = event.target.closest?.(selector);
    const lines = element && container.contains(element) ? linesOf(element) : null;
    if (lines) showTip(element, lines);
  };
  const out = (event) => {
    if (event.target.closest?.(selector)) hideTip();
  };
  container.addEventListener("pointerover", over);
  container.addEventListener("pointerout", out);
  container.addEventListener("focusin", (event) => { if (event.target.matches?.(":focus-visible")) over(event); });
  container.addEventListener("focusout", out);
}

document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
document.addEventListener("scroll", hideTip, { passive: true, capture: true });
