// The row of figures at the top.

import { askTimes } from "./asks.js";
import { h, setText } from "./dom.js";
import { money, plural, relative } from "./format.js";

const container = document.getElementById("summary");
const cells = new Map();

export function renderSummary(document_, now) {
  const pools = document_.node_pools;
  const sum = (name) => pools.reduce((total, pool) => total + (pool[name] ?? 0), 0);
  const nodes = pools.flatMap((pool) => pool.nodes);
  const usable = sum("usable_nodes");
  const coming = sum("booting_nodes") + sum("coming_nodes");
  const busy = nodes.filter((node) => node.state === "usable" && node.task_pods > 0).length;
  const hourly = pools.reduce((total, pool) => total + pool.price_per_node_hour * (pool.nodes.length + pool.coming_nodes), 0);
  const ours = document_.airflow_pools.filter((pool) => pool.capacity_class);
  const slots = ours.reduce((total, pool) => total + Math.max(0, pool.slots), 0);
  const taken = ours.reduce((total, pool) => total + pool.occupied, 0);
  const held = ours.reduce((total, pool) => total + pool.scheduled, 0);
  const phantom = ours.reduce((total, pool) => total + (pool.slots < 0 || pool.usable_slots === null
    ? 0 : Math.max(0, pool.slots - Math.max(pool.usable_slots, pool.occupied))), 0);
  const askTime = askTimes(document_);
  const next = document_.runs.filter((run) => (askTime(run) ?? 0) > now).sort((a, b) => a.ask_at - b.ask_at)[0];
  cell("nodes", "Usable nodes", String(usable), coming ? `${plural(coming, "more node")} on the way` : `${sum("max_nodes")} at most`);
  cell("busy", "Nodes at work", `${busy}`, usable ? `${Math.round((100 * busy) / usable)} % of the usable ones` : "no usable node");
  cell("slots", "Slots taken", `${taken}`, `of ${slots}; ${held} held back`);
  cell("phantom", "Phantom slots", String(phantom), phantom ? "more than fits on nodes" : "every slot fits on a node", phantom > 0);
  cell("price", "Price per hour now", money(hourly), "nodes that stand or come");
  cell("next", "Next nodes asked for", next ? relative(next.ask_at, now) : "–", next ? `${next.nodes} × ${next.node_pool} for ${next.dag_id}` : "no coming run needs more");
}

function cell(key, title, figure, note, bad = false) {
  if (!cells.has(key)) {
    const element = h("div", {}, h("dt", { text: title }), h("dd", { cls: "figure" }), h("dd", { cls: "note" }));
    cells.set(key, element);
    container.append(element);
  }
  const element = cells.get(key);
  element.classList.toggle("bad", bad);
  setText(element.querySelector(".figure"), figure);
  setText(element.querySelector(".note"), note);
  element.querySelector(".note").title = note;
}
