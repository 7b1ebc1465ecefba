"""The API as bytes on the wire: no client library between a test and what the server says."""

from __future__ import annotations

import base64
import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import yaml

__all__ = ["APPLY", "JSON_PATCH", "MERGE", "STRATEGIC", "Answer", "Object", "Rest", "Watch"]

Object = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: status code and parsed body (text where it is not JSON)."""

    code: int
    body: Any

    @property
    def reason(self) -> str:
        """Return the reason of a Status."""
        return str(self.body.get("reason", ""))

    @property
    def message(self) -> str:
        """Return the message of a Status."""
        return str(self.body.get("message", ""))

    @property
    def version(self) -> str:
        """Return the object's (or list's) resourceVersion."""
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def names(self) -> list[str]:
        """Return the names of a list's items, sorted."""
        return sorted(item["metadata"]["name"] for item in self.body["items"])


class Rest:
    """One user's way to one cluster."""

    def __init__(self, url: str, token: str = "", authority: Path | None = None) -> None:
        self.url = url
        self.token = token
        self.authority = authority
        self._session = requests.Session()
        # Proxies and certificates of the machine have nothing to do with a cluster on its loopback device.
        self._session.trust_env = False
        if authority is not None:
            self._session.verify = str(authority)
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"

    @classmethod
    def of(cls, kubeconfig: Path) -> Rest:
        """Return the way of a kubeconfig's user."""
        content = yaml.safe_load(kubeconfig.read_text())
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        authority = None
        if encoded := cluster.get("certificate-authority-data"):
            authority = kubeconfig.with_suffix(".crt")
            authority.write_bytes(base64.b64decode(encoded))
        return cls(cluster["server"], user.get("token", ""), authority)

    def as_user(self, token: str) -> Rest:
        """Return the same cluster as another user sees it."""
        return Rest(self.url, token, self.authority)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "",
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Answer:
        """Make a request; every answer is returned, whatever its code."""
        data = body if body is None or isinstance(body, bytes | str) else json.dumps(body)
        sent = dict(headers or {})
        if data is not None:
            sent["Content-Type"] = content_type or "application/json"
        answer = self._session.request(method, self.url + path, data=data, params=query, headers=sent, timeout=_SECONDS)
        if "json" in answer.headers.get("Content-Type", ""):
            return Answer(answer.status_code, answer.json())
        return Answer(answer.status_code, answer.text)

    def get(self, path: str, **query: Any) -> Answer:
        """GET."""
        return self.call("GET", path, **query)

    def post(self, path: str, body: Any, **query: Any) -> Answer:
        """POST."""
        return self.call("POST", path, body, **query)

    def put(self, path: str, body: Any, **query: Any) -> Answer:
        """PUT."""
        return self.call("PUT", path, body, **query)

    def patch(self, path: str, body: Any, content_type: str = MERGE, **query: Any) -> Answer:
        """PATCH."""
        return self.call("PATCH", path, body, content_type=content_type, **query)

    def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        """DELETE."""
        return self.call("DELETE", path, body, **query)

    def made(self, path: str, body: Object) -> Object:
        """Create an object that has to be accepted, and return it."""
        answer = self.post(path, body)
        assert answer.code == 201, answer
        created: Object = answer.body
        return created

    @contextmanager
    def watch(self, path: str, **query: Any) -> Iterator[Watch]:
        """Open a watch, which is closed at the end of the block."""
        with self._session.get(
            self.url + path, params={"watch": "true", **query}, stream=True, timeout=(_SECONDS, 120)
        ) as answer:
            watch = Watch(answer)
            try:
                yield watch
            finally:
                watch.stop()

    def lines(self, path: str, **query: Any) -> Iterator[str]:
        """Stream the lines of a followed log."""
        with self._session.get(self.url + path, params=query, stream=True, timeout=(_SECONDS, 60)) as answer:
            assert answer.status_code == 200, answer.text
            for line in answer.iter_lines(chunk_size=1):
                yield line.decode()


class Watch:
    """An open watch: its events wait here until a test takes them."""

    def __init__(self, answer: requests.Response) -> None:
        self.code = answer.status_code
        self.refusal = answer.json() if answer.status_code != 200 else None
        self.seen: list[tuple[str, Object]] = []
        self._answer = answer
        self._queue: queue.Queue[tuple[str, Object] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        if self.code == 200:
            self._thread.start()

    def next(self, seconds: float = 10.0) -> tuple[str, Object] | None:
        """Return the next (type, object); None when the server has ended the stream.

        Raises:
            AssertionError: nothing comes in time.
        """
        try:
            event = self._queue.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"no event within {seconds} s; seen so far: {self.seen}") from None
        if event is not None:
            self.seen.append(event)
        return event

    def until(self, wanted: Callable[[str, Object], bool], seconds: float = 20.0) -> Object:
        """Return the first object of an event that is wanted.

        Raises:
            AssertionError: it does not come, or the stream ends.
        """
        while (event := self.next(seconds)) is not None:
            if wanted(*event):
                return event[1]
        raise AssertionError(f"the stream ended; seen: {self.seen}")

    def quiet(self, seconds: float = 0.5) -> bool:
        """Tell whether nothing comes for a while."""
        try:
            event = self._queue.get(timeout=seconds)
        except queue.Empty:
            return True
        if event is not None:
            self.seen.append(event)
        return False

    def stop(self) -> None:
        """Leave. The reader has to let go of the connection first, else closing it waits for the next event."""
        if self._thread.is_alive():
            self._answer.raw.shutdown()
            self._thread.join(_SECONDS)

    def _read(self) -> None:
        try:
            for line in self._answer.iter_lines(chunk_size=1):
                if line:
                    event = json.loads(line)
                    self._queue.put((event["type"], event["object"]))
        except (requests.RequestException, OSError, AttributeError, ValueError):
            # Left by `stop`, in the middle of whatever it was reading.
            pass
        self._queue.put(None)
