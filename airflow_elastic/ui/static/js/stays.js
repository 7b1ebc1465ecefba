// Why each node of a pool is up, in words: what `airflow elastic explain NODE` says of it.

import { h, keyed, setText } from "./dom.js";
import { plural } from "./format.js";

const OPEN_UP_TO = 8;
const MOST_NAMES = 3;

/** A function from a node's name to the tasks whose pods are on it, as "3 of etl.load". */
export function tasksByNode(tasks) {
  const counts = new Map();
  for (const task of tasks) {
    if (!task.pod?.node) continue;
    const names = counts.get(task.pod.node) ?? new Map();
    const name = `${task.dag_id}.${task.task_id}`;
    names.set(name, (names.get(name) ?? 0) + 1);
    counts.set(task.pod.node, names);
  }
  return (node) => {
    const names = [...(counts.get(node) ?? [])].sort((a, b) => b[1] - a[1]);
    const more = names.length > MOST_NAMES ? `, ${plural(names.length - MOST_NAMES, "more task")}` : "";
    return names.slice(0, MOST_NAMES).map(([name, count]) => `${count} of ${name}`).join(", ") + more;
  };
}

/** The list itself: open for few nodes, folded for many; a person's own choice stays. */
export function makeStays(openWhy) {
  const list = h("ul", {});
  const details = h("details", { cls: "stays" }, h("summary", { text: "Why its nodes are up" }), list);
  details.openWhy = openWhy;
  details.querySelector("summary").addEventListener("click", () => { details.chosen = true; });
  details.addEventListener("toggle", () => { if (details.open) details.again?.(); });
  return details;
}

export function updateStays(details, pool, tasksOn) {
  details.hidden = !pool.nodes.length;
  if (!details.chosen) details.open = pool.nodes.length > 0 && pool.nodes.length <= OPEN_UP_TO;
  setText(details.firstChild, `Why its ${plural(pool.nodes.length, "node")} ${pool.nodes.length === 1 ? "is" : "are"} up`);
  details.again = () => rows(details, pool, tasksOn);
  if (details.open) details.again();
}

function rows(details, pool, tasksOn) {
  keyed(details.lastChild, pool.nodes, (node) => node.name,
    (node) => h("li", {}, h("button", { cls: "link", type: "button", text: node.name, onclick: () => details.openWhy(node.name) }), h("span", {})),
    (element, node) => setText(element.lastChild, ` · ${node.state} · ${because(node, pool, tasksOn)}`));
}

function because(node, pool, tasksOn) {
  const of = tasksOn(node.name);
  const runs = node.task_pods ? `runs ${plural(node.task_pods, "task pod")}${of ? `: ${of}` : ""}` : "";
  const own = `${node.name} stays: `;
  const kept = node.kept_because.startsWith(own) ? `stays because ${node.kept_because.slice(own.length)}` : node.kept_because;
  const warm = node.placeholders ? `held warm by ${plural(node.placeholders, "placeholder")}` : "";
  const said = [node.why, runs, warm, / stays: \d+ .*\brun/.test(node.kept_because) && runs ? "" : kept].filter(Boolean).join("; ");
  if (said) return said;
  if (node.state === "releasing") return "is being removed: nothing needs it";
  if (pool.provider === "none") return "stays because this pool has no provider: nothing here removes its nodes";
  return "idle; the last plan gives no reason to keep it";
}
