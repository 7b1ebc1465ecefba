"""Drives a headless Chromium over its debugging protocol: opens a page, runs script, presses keys, takes pictures."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

__all__ = ["Browser", "browser", "find_chromium"]

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
)  # fmt: skip


def find_chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One tab. ``complaints`` collects what the page logs as an error and every uncaught exception."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._last_id = 0
        self.complaints: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._last_id += 1
        self._socket.send(json.dumps({"id": self._last_id, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=30))
            if message.get("id") == self._last_id:
                assert "error" not in message, message
                return dict(message["result"])
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:600])
        elif message.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))
        elif message.get("method") == "Page.javascriptDialogOpening":
            self.complaints.append("dialog: " + params["message"])

    def open(self, address: str, width: int = 1400, height: int = 1000, dark: bool = False) -> None:
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )  # fmt: skip
        self.call("Page.navigate", url=address)
        self.wait_for("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 20.0) -> None:
        """Wait until a script's value is true (an element counts)."""
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"never true: {condition}; {self.complaints}"
            time.sleep(0.05)

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, **text)

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A browser with an empty profile, ended with everything that it started."""
    executable = find_chromium()
    assert executable, "no Chromium on this machine"
    with tempfile.TemporaryDirectory(prefix="elastic-ui-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [executable, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            port = _debugging_port(Path(profile), process)
            with connect(_page_address(port), max_size=None, open_timeout=20) as socket:
                yield Browser(socket)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


def _debugging_port(profile: Path, process: subprocess.Popen[bytes]) -> int:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int((profile / "DevToolsActivePort").read_text().splitlines()[0])
        assert process.poll() is None, "Chromium ended by itself"
        time.sleep(0.05)
    raise AssertionError("Chromium opened no debugging port within 60 s")


def _page_address(port: int) -> str:
    import httpx

    pages = httpx.get(f"http://127.0.0.1:{port}/json/list", trust_env=False).json()
    return str(next(page for page in pages if page["type"] == "page")["webSocketDebuggerUrl"])
