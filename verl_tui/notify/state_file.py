"""The messages that were sent, kept in a file from one check to the next."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from verl_tui.given_files import NO_LINK, is_link
from verl_tui.health.finding import Severity
from verl_tui.notify.message import Message

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.notify.notifier import Notifier

_KIND = "verl-tui notifications"
_VERSION = 1
_LARGEST = 16 * 2**20


class StateFileError(Exception):
    """A file does not hold a state; the text is one sentence that names it."""


def read_state(path: Path, notifier: Notifier) -> bool:
    """Make a notifier continue from a file; return False if there is none yet.

    Raises:
        StateFileError: It cannot be read, or holds something else, and is left alone.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - open already
            text = file.read(_LARGEST)
    except FileNotFoundError:
        return False
    except OSError as error:
        why = NO_LINK if is_link(path) else (error.strerror or str(error)).lower()
        raise StateFileError(f"{path}: {why}") from error
    try:
        _take(json.loads(text), notifier)
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        raise StateFileError(
            f"{path}: is not a file that `check --state` wrote: name another one, or remove it"
        ) from error
    return True


def _take(data: Any, notifier: Notifier) -> None:
    if (data["kind"], data["version"]) != (_KIND, _VERSION):
        raise ValueError
    notifier.changes.take(data)
    limits = notifier.limits
    limits.sent = [float(time) for time in data["sent"]]
    limits.held = [
        Message(**{**one, "severity": Severity(one["severity"])})
        for one in data["held"]
    ]
    limits.more = int(data["more"])


def write_state(path: Path, notifier: Notifier) -> None:
    """Replace the file as a whole; nobody else may read it.

    Raises:
        OSError: It cannot be written.
    """
    limits = notifier.limits
    names = [one.name for one in fields(Message)]
    held = [{name: getattr(message, name) for name in names} for message in limits.held]
    data = {
        "kind": _KIND,
        "version": _VERSION,
        **notifier.changes.as_data(),
        "sent": limits.sent,
        "held": held,
        "more": limits.more,
    }
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(beside, flags, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - open already
            json.dump(data, file)
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
