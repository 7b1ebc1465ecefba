// Tables: coming runs, runs now, reservations, actions and refusals, decisions.

import { askTimes } from "./asks.js";
import { h, keyed, emptyState, setText } from "./dom.js";
import { clock, duration, full, plural, relative } from "./format.js";

const FIRST = 15;
const expanded = new Set();
const at = (id) => document.getElementById(id);

/** A table whose rows are rebuilt only when their record changed; long ones show the first rows and a button. */
function table(container, { caption, columns, records, keyOf, opens, empty }) {
  if (!records.length) {
    container.tableBody = null;
    emptyState(container, ...empty);
    return;
  }
  if (!container.tableBody) {
    container.tableBody = h("tbody");
    container.tableMore = h("button", { cls: "more", type: "button", onclick: () => { expanded.add(container.id); container.again(); } });
    container.emptyTitle = null;
    container.replaceChildren(h("div", { cls: "scroll" }, h("table", {},
      h("caption", { cls: "visually-hidden", text: caption }),
      h("thead", {}, h("tr", {}, columns.map(([name, , cls]) => h("th", { cls, scope: "col", text: name })))),
      container.tableBody)), container.tableMore);
  }
  container.again = () => table(container, { caption, columns, records, keyOf, opens, empty });
  const shown = expanded.has(container.id) ? records : records.slice(0, FIRST);
  keyed(container.tableBody, shown, keyOf, () => {
    const row = h("tr", { cls: opens ? "opens" : null });
    if (opens) {
      row.addEventListener("click", (event) => {
        if (!event.target.closest("button") && String(getSelection()) === "") opens(row.record);
      });
    }
    return row;
  }, (row, record) => {
    row.record = record;
    const cells = columns.map(([, cell]) => cell(record));
    const signature = JSON.stringify(cells.map((cell) => (cell instanceof Node ? cell.textContent : cell)));
    if (row.dataset.signature === signature) return;
    row.dataset.signature = signature;
    row.replaceChildren(...cells.map((cell, index) => h("td", { cls: columns[index][2] ?? null }, cell)));
  });
  container.tableMore.hidden = shown.length === records.length;
  setText(container.tableMore, `Show all ${records.length}`);
}

const moment = (seconds, now) => h("span", { title: full(seconds) }, relative(seconds, now), h("span", { cls: "sub", text: clock(seconds) }));
const named = (text, sub, open) => h("span", { cls: "name" },
  open ? h("button", { cls: "link", type: "button", text, onclick: open }) : text, h("span", { cls: "sub", text: sub }));
const owner = (record) => `${record.dag_id} ${record.run_id} ${record.node_pool ?? ""}`;

export function renderComingRuns(document_, now, openWhy) {
  const askTime = askTimes(document_);
  table(at("coming-runs"), {
    caption: "Coming runs with the nodes that they need", keyOf: owner, opens: (run) => openWhy(run.dag_id),
    records: [...document_.runs].sort((a, b) => a.ask_at - b.ask_at),
    empty: ["No run needs nodes", "Coming and active runs whose tasks need nodes appear here, with how many and when they are asked for."],
    columns: [
      ["DAG and run", (run) => named(run.dag_id, run.run_id, () => openWhy(run.dag_id)), "owner"],
      ["Node pool", (run) => run.node_pool],
      ["Nodes", (run) => String(run.nodes), "num"],
      ["Due to be asked for", (run) => (askTime(run) === null ? "–" : moment(askTime(run), now)), "time"],
      ["Run starts", (run) => moment(run.starts_at, now), "time"],
      ["First task needs them", (run) => moment(run.needed_at, now), "time"],
      ["For", (run) => duration(run.until_at - run.needed_at), "time"],
    ],
  });
}

const ORDER = ["success", "skipped", "running", "restarting", "deferred", "queued", "scheduled", "none", "up_for_reschedule", "up_for_retry", "upstream_failed", "failed", "removed"];

export function renderActiveRuns(runs, now, openWhy) {
  table(at("active-runs"), {
    caption: "Active and queued runs", keyOf: owner, opens: (run) => openWhy(run.dag_id), records: runs,
    empty: ["No run is active", "Running and queued DAG runs appear here with the states of their tasks."],
    columns: [
      ["DAG and run", (run) => named(run.dag_id, run.run_id, () => openWhy(run.dag_id)), "owner"],
      ["Since", (run) => moment(run.starts_at, now), "time"],
      ["Tasks", (run) => states(run)],
    ],
  });
}

function states(run) {
  const entries = Object.entries(run.states).sort(([a], [b]) => ORDER.indexOf(a) - ORDER.indexOf(b));
  const total = entries.reduce((sum, [, count]) => sum + count, 0);
  if (run.phase === "queued" || !total) return h("span", { cls: "pill amber", text: run.phase });
  const words = entries.map(([state, count]) => `${count} ${state === "none" ? "to come" : state.replaceAll("_", " ")}`).join(", ");
  return h("span", {}, words, h("span", { cls: "states", "aria-hidden": "true" },
    entries.map(([state, count]) => h("i", { cls: state, vars: { "--w": `${(100 * count) / total}%` } }))));
}

const RESERVATION_PILLS = { planned: "", requested: "amber", warming: "amber", ready: "blue", in_use: "green", failed: "red", expired: "red" };

/** Warm nodes only once all of them are usable; until then they are on their way. */
const warmth = (each) => (!each.warm_nodes ? "" : `${each.warm_nodes} ${["requested", "warming"].includes(each.state) ? "coming" : "warm"}`);

export function renderReservations(reservations, now, openWhy) {
  table(at("reservations"), {
    caption: "Reservations of warm capacity", keyOf: (each) => each.id, opens: (each) => openWhy(each.dag_id),
    records: [...reservations].sort((a, b) => a.ask_at - b.ask_at),
    empty: ["No reservation", "Warm capacity always has an owner, a run, and an end. Reservations appear here from the moment they are planned until they are released."],
    columns: [
      ["State", (each) => h("span", { cls: `pill ${RESERVATION_PILLS[each.state] ?? ""}`, text: each.state.replaceAll("_", " ") })],
      ["Owner", (each) => named(each.dag_id, each.run_id, () => openWhy(each.dag_id)), "owner"],
      ["Node pool", (each) => each.node_pool],
      ["Nodes", (each) => h("span", {}, String(each.nodes), warmth(each) ? h("span", { cls: "sub", text: warmth(each) }) : null), "num"],
      ["Needed", (each) => moment(each.needed_at, now), "time"],
      ["Until", (each) => moment(each.until_at, now), "time"],
      ["Gone at the latest", (each) => (each.expires_at ? moment(each.expires_at, now) : "–"), "time"],
      ["Why", (each) => each.why, "wide"],
    ],
  });
}

export function renderActions(document_, openWhy) {
  const records = [
    ...document_.actions.map((action, index) => ({ ...action, does: true, index })),
    ...document_.refusals.map((refusal, index) => ({ ...refusal, does: false, index })),
  ];
  table(at("refusals"), {
    caption: "Actions of the last plan and refusals", records, opens: (each) => openWhy(each.about),
    keyOf: (each) => `${each.does} ${each.about} ${each.code} ${each.index}`,
    empty: ["Nothing to do, nothing refused", "Each change of slots or nodes in the last plan, and each wish that is not granted, appears here with its reason."],
    columns: [
      ["", (each) => (each.does
        ? h("span", { cls: "pill blue", text: `${each.kind} ${each.was < 0 ? "∞" : each.was} → ${each.to < 0 ? "∞" : each.to}` })
        : h("span", { cls: "pill amber", text: each.code === "OBSERVE_ONLY" ? "recommended" : "not done" }))],
      ["About", (each) => h("button", { cls: "link", type: "button", text: each.about, onclick: () => openWhy(each.about) }), "about"],
      ["Why", (each) => each.sentence, "wide"],
    ],
  });
}

/** What became of a decision that was not carried out; nothing for one that was. */
export function outcome(decision) {
  if (decision.applied) return "";
  if (decision.code === "OBSERVE_ONLY") return "recommended only";
  return decision.kind === "refusal" ? "refused" : "failed";
}

export function renderDecisions(decisions, filter, now, openWhy) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (each) => {
    const text = `${each.kind} ${each.about} ${each.code} ${each.sentence} ${outcome(each)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const records = decisions.filter(fits);
  setText(at("decision-count"), words.length ? `${records.length} of ${plural(decisions.length, "decision")}` : "");
  table(at("decisions"), {
    caption: "Latest decisions, newest first", records, opens: (each) => openWhy(each.about),
    keyOf: (each) => `${each.at} ${each.kind} ${each.about} ${each.code}`,
    empty: words.length && decisions.length
      ? ["No decision matches", "Clear the filter to see them all."]
      : ["No decision yet", "Every action and every refusal is recorded with one sentence that says why. The latest appear here."],
    columns: [
      ["When", (each) => moment(each.at, now), "time"],
      ["What", (each) => h("span", {}, h("span", { cls: "pill", text: each.code.toLowerCase().replaceAll("_", " ") }), h("span", { cls: "sub", text: outcome(each) }))],
      ["About", (each) => h("button", { cls: "link", type: "button", text: each.about, onclick: () => openWhy(each.about) }), "about"],
      ["Why", (each) => each.sentence, "wide"],
    ],
  });
}
