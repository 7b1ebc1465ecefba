// The time line: nodes that each pool will need, and when each coming run's nodes are asked for, boot and work.

import { askTimes } from "./asks.js";
import { h, s, emptyState } from "./dom.js";
import { clock, duration, plural, relative, tick } from "./format.js";
import { tips } from "./tip.js";

const container = document.getElementById("timeline");
const rangeBox = document.getElementById("range");
const RANGES = [["Auto", 0], ["15 min", 900], ["1 h", 3600], ["6 h", 21600], ["24 h", 86400]];
const STEPS = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
const MAX_ROWS = 12;
const WIDE_GUTTER = 168;
const NARROW_GUTTER = 104;
const LANE = 46;
const ROW = 31;
const TOP = 20;

let chosen = 0;
let gutter = WIDE_GUTTER;
let last = null;
const linesByElement = new WeakMap();

for (const [name, seconds] of RANGES) {
  rangeBox.append(h("button", {
    type: "button", text: name, "aria-pressed": String(seconds === chosen),
    onclick: (event) => {
      chosen = seconds;
      for (const button of rangeBox.children) button.setAttribute("aria-pressed", String(button === event.currentTarget));
      if (last) renderTimeline(...last);
    },
  }));
}
new ResizeObserver(() => { if (last) renderTimeline(...last); }).observe(container);
tips(container, ".run, .row", (element) => linesByElement.get(element)?.());

let askTime = () => null;

export function renderTimeline(document_, now, openWhy) {
  last = [document_, now, openWhy];
  askTime = askTimes(document_);
  const runs = [...document_.runs].sort((a, b) => a.ask_at - b.ask_at || a.starts_at - b.starts_at);
  const pools = document_.node_pools
    .map((pool) => ({ ...pool, ...demandOf(pool, runs, now) }))
    .filter((pool) => pool.steps.some(([, nodes]) => nodes) || pool.usable_nodes || pool.booting_nodes);
  if (!runs.length && !pools.some((pool) => pool.steps.some(([, nodes]) => nodes))) {
    emptyState(container, "No coming demand", "When a scheduled DAG with tasks on these node pools has its next run within the horizon, its nodes appear here: when they are asked for, how long they boot, how long the run needs them.");
    return;
  }
  const focused = container.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const span = chosen || autoSpan(runs, pools, now);
  const width = Math.max(320, container.clientWidth - 28);
  gutter = width < 620 ? NARROW_GUTTER : WIDE_GUTTER;
  const begin = now - span * 0.03;
  const x = (seconds) => gutter + ((Math.min(Math.max(seconds, begin), now + span) - begin) / (now + span - begin)) * (width - gutter - 8);
  const groups = grouped(runs.filter((run) => run.ask_at < now + span));
  const rows = groups.slice(0, MAX_ROWS);
  const height = TOP + pools.length * LANE + rows.length * ROW + 6;
  const picture = s("svg", {
    viewBox: `0 0 ${width} ${height}`, height, role: "group",
    "aria-label": `Coming demand over the next ${duration(span)}`,
  }, hatch(), axis(x, now, span, height, width));
  pools.forEach((pool, index) => picture.append(...lane(pool, TOP + index * LANE, x, now, span, width, begin)));
  rows.forEach((row, index) => picture.append(
    rowOf(row, TOP + pools.length * LANE + index * ROW, x, now, span, width, openWhy)));
  picture.append(s("line", { cls: "now", x1: x(now), x2: x(now), y1: TOP - 4, y2: height - 4 }));
  const hidden = groups.length - rows.length;
  container.keyedElements?.clear();
  container.emptyTitle = null;
  container.replaceChildren(picture, hidden > 0 ? h("p", { cls: "muted", text: `${plural(hidden, "more DAG")} in the table below.` }) : "");
  if (focused) [...container.querySelectorAll(".row")].find((row) => row.dataset.key === focused)?.focus();
}

/**
 * A pool's need as steps. The planner packs exactly, but only as far ahead as it has to act; from `sureUntil` on it is the
 * sum of what the known runs need, within max_nodes: an upper bound, since runs may share nodes.
 */
export function demandOf(pool, runs, now) {
  const sureUntil = Math.max(pool.forecast.at(-1)?.[0] ?? 0, now + pool.boot_seconds_q90);
  const steps = pool.forecast.filter(([at]) => at < sureUntil || at <= now);
  const mine = runs.filter((run) => run.node_pool === pool.name && run.until_at > sureUntil);
  const moments = new Set([sureUntil, ...mine.flatMap((run) => [run.needed_at, run.until_at])]);
  for (const at of [...moments].filter((each) => each >= sureUntil).sort((a, b) => a - b)) {
    const sum = mine.reduce((total, run) => total + (run.needed_at <= at && at < run.until_at ? run.nodes : 0), 0);
    const nodes = Math.min(sum, pool.max_nodes);
    if (steps.at(-1)?.[1] !== nodes) steps.push([at, nodes]);
  }
  return { steps, sureUntil };
}

/** Runs of one DAG on one node pool share a row; the row whose nodes are asked for first comes first. */
function grouped(runs) {
  const rows = new Map();
  for (const run of runs) {
    const key = `${run.dag_id} ${run.node_pool}`;
    if (!rows.has(key)) rows.set(key, { key, dag_id: run.dag_id, node_pool: run.node_pool, runs: [] });
    rows.get(key).runs.push(run);
  }
  return [...rows.values()];
}

/** The shortest usual range that shows the next few runs from asking to end. */
function autoSpan(runs, pools, now) {
  const ends = runs.slice(0, 6).map((run) => run.until_at - now);
  const steps = pools.flatMap((pool) => pool.steps.slice(0, 8).map(([at]) => at - now));
  const wanted = Math.max(...ends, runs.length ? 0 : Math.max(...steps, 0), 0) * 1.05;
  return [300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10800, 21600, 43200, 86400].find((each) => each >= wanted) ?? 172800;
}

const hatch = () => s("defs", {}, s("pattern", {
  id: "boot-hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)",
}, s("line", { cls: "hatch", x1: 0, y1: 0, x2: 0, y2: 5 })));

function axis(x, now, span, height, width) {
  const room = Math.max(2, Math.floor((width - gutter) / 95));
  const step = STEPS.find((each) => span / each <= room) ?? STEPS.at(-1);
  const marks = [s("text", { x: x(now), y: 11, "text-anchor": "middle", cls: "label", text: "now" })];
  for (let at = Math.ceil((now + step * 0.4) / step) * step; at < now + span; at += step) {
    marks.push(s("line", { cls: "grid", x1: x(at), x2: x(at), y1: TOP - 4, y2: height - 4 }));
    if (x(at) < width - 24) marks.push(s("text", { x: x(at), y: 11, "text-anchor": "middle", text: tick(at, step) }));
  }
  return s("g", { "aria-hidden": "true" }, marks);
}

function lane(pool, top, x, now, span, width, begin) {
  const bottom = top + LANE - 8;
  const have = pool.usable_nodes;
  const steps = pool.steps.filter(([at]) => at < now + span);
  const peak = Math.max(have, 1, ...steps.map(([, nodes]) => nodes));
  const y = (nodes) => bottom - (nodes / peak) * (LANE - 22);
  const parts = [s("text", { cls: "label", x: 0, y: top + 18, text: shorten(pool.name) }),
    s("text", { x: 0, y: top + 32, text: gutter === WIDE_GUTTER ? `${have} usable, ${pool.max_nodes} at most` : `${have} of ${pool.max_nodes}` })];
  const lines = { sure: "", guess: "" };
  let area = "";
  let labelled = -Infinity;
  steps.forEach(([at, nodes], index) => {
    const from = x(Math.max(at, begin));
    const until = x(index + 1 < steps.length ? steps[index + 1][0] : now + span);
    const before = index ? y(steps[index - 1][1]) : bottom;
    lines[at < pool.sureUntil ? "sure" : "guess"] += `M${from},${before}V${y(nodes)}H${until}`;
    area += `M${from},${bottom}V${y(nodes)}H${until}V${bottom}Z`;
    if (nodes && until - from > 12 && from > labelled) {
      parts.push(s("text", { cls: "count", x: from + 4, y: y(nodes) - 3, text: nodes }));
      labelled = from + 7 * String(nodes).length;
    }
  });
  parts.splice(2, 0, s("path", { cls: "area", d: area }), s("path", { cls: "line", d: lines.sure }),
    s("path", { cls: "line guess", d: lines.guess }));
  parts.push(s("line", { cls: "base", x1: gutter, x2: width - 8, y1: bottom, y2: bottom }));
  if (have) parts.push(s("line", { cls: "have", x1: x(now), x2: width - 8, y1: y(have), y2: y(have) }));
  const words = steps.map(([at, nodes]) => `${nodes} from ${clock(at)}`).slice(0, 12).join(", ");
  return [s("g", { role: "img", "aria-label": `${pool.name}: ${have} usable now; needed: ${words || "nothing"}` }, parts)];
}

function rowOf(row, top, x, now, span, width, openWhy) {
  const open = () => openWhy(row.dag_id);
  const next = row.runs[0];
  const element = s("g", {
    cls: "row", role: "button", tabindex: 0, "data-key": row.key,
    "aria-label": `${row.dag_id} on ${row.node_pool}: ${plural(row.runs.length, "run")}; the next one needs ${plural(next.nodes, "node")}, ${asks(next, now)}run starts ${relative(next.starts_at, now)}`,
    onclick: open,
    onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); } },
  },
  s("rect", { cls: "back", x: -6, y: top, width: width + 4, height: ROW - 1, rx: 4 }),
  s("text", { cls: "label", x: 0, y: top + 13, text: shorten(row.dag_id) }),
  s("text", { x: 0, y: top + 25, text: shorten(row.node_pool) }),
  row.runs.map((run) => runMarks(run, top + ROW / 2, x, now, span)));
  linesByElement.set(element, () => [row.dag_id, `${plural(row.runs.length, "run")} on ${row.node_pool} in this range`]);
  return element;
}

const asks = (run, now) => (askTime(run) === null ? "" : `asked for ${relative(askTime(run), now)}, `);

function runMarks(run, middle, x, now, span) {
  const askAt = askTime(run);
  const need = x(run.needed_at);
  const ask = askAt === null ? need : x(askAt);
  const room = Math.max(x(run.until_at) - need, 3);
  const marks = s("g", { cls: "run" },
    need > ask ? s("rect", { cls: "lead", x: ask, y: middle - 5, width: need - ask, height: 10 }) : null,
    run.needed_at < now + span ? s("rect", { cls: "need", x: need, y: middle - 7, width: room, height: 14, rx: 2 }) : null,
    room > 6 + 7 * String(run.nodes).length ? s("text", { cls: "inside", x: need + room / 2, y: middle + 4, "text-anchor": "middle", text: run.nodes }) : null,
    starts(run.starts_at, middle, x, now, span),
    askAt !== null && askAt >= now ? s("path", { cls: "asked", d: `M${ask},${middle - 6}l6,6l-6,6l-6,-6z` }) : null);
  linesByElement.set(marks, () => [
    run.dag_id, run.run_id, `${plural(run.nodes, "node")} of ${run.node_pool}`,
    askAt === null ? "" : `asked for ${clock(askAt)} (${relative(askAt, last[1])})`,
    `run starts ${clock(run.starts_at)} (${relative(run.starts_at, last[1])})`,
    `needed from ${clock(run.needed_at)} to ${clock(run.until_at)} (${duration(run.until_at - run.needed_at)})`,
  ]);
  return marks;
}

function starts(at, middle, x, now, span) {
  if (at > now + span || at < now) return null;
  return s("g", {}, s("line", { cls: "starts", x1: x(at), x2: x(at), y1: middle - 11, y2: middle + 11 }),
    s("path", { cls: "starts-head", d: `M${x(at)},${middle - 11}h6l-6,5z` }));
}

/** Cut a name to the room left of the time axis (about seven pixels a letter). */
function shorten(text) {
  const most = Math.floor(gutter / 7.2);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
