"""The app in a browser: what it shows, whom it lets in, and what it says where it cannot."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psutil
import pytest
from browser import page, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def log(tmp_path):
    """Return a log of three steps."""
    path = tmp_path / "run.jsonl"
    lines = [f'{{"step": {at}, "reward/mean": {at / 4}}}\n' for at in range(1, 4)]
    path.write_text("".join(lines))
    return path


@contextmanager
def served(log: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve a log; yield the address that was printed, and the process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "verl_tui", "web", "--port", str(port), str(log)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as server:
        try:
            said = server.stderr.readline()
            (url,) = re.findall(r"http://127\.0\.0\.1:\d+/\?token=\S+", said)
            yield url, server
        finally:
            server.terminate()


@pytest.mark.browser
async def test_the_app_is_in_the_page_and_hears_keys(log):
    with served(log) as (url, server):
        async with page(url) as opened:
            await opened.shows("step 3")
            await opened.click(600, 300)
            await opened.press("l")
            await opened.shows("reward 0.75")
            asked = {one.split("/")[2] for one in opened.asked_for}
            assert asked == {url.split("/")[2]}, "nobody else is asked"
            assert opened.refused == {"csp"}
            assert len(psutil.Process(server.pid).children()) == 1
        # the app of a page that is closed ends
        await until(lambda: not psutil.Process(server.pid).children())


async def test_only_whoever_has_the_token_gets_in(log):
    import aiohttp

    with served(log) as (url, _):
        address = url.partition("/?")[0]
        paths = "/ /?token=guessed /ws /static/js/textual.js /download/key"
        async with aiohttp.ClientSession() as stranger:
            for path in paths.split():
                async with stranger.get(address + path) as answer:
                    assert answer.status == 403
                    assert "with its token" in await answer.text()
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await stranger.ws_connect(f"{address}/ws")
        jar = aiohttp.CookieJar(unsafe=True)
        async with (
            aiohttp.ClientSession(cookie_jar=jar) as known,
            known.get(url) as answer,
        ):
            assert answer.status == 200
            assert "token" not in str(answer.url)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["-"], "-: this command reads no standard input"),
        (["--port", "0", "logs"], "--port 0: name a port"),
        (["--port", "99999", "logs"], "99999 is not a port"),
        (["--public-url", "host:80", "logs"], "must begin with http:// or https://"),
        ([], "name a log"),
    ],
)
def test_what_cannot_be_served(words, complaint, asked):
    assert complaint in asked("web", *words, code=64).err


def test_nothing_to_watch(tmp_path, asked):
    assert "missing" in asked("web", tmp_path / "missing", code=3).err


def test_a_port_in_use_is_said_in_one_sentence(log, asked):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = asked("web", "--port", port, log)
    assert said.code == 73
    (line,) = said.err.splitlines()
    assert line.startswith(f"verl-tui: 127.0.0.1:{port}: ")
    assert "in use" in line
