"""Every command without a screen, and what must hold whatever the logs hold. What follows runs ends
after its first look, and a replay is played without its screen.
"""

from __future__ import annotations

import io
import json
import os
import signal
import unicodedata
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from threading import Event, Timer
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch
from xml.etree import ElementTree
from zipfile import ZipFile

from verl_tui import guard
from verl_tui.cli import main
from verl_tui.monitor import Monitor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from verl_tui.config import Config
    from verl_tui.replay import Playback

COMMANDS = (
    "check PATH", "check PATH -v --consequences", "check PATH --json", "check PATH --against RUN",
    "check PATH --best-by critic/score/mean:max --json",
    "compare PATH", "compare PATH --md", "compare PATH --csv", "compare PATH --json --align time",
    "compare PATH --align step",
    "get runs PATH", "get runs PATH --json", "get state RUN", "get state RUN --json",
    "get findings RUN", "get findings RUN --json", "get metrics RUN", "get metrics RUN --json",
    "get metrics RUN --metric reward", "get metrics RUN --metric reward --around 7 --json",
    "get samples RUN", "get samples RUN --worst 2 --full", "get samples RUN --best 3 --json",
    "get log RUN", "get log RUN --json --full", "get log RUN --error", "get log RUN --around 7",
    "get log RUN --grep (a|b)*c",
    "explain RUN", "explain RUN --md", "explain RUN --json", "explain PATH --run ODD", "explain ODD",
    "export csv RUN", "export csv PATH -o OUT", "export csv RUN -o OUT.csv",
    "export tensorboard PATH -o OUT", "export prometheus PATH --textfile OUT.prom",
    "report PATH -o OUT.html", "report PATH -o OUT.md --charts OUT", "report PATH --format json -o -",
    "report PATH --format md -o -",
    "bundle RUN --list", "bundle RUN --yes --samples -o OUT.zip",
    "doctor PATH", "doctor PATH --json", "notify --show PATH", "notify --show RUN",
    "--snapshot OUT.txt PATH", "--snapshot OUT.svg --size 60x20 PATH",
    "check PATH --debug-log OUT.txt", "check ODD", "check PATH --against ODD", "doctor ODD", "get runs ODD",
    "get state PATH --run ODD", "get metrics RUN --metric ODD", "get log RUN --grep ODD[", "compare PATH --baseline ODD",
    "check PATH --best-by ODD", "export csv PATH -o ODD/x/y.csv", "report PATH -o OUT.ODD", "check --ODD", "ODD",
    "bundle RUN --yes --keep-names --lines 5 -o OUT.zip", "bundle ODD --list",
    "guard PATH --on hang --dry-run -- true", "guard RUN --on-best reward", "guard ODD", "guard PATH --on ODD",
    "guard PATH --on-best ODD:max", "watch PATH --events", "watch RUN --events", "watch ODD --events",
    "get state RUN --wait step=1 --timeout 9 --json", "get findings RUN --wait finding>=info --timeout 1",
    "get state RUN --wait ODD --timeout 0.1", "get log RUN --wait state=ODD",
    "replay RUN", "replay PATH --paused", "replay RUN --from 7 --until 9", "replay ODD",
    "check PATH --config ODD", "config --config ODD", "guide --config ODD", "help ODD", "bundle PATH --run ODD --list",
)  # fmt: skip
"""Words of command lines: PATH is a folder of runs, RUN one of them, OUT something to write, ODD
what a terminal would obey.
"""
_ODD = "\x1b]0;title\x07\x9b2J\u202eabc"
_CODES = {
    "check": {0, 1, 2, 3, 64},
    "doctor": {0, 1, 3},
    "get": {0, 3, 4, 5, 64},
    "explain": {0, 3, 64},
    "export": {0, 3, 73},
    "guard": {0, 2, 3, 64},
    "watch": {0, 2, 3},
    "replay": {0, 3, 64},
}
_PATIENCE = 60.0
"""Seconds after which it ends where it finds nothing to look at."""
_PLAIN_FILES = {".txt", ".md", ".html", ".svg", ".json", ".csv", ".prom"}


class BrokenError(Exception):
    """Something that must always hold does not."""


class Answer(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str


def asked(command: str, path: Path, run: Path, scratch: Path) -> Answer:
    """Return what a command answers; raise `BrokenError` where it answers what it must not."""
    standing = {"PATH": str(path), "RUN": str(run)}
    words = [standing.get(word, word) for word in command.split()]
    words = [
        word.replace("OUT", str(scratch / "out")).replace("ODD", _ODD) for word in words
    ]
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        _looking_once(),
        _playing_without_a_screen(),
    ):
        code = main(words)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8"))  # type: ignore[attr-defined]
    answer = Answer(code, *texts)
    _hold(command, answer, scratch)
    return answer


@contextmanager
def _looking_once() -> Iterator[None]:
    """Have what follows runs end once it has looked at all that is there."""
    followed = guard.follow

    def follow(
        paths: Any, follower: Any, stop: Callable[[], object], say: Any
    ) -> Iterator[Any]:
        ended = Event()
        too_long = Timer(_PATIENCE, ended.set)
        too_long.start()
        try:
            ends = lambda: ended.is_set() or stop()  # noqa: E731
            for look in followed(paths, follower, ends, say):
                yield look
                ended.set()
        finally:
            too_long.cancel()

    before = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        with patch("verl_tui.guard.follow", follow):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _playing_without_a_screen() -> Iterator[None]:
    """Have a replay go to its middle, to its end and back, and judge what it shows there."""

    def play(playback: Playback, config: Config) -> int:
        for share in (0.0, 0.5, 1.0, 0.3):
            recorded = playback.recording
            moment = recorded.ahead(recorded.start, share)
            if playback.go(moment) or not share:
                monitor = Monitor(config)
            for news in playback.take():
                monitor.apply(news, playback.now())
            monitor.judge(playback.now())
            print(
                *(playback.status(name).words(120) for name in monitor.runs), sep="\n"
            )
        return 0

    with (
        patch("verl_tui.tui.replay", play),
        patch("verl_tui.commands.replay.need_terminal"),
    ):
        yield


def _hold(command: str, answer: Answer, scratch: Path) -> None:
    kind = command.partition(" ")[0]
    allowed = _CODES.get(kind, {0, 3}) | ({64, 73, 3} if "ODD" in command else set())
    if answer.code not in allowed:
        raise BrokenError(f"exit code {answer.code}: {answer.err[:500]}")
    if answer.code in (3, 64) and not (answer.err + answer.out).strip():
        raise BrokenError(f"exit code {answer.code} without a word")
    for name, text in (("output", answer.out), ("errors", answer.err)):
        _hold_text(name, text)
    if "json" in command and "prometheus" not in command and answer.code < 3:
        for line in answer.out.splitlines() if kind == "get" else [answer.out]:
            json.loads(line, parse_constant=_refused)
    for file in sorted(scratch.rglob("*")):
        _hold_text(f"name of {file.name!r}", os.fsencode(file.name).decode("utf-8"))
        if file.suffix in _PLAIN_FILES and file.is_file():
            text = file.read_text("utf-8")
            _hold_text(file.name, text)
            if file.suffix == ".svg":
                ElementTree.fromstring(text)
        elif file.suffix == ".zip":
            _hold_archive(file)


def _hold_archive(file: Path) -> None:
    with ZipFile(file) as archive:
        for name in archive.namelist():
            _hold_text("name in the archive", name)
            if name.startswith("/") or ".." in name.split("/"):
                raise BrokenError(f"a name out of the archive: {name}")
            _hold_text(name, archive.read(name).decode("utf-8"))


def _refused(word: str) -> None:
    raise BrokenError(f"JSON has {word}")


def _hold_text(where: str, text: str) -> None:
    """Raise `BrokenError` where a text holds what a terminal obeys, or what hides or reorders."""
    plain = text.replace("\r\n", "\n")
    at = next((at for at, sign in enumerate(plain) if _is_obeyed(sign)), None)
    if at is not None:
        raise BrokenError(
            f"{where} holds {plain[at]!r}: {plain[max(0, at - 80) : at + 40]!r}"
        )


def _is_obeyed(sign: str) -> bool:
    if sign < "\x7f":
        return sign < " " and sign not in "\n\t"
    return unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")
