from __future__ import annotations

import logging

import pytest

from airflow_elastic.controller.complaints import Complaints
from airflow_elastic.controller.journal import Journal
from airflow_elastic.controller.leading import Leading
from airflow_elastic.controller.learning import Learner
from airflow_elastic.controller.owners import OwnerResolver
from airflow_elastic.controller.pauses import PauseGuard, no_later_than
from airflow_elastic.controller.warm import pool_owner_id, warm_shares
from airflow_elastic.errors import TemporaryError
from airflow_elastic.kubernetes.cluster import FinishedPod, NodeArrival
from airflow_elastic.model.demand import DagShape, Run, RunPhase, TaskInstance, TaskKey, TaskSpec
from airflow_elastic.model.node_pool import NodePool
from airflow_elastic.model.plan import Plan, Refusal, TransitionNote
from airflow_elastic.model.reasons import Reason, ReasonCode
from airflow_elastic.model.reservation import Reservation, ReservationState
from airflow_elastic.model.resources import Resources
from airflow_elastic.model.settings import Settings
from airflow_elastic.model.snapshot import PlannerMemory, Pod, PodPhase
from airflow_elastic.providers.base import PoolFacts
from airflow_elastic.testing.fakes import FakeLeader

POOL = NodePool("p", (("pool", "p"),), Resources.of(cpu=4000))


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


# pauses


def test_an_even_course_of_time_is_nothing_unusual():
    guard = PauseGuard()
    assert [guard.check(1000.0 + second, second, 1.0) for second in range(10)] == [""] * 10


def test_jumps_and_pauses_are_told_apart():
    guard = PauseGuard()
    guard.check(1000.0, 0.0, 1.0)
    assert "jumped by +3600.0 s" in guard.check(4601.0, 1.0, 1.0)
    assert "jumped by -3600.0 s" in guard.check(1002.0, 2.0, 1.0)
    assert "stood still for 30.0 s" in guard.check(1032.0, 32.0, 1.0)
    assert guard.check(1062.0, 62.0, 30.0) == ""  # a slow tick is no pause


def test_what_is_remembered_lies_never_in_the_future():
    memory = PlannerMemory((("p", 500.0),), (("p", 90.0),), (("n", 101.0), ("m", 99.0)))
    assert no_later_than(memory, 100.0) == PlannerMemory((("p", 100.0),), (("p", 90.0),), (("n", 100.0), ("m", 99.0)))


def test_a_boot_that_a_set_clock_or_a_pause_fell_into_teaches_nothing():
    learner = Learner(60.0)
    learner.asked("p", 1, 1000.0)
    learner.forget_requests()
    learner.arrivals([NodeArrival("n", "p", 1000.0, 2800.0)])
    assert learner.profiles.boot_estimate("p", POOL).samples == 0
    learner.asked("p", 1, 3000.0)
    learner.arrivals([NodeArrival("m", "p", 3000.0, 3030.0)])
    assert learner.profiles.boot_estimate("p", POOL).samples == 1


# complaints


def test_an_error_is_logged_once_then_rarely_then_its_end(clock, caplog):
    caplog.set_level(logging.INFO)
    complaints = Complaints(clock)
    logged = []
    for second in range(0, 200, 10):
        clock.now = float(second)
        logged.append(complaints.failed("reading", TemporaryError(f"no answer after {second} s")))
    assert [index * 10 for index, was in enumerate(logged) if was] == [0, 60, 180]
    assert complaints.lasts("reading")
    complaints.went_well("reading")
    assert "works again after 20 failure(s)" in caplog.messages[-1]
    complaints.went_well("reading")
    assert not complaints.lasts("reading")


def test_another_error_at_the_same_place_is_news(clock):
    complaints = Complaints(clock)
    assert complaints.failed("reading", TemporaryError("no answer"))
    assert complaints.failed("reading", ValueError("odd answer"))
    assert not complaints.failed("reading", ValueError("odd answer"))
    assert complaints.failed("writing", ValueError("odd answer"))


# journal


def plan_with(sentence, code=ReasonCode.NOTE):
    return Plan(refusals=(Refusal("pool", Reason(code, sentence)),))


def test_a_refusal_that_lasts_is_written_once_until_it_changes():
    journal = Journal()
    for second in range(100):
        journal.plan(float(second), plan_with("wanted 3, may have 2"))
    assert len(journal.take()) == 1
    journal.plan(100.0, plan_with("wanted 4, may have 2"))
    journal.plan(101.0, plan_with("wanted 5, may have 2"))  # figures alone: not yet
    journal.plan(102.0, plan_with("no permission"))
    assert [each.sentence for each in journal.take()] == ["wanted 4, may have 2", "no permission"]


def test_a_refusal_that_comes_back_later_is_written_again():
    journal = Journal()
    journal.plan(0.0, plan_with("no room"))
    journal.plan(1000.0, plan_with("no room"))
    assert len(journal.take()) == 2


def test_transitions_and_freezing_are_decisions():
    journal = Journal()
    note = TransitionNote("id", "etl run", Reason(ReasonCode.RESERVATION_CHANGED, "planned → requested"))
    frozen = Reason(ReasonCode.FROZEN_CLUSTER, "the view is 70 s old")
    journal.plan(0.0, Plan(transitions=(note,), frozen=frozen))
    assert [(each.kind, each.code, each.applied) for each in journal.take()] == [
        ("reservation", "RESERVATION_CHANGED", True), ("refusal", "FROZEN_CLUSTER", False)
    ]  # fmt: skip


def test_what_could_not_be_saved_is_kept_in_order_and_bounded():
    journal = Journal()
    for number in range(3000):
        journal.write(float(number), "nodes", "p", Reason(ReasonCode.NOTE, str(number)), applied=True)
    taken = journal.take()
    assert (len(taken), taken[-1].sentence) == (2000, "2999")
    journal.write(3000.0, "nodes", "p", Reason(ReasonCode.NOTE, "newest"), applied=True)
    journal.keep(taken)
    assert [each.sentence for each in journal.take()[-2:]] == ["2999", "newest"]


# leading


def test_the_lead_is_renewed_within_its_time_and_not_at_each_tick(clock):
    leader = FakeLeader()
    leading = Leading(leader, Complaints(clock), clock)
    asked = []
    original = leader.acquire_or_renew
    leader_type = type(leader)

    def counting(self, now):
        asked.append(now)
        return original(now)

    patch = pytest.MonkeyPatch()
    patch.setattr(leader_type, "acquire_or_renew", counting)
    try:
        for tenth in range(100):
            clock.now = tenth / 10
            assert leading.token_now(clock.now) == 1
    finally:
        patch.undo()
    assert 3 <= len(asked) <= 5


def test_a_silent_database_ends_the_lead_before_its_time_is_over(clock):
    leader = FakeLeader(ttl_seconds=10.0)
    leading = Leading(leader, Complaints(clock), clock)
    assert leading.token_now(0.0) == 1
    leader.is_silent = True
    clock.now = 7.9
    assert leading.token_now(7.9) == 1
    clock.now = 8.1
    assert leading.token_now(8.1) is None
    leader.is_silent = False
    assert leading.token_now(8.2) == 1


def test_a_new_token_means_taking_over_again(clock):
    leader = FakeLeader()
    leading = Leading(leader, Complaints(clock), clock)
    leading.token_now(0.0)
    assert leading.is_new
    leading.is_new = False
    leader.is_held = False
    leading.doubt()
    assert leading.token_now(0.1) == 2
    assert leading.is_new


# learning


def finished(uid, seconds, ended=1000.0, owner=("etl", "r", "load")):
    pod = Pod(uid, "d", Resources(), PodPhase.SUCCEEDED, "n", TaskKey(*owner), "burst")
    return FinishedPod(uid, pod, ended - seconds, ended)


def test_a_pod_is_learnt_once_over_restarts():
    learner = Learner(300.0)
    learner.pods([finished("a", 20.0), finished("a", 20.0)])
    assert learner.profiles.estimate("etl", "load", "burst").samples == 1
    after = Learner(300.0)
    assert after.load(learner.to_document())
    after.pods([finished("a", 20.0, ended=998.0), finished("b", 30.0, ended=1100.0)])
    assert after.profiles.estimate("etl", "load", "burst").samples == 2
    assert not Learner(300.0).load({"profiles": "nonsense"})


def test_a_boot_is_the_time_from_the_oldest_open_request():
    learner = Learner(300.0)
    learner.asked("p", 2, now=100.0)
    learner.arrivals([NodeArrival("a", "p", 110.0, 130.0), NodeArrival("b", "p", 111.0, 150.0)])
    learner.arrivals([NodeArrival("c", "p", 111.0, 190.0)])  # nobody of us asked for it
    estimate = dict(learner.boots(Settings(node_pools=(POOL,))))["p"]
    assert estimate.samples == 2
    assert 30.0 <= estimate.q50_seconds <= 50.0


def test_a_request_that_was_withdrawn_is_no_boot():
    learner = Learner(300.0)
    learner.asked("p", 2, now=0.0)
    learner.withdrawn("p", 5)
    learner.arrivals([NodeArrival("a", "p", 10.0, 60.0)])
    assert dict(learner.boots(Settings(node_pools=(POOL,))))["p"].samples == 0


def test_widths_are_learnt_once_for_each_run():
    shape = DagShape("etl", (TaskSpec("fan", is_mapped=True),))
    instances = tuple(TaskInstance("fan", index) for index in range(7))
    learner = Learner(300.0)
    for _ in range(5):
        learner.widths([Run("etl", "r", RunPhase.ACTIVE, 0.0, shape, instances)])
    assert learner.profiles.width("etl", "fan") == 7
    learner.changed = False
    learner.widths([Run("etl", "r", RunPhase.ACTIVE, 0.0, shape, instances)])
    assert not learner.changed


# owners


def test_a_run_that_a_label_shortened_is_found_again():
    labels = []

    def label_of(value):
        labels.append(value)
        return value.replace(":", "").replace("+", "-")

    runs = [Run("etl", "manual__00:00+1", RunPhase.ACTIVE, 0.0, DagShape("etl", ()))]
    resolver = OwnerResolver(label_of)
    by_label = Pod("a", "d", Resources(), PodPhase.RUNNING, owner=TaskKey("etl", "manual__0000-1", "t", 2))
    exact = Pod("b", "d", Resources(), PodPhase.RUNNING, owner=TaskKey("etl", "manual__00:00+1", "t"))
    placeholder = Pod("c", "d", Resources(), PodPhase.RUNNING)
    found = resolver.pods((by_label, exact, placeholder), runs)
    assert found[0].owner == TaskKey("etl", "manual__00:00+1", "t", 2)
    assert found[1:] == (exact, placeholder)
    count = len(labels)
    resolver.pods((by_label,), runs)
    assert len(labels) == count
    over = Pod(
        "d", "d", Resources(), PodPhase.RUNNING, owner=TaskKey("etl", "scheduled__2020-01-01T00:00:00+00:00", "t")
    )
    resolver.pods((over,), ())
    assert len(labels) == count  # an exact id of a run that is over needs no search


# warm shares


def reservation(run, warm, needed_at, state=ReservationState.READY, expires_at=100.0):
    return Reservation("etl", run, "p", warm, state, needed_at, 50.0, 0.0, 0.0, expires_at, warm)


def test_warm_nodes_belong_to_who_needs_them_first_and_else_to_the_pool():
    facts = PoolFacts(10.0, POOL)
    reservations = [
        reservation("late", 2, 30.0),
        reservation("soon", 2, 20.0),
        reservation("planned", 2, 5.0, ReservationState.PLANNED),
        reservation("expired", 2, 5.0, expires_at=9.0),
    ]
    shares = warm_shares(facts, reservations, Settings(), 5)
    assert [(share.run_id, share.nodes) for share in shares] == [("soon", 2), ("late", 2), ("", 1)]
    assert shares[-1].reservation_id == pool_owner_id(POOL)
    assert [(share.run_id, share.nodes) for share in warm_shares(facts, reservations, Settings(), 3)] == [
        ("soon", 2), ("late", 1)
    ]  # fmt: skip
    assert warm_shares(facts, reservations, Settings(), 0) == ()
