"""Answers as tools, asked for by the protocol's own client of the command that users start."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from command_line import complaint, python
from jsonl import write_jsonl

from verl_tui.cli import main
from verl_tui.commands.tools import ROOM, answer, as_json, fitted
from verl_tui.given_files import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp import ClientSession

DATA = Path(__file__).parent / "data"
KEY = "sk-proj-" + "a1B2c3D4" * 6
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture(autouse=True)
def logs(tmp_path, monkeypatch):
    """Two runs that are served, a third one beside them, and links that lead there."""
    monkeypatch.chdir(tmp_path)
    for name, source in (
        ("logs/new", "filelogger_v07.jsonl"),
        ("logs/old", "filelogger_v06.jsonl"),
        ("beside/third", "tutorial.jsonl"),
    ):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        shutil.copy(DATA / source, folder)
    (tmp_path / "logs" / "old" / "out").symlink_to(tmp_path / "beside")
    return tmp_path / "logs"


@asynccontextmanager
async def served(*words: str) -> AsyncIterator[ClientSession]:
    """Serve paths to a client."""
    # takes as long to import as a sixth of all tests
    from mcp import ClientSession, StdioServerParameters, stdio_client

    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "verl_tui", "mcp", *words],
        env={**os.environ},
    )
    async with (
        stdio_client(started, errlog=sys.__stderr__) as (reading, writing),
        ClientSession(reading, writing) as client,
    ):
        await client.initialize()
        yield client


async def called(client: ClientSession, tool: str, **arguments: Any) -> str:
    """Return what a call gave."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert content.type == "text"
    return f"failed: {content.text}" if result.is_error else content.text


def given(tool: str, served: str = "logs", **arguments: Any) -> dict[str, Any]:
    """Return what a tool answers."""
    text = answer(tool, arguments, [served])
    assert len(text) <= ROOM + 200
    found: dict[str, Any] = json.loads(text)
    return found


def refused(tool: str, served: str = "logs", **arguments: Any) -> str:
    """Return the sentence for which a tool has no answer."""
    with pytest.raises(UsageError) as raised:
        answer(tool, arguments, [served])
    assert "\n" not in str(raised.value)
    return str(raised.value)


SAME = {
    "state run=new": "get state --run new",
    "findings run=new severity=warning": "get findings --run new --severity warning",
    "metrics run=new filter=actor/*": "get metrics --run new --filter actor/*",
    "metrics run=new metric=reward last=2": "get metrics --run new --metric reward --last 2",
    "log run=new last=2": "get log --run new --last 2",
    "explain run=new": "explain --run new",
    "runs": "get runs",
}
"""Calls of tools -> what gives the same answer."""


async def test_tools_answer_as_the_commands_do(logs, capsys):
    async with served("logs") as client:
        tools = (await client.list_tools()).tools
        assert {one.name for one in tools} >= {
            *("state", "findings", "metrics", "samples", "log", "runs"),
            *("check", "compare", "explain", "ledger"),
        }
        assert all(one.annotations and one.annotations.read_only_hint for one in tools)
        taken = {name for one in tools for name in one.input_schema["properties"]}
        assert not taken & {"config", "output", "debug-log", "wait", "state", "notify"}
        assert len(as_json([one.model_dump() for one in tools])) < 12_000
        for words, command in SAME.items():
            tool, *more = words.split()
            text = await called(client, tool, **dict(word.split("=") for word in more))
            found = json.loads(text)
            assert (found.pop("exit_code"), found.pop("cut")) == (0, {})
            found.pop("messages")
            main([*command.split(), "--json", "logs"])
            expected = json.loads(capsys.readouterr().out)
            for one in (found, expected):
                one.pop("last_record_age_s", None)
            assert found == expected, tool
        assert "outside" in await called(client, "state", path="beside")
        assert (await called(client, "delete")).startswith("failed: no tool delete")


def test_of_several_runs_each_is_told_in_brief(logs):
    new, old = given("check")["runs"]
    assert (new["name"], old["name"]) == ("new", "old")
    assert new.keys() >= {"verdict", "next"}
    (one,) = given("check", path="logs/new", against="logs/old")["runs"]
    assert one["against"]["figures"]
    assert "findings" in one
    assert "| reward |" in given("compare", columns="reward")["markdown"]


REFUSED = [
    ("state", {"path": "/etc"}, "/etc: outside of what is served: "),
    ("state", {"path": "/etc/passwd"}, "/etc/passwd: outside of what is served: "),
    ("state", {"path": "beside"}, "beside: outside of what is served: "),
    ("state", {"path": "logs/../beside"}, "outside of what is served: "),
    ("state", {"path": "logs/old/out"}, "outside of what is served: "),
    ("state", {"path": "logs*/../beside"}, "outside of what is served: "),
    ("state", {"path": "logs/*"}, "logs/*: no such file or directory"),
    ("state", {"path": ""}, "outside of what is served: "),
    ("state", {"path": "logs/\0"}, "no such file or directory"),
    ("state", {"path": "logs/" + "x" * 5000}, "no such file or directory"),
    ("state", {"path": ["logs"]}, "outside of what is served: "),
    ("samples", {"run": "new", "last": 10**30}, "new has no samples"),
    ("compare", {"where": "reward >"}, "where: "),
    ("check", {"against": "beside/third"}, "outside of what is served: "),
    ("state", {"run": "third"}, "third is none of the runs: new, old"),
    ("state", {}, "2 runs: new, old; name one with run"),
    ("state", {"run": "--config=/etc/passwd"}, "none of the runs: new, old"),
    ("state", {"config": "/etc/passwd"}, "state takes no config: it takes path, "),
    ("check", {"state": "x"}, "check takes no state: it takes path, "),
    ("check", {"token": "x"}, "check takes no token: it takes path, "),
    ("metrics", {"run": "new", "metric": "nonsense"}, "nonsense"),
    ("metrics", {"run": "new", "last": 0}, "last: 0 is not a whole number"),
    ("metrics", {"run": "new", "last": True}, "last: expected one argument"),
    ("samples", {"run": "new", "full": "yes"}, "full: ignored explicit argument 'yes'"),
    ("log", {"run": "new", "grep": "("}, "grep: "),
    ("ledger", {"run": "new"}, "new: nothing tells how long its steps took"),
]


def test_what_cannot_be_answered_is_one_sentence(logs):
    for tool, arguments, sentence in REFUSED:
        said = refused(tool, **arguments)
        assert sentence in said, (tool, arguments)
        assert "--" not in said.replace("--config=", "")
    shutil.rmtree(logs / "new")  # a run that vanishes while it is served
    for tool in ("state", "check", "log"):
        assert refused(tool, path="logs/new") == "logs/new: no such file or directory"
    assert given("state"), "the other run is there"
    shutil.rmtree(logs)
    for tool in ("state", "check", "compare", "runs"):
        assert "logs: no such file or directory" in refused(tool)


def test_what_is_served_may_come_later(logs):
    assert refused("state", "later") == "later: no such file or directory"
    (logs / "new").rename("later")
    assert given("state", "later")
    assert given("state", "later", path="later")


def test_only_what_a_glob_matches_is_served(logs):
    assert given("state", "logs/n*", path="logs/new")
    for other in ("logs/old", "logs"):
        assert "outside" in refused("state", "logs/n*", path=other)


def test_answers_are_small_safe_and_masked(logs):
    dumps = logs / "new" / "rollout"
    for step in range(1, 40):
        output = f"\x1b[31mr{step}\u202e" + "r" * 9000
        row = {"step": step, "input": "p" * 3000, "output": output, "score": 1}
        write_jsonl(dumps / f"{step}.jsonl", [row])
    console = logs / "new" / "train.log"
    form = "step:{} - critic/score/mean:0.5 - actor/entropy:1.0\n"
    lines = [*map(form.format, range(1, 2000)), f"export OPENAI_API_KEY={KEY}\n"]
    console.write_text("".join(lines), encoding="utf-8")
    found = given("samples", run="new", last=30, full=True)
    assert found["cut"]["samples"] + len(found["samples"]) == 30
    assert not {"\x1b", "\u202e"} & {*found["samples"][0]["response"]}
    found = given("log", run="new", last=1900)
    assert found["cut"]["lines"] + len(found["lines"]) == 1900
    assert found["lines"][-1]["text"].startswith("export OPENAI_API_KEY=")
    assert KEY not in json.dumps(found)


# -- cutting ---------------------------------------------------------------------------------------


def test_what_fits_stays_as_it_is():
    value = {"a": [1, {"b": "text"}], "c": None}
    assert fitted(value, 100) == {**value, "cut": {}}


def test_lists_and_texts_are_cut_and_counted():
    value = {"lines": [*range(5000)], "runs": [{"text": "x" * 5000}] * 100}
    found = fitted(value, 4000)
    cut = found.pop("cut")
    assert len(as_json(found)) <= 4000
    assert found["lines"][-1] == 4999, "of a log the newest lines stay"
    assert cut["lines"] + len(found["lines"]) == 5000
    assert cut["runs"] + len(found["runs"]) == 100
    assert found["runs"][0]["text"].endswith("x…")


# -- the process -----------------------------------------------------------------------------------


def begun(*words: str) -> subprocess.Popen[bytes]:
    """Start the command, and wait until it answers."""
    server = subprocess.Popen(
        [sys.executable, "-m", "verl_tui", "mcp", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    ask(server, HELLO)
    assert server.stdout is not None
    assert json.loads(server.stdout.readline())["id"] == 1
    ask(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    return server


def ask(server: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()


def call(tool: str, number: int = 2) -> dict[str, Any]:
    params = {"name": tool, "arguments": {}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def test_standard_output_is_the_protocol_alone_and_a_signal_ends_it():
    with begun("logs") as server:
        for number, tool in enumerate(("check", "state", "compare", "runs"), 2):
            ask(server, call(tool, number))
        server.stdin.write(b"\xff nonsense\n")
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(4)]
        assert sorted(one["id"] for one in answers) == [2, 3, 4, 5]
        server.send_signal(signal.SIGINT)
        assert server.stdout.read() == b""
        assert server.wait(10) == -signal.SIGINT
        assert server.stderr.read() == b""


def test_a_client_that_goes_away_ends_it(logs):
    # it would take longer than is waited for
    with (logs / "new" / "large.log").open("wb") as log:
        for part in range(3000):
            steps = range(50 * part, 50 * part + 50)
            log.write(b"".join(b"step:%d - critic/score/mean:0.5\n" % n for n in steps))
    with begun("logs") as server:
        ask(server, call("check"))
        children = psutil.Process(server.pid).children(recursive=True)
        server.stdout.close()
        server.stdin.close()
        assert server.wait(10) == 0
        assert not [one for one in children if one.is_running()]


def test_what_cannot_be_served_is_said(capsys):
    assert main(["mcp", "-"]) == 64
    assert "-: this command reads no standard input" in complaint(capsys)
    assert main(["mcp"]) == 64
    assert "name a log" in complaint(capsys)


def test_without_the_package_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mcp.server.stdio", None)
    assert main(["mcp", "logs"]) == 64
    assert complaint(capsys) == "`mcp` needs mcp: pip install 'verl-tui[mcp]'"


def test_no_other_command_imports_the_package():
    program = (
        "import sys; from verl_tui.cli import main\n"
        "for words in ('help mcp', 'check logs', 'get runs logs'): main(words.split())\n"
        "print({'mcp', 'pydantic', 'anyio'} & {*sys.modules})"
    )
    assert python("-c", program).stdout.endswith("set()\n")
