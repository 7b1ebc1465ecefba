// Airflow pools: slots that Airflow believes in, against slots that fit on usable nodes.

import { h, keyed, emptyState, setAttr } from "./dom.js";
import { plural } from "./format.js";

const container = document.getElementById("slots");

export function renderSlots(pools, openWhy) {
  const ours = pools.filter((pool) => pool.capacity_class);
  const others = pools.filter((pool) => !pool.capacity_class);
  if (!ours.length) {
    emptyState(container, "No Airflow pool belongs to a capacity class", "Each class of the capacity file names one (`airflow_pool`). Its slots, and how many really fit on usable nodes, will appear here.");
    return;
  }
  const rows = others.length ? [...ours, { name: "\u0000others", others }] : ours;
  keyed(container, rows, (pool) => pool.name, () => h("div"), (element, pool) => {
    const signature = JSON.stringify(pool);
    if (element.dataset.signature === signature) return;
    element.dataset.signature = signature;
    if (pool.others) {
      setAttr(element, "class", "others");
      const names = pool.others.map((other) => `${other.name} (${other.slots < 0 ? "unlimited" : other.slots})`);
      element.replaceChildren(`Pools of no class, left alone: ${names.slice(0, 20).join(", ")}${names.length > 20 ? ", …" : ""}`);
      return;
    }
    setAttr(element, "class", "slots-row");
    element.replaceChildren(...row(pool, openWhy));
  });
}

function row(pool, openWhy) {
  const usable = pool.usable_slots;
  const unlimited = pool.slots < 0;
  const offered = unlimited ? Math.max(usable ?? 0, pool.occupied) : pool.slots;
  const real = usable ?? offered;
  const phantom = unlimited ? 0 : Math.max(0, offered - Math.max(real, pool.occupied));
  const open = Math.max(0, Math.min(offered, real) - pool.occupied);
  const unused = Math.max(0, real - Math.max(offered, pool.occupied));
  const deferred = Math.max(0, pool.occupied - pool.running - pool.queued);
  const scale = Math.max(offered, real, pool.occupied, 1);
  const parts = [
    ["taken", pool.running, `${pool.running} running`],
    ["deferred", deferred, `${deferred} deferred`],
    ["queued", pool.queued, `${pool.queued} queued`],
    ["open", open, `${open} open`],
    ["phantom", phantom, `${phantom} phantom: no usable node has room for ${phantom === 1 ? "it" : "them"}`],
    ["unused", unused, `${unused} more would fit`],
  ].filter(([, count]) => count > 0);
  const isTrue = !unlimited && usable !== null && pool.slots === usable;
  return [
    h("div", { cls: "slots-head" },
      h("button", { cls: "link", type: "button", text: pool.name, onclick: () => openWhy(pool.name) }),
      h("span", { cls: "pill", text: `class ${pool.capacity_class}` }),
      h("span", { cls: "say" }, ...say(pool, unlimited, usable, phantom, isTrue))),
    h("div", {
      cls: "slots-bar", role: "img",
      "aria-label": `${pool.name}: ${parts.map(([, , words]) => words).join(", ") || "no slots"}`,
    }, parts.map(([name, count, words]) => h("span", {
      cls: `slot ${name}`, title: words, vars: { "--w": `${(100 * count) / scale}%` },
    }))),
    h("p", { cls: "slots-note", text: note(pool, open) }),
  ];
}

function say(pool, unlimited, usable, phantom, isTrue) {
  const fits = usable === null || usable === undefined ? "usable slots unknown" : `${usable} fit on usable nodes`;
  if (unlimited) return ["unlimited slots, ", fits];
  if (phantom) return [`${plural(pool.slots, "slot")}, ${fits}: `, h("span", { cls: "bad", text: `${phantom} phantom` })];
  return [`${plural(pool.slots, "slot")}, ${isTrue ? "all fit on usable nodes" : fits}`];
}

function note(pool, open) {
  const held = pool.scheduled ? `${plural(pool.scheduled, "slot")} of tasks held back` : "nothing held back";
  return `${pool.occupied} taken (${pool.running} running, ${pool.deferred} deferred, ${pool.queued} queued) · ${open} open · ${held}`;
}
