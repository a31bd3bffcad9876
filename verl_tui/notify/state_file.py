"""The messages that were sent, kept in a file from one check to the next."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING

from verl_tui.given_files import NO_LINK, UsageError, is_link
from verl_tui.health.finding import Severity
from verl_tui.whole_file import replacing

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.notify.notifier import Notifier

_KIND = {"kind": "verl-tui notifications", "version": 1}
_LARGEST = 16 * 2**20


class StateFileError(UsageError):
    """A file does not hold a state; the text is one sentence that names it."""


def read_state(path: Path, notifier: Notifier) -> None:
    """Make a notifier continue from a file, if there is one.

    Raises:
        StateFileError: It cannot be read, or holds something else, and is left alone.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - open already
            text = file.read(_LARGEST)
    except FileNotFoundError:
        return
    except OSError as error:
        why = NO_LINK if is_link(path) else (error.strerror or str(error)).lower()
        raise StateFileError(f"{path}: {why}") from error
    try:
        data = json.loads(text)
        if not data.items() >= _KIND.items():
            raise ValueError
        notifier.changes.take(data)
        limits = notifier.limits
        limits.sent = [float(time) for time in data["sent"]]
        held = data["held_back"].items()
        limits.held = Counter({str(one): int(times) for one, times in held})
        limits.worst = Severity(data["worst"])
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


def write_state(path: Path, notifier: Notifier) -> None:
    """Replace the file as a whole; nobody else may read it.

    Raises:
        OSError: It cannot be written.
    """
    limits = notifier.limits
    kept = {"sent": limits.sent, "held_back": limits.held, "worst": limits.worst}
    with replacing(path, rights=0o600) as file:
        json.dump({**_KIND, **notifier.changes.as_data(), **kept}, file)
