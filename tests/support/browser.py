"""A headless Chromium, spoken to through its debugging pipe: no driver, no port, nothing from the network."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


class BrowserError(Exception):
    """The browser answered with an error, or a script of the page threw one."""


class Browser:
    """
    One page in a browser of its own.

    Args:
        profile: Folder for the browser's files.
        width, height: Of the page.
        dark: Whether the page is asked for dark colours.
    """

    def __init__(self, profile: Path, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        assert CHROMIUM is not None
        read_commands, self._commands = os.pipe()
        self._answers, write_answers = os.pipe()

        # The browser reads commands from 3 and writes answers to 4.
        shell = f'exec 3<&{read_commands} 4>&{write_answers}; exec "$@"'
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
                 f"--user-data-dir={profile}"]  # fmt: skip
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "chromium", CHROMIUM, *flags],
            pass_fds=(read_commands, write_answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(read_commands)
        os.close(write_answers)
        self._number, self._buffer = 0, b""
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self._send("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = None
        self._session = self._send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.send(f"{domain}.enable")
        self.resize(width, height)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", {"features": scheme})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def open(self, url: str) -> None:
        """Open a page and wait until its script has drawn it."""
        self.send("Page.navigate", {"url": url})
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def resize(self, width: int, height: int) -> None:
        """Give the page another size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", size)

    def evaluate(self, script: str) -> Any:
        """Value of an expression in the page; promises are awaited."""
        answer = self.send("Runtime.evaluate", {"expression": script, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in answer:
            raise BrowserError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: int = 30) -> None:
        """Wait until an expression is true, asked at each frame."""
        ask = (
            f"new Promise((done, fail) => {{ const end = Date.now() + {seconds * 1000};"
            f"const look = () => ({condition}) ? done(true) : Date.now() > end ? fail('never: ' + {condition!r})"
            " : setTimeout(look, 20); look(); })"
        )
        self.evaluate(ask)

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key where the focus is."""
        text = {"Enter": "\r", "Space": " "}.get(key, key if len(key) == 1 else "")
        event = {"key": " " if key == "Space" else key, "code": key, "modifiers": 8 if shift else 0,
                 "windowsVirtualKeyCode": {"Tab": 9, "Enter": 13, "Space": 32}.get(key, 0)}  # fmt: skip
        self.send("Input.dispatchKeyEvent", {"type": "keyDown", **event, **({"text": text} if text else {})})
        self.send("Input.dispatchKeyEvent", {"type": "keyUp", **event})

    def accessible(self) -> list[dict[str, Any]]:
        """Nodes of the accessibility tree that are not ignored: role, name, whether one can focus them."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        found = []
        for node in nodes:
            if not node.get("ignored"):
                properties = {each["name"]: each["value"].get("value") for each in node.get("properties", [])}
                name = node.get("name", {}).get("value", "")
                found.append({"role": node["role"]["value"], "name": name, "focusable": properties.get("focusable")})
        return found

    def screenshot(self, path: Path) -> None:
        """Write the whole page as PNG."""
        shot = self.send("Page.captureScreenshot", {"captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(shot["data"]))

    def send(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send a command of the debugging protocol to the page; returns the answer."""
        return self._send(method, params or {})

    def _send(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        if getattr(self, "_session", None) is not None:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self._receive()
            if message.get("id") == self._number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error']}")
                return message["result"]
            self._heard(message)

    def _heard(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._answers, 1 << 16)
            if not data:
                raise BrowserError("the browser ended")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)
