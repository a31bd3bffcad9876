"""What happens to a log while it is followed: it goes, and something else takes its name. All that
was read stays, nothing waits for ever, and all is there once the log is back.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest
from fuzz.damaged import EXAMPLES
from log_reading import Watch, read_runs, values
from ordinary_rights import ordinary_rights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from verl_tui.runs.run import Run

LOGS = [name for name in EXAMPLES if not name.endswith((".json", ".prom"))]
"""Logs that are read while they are written; those of the other formats are written at once."""


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        os.chdir(path.parent)  # the names of sockets are short
        one.bind(path.name)


def _hole(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**17)


FAULTS: dict[str, Callable[[Path], object]] = {
    "gone": lambda path: None,
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a socket": _socket,
    "a loop": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "nothing in it": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(5000)),
    "a hole": _hole,
}


def _numbers(runs: Iterable[Run]) -> dict[str, list[str]]:
    return {
        key: [*map(repr, values(run, key).items())] for run in runs for key in run.keys
    }


def _logs(home: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield where to write a log of each format, and its bytes."""
    for name in LOGS:
        (home / name).mkdir()
        yield home / name / name, EXAMPLES[name]


Wholes = dict[str, dict[str, list[str]]]


@pytest.fixture(scope="module")
def wholes(tmp_path_factory: pytest.TempPathFactory) -> Wholes:
    """Return the numbers of each log that nothing happens to."""
    found = {}
    for path, data in _logs(tmp_path_factory.mktemp("wholes")):
        path.write_bytes(data)
        found[path.name] = _numbers(read_runs(path.parent).values())
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_a_log_that_something_else_takes_the_name_of(
    fault, wholes, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for path, data in _logs(tmp_path):
        path.write_bytes(data)
        whole = wholes[path.name]
        watch = Watch(path.parent)
        watch.look(finish=True)
        path.unlink()
        FAULTS[fault](path)
        watch.look(finish=True)
        kept = _numbers(watch.runs.values())
        assert kept.keys() >= whole.keys(), (path, "what was read stays")
        path.rmdir() if fault == "a folder" else path.unlink(missing_ok=True)
        path.write_bytes(data)
        watch.look(finish=True)
        assert _numbers(watch.runs.values()) == whole, path
        sources = (one for run in watch.runs.values() for one in run.sources.values())
        assert not any(one.status.problem for one in sources), path


def test_a_log_that_may_not_be_read_for_a_while(wholes, tmp_path):
    for path, data in _logs(tmp_path):
        path.write_bytes(data[:600])
        watch = Watch(path.parent)
        watch.look(finish=True)
        path.chmod(0)
        with ordinary_rights(), pytest.raises(PermissionError):
            path.read_bytes()
        with ordinary_rights():
            watch.look(finish=True)
        path.chmod(0o600)
        path.write_bytes(data)
        watch.look(finish=True)
        assert _numbers(watch.runs.values()) == wholes[path.name], path


TEXTS = [name for name in LOGS if b"\0" not in EXAMPLES[name] and name != "bars.log"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_mark_of_byte_order_and_other_line_ends_change_no_number(
    name, wholes, tmp_path
):
    data = EXAMPLES[name]
    path = tmp_path / name / name
    path.parent.mkdir()
    path.write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    assert _numbers(read_runs(path.parent).values()) == wholes[name]
    assert wholes[name] or name in ("7.jsonl", "samples.jsonl", "completions.jsonl")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("metrics.jsonl", '{"step":9,"step":1,"data":{"a":9},"data":{"a":1,"a":2}}'),
        ("scoped.jsonl", '{"scope":"a","step":9,"step":1,"x":1,"x":2}'),
    ],
)
def test_the_last_of_two_equal_keys_counts(name, line, tmp_path):
    (tmp_path / name).write_text(f"{line}\n")
    (run,) = read_runs(tmp_path).values()
    (key,) = run.keys
    assert values(run, key) == {1: 2.0}
