from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

import pytest

from airflow_elastic.errors import ConfigurationError, TemporaryError
from airflow_elastic.kubernetes import client as client_module
from airflow_elastic.kubernetes.client import ClusterApi, api_client_for, make_api_client
from airflow_elastic.kubernetes.watch import Watcher


class Server:
    """An API server that answers as a test tells it to, request by request."""

    def __init__(self) -> None:
        self.answers: list = []
        self.requests: list[dict[str, str]] = []
        self.release = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                query = {key: values[0] for key, values in parse_qs(urlparse(self.path).query).items()}
                owner.requests.append(query)
                answer = owner.answers.pop(0) if owner.answers else "hang"
                if answer == "cut":
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                status, body = (200, None) if answer == "hang" else answer
                self.send_response(status)
                if query.get("watch"):
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for event in body or ():
                        line = json.dumps(event).encode() + b"\n"
                        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                    if answer == "hang":
                        self.wfile.flush()
                        owner.release.wait(20)
                    self.wfile.write(b"0\r\n\r\n")
                else:
                    raw = json.dumps(body or {}).encode()
                    self.send_header("Content-Length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}"


class Sink:
    def __init__(self) -> None:
        self.seen: list = []
        self.alive = 0

    def replace(self, kind, objects):
        self.seen.append(("list", [each["metadata"]["name"] for each in objects]))

    def apply(self, kind, event, obj):
        self.seen.append((event, obj["metadata"]["name"]))

    def proof_of_life(self, kind):
        self.alive += 1


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.release.set()
    made.http.shutdown()
    made.http.server_close()


def obj(name, version="5"):
    return {"metadata": {"name": name, "resourceVersion": version}}


def listing(*names, version="10", more=""):
    return 200, {"metadata": {"resourceVersion": version, "continue": more}, "items": [obj(name) for name in names]}


def watching(server, sink, until, **options):
    watcher = Watcher(ClusterApi(api_client_for(server.url)), "/api/v1/nodes", "nodes", sink, **options)
    watcher.start()
    end = time.monotonic() + 5
    try:
        while not until(watcher):
            assert time.monotonic() < end, (sink.seen, server.requests, watcher.last_error)
            time.sleep(0.005)
    finally:
        watcher.stop()
    return watcher


def test_pages_are_put_together_and_changes_follow_from_their_version(server):
    sink = Sink()
    server.answers = [listing("a", more="token"), listing("b"), (200, [{"type": "ADDED", "object": obj("c", "11")}])]
    watching(server, sink, lambda _: len(server.requests) >= 4)
    assert sink.seen == [("list", ["a", "b"]), ("ADDED", "c")]
    assert server.requests[1]["continue"] == "token"
    assert server.requests[2]["resourceVersion"] == "10"
    assert server.requests[2]["allowWatchBookmarks"] == "true"
    assert server.requests[3]["resourceVersion"] == "11"


def test_a_bookmark_moves_the_version_and_proves_life_only(server):
    sink = Sink()
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "99"}}}
    server.answers = [listing("a"), (200, [bookmark])]
    watching(server, sink, lambda _: len(server.requests) >= 3)
    assert sink.seen == [("list", ["a"])]
    assert server.requests[2]["resourceVersion"] == "99"
    assert sink.alive >= 3


@pytest.mark.parametrize(
    "gone", [(410, {}), (200, [{"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}])]
)
def test_history_that_is_gone_is_listed_anew(server, gone):
    sink = Sink()
    server.answers = [listing("a"), gone, listing("b", version="20")]
    watching(server, sink, lambda _: len(server.requests) >= 4)
    assert sink.seen == [("list", ["a"]), ("list", ["b"])]
    assert server.requests[3]["resourceVersion"] == "20"


def test_an_expired_page_begins_the_list_again(server):
    sink = Sink()
    server.answers = [listing("a", more="old"), (410, {}), listing("a", "b")]
    watching(server, sink, lambda _: bool(sink.seen))
    assert sink.seen == [("list", ["a", "b"])]
    assert "limit" not in server.requests[2]


def test_a_broken_connection_goes_on_from_the_last_version(server):
    sink = Sink()
    server.answers = [listing("a"), "cut", (200, [{"type": "DELETED", "object": obj("a", "12")}])]
    watching(server, sink, lambda _: ("DELETED", "a") in sink.seen)
    assert [query.get("resourceVersion") for query in server.requests[:3]] == [None, "10", "10"]


def test_a_stream_that_falls_silent_is_given_up(server, monkeypatch):
    monkeypatch.setattr("airflow_elastic.kubernetes.watch._GRACE_SECONDS", 0.05)
    sink = Sink()
    server.answers = [listing("a"), "hang", (200, [])]
    watching(server, sink, lambda _: len(server.requests) >= 3, watch_seconds=0.1)


def test_what_is_forbidden_is_said(server):
    sink = Sink()
    server.answers = [(403, {"message": "nodes is forbidden"})] * 3
    watcher = watching(server, sink, lambda each: bool(each.last_error))
    assert "403" in watcher.last_error
    assert "list and watch" in watcher.last_error
    assert sink.alive == 0


def test_a_refresh_lists_at_once(server):
    sink = Sink()
    server.answers = [listing("a"), "hang", listing("b")]
    asked = []

    def refreshed(watcher):
        if len(server.requests) == 2 and sink.alive >= 2 and not asked:
            asked.append(watcher.refresh())
        return ("list", ["b"]) in sink.seen

    watcher = watching(server, sink, refreshed)
    assert watcher.last_error == ""


def test_stopping_does_not_wait_for_the_server(server):
    began = time.monotonic()
    watching(server, Sink(), lambda _: len(server.requests) >= 2)
    assert time.monotonic() - began < 4.0


def test_overload_and_silence_are_temporary_and_refusals_are_answers(server):
    api = ClusterApi(api_client_for(server.url))
    server.answers = [(503, {"message": "starting"}), (404, {"message": "no such node"})]
    with pytest.raises(TemporaryError, match="starting"):
        api.call("GET", "/api/v1/nodes")
    assert api.call("GET", "/api/v1/nodes/x") == (404, {"message": "no such node"})
    dead = ClusterApi(api_client_for("http://127.0.0.1:9"))
    with pytest.raises(TemporaryError, match="does not answer"):
        dead.call("GET", "/api/v1/nodes")


def test_without_any_cluster_the_error_says_what_was_tried(monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    monkeypatch.setattr(client_module, "_SERVICE_ACCOUNT", tmp_path / "token")
    with pytest.raises(ConfigurationError, match=r"service account.*KUBECONFIG.*kubernetes_conn_id"):
        make_api_client()


def test_every_request_of_the_official_client_is_limited(monkeypatch, tmp_path):
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
        "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:9"}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    }  # fmt: skip
    (tmp_path / "config").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    monkeypatch.setattr(client_module, "_SERVICE_ACCOUNT", tmp_path / "token")
    api_client = make_api_client()
    assert api_client.configuration.host == "http://127.0.0.1:9"
    limits = []

    def remember(*_, **options):
        limits.append(options["_request_timeout"])

    for method in ("request", "GET", "get_request"):
        monkeypatch.setattr(api_client.rest_client, method, remember, raising=False)
    api_client.request("GET", "http://127.0.0.1:9/api")
    api_client.request("GET", "http://127.0.0.1:9/api", _request_timeout=3)
    assert limits == [(5.0, 15.0), 3]
