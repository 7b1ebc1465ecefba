// The side panel that answers "why?" for a node, a pool, a DAG or a task.

import { h, withCode } from "./dom.js";
import { fetchExplanation } from "./api.js";
import { clock, full } from "./format.js";
import { outcome } from "./tables.js";

const panel = document.getElementById("why");
let opener = null;
let asked = null;

export function openWhy(subject) {
  if (panel.hidden) opener = document.activeElement;
  panel.hidden = false;
  asked = subject;
  draw(subject, h("p", { cls: "muted", text: "Asking…" }));
  panel.querySelector(".close").focus();
  load(subject);
}

/** Ask again while the panel is open: it is as live as the page. */
export function refreshWhy() {
  if (!panel.hidden && asked) load(asked);
}

async function load(subject) {
  let content;
  let title = subject;
  try {
    const answer = await fetchExplanation(subject);
    title = answer.title ?? subject;
    content = answer.sentences ? explanation(answer) : [h("p", {}, withCode(answer.sentence))];
  } catch (error) {
    content = [h("p", { text: `No answer: ${error.message}. Try again in a moment.` })];
  }
  if (asked === subject && !panel.hidden) draw(title, ...content);
}

function draw(title, ...content) {
  const signature = title + content.map((each) => each.textContent).join("\u0000");
  if (panel.dataset.signature === signature) return;
  panel.dataset.signature = signature;
  const hadFocus = panel.contains(document.activeElement) && document.activeElement.className;
  panel.replaceChildren(h("header", {}, h("h2", { id: "why-title", text: title }),
    h("button", { cls: "close", type: "button", "aria-label": "Close", text: "×", onclick: close })), ...content);
  if (hadFocus) panel.querySelector(".close").focus();
}

function explanation(answer) {
  return [
    h("p", { cls: "muted", text: answer.kind }),
    section("Why", answer.sentences.length && h("ul", { cls: "sentences" }, answer.sentences.map((text) => h("li", {}, withCode(text))))),
    section("Figures", answer.facts.length && h("dl", {}, answer.facts.flatMap(([name, value]) => [h("dt", { text: name }), h("dd", { text: value })]))),
    section("See also", answer.related.length && h("div", { cls: "related" }, answer.related.map((name) => h("button", { type: "button", text: name, onclick: () => openWhy(name) })))),
    section("Decisions", answer.decisions.length && h("ul", { cls: "log" }, answer.decisions.map((each) => h("li", {},
      h("span", { cls: "sub", title: full(each.at), text: `${clock(each.at)} · ${each.code.toLowerCase().replaceAll("_", " ")}${outcome(each) && ` · ${outcome(each)}`}` }),
      h("div", { text: each.sentence }))))),
  ].filter(Boolean);
}

const section = (title, content) => (content ? h("section", {}, h("h3", { text: title }), content) : null);

function close() {
  panel.hidden = true;
  panel.dataset.signature = "";
  asked = null;
  if (opener?.isConnected) opener.focus();
}

document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !panel.hidden) close(); });
