"""Shows a long text a screenful at a time."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress

from verl_tui.commands.output import colour, print_message


def terminal_width() -> int:
    """Return the cells of a line of the terminal, 80 where there is none."""
    return max(20, shutil.get_terminal_size().columns)


def styled() -> bool:
    """Return whether bold and dim are wanted where a long text is shown."""
    pager = _pager()
    return colour() and (not pager or _is_less(pager))


def show(text: str) -> None:
    """Write a text to standard output; on a terminal that is lower than the text through a pager:
    `$PAGER`, else `less`, where one of them is there.
    """
    pager = _pager() if sys.stdout.isatty() else []
    if not pager or text.count("\n") < shutil.get_terminal_size().lines:
        print(text, end="")
        return
    environment = {"LESS": "-FR", **os.environ}
    words = [*pager, "-R"] if _is_less(pager) else pager
    try:
        # The user's own $PAGER, through no shell.
        paging = subprocess.Popen(words, stdin=subprocess.PIPE, env=environment)  # noqa: S603
    except OSError as error:
        print_message(f"{pager[0]}: {(error.strerror or str(error)).lower()}")
        print(text, end="")
        return
    with suppress(BrokenPipeError, KeyboardInterrupt):
        paging.communicate(text.encode(sys.stdout.encoding or "utf-8", "replace"))
    while paging.poll() is None:  # ctrl+c is the pager's, which goes on
        with suppress(KeyboardInterrupt):
            paging.wait()


def _pager() -> list[str]:
    """Return the command of the user's pager, empty for none."""
    if os.environ.get("TERM") == "dumb":
        return []
    try:
        words = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        words = ["less"]
    if words and shutil.which(words[0]) is None:
        return []
    return words


def _is_less(pager: list[str]) -> bool:
    return os.path.basename(pager[0]) == "less"  # noqa: PTH119 - a command, which may be no path
