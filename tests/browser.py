"""A page in a real browser: headless Chromium, spoken to by its debugging protocol."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyte
import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import aiohttp

COMES = 90.0
"""Seconds within which anything comes on any machine."""


def chromium() -> str:
    """Return the browser, or skip the test."""
    names = ("chromium", "chromium-browser", "google-chrome")
    for found in filter(None, map(shutil.which, names)):
        return found
    pytest.skip("no Chromium here: Debian's package `chromium` brings it")


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds."""

    async def look() -> None:
        while not condition():
            await asyncio.sleep(0.05)

    await asyncio.wait_for(look(), COMES)


class Page:
    """A page that shows a terminal, and what came over its WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._asked = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._listeners: dict[str, Callable[[dict[str, Any]], object]] = {}
        self._screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self._screen)
        self.asked_for: set[str] = set()
        """Addresses that the page asked for, and was not kept from asking."""
        self.refused: set[str] = set()
        """Those that it was kept from."""

    @property
    def text(self) -> str:
        """What stands on the terminal."""
        return "\n".join(self._screen.display)

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Have the browser do something; return its answer."""
        self._asked += 1
        number = self._asked
        await self._socket.send_json({"id": number, "method": method, "params": params})
        await self._hear(lambda: number in self._answers)
        return self._answers.pop(number)

    async def shows(self, words: str) -> None:
        """Wait until something stands on the terminal."""
        try:
            await self._hear(lambda: words in self.text)
        except asyncio.TimeoutError:  # another than TimeoutError before Python 3.11
            raise AssertionError(f"{words!r} never came:\n{self.text}") from None

    async def value(self, expression: str) -> Any:
        """Return what an expression of JavaScript is worth in the page, once that has loaded."""
        loaded = (
            "new Promise(done => document.readyState === 'complete' ? done() : "
            "addEventListener('load', () => done()))"
        )
        how = {"awaitPromise": True, "returnByValue": True}
        whole = f"{loaded}.then(() => {expression})"
        answer = await self.call("Runtime.evaluate", expression=whole, **how)
        return answer["result"]["result"]["value"]

    def listen(self, method: str, hear: Callable[[dict[str, Any]], object]) -> None:
        """Have a function called with each event of a kind."""
        self._listeners[method] = hear

    async def click(self, x: int, y: int) -> None:
        """Click somewhere, in pixels."""
        where = {"x": x, "y": y, "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, **where)

    async def press(self, key: str) -> None:
        """Press a key that writes a letter; the page hears keys once it has been clicked."""
        for kind, text in (("keyDown", key), ("keyUp", "")):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text)

    async def _hear(self, enough: Callable[[], bool]) -> None:
        async def listen() -> None:
            while not enough():
                self._take((await self._socket.receive()).json())

        await asyncio.wait_for(listen(), COMES)

    def _take(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if (hear := self._listeners.get(method or "")) is not None:
            hear(params)
        response = params.get("response", {})
        if "id" in message:
            self._answers[message["id"]] = message
        elif method == "Network.webSocketFrameSent":
            kind, *values = json.loads(response["payloadData"])
            if kind == "resize":
                self._screen.resize(values[0]["height"], values[0]["width"])
        elif method == "Network.webSocketFrameReceived" and response["opcode"] == 2:
            self._stream.feed(base64.b64decode(response["payloadData"]))
        elif method == "Network.responseReceived":
            self.asked_for.add(response["url"])
        elif method == "Network.loadingFailed" and params.get("blockedReason"):
            self.refused.add(params["blockedReason"])


@asynccontextmanager
async def page(url: str) -> AsyncIterator[Page]:
    """Open a page; the browser is gone afterwards."""
    import aiohttp

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        words = "--headless=new --no-sandbox --disable-gpu --remote-debugging-port=0"
        command = [chromium(), *words.split(), f"--user-data-dir={home}"]
        command += ["--window-size=1200,700", "about:blank"]
        browser = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            port = await _port(Path(home) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as session:
                tabs = await (await session.get(f"http://127.0.0.1:{port}/json")).json()
                (tab,) = (one for one in tabs if one["type"] == "page")
                address = tab["webSocketDebuggerUrl"]
                opened = Page(await session.ws_connect(address, max_msg_size=0))
                await opened.call("Network.enable")
                await opened.call("Page.navigate", url=url)
                yield opened
        finally:
            browser.terminate()
            browser.wait()


async def _port(output: Path) -> str:
    """Return the port that the browser listens at, which it writes into a file."""
    await until(lambda: output.exists() and output.read_text().count("\n") > 0)
    return output.read_text().splitlines()[0]
