"""The loop on a live Airflow: what issue-takers, admins and night shifts rely on, seen from outside the product."""

from __future__ import annotations

import statistics
import time

import pytest
from live_stack import LiveStack

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

PERIOD_SECONDS = 120  # of live_scheduled
SLOTS_A_NODE = 4  # nodes of 4 cpu, slots of 1


def seconds_until_slots(live: LiveStack, pool: str, slots: int, since: float) -> float:
    deadline = time.monotonic() + 20
    while live.slots(pool) != slots:
        assert time.monotonic() < deadline, f"{pool} has {live.slots(pool)} slots, not {slots}\n{live.story()}"
        time.sleep(0.02)
    return time.monotonic() - since


def test_slots_follow_cordon_and_loss_of_a_node_within_a_second(live: LiveStack) -> None:
    live.until(lambda: live.slots("core") == 2 * SLOTS_A_NODE, 90, "the core pool has the slots of its two nodes")
    lags = []
    for _ in range(5):
        node = live.ready_nodes("fixed")[0]
        for cordoned, slots in ((True, SLOTS_A_NODE), (False, 2 * SLOTS_A_NODE)):
            began = time.monotonic()
            live.cordon(node, cordoned)
            lags.append(seconds_until_slots(live, "core", slots, began))
            time.sleep(0.5)
    node = live.ready_nodes("fixed")[0]
    began = time.monotonic()
    live.core.delete_node(node, grace_period_seconds=0)
    lags.append(seconds_until_slots(live, "core", SLOTS_A_NODE, began))
    print("seconds from a node's change to the slots written:", [round(lag, 3) for lag in lags])
    assert statistics.median(lags) < 1.0
    assert lags[-1] < 1.0, "the loss of a node"


def test_a_pool_at_zero_gets_its_nodes_from_a_manual_run(live: LiveStack) -> None:
    live.until(lambda: live.slots("burst") == 0, 60, "the burst pool stands at 0 slots")
    assert live.nodes("elastic") == []
    live.stack.api.pause("live_manual", False)
    run_id = live.trigger("live_manual")
    live.until(lambda: live.run_state("live_manual", run_id) in ("success", "failed"), 240, "the run ends")
    assert live.task_rows("live_manual", run_id) == [
        ("first", "success", 1), ("left", "success", 1), ("right", "success", 1),
    ]  # fmt: skip
    live.until(
        lambda: live.slots("burst") == 0 and not live.nodes("elastic"), 120, "nodes and slots are back at 0 afterwards"
    )


def test_a_controller_killed_during_a_prewarm_doubles_nothing_and_leaves_nothing(live: LiveStack) -> None:
    began = time.time()
    live.stack.api.pause("live_scheduled", False)
    # The first run may be due at once, with no time to warm anything: let it pass and its node go, until the next one
    # is further away than nodes are asked for ahead (boot, margin and tick: under 30 s).
    live.until(
        lambda: (
            live.finished_runs("live_scheduled") >= 1
            and live.active_runs("live_scheduled") == 0
            and live.desired_nodes("prewarmed") == 0
            and PERIOD_SECONDS - time.time() % PERIOD_SECONDS > 40
        ),
        300,
        "a quiet moment between two runs",
    )
    quiet = time.time()
    live.until(lambda: live.desired_nodes("prewarmed") > 0, 180, "the next run's node is asked for", every_seconds=0.05)
    assert live.active_runs("live_scheduled") == 0, "asked for before the run exists"
    (controller,) = live.controllers()
    controller.kill()
    again = live.until(lambda: [each for each in live.controllers() if each.pid != controller.pid], 60, "a new one")
    assert len(again) == 1
    live.until(lambda: live.active_runs("live_scheduled") == 1, 180, "the run starts", every_seconds=0.2)
    live.until(lambda: live.active_runs("live_scheduled") == 0, 180, "the run ends")
    live.stack.api.pause("live_scheduled", True)  # not before: a paused DAG's deferred tasks are not resumed
    live.until(
        lambda: live.desired_nodes("prewarmed") == 0 and not live.nodes("prewarmed") and live.slots("prewarmed") == 0,
        120,
        "nodes and slots are back at 0 afterwards",
    )
    assert live.launches("prewarmed", quiet) == 1, "the node was not asked for twice"
    pods = [each for each in live.events("pod_bound") if each["t"] >= quiet]
    ready = [each for each in live.events("node_ready") if each["t"] >= quiet and each["pool"] == "prewarmed"]
    assert ready[0]["t"] <= pods[0]["t"], "the node was ready before the pod came"
    assert not [each for each in live.events("pod_unschedulable") if each["t"] >= quiet], "no pod waited for a node"
    states = live.database.rows(
        "SELECT DISTINCT state FROM task_instance WHERE dag_id = 'live_scheduled' AND try_number > 1", ()
    )
    assert states == [], "no retry was used"
    assert began < quiet
