// Node pools as cards, their nodes as tiles. A tile is touched only where its node changed.

import { h, keyed, emptyState, setAttr, setText } from "./dom.js";
import { duration, full, plural, relative } from "./format.js";
import { makeStays, tasksByNode, updateStays } from "./stays.js";
import { tips } from "./tip.js";

const MANY = 60;
const CROWD = 240;

const container = document.getElementById("node-pools");
const nodesByElement = new WeakMap();
let clockNow = 0;

/** How a node is drawn: its state, and for a usable one what it is doing. */
function look(node) {
  if (node.state !== "usable") return node.state;
  if (node.task_pods > 0) return "busy";
  return node.placeholders > 0 ? "warm" : "idle";
}

const LOOKS = {
  busy: "usable, tasks run there", warm: "usable, held warm", idle: "usable, idle", booting: "booting",
  releasing: "being released", unusable: "unusable",
};

const RANKS = Object.keys(LOOKS);

export function renderNodePools(document_, now, openWhy) {
  const pools = document_.node_pools;
  const tasksOn = tasksByNode(document_.tasks ?? []);
  clockNow = now;
  if (!pools.length) {
    emptyState(container, "No node pools", "The capacity file declares none yet. `airflow elastic init` writes one from the nodes that it finds; each pool and each of its nodes will appear here.");
    return;
  }
  keyed(container, pools, (pool) => pool.name, (pool) => makeCard(pool, openWhy), (card, pool) => {
    updateCard(card, pool);
    updateStays(card.querySelector(".stays"), pool, tasksOn);
  });
}

function makeCard(pool, openWhy) {
  const name = h("button", { cls: "link", type: "button", text: pool.name, onclick: () => openWhy(pool.name) });
  const card = h("article", { cls: "pool", "aria-label": `Node pool ${pool.name}` },
    h("div", { cls: "pool-head" }, name, h("span", { cls: "pill" }), h("span", { cls: "count" })),
    h("p", { cls: "pool-facts" }), h("p", { cls: "pool-failure" }), h("div", { cls: "meter", role: "img" }),
    h("div", { cls: "tiles", role: "group", "aria-label": `Nodes of ${pool.name}; arrow keys move, Enter tells why` }),
    makeStays(openWhy));
  const tiles = card.querySelector(".tiles");
  tiles.addEventListener("click", (event) => {
    const node = nodesByElement.get(event.target.closest(".tile"));
    if (node) openWhy(node.name);
  });
  tiles.addEventListener("keydown", moveFocus);
  tips(tiles, ".tile", (tile) => describe(nodesByElement.get(tile)));
  return card;
}

function updateCard(card, pool) {
  const [pill, count] = [card.querySelector(".pill"), card.querySelector(".count")];
  const total = pool.nodes.length + pool.coming_nodes;
  setAttr(card, "class", `pool${total > CROWD ? " crowd" : total > MANY ? " many" : ""}`);
  setText(pill, pool.capacity_type);
  const counts = `${pool.usable_nodes} usable of ${pool.max_nodes}`;
  if (count.dataset.text !== counts) {
    count.dataset.text = counts;
    count.replaceChildren(h("b", { text: pool.usable_nodes }), ` usable of at most ${pool.max_nodes}`);
  }
  setText(card.querySelector(".pool-facts"), facts(pool).join(" · "));
  const failure = card.querySelector(".pool-failure");
  setText(failure, pool.failure);
  failure.hidden = !pool.failure;
  meter(card.querySelector(".meter"), pool);
  tiles(card.querySelector(".tiles"), pool);
}

function facts(pool) {
  const learnt = pool.boot_samples ? `${pool.boot_samples} seen` : "not seen yet";
  return [
    pool.booting_nodes ? `${pool.booting_nodes} booting` : "",
    pool.coming_nodes ? `${pool.coming_nodes} asked for` : "",
    pool.unusable_nodes ? `${pool.unusable_nodes} unusable` : "",
    pool.target_nodes === null ? "" : `target ${pool.target_nodes}`,
    pool.min_nodes ? `at least ${pool.min_nodes}` : "",
    `boots in ${duration(pool.boot_seconds_q50)} to ${duration(pool.boot_seconds_q90)} (${learnt})`,
    `${pool.price_per_node_hour} per node-hour`,
    pool.provider === "none" ? "no provider: others scale it" : `by ${pool.provider}`,
  ].filter(Boolean);
}

function meter(element, pool) {
  const counts = { busy: 0, warm: 0, idle: 0, booting: pool.coming_nodes, releasing: 0, unusable: 0 };
  for (const node of pool.nodes) counts[look(node)] = (counts[look(node)] ?? 0) + 1;
  const scale = Math.max(pool.max_nodes, pool.nodes.length + pool.coming_nodes, pool.target_nodes ?? 0, 1);
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  const signature = JSON.stringify([parts, scale, pool.target_nodes]);
  if (element.dataset.signature === signature) return;
  element.dataset.signature = signature;
  const words = parts.map(([name, count]) => `${count} ${LOOKS[name] ?? name}`).join("; ") || "no nodes";
  setAttr(element, "aria-label", `${words}; at most ${pool.max_nodes}`);
  element.replaceChildren(
    ...parts.map(([name, count]) => h("i", { cls: `tile-bar bar-${name}`, vars: { "--w": `${(100 * count) / scale}%` } })),
    pool.target_nodes === null ? "" : h("span", {
      cls: "target", title: `target: ${plural(pool.target_nodes, "node")}`,
      vars: { "--x": `${(100 * pool.target_nodes) / scale}%` },
    }));
}

function tiles(element, pool) {
  // Few nodes keep their place, oldest first; a crowd is grouped by what its nodes do, or it would be noise.
  const crowded = pool.nodes.length > MANY;
  const rank = (node) => (crowded ? RANKS.indexOf(look(node)) : 0);
  const nodes = [...pool.nodes].sort(
    (a, b) => rank(a) - rank(b) || a.created_at - b.created_at || (a.name < b.name ? -1 : 1));
  const coming = Array.from({ length: Math.min(pool.coming_nodes, 2000) }, (_, index) => ({
    name: `${pool.name}, asked for (${index + 1})`, state: "booting", why: "asked for, not registered yet",
    task_pods: 0, placeholders: 0, isComing: true,
  }));
  const all = [...nodes, ...coming];
  if (!all.length) {
    emptyState(element, "No nodes now", pool.max_nodes ? "They come when a task or a coming run needs them." : "Its max_nodes is 0.");
    return;
  }
  keyed(element, all, (node) => node.name, makeTile, updateTile);
  if (!element.querySelector('.tile[tabindex="0"]')) element.querySelector(".tile")?.setAttribute("tabindex", "0");
}

const makeTile = () => h("button", { type: "button", tabindex: "-1" });

function updateTile(tile, node) {
  const before = nodesByElement.get(tile);
  nodesByElement.set(tile, node);
  const looks = look(node);
  if (before && tile.dataset.look === looks && before.task_pods === node.task_pods && before.why === node.why) return;
  tile.dataset.look = looks;
  setAttr(tile, "class", `tile ${looks}`);
  setText(tile, node.task_pods || (node.placeholders ? "·" : ""));
  const why = node.why ? `, ${node.why}` : "";
  setAttr(tile, "aria-label", `${node.name}: ${LOOKS[looks] ?? looks}${why}, ${plural(node.task_pods, "task pod")}`);
}

function describe(node) {
  if (!node) return null;
  if (node.isComing) return [node.name, "The provider was asked; the machine has not registered yet."];
  return [
    node.name,
    `${LOOKS[look(node)] ?? node.state}${node.why ? `: ${node.why}` : ""}`,
    `${plural(node.task_pods, "task pod")}, ${plural(node.placeholders, "placeholder")}`,
    node.usable_since ? `usable since ${full(node.usable_since)} (${duration(clockNow - node.usable_since)})` : "",
    !node.usable_since && node.created_at ? `registered ${relative(node.created_at, clockNow)}` : "",
    typeof node.allocatable === "string" ? node.allocatable : Object.entries(node.allocatable ?? {}).map(([key, value]) => `${key} ${value}`).join(", "),
    node.kept_because,
  ];
}

/** One tab stop for all tiles of a pool; the arrows move within it. */
function moveFocus(event) {
  const tile = event.target.closest(".tile");
  if (!tile) return;
  const all = [...tile.parentElement.children];
  const perRow = all.findIndex((each) => each.offsetTop > all[0].offsetTop);
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: perRow < 0 ? 0 : perRow, ArrowUp: perRow < 0 ? 0 : -perRow }[event.key];
  const next = step ? all[all.indexOf(tile) + step] : { Home: all[0], End: all.at(-1) }[event.key];
  if (!next) return;
  event.preventDefault();
  tile.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
