"""Logs what a command does, if `--debug-log FILE` asks for it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from verl_tui import debug_log
from verl_tui.commands.output import check_target, print_message, unwritten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@contextmanager
def debugging(path: Path | None, words: Sequence[str]) -> Iterator[None]:
    """Log what is done meanwhile into a new file, if one is named.

    Args:
        path: The file, None for none.
        words: The words of the command line, which are written down first.

    Raises:
        CommandError: The file exists or cannot be made.
    """
    if path is None:
        yield
        return
    from contextlib import ExitStack

    from verl_tui.secrets import own_mask

    with ExitStack() as stack:
        check_target(path)
        try:
            log = stack.enter_context(debug_log.recording(path, own_mask()))
        except OSError as error:
            raise unwritten(error, path) from error
        try:
            _note_start(words)
            yield
            debug_log.note("done")
        finally:
            if log.problem is not None:
                print_message(f"{path}: {log.problem}: the debug log ends early")


def _note_start(words: Sequence[str]) -> None:
    import platform

    from verl_tui import __version__

    python = platform.python_version()
    system = platform.system()
    debug_log.note(f"verl-tui {__version__}, Python {python}, {system}")
    debug_log.note("command line: " + " ".join(words))
