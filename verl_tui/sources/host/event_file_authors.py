"""Find out if the process that began an event file is gone: its host and number are in the name.

TensorBoard calls a file `events.out.tfevents.TIME.HOST.PID.N`
(tensorboard/summary/writer/event_file_writer.py) and does not keep it open, so that open files do
not show who writes it. A name alone proves little: a container may have the host's name and numbers
of its own. So a process that has such a number in any container here counts as the one; where only
a container's own processes can be seen, the file has to be silent for longer than its writer keeps
things back; and a file that grows after all is never judged so again.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from typing import TYPE_CHECKING

import psutil

from verl_tui.patterns import pattern
from verl_tui.records import Writer
from verl_tui.sources.files.paths import status_at
from verl_tui.sources.host.processes import folder_of, lives, others, sees_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_NAME = pattern(
    r"events\.out\.tfevents\.(\d{10,11})\.(.+)\.(\d{1,9})\.\d{1,9}(?:\.\D\w*)?"
)
_KEPT_BACK = 150.0
"""Seconds of silence in a container: TensorBoard keeps records back for up to 120."""
_LATER = 5.0
"""Seconds by which a process may seem to have begun after its own file: clocks are set right now
and then.
"""


class Authors:
    """Knows which processes that began event files live; looks only when asked.

    Args:
        host: This host's name, as the writers of event files ask for it.
    """

    def __init__(self, host: str | None = None) -> None:
        self._host = socket.gethostname() if host is None else host
        self._gone: dict[Path, float] = {}
        """Files whose process is gone, with the time of their last change."""

    def look(self, paths: Iterable[Path], now: float) -> dict[Path, Writer]:
        """Return what is known of the processes that began some files; those of other hosts are
        left out.
        """
        writers = {}
        contained = cache(lambda: set(_contained()))
        for path in paths:
            named = _NAME.fullmatch(path.name)
            info = status_at(path)
            if named is None or named[2] != self._host or info is None:
                continue
            pid = int(named[3])
            modified = self._gone.get(path, info.st_mtime)
            if modified != info.st_mtime or not _is_judged(info, now):
                continue  # it grew although no process of that number was to be seen
            alive = _lives(pid, float(named[1]))
            if not alive and pid not in contained():
                self._gone[path] = modified
            writers[path] = Writer(pid, "", gone=path in self._gone, by_name=True)
        return writers


def _is_judged(info: os.stat_result, now: float) -> bool:
    """Return whether a file's process would be seen if it lived: others' processes may be hidden
    (`hidepid`); then the first of all is hidden, too.
    """
    visible = info.st_uid == os.geteuid() or os.path.exists(f"{folder_of(1)}/stat")  # noqa: PTH110
    return visible and (sees_all() or now - info.st_mtime >= _KEPT_BACK)


def _lives(pid: int, began: float) -> bool:
    """Return whether a process that started before its file began still lives."""
    try:
        process = psutil.Process(pid)
        return process.create_time() <= began + _LATER and lives(process)
    except psutil.Error:
        return False


def _contained() -> Iterator[int]:
    """Yield the numbers that processes of containers have in there."""
    for pid in others():
        try:
            with open(f"{folder_of(pid)}/status", errors="replace") as status:  # noqa: PTH123
                spaces = [one for one in status if one.startswith("NSpid:")]
        except OSError:
            continue
        yield from (int(number) for one in spaces for number in one.split()[2:])
