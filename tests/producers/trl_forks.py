"""Runs the trainings of `trl_grpo.py` as children of one process: to import TRL takes longer than
to train a model this small.

Each line of its input is an object: `argv`, `directory` and `append` start a training, answered by
its process id; `wait`, a process id, and `timeout` in seconds are answered by the exit code, null
where the training goes on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import trl_grpo


def main() -> None:
    """Do what each line of the input asks for, until there are no more."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            answer(exit_code(asked["wait"], asked["timeout"]))
        elif child := os.fork():
            answer(child)
        else:
            become(asked)
            trl_grpo.main()
            return


def answer(value: int | None) -> None:
    """Write one line."""
    print(json.dumps(value), flush=True)


def exit_code(child: int, timeout: float) -> int | None:
    """Wait for a child; return its exit code, the negative signal where one ended it."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    return None


def become(asked: dict[str, Any]) -> None:
    """Make this process look as if it had been started for a training alone."""
    os.chdir(asked["directory"])
    how = os.O_APPEND if asked["append"] else os.O_TRUNC
    log = os.open("train.log", os.O_WRONLY | os.O_CREAT | how, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(log)
    os.close(nothing)
    sys.argv[1:] = asked["argv"]


if __name__ == "__main__":
    main()
