"""How fast the embedded cluster is: start, requests, whole pod lives, many pods, watches.

Run: ``python benchmarks/embedded.py [--pods 10000] [--lives 3000]``. The cluster runs in a process of its own, the
clients in this one; figures depend on the machine and are printed, not asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from airflow_elastic.embedded import ClusterConfig, EmbeddedCluster, NodePoolConfig

CONNECTIONS = 16


class Connection:
    """One keep-alive HTTP connection, as little as a client can be."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open(self) -> Connection:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def call(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        headers = f"host: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self.writer.write(f"{method} {path} HTTP/1.1\r\n{headers}".encode() + body)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        length = next(int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length"))
        return int(lines[0].split()[1]), await self.reader.readexactly(length)

    async def watch(self, path: str) -> Any:
        self.writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        await self.reader.readuntil(b"\r\n\r\n")
        while True:
            size = int(await self.reader.readline(), 16)
            chunk = await self.reader.readexactly(size)
            await self.reader.readline()
            if not size:
                return
            for line in chunk.splitlines():
                yield json.loads(line)

    def close(self) -> None:
        self.writer.close()


def pod(name: str, seconds: float) -> bytes:
    container = {"name": "base", "image": "x", "resources": {"requests": {"cpu": "10m", "memory": "8Mi"}}}
    body = {
        "metadata": {
            "name": name,
            "labels": {"dag_id": "d", "task_id": "t", "run_id": "r"},
            "annotations": {"airflow-elastic.io/run-seconds": str(seconds)},
        },
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return json.dumps(body).encode()


async def spread(port: int, jobs: list[Any]) -> float:
    """Run jobs (each takes a connection) over several connections; returns the seconds it took."""
    queue = list(reversed(jobs))
    connections = [await Connection(port).open() for _ in range(CONNECTIONS)]

    async def work(connection: Connection) -> None:
        while queue:
            await queue.pop()(connection)

    start = time.perf_counter()
    await asyncio.gather(*(work(connection) for connection in connections))
    seconds = time.perf_counter() - start
    for connection in connections:
        connection.close()
    return seconds


def calls(method: str, paths: list[str], bodies: list[bytes] | None = None) -> list[Any]:
    def job(path: str, body: bytes) -> Any:
        async def run(connection: Connection) -> None:
            code, answer = await connection.call(method, path, body)
            assert code < 300, (code, answer)

        return run

    return [job(path, body) for path, body in zip(paths, bodies or [b""] * len(paths), strict=True)]


PODS = "/api/v1/namespaces/default/pods"


async def lifecycles(port: int, count: int) -> float:
    """Return pods per second: created, bound, run, succeeded, deleted, all seen by a watch."""
    watcher = await Connection(port).open()
    _, listed = await watcher.call("GET", PODS + "?limit=1")
    version = json.loads(listed)["metadata"]["resourceVersion"]
    deleters = [await Connection(port).open() for _ in range(4)]
    names: asyncio.Queue[str] = asyncio.Queue()

    async def delete(connection: Connection) -> None:
        while True:
            await connection.call("DELETE", f"{PODS}/{await names.get()}")

    tasks = [asyncio.create_task(delete(connection)) for connection in deleters]
    start = time.perf_counter()
    creating = asyncio.create_task(
        spread(port, calls("POST", [PODS] * count, [pod(f"life-{i}", 0) for i in range(count)]))
    )
    gone = 0
    async for event in watcher.watch(f"{PODS}?watch=true&resourceVersion={version}"):
        if event["type"] == "DELETED":
            gone += 1
            if gone == count:
                break
        elif event["object"]["status"]["phase"] == "Succeeded":
            names.put_nowait(event["object"]["metadata"]["name"])
    seconds = time.perf_counter() - start
    await creating
    for task in tasks:
        task.cancel()
    watcher.close()
    return count / seconds


async def watch_latency(port: int, count: int) -> list[float]:
    """Return milliseconds from sending a change to reading its watch event."""
    watcher, writer = await Connection(port).open(), await Connection(port).open()
    path = "/api/v1/namespaces/default/configmaps"
    await writer.call("POST", path, json.dumps({"metadata": {"name": "clock"}}).encode())
    stream = watcher.watch(f"{path}?watch=true")
    await anext(stream)
    latencies = []
    for number in range(count):
        body = json.dumps({"metadata": {"name": "clock"}, "data": {"n": str(number)}}).encode()
        start = time.perf_counter()
        await writer.call("PUT", f"{path}/clock", body)
        await anext(stream)
        latencies.append((time.perf_counter() - start) * 1000)
    watcher.close()
    writer.close()
    return latencies


async def measure(port: int, server: psutil.Process, options: argparse.Namespace) -> None:
    warm = [pod(f"warm-{i}", 0) for i in range(200)]
    await spread(port, calls("POST", [PODS] * 200, warm))
    seconds = await spread(port, calls("GET", [f"{PODS}/warm-{i % 200}" for i in range(10_000)]))
    report("GET of one pod", f"{10_000 / seconds:,.0f}/s")
    await spread(port, calls("DELETE", [f"{PODS}/warm-{i}" for i in range(200)]))
    before = sum(server.cpu_times()[:2])
    report("whole pod lives", f"{await lifecycles(port, options.lives):,.0f}/s", "create, bind, run, succeed, delete")
    spent = (sum(server.cpu_times()[:2]) - before) / options.lives
    report("… CPU of the cluster for one", f"{spent * 1e6:,.0f} µs", "does not depend on what else the machine does")
    latencies = sorted(await watch_latency(port, 500))
    report("write to watch event", f"{statistics.median(latencies):.1f} ms", f"p95 {latencies[475]:.1f} ms")

    count = options.pods
    bodies = [pod(f"many-{i}", 3600) for i in range(count)]
    seconds = await spread(port, calls("POST", [PODS] * count, bodies))
    report(f"create {count:,} pods", f"{count / seconds:,.0f}/s")
    connection = await Connection(port).open()
    start = time.perf_counter()
    while True:
        _, body = await connection.call("GET", f"{PODS}?fieldSelector=status.phase=Pending&limit=1")
        if not json.loads(body)["items"]:
            break
        await asyncio.sleep(0.05)
    report("… all running", f"{time.perf_counter() - start:.2f} s after the last was created")
    for name, path in (("list all", PODS), ("list by label", PODS + "?labelSelector=dag_id%3Dd,task_id!%3Dx")):
        start = time.perf_counter()
        _, body = await connection.call("GET", path)
        report(f"{name} of {count:,}", f"{(time.perf_counter() - start) * 1000:.0f} ms", f"{len(body) / 2**20:.1f} MiB")
    start = time.perf_counter()
    await connection.call("DELETE", f"{PODS}?gracePeriodSeconds=0")
    report(f"delete {count:,} in one call", f"{time.perf_counter() - start:.2f} s")
    connection.close()


def report(what: str, figure: str, note: str = "") -> None:
    print(f"{what:<32}{figure:>18}   {note}", flush=True)


def start_times(pools: list[NodePoolConfig]) -> list[float]:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        with EmbeddedCluster(ClusterConfig(node_pools=pools)):
            times.append((time.perf_counter() - start) * 1000)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--lives", type=int, default=3_000)
    options = parser.parse_args()
    nodes = 50
    pool = {"name": "bench", "initial_nodes": nodes, "max_nodes": nodes, "allocatable": {"cpu": "64", "pods": "250"}}
    times = start_times([NodePoolConfig("bench", initial_nodes=3)])
    report("start in-process (3 nodes)", f"{statistics.median(times):.0f} ms", f"first {times[0]:.0f} ms")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "cluster.json"
        config.write_text(json.dumps({"node_pools": [pool]}))
        command = [sys.executable, "-m", "airflow_elastic.embedded", "--config", str(config)]
        command += ["--event-log", str(Path(folder) / "events.jsonl"), "--exit-with-parent"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().rsplit(":", 1)[1])
            asyncio.run(measure(port, psutil.Process(process.pid), options))
            memory = Path(f"/proc/{process.pid}/status")
            if memory.exists():
                line = next(line for line in memory.read_text().splitlines() if line.startswith("VmHWM"))
                report("memory at its peak", f"{int(line.split()[1]) / 1024:,.0f} MiB")
        finally:
            process.terminate()
            process.wait(10)


if __name__ == "__main__":
    main()
