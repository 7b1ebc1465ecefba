"""One controller tick as production does it, by number of DAGs and nodes. Prints a table or JSON.

    python benchmarks/controller.py [--dags 100,1000,10000] [--nodes 100,1000,5000] [--output json] [--profile]

Real: Airflow's database (a PostgreSQL of its own, started and removed; SQLite where there is none, which is said), the
reader, the view of the cluster, planner, provider, leadership and our tables. Not real: the API server. Its objects go
straight into the view, and its answers to writes are made up, so that neither its CPU nor the network is counted.

*cold* is the first tick of a process. *warm* comes five seconds later, when 1 % of the DAGs have changed and as many
runs finished a task. *quiet* is a tick in which nothing changed. *reaction* is the loop as it runs: from a node's
change in the watch to the new slots in Airflow's database. Each size is measured in a process of its own. Seconds,
megabytes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tests")]

PHASES = ("start", "read", "observe", "plan", "act", "keep", "tick")
"""start: what only a new leader does (reservations, profiles, history); keep: our own tables."""
REACTION_SECONDS = 12.0
"""Longest that reactions are sampled at one size."""


class Stopwatch:
    """Adds up the time spent in functions that it was put around. What lies within another counts for itself alone."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inner: list[float] = []

    def around(self, owner: Any, name: str, phase: str) -> None:
        """Measure a function of a class or module from now on."""
        inner = getattr(owner, name)

        def measured(*args: Any, **options: Any) -> Any:
            began = time.perf_counter()
            self._inner.append(0.0)
            try:
                return inner(*args, **options)
            finally:
                passed = time.perf_counter() - began
                self.seconds[phase] += passed - self._inner.pop()
                if self._inner:
                    self._inner[-1] += passed

        setattr(owner, name, measured)

    def take(self) -> dict[str, float]:
        """Return the sums and begin anew."""
        taken, self.seconds = dict(self.seconds), defaultdict(float)
        return taken


class Measurement:
    """One size: a controller on its own copy of the database."""

    def __init__(self, url: str, dags: int, nodes: int, under_way: float) -> None:
        import controller_world as world
        from sqlalchemy import create_engine, text

        from airflow_elastic.airflow_db.leader import Leadership
        from airflow_elastic.airflow_db.store import Store
        from airflow_elastic.airflow_db.tables import metadata
        from airflow_elastic.config import WatchedSettings
        from airflow_elastic.controller.loop import Controller
        from airflow_elastic.controller.ports import Parts
        from airflow_elastic.controller.wiring import AirflowDatabase
        from airflow_elastic.kubernetes.cluster import ClusterView

        self.world, self.dags, self.active = world, dags, int(under_way * dags)
        self.engine = create_engine(url)
        with self.engine.begin() as connection:
            for table in metadata.tables:
                connection.execute(text(f"DELETE FROM {table}"))
            connection.execute(text("UPDATE slot_pool SET slots = 0 WHERE pool = 'burst'"))
        self.clock = world.Clock()
        self.view = ClusterView(self.clock.monotonic, self.clock.wall)
        self.nodes = world.raw_nodes(nodes, time.time())
        self.view.replace("pods", list(world.raw_pods(nodes, self.active, time.time())))
        self.view.replace("nodes", [dict(node) for node in self.nodes])
        self.prove()
        path = Path(os.environ["AIRFLOW_HOME"]) / f"capacity-{nodes}.yaml"
        path.write_text(world.CAPACITY_FILE.format(nodes=nodes, most=2 * nodes))
        self.api = world.Api(nodes)
        self.parts = Parts(
            settings=WatchedSettings(str(path), discover=None),
            cluster=self.view,
            api=self.api,
            airflow=AirflowDatabase(self.engine),
            memory=Store(engine=self.engine),
            leader=Leadership("benchmark", engine=self.engine),
        )
        self.watch = Stopwatch()
        self._measure_phases()
        self.controller = Controller(self.parts, wall_clock=self.clock.wall, monotonic=self.clock.monotonic)

    def prove(self) -> None:
        """What the watch's bookmarks do: say that the view is current."""
        self.view.proof_of_life("nodes")
        self.view.proof_of_life("pods")

    def tick(self, skip: float = 1.0) -> dict[str, float]:
        """Move the clocks on, tick once, and return the seconds of each phase."""
        self.clock.skipped += skip
        self.prove()
        began = time.perf_counter()
        done = self.controller.tick()
        seconds = time.perf_counter() - began
        self.controller._tick_seconds = seconds
        if not done.is_leader or done.plan is None:
            raise RuntimeError(f"the tick did nothing: {done.why_not}")
        taken = self.watch.take()
        return {**{phase: taken.get(phase, 0.0) for phase in PHASES}, "tick": seconds}

    def warm(self) -> dict[str, float]:
        """Tick after the changes of five seconds."""
        self.world.change(self.engine, self.dags, 0.01, self.active)
        return self.tick(skip=5.0)

    def reactions(self, most: int) -> list[float]:
        """Run the loop; take nodes away and give them back; return the seconds until the slots were written."""
        written = threading.Event()
        write, found = self.parts.airflow.write_slots, []

        def noted(airflow_pool: str, slots: int, token: int) -> bool:
            changed = write(airflow_pool, slots, token)
            written.set()
            return changed

        self.parts.airflow.write_slots = noted  # type: ignore[method-assign]
        loop = threading.Thread(target=self.controller.run, daemon=True)
        loop.start()
        end = time.monotonic() + REACTION_SECONDS
        try:
            while len(found) < most and time.monotonic() < end:
                node = self.nodes[-1 - (len(found) // 2) % len(self.nodes)]
                self.prove()
                time.sleep(0.3)
                written.clear()
                is_ready = bool(len(found) % 2)
                began = time.perf_counter()
                self.view.apply("nodes", "MODIFIED", self.world.with_ready(node, is_ready=is_ready, now=time.time()))
                if not written.wait(30.0):
                    raise RuntimeError("no slots were written within 30 s of a node's change")
                found.append(time.perf_counter() - began)
        finally:
            self.controller.stop()
            loop.join(30.0)
        return found

    def _measure_phases(self) -> None:
        from airflow_elastic.controller import loop
        from airflow_elastic.controller.act import Actor
        from airflow_elastic.controller.keeping import Keeper
        from airflow_elastic.controller.observe import Observer
        from airflow_elastic.controller.wiring import AirflowDatabase

        for owner, name, phase in (
            (loop.Controller, "_take_over", "start"),
            (AirflowDatabase, "read", "read"),
            (Observer, "observe", "observe"),
            (Observer, "facts", "observe"),
            (loop, "make_plan", "plan"),
            (Actor, "apply", "act"),
            (Actor, "sweep", "act"),
            (Keeper, "save_reservations", "keep"),
            (Keeper, "publish", "keep"),
            (Keeper, "save_learnt", "keep"),
        ):
            self.watch.around(owner, name, phase)


def measure(url: str, dags: int, nodes: int, under_way: float, events: int, profile: bool) -> dict[str, object]:
    """Return the figures of one size."""
    made = Measurement(url, dags, nodes, under_way)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cold = made.tick()
    warm = made.warm()
    with profiled(profile, f"{dags} DAGs, {nodes} nodes: three quiet ticks"):
        quiet = [made.tick() for _ in range(3)]
    reactions = sorted(made.reactions(events)) if events else []
    row: dict[str, object] = {"dags": dags, "nodes": nodes, "pods": made.active * made.world.STAGES[1]}
    for phase in PHASES:
        row[f"{phase}_cold"] = round(cold[phase], 3)
        row[f"{phase}_warm"] = round(warm[phase], 3)
        row[f"{phase}_quiet"] = round(statistics.median(each[phase] for each in quiet), 3)
    row["reaction_p50"] = round(statistics.median(reactions), 3) if reactions else None
    row["reaction_p99"] = round(reactions[-1 - len(reactions) // 100], 3) if reactions else None
    row["reactions"] = len(reactions)
    row["megabytes_before"] = round(before)
    row["megabytes_peak"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return row


@contextmanager
def profiled(wanted: bool, what: str) -> Iterator[None]:
    """Print to stderr where the time of the block went."""
    if not wanted:
        yield
        return
    import cProfile
    import pstats

    profiler = cProfile.Profile()
    with profiler:
        yield
    print(f"\n{what}", file=sys.stderr)
    pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(25)


@contextmanager
def databases() -> Iterator[Any]:
    """Give a function that makes the URL of an empty database by name, and one that copies a filled one."""
    import pytest
    from support.postgres import PostgresMissing, temporary_postgres

    home = Path(os.environ["AIRFLOW_HOME"])
    try:
        with temporary_postgres() as url:
            yield _Postgres(url)
    except (PostgresMissing, pytest.skip.Exception) as missing:
        print(f"SQLite instead of PostgreSQL: {missing}", file=sys.stderr)
        yield _Sqlite(home)


class _Postgres:
    kind = "postgresql"

    def __init__(self, url: str) -> None:
        self._url = url

    def empty(self, name: str) -> str:
        return self._create(f"CREATE DATABASE {name}", name)

    def copy(self, source: str, name: str) -> str:
        return self._create(f"CREATE DATABASE {name} TEMPLATE {source}", name)

    def _create(self, statement: str, name: str) -> str:
        from sqlalchemy import create_engine

        engine = create_engine(self._url)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(statement)
        engine.dispose()
        return f"{self._url.rpartition('/')[0]}/{name}"


class _Sqlite:
    kind = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def empty(self, name: str) -> str:
        return f"sqlite:///{self._folder / name}.db"

    def copy(self, source: str, name: str) -> str:
        shutil.copy(self._folder / f"{source}.db", self._folder / f"{name}.db")
        return self.empty(name)


def fill(url: str, dags: int, under_way: float) -> None:
    """Write the installation into an empty database, in this process."""
    import controller_world as world
    from sqlalchemy import create_engine

    engine = create_engine(url)
    world.fill(engine, dags, under_way, time.time())
    engine.dispose()


def in_process_of_its_own(args: argparse.Namespace, url: str, dags: int, nodes: int) -> dict[str, object]:
    """Measure one size in a fresh interpreter: cold is cold, and memory is that size's alone."""
    command = [sys.executable, __file__, "--measure", url, "--dags", str(dags), "--nodes", str(nodes)]
    command += ["--under-way", str(args.under_way), "--events", str(args.events)]
    command += ["--profile"] if args.profile else []
    environment = {**os.environ, "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=1800, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def print_table(rows: list[dict[str, object]]) -> None:
    """Print a row for each size and kind of tick."""
    header = f"{'DAGs':>6} {'nodes':>6} {'tick':>6}" + "".join(f"{phase:>9}" for phase in PHASES)
    print(header)
    for row in rows:
        for kind in ("cold", "warm", "quiet"):
            figures = "".join(f"{row[f'{phase}_{kind}']:>9}" for phase in PHASES)
            print(f"{row['dags']:>6} {row['nodes']:>6} {kind:>6}{figures}")
        print(
            f"{'':>13} {row['pods']} pods; slots follow a node after {row['reaction_p50']} s (p50), "
            f"{row['reaction_p99']} s (p99 of {row['reactions']}); "
            f"memory {row['megabytes_before']} MB before, {row['megabytes_peak']} MB peak"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dags", default="100,1000", help="numbers of DAGs, by comma")
    parser.add_argument("--nodes", default="100,1000", help="numbers of nodes, by comma")
    parser.add_argument("--under-way", type=float, default=0.2, help="share of DAGs with an active run")
    parser.add_argument("--events", type=int, default=10, help="node changes whose reaction is measured; 0: none")
    parser.add_argument("--profile", action="store_true", help="print where the time of quiet ticks goes (stderr)")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        row = measure(args.measure, int(args.dags), int(args.nodes), args.under_way, args.events, args.profile)
        print(json.dumps(row))
        return
    home = Path(tempfile.mkdtemp(prefix="elastic-benchmark-"))
    try:
        os.environ["AIRFLOW_HOME"] = str(home)
        os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
        os.environ["AIRFLOW__ELASTIC__CAPACITY_FILE"] = str(home / "capacity.yaml")
        (home / "capacity.yaml").write_text(__import__("controller_world").CAPACITY_FILE.format(nodes=1, most=10))
        rows = []
        with databases() as server:
            for dags in [int(each) for each in args.dags.split(",")]:
                source = f"filled_{dags}"
                fill(server.empty(source), dags, args.under_way)
                for nodes in [int(each) for each in args.nodes.split(",")]:
                    url = server.copy(source, f"size_{dags}_{nodes}")
                    rows.append({**in_process_of_its_own(args, url, dags, nodes), "database": server.kind})
        if args.output == "json":
            print(json.dumps({"rows": rows}))
        else:
            print_table(rows)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
