// The page's loop: ask for the status each two seconds while it is looked at, and draw what changed.

import { fetchDecisions, fetchStatus, Refused } from "./api.js";
import { h, keyed, setText, show, withCode } from "./dom.js";
import { duration } from "./format.js";
import { renderNodePools } from "./nodes.js";
import { renderSlots } from "./slots.js";
import { renderSummary } from "./summary.js";
import { renderActions, renderActiveRuns, renderComingRuns, renderDecisions, renderReservations } from "./tables.js";
import { followTheme } from "./theme.js";
import { renderTimeline } from "./timeline.js";
import { openWhy, refreshWhy } from "./why.js";

const POLL_MS = 2000;
const SLOWEST_POLL_MS = 15000;
const LATE_SECONDS = 6;

const at = (id) => document.getElementById(id);
let answer = null;
let decisions = [];
let clocks = { ageSeconds: null, receivedAt: 0 };
let failure = null;
let failures = 0;
let timer = null;
let asking = false;

/** Age of the shown document now, by this browser's steady clock: its wall clock may be wrong. */
const age = () => (clocks.ageSeconds === null ? null : clocks.ageSeconds + (performance.now() - clocks.receivedAt) / 1000);
const now = () => (answer?.document ? answer.document.now + Math.max(0, age() ?? 0) : Date.now() / 1000);

async function poll() {
  clearTimeout(timer);
  if (document.hidden || asking) return;
  asking = true;
  try {
    const got = await fetchStatus();
    clocks = { ageSeconds: got.ageSeconds, receivedAt: performance.now() };
    if (got.body) answer = got.body;
    // A 304 leaves the body's clock behind: carry it forward by the age that came with it.
    if (answer?.document && got.serverNow !== null && got.ageSeconds !== null) {
      answer.document.now = got.serverNow - got.ageSeconds;
    }
    if (answer?.document) {
      decisions = await fetchDecisions();
      refreshWhy();
    }
    failure = null;
    failures = 0;
  } catch (error) {
    failure = error;
    failures += 1;
  } finally {
    asking = false;
    timer = setTimeout(poll, Math.min(POLL_MS * 2 ** failures, SLOWEST_POLL_MS));
    draw();
  }
}

function draw() {
  banners();
  freshness();
  const document_ = answer?.document;
  show(at("capacity"), Boolean(document_));
  show(at("blank"), Boolean(answer) && !document_);
  if (!document_) {
    if (answer) blank();
    show(at("mode"), false);
    setText(at("leader"), "");
    return;
  }
  header(document_);
  const time = now();
  renderSummary(document_, time);
  renderNodePools(document_, time, openWhy);
  renderTimeline(document_, time, openWhy);
  renderSlots(document_.airflow_pools, openWhy);
  renderComingRuns(document_, time, openWhy);
  renderActiveRuns(document_.active_runs, time, openWhy);
  renderReservations(document_.reservations, time, openWhy);
  renderActions(document_, openWhy);
  renderDecisions(decisions, at("decision-filter").value, time, openWhy);
}

const MODES = {
  observe: ["observe: recommends only", "The controller changes nothing; what it would do is shown as recommended."],
  sync: ["sync: keeps slots true", "The controller writes Airflow's pool slots and leaves nodes alone."],
  manage: ["manage: slots and nodes", "The controller writes pool slots and brings and releases nodes."],
};

function header(document_) {
  const [text, title] = MODES[document_.mode] ?? [document_.mode, ""];
  const badge = at("mode");
  show(badge, true);
  setText(badge, text);
  badge.className = `badge ${document_.mode in MODES ? document_.mode : ""}`;
  badge.title = title;
  setText(at("leader"), `leader ${document_.controller.holder} · up ${duration(now() - document_.controller.started_at)} · ${document_.source}`);
}

function freshness() {
  const element = at("freshness");
  const seconds = age();
  const stale = answer?.availability === "stale" || (seconds !== null && seconds > 30);
  document.body.classList.toggle("stale", Boolean(answer?.document) && stale);
  if (failure) {
    element.className = "freshness lost";
    setText(element, failure instanceof Refused ? "signed out" : "no connection");
  } else if (seconds === null) {
    element.className = "freshness";
    setText(element, answer ? "nothing published" : "loading…");
  } else {
    element.className = `freshness ${stale ? "stale" : seconds > LATE_SECONDS ? "late" : "live"}`;
    setText(element, seconds < 2.5 ? "live" : `${duration(seconds)} old`);
  }
}

function banners() {
  const list = [];
  if (failure instanceof Refused) {
    list.push(["error", "Signed out", failure.message === "403" ? "Your role may not see Airflow's cluster activity and pools." : "Your session with Airflow has ended.", "Reload Airflow and sign in."]);
  } else if (failure) {
    list.push(["error", "No connection", `Airflow's api-server does not answer (${failure.message}).`, "What is shown is the last that arrived; it is asked again by itself."]);
  }
  if (answer?.availability === "stale") list.push(["error", "Controller silent", answer.sentence, answer.next_step]);
  const document_ = answer?.document;
  if (document_?.controller.configuration_error) {
    list.push(["error", "Capacity file", document_.controller.configuration_error, "The last good one stays in force. `airflow elastic validate` shows every mistake."]);
  }
  if (document_?.frozen) list.push(["warn", "Frozen", document_.frozen, ""]);
  keyed(at("banners"), list, (each) => each.join("\n"), ([kind, title, text, next]) => h("div", {
    cls: `banner ${kind === "error" ? "banner-error" : ""}`, role: kind === "error" ? "alert" : "status",
  }, h("strong", { text: title }), h("span", {}, withCode(text)), next ? h("span", { cls: "next" }, withCode(next)) : null));
}

function blank() {
  at("blank").replaceChildren(
    h("h2", {}, withCode(answer.sentence)), h("p", { cls: "then" }, withCode(answer.next_step)),
    h("p", { text: "Then this page shows, live:" }),
    h("ul", {}, ["node pools and each of their nodes", "slots of Airflow's pools against what fits on usable nodes",
      "coming runs, the nodes that they will need and when those are asked for", "every decision with its reason"].map((text) => h("li", { text }))));
}

followTheme();
at("decision-filter").addEventListener("input", () => renderDecisions(decisions, at("decision-filter").value, now(), openWhy));
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
setInterval(() => { if (!document.hidden) freshness(); }, 1000);
poll();
