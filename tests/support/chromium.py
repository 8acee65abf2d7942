"""Headless Chromium, driven by its debugging protocol: pages are shown as they are, their policy is not relaxed."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.patience import PATIENCE_S

AXE = Path(__file__).parents[1] / "browser" / "node_modules" / "axe-core" / "axe.min.js"
REQUIRED_VARIABLE = "AUDITOR_REQUIRE_BROWSER"
"""Set in continuous integration: a missing program then fails the tests that need it."""


def find_missing_programs(*, needs_axe: bool = True) -> list[str]:
    """What the tests need and cannot find, with how to install it."""
    missing = [] if shutil.which("chromium") else ["chromium is not installed. How to fix: make system"]
    return (
        missing if AXE.is_file() or not needs_axe else [*missing, "axe-core is not installed. How to fix: make system"]
    )


class Chromium:
    """One page of a headless Chromium; a context manager that starts and ends it."""

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._loop = asyncio.new_event_loop()
        self._n_calls = 0
        self.requested_urls: list[str] = []
        """Addresses that pages have asked for since `record_requests`, WebSockets included."""

    def __enter__(self) -> Chromium:
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={self._profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._loop.run_until_complete(self._connect(self._read_port()))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "_session"):
            self._loop.run_until_complete(self._session.close())
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        self._loop.close()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol.

        Raises:
            RuntimeError: Chromium answers with an error.
        """
        return self._loop.run_until_complete(asyncio.wait_for(self._call(method, parameters), PATIENCE_S))

    def evaluate(self, script: str) -> Any:
        """Evaluate JavaScript in the page, and return its value; a promise is awaited.

        Raises:
            RuntimeError: the script throws.
        """
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def open(self, page: Path | str, width: int, *, is_dark: bool = False, height: int = 900) -> None:
        """Show a page, given as a file or as an address, in a window of a size in CSS pixels."""
        url = page.resolve().as_uri() if isinstance(page, Path) else page
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=url)
        if isinstance(page, Path):
            self.wait_for(f"document.readyState + location.href === {json.dumps('complete' + url)}")

    def wait_for(self, condition: str, limit_s: float = PATIENCE_S) -> None:
        """Wait until a JavaScript expression is true; it may throw while a page is loaded.

        Raises:
            TimeoutError: it was not true within the limit.
        """
        deadline = time.monotonic() + limit_s
        while True:
            with suppress(RuntimeError):
                if self.evaluate(condition) is True:
                    return
            if time.monotonic() > deadline:
                raise TimeoutError(f"not true in {limit_s} s: {condition}")
            time.sleep(0.05)

    def record_requests(self) -> None:
        """Record the addresses that pages ask for in `requested_urls`."""
        self.call("Network.enable")

    def type(self, text: str) -> None:
        for character in text:
            key = "Enter" if character == "\r" else character
            parameters = {"key": key, "text": character, "windowsVirtualKeyCode": ord(character.upper())}
            self.call("Input.dispatchKeyEvent", type="keyDown", **parameters)
            self.call("Input.dispatchKeyEvent", type="keyUp", **parameters)

    def click(self, x: float, y: float, n_clicks: int = 1) -> None:
        """Click at a place in CSS pixels."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for count in range(1, n_clicks + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

    def photograph(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def run_axe(self) -> list[dict[str, Any]]:
        self.evaluate(AXE.read_text(encoding="utf-8"))
        result = self.evaluate(
            "axe.run(document, {resultTypes: ['violations']}).then(r => JSON.stringify(r.violations))"
        )
        violations: list[dict[str, Any]] = json.loads(result)
        return violations

    def print_pdf(self) -> bytes:
        result = self.call("Page.printToPDF", preferCSSPageSize=True, displayHeaderFooter=False)
        return base64.b64decode(result["data"])

    def _read_port(self) -> int:
        """The port that Chromium has opened, once it has written it down."""
        port_file = self._profile / "DevToolsActivePort"
        deadline = time.monotonic() + PATIENCE_S
        while not port_file.is_file() or port_file.read_text().count("\n") < 1:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("Chromium did not start")
            time.sleep(0.05)
        return int(port_file.read_text().split()[0])

    async def _connect(self, port: int) -> None:
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{port}/json") as response:
            targets = await response.json()
        url = next(target["webSocketDebuggerUrl"] for target in targets if target["type"] == "page")
        self._socket = await self._session.ws_connect(url, max_msg_size=0)

    async def _call(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._n_calls += 1
        await self._socket.send_json({"id": self._n_calls, "method": method, "params": parameters})
        while True:
            message = (await self._socket.receive()).json()
            if message.get("method") == "Network.requestWillBeSent":
                self.requested_urls.append(message["params"]["request"]["url"])
            elif message.get("method") == "Network.webSocketCreated":
                self.requested_urls.append(message["params"]["url"])
            if message.get("id") == self._n_calls:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result


def require_browser(*, needs_axe: bool = True) -> str | None:
    """Why the browser's tests are skipped; None if they can run.

    Raises:
        RuntimeError: a program is missing where it is required.
    """
    missing = find_missing_programs(needs_axe=needs_axe)
    if missing and os.environ.get(REQUIRED_VARIABLE):
        raise RuntimeError("; ".join(missing))
    return "; ".join(missing) or None
