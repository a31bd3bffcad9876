"""Supervises runs by the lines of `verl-tui watch --events` and the rules of `verl-tui help agents`, and
looks at no log. What the rules have it ask, it asks by the commands that they name.

    verl-tui watch --events logs/run_7 | python tests/nights/supervisor.py logs/run_7

prints a line of JSON for each thing that it would do: stop the run, resume it, or tell a person.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STOPPING = {
    "circuit-breaker-kl": lambda value: value is None or value > 0.2,
    "circuit-breaker-reward": lambda _: True,
    "policy-collapse": lambda _: True,
    "not-finite": lambda value: value is None,
}
"""Critical findings that a run may be stopped for -> whether the newest value is still bad, as far as
one value shows it.
"""
STEPS, SECONDS = 2, 120.0
"""Steps after which a finding has to be there still, and seconds after which a crash that is a warning
is asked about again.
"""


class Question(NamedTuple):
    """What is to be asked later: the findings, and the newest value of a metric."""

    run: str
    finding: str
    key: str | None
    step: int | None
    """Ask when this step has been reached; None: after `SECONDS`, or a further step."""
    next: str


class Answer(NamedTuple):
    """What was answered."""

    findings: tuple[str, ...]
    """The causes that are there still."""
    value: float | None
    """The newest value; None where it is not finite, or none is known."""
    state: str
    explained: str | None
    """The finding that `explain` is about, if it has evidence."""


class Deed(NamedTuple):
    """What is to be done, and why."""

    what: str
    """`stop`, `resume` or `tell`."""
    run: str
    why: str
    """A finding."""
    next: str
    """In the words of the event."""


class Supervisor:
    """Reads events one by one, and what its questions were answered."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str, str]] = set()
        self._stopped: set[str] = set()
        self._resumed: set[tuple[str, str]] = set()
        """Runs that were to be resumed, each with what it had crashed of."""

    def read(self, line: str) -> Iterator[Deed | Question]:
        """Yield what is to be done, or to be asked, on an event."""
        event: dict[str, Any] = json.loads(line)
        if event["event"] != "finding" or event["follows"] is not None:
            return
        run, id, then = event["run"], event["finding"], event["next"]
        if event["severity"] == "info":
            return
        if id == "crash" and event["severity"] == "warning":
            yield Question(run, id, None, None, then)
            return
        severity = event["severity"]
        if (run, id, severity) not in self._told:
            self._told.add((run, id, severity))
            yield Deed("tell", run, id, then)
        crash = run, event["message"]
        if id == "crash" and event["state"] == "crashed" and crash not in self._resumed:
            self._resumed.add(crash)
            yield Deed("resume", run, id, then)
        if event["severity"] == "critical" and id in STOPPING:
            step = event["step"] + STEPS
            yield Question(run, id, event["key"], step, then)

    def answered(self, asked: Question, answer: Answer) -> Iterator[Deed]:
        """Yield what is to be done after an answer."""
        if asked.finding not in answer.findings:
            return
        if asked.finding == "crash":
            yield Deed("tell", asked.run, "crash", asked.next)
            return
        bad = STOPPING[asked.finding](answer.value) and answer.state == "running"
        same = answer.explained == asked.finding
        if bad and same and asked.run not in self._stopped:
            self._stopped.add(asked.run)
            yield Deed("stop", asked.run, asked.finding, asked.next)


# -- with the program itself -----------------------------------------------------------------------


def ask(question: Question, paths: list[str]) -> Answer | None:
    """Ask the program, and wait for what is to be awaited first; None where it cannot answer."""
    run = ["--run", question.run, *paths]
    step, most = question.step, "1h"
    if step is None:
        now = _answer("get", "state", *run) or {"step": None}
        step, most = (now["step"] or 0) + 1, f"{SECONDS:.0f}"
    _answer("get", "state", *run, "--wait", f"step>={step}", "--timeout", most)
    state = _answer("get", "state", "--whole", *run)
    found = _answer("get", "findings", *run)
    why = _answer("explain", *run)
    if state is None or found is None or why is None:
        return None
    if state["steps_estimated"] or found["read"] != "whole":
        return None
    value = None
    if question.key is not None:
        one = _answer("get", "metrics", "--metric", question.key, "--last", "1", *run)
        value = one["points"][-1]["value"] if one and one["points"] else None
    causes = [one["id"] for one in found["findings"] if one["consequence_of"] is None]
    explained = why["finding"]["id"] if why["finding"] and why["chain"] else None
    return Answer(tuple(causes), value, state["state"], explained)


def _answer(*words: str) -> Any:
    command = [sys.executable, "-m", "verl_tui", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def main(lines: Iterable[str], paths: list[str]) -> None:
    """Print what is to be done."""
    supervisor = Supervisor()
    for line in lines:
        for one in supervisor.read(line):
            deeds: Iterable[Deed] = [one] if isinstance(one, Deed) else ()
            if isinstance(one, Question) and (answer := ask(one, paths)) is not None:
                deeds = supervisor.answered(one, answer)
            for deed in deeds:
                print(json.dumps(deed._asdict()), flush=True)


if __name__ == "__main__":
    main(sys.stdin, sys.argv[1:])
