"""What commands share: errors and exit codes, what they write and how, options, paths, the
configuration.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from verl_tui import debug_log
from verl_tui.config import Config, ConfigError, config_path, load_config
from verl_tui.given_files import (
    NO_LINK,
    NothingError,
    OutputError,
    UsageError,
    is_link,
    is_taken,
    why,
)
from verl_tui.text import one_line
from verl_tui.trainers import broken

if TYPE_CHECKING:
    from verl_tui.health.guide import Guide
    from verl_tui.monitor import Monitor
    from verl_tui.notify.delivery import Destination
    from verl_tui.notify.notifier import Notifier
    from verl_tui.notify.notify_settings import NotifySettings
    from verl_tui.runs.run import Run

EXIT_OWN_ERROR = 70
"""An error of verl-tui's own."""
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
"""The reader of the output has gone: the code of a program that SIGPIPE kills."""
_LAST_STREAM = 2
"""The number of standard error, the last of the standard streams."""
_UNWRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of a write: a full disk, a file that is too large, a terminal that is gone."""
NO_ADDRESS = (
    "no address to notify: put it into VERL_TUI_NOTIFY_URL, or into a file that nobody else may "
    "read and its path into VERL_TUI_NOTIFY_FILE"
)


# -- what is written -------------------------------------------------------------------------------


def complete_streams() -> None:
    """Put the null device in the place of standard streams that were closed before the start.

    Files that are opened later would get their numbers, and what is meant for the stream would go
    into them.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= _LAST_STREAM:
        pass
    os.close(number)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # as Python has a stream that was closed
            stream = os.fdopen(
                number, "w" if number else "r", encoding="utf-8", closefd=False
            )
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def print_message(*sentences: str) -> None:
    """Write sentences to standard error, a line each, with the program's name; they may quote a
    file or a path.

    Where that cannot be written, such as to a full disk, the command goes on in silence.
    """
    for sentence in sentences:
        print_note(f"verl-tui: {sentence}")


def print_note(sentence: str) -> None:
    """Write a sentence to standard error as it is."""
    try:
        print(one_line(sentence, 1000), file=sys.stderr, flush=True)
    except OSError:
        _close(sys.stderr)


def plain_output() -> TextIO:
    """Return standard output; from now on it writes UTF-8 and leaves line ends as they are."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    return sys.stdout


def check_target(path: Path | str, *, replaces: bool = False) -> None:
    """Refuse a file that must not be written, before anything is read.

    Args:
        path: What the user named.
        replaces: Whether the command replaces a file that is there.

    Raises:
        UsageError: It is there, or is a link: through that another file would be overwritten.
    """
    into_folder = os.path.isdir(path)  # noqa: PTH112 - pathlib raises where it is unreadable
    if replaces and is_link(path) and not into_folder:
        raise OutputError(f"{path}: {NO_LINK}")
    if not replaces and is_taken(path):
        raise OutputError(f"{path}: exists already, and is not overwritten")


@contextmanager
def writing(wanted: object, kind: type[UsageError] = OutputError) -> Iterator[None]:
    """Turn the error that something cannot be written into a sentence with the reason.

    Raises:
        UsageError: It cannot be written; an error of this kind.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise kind(unwritten(error, wanted)) from error


def unwritten(error: OSError, wanted: object) -> str:
    """Return why a file cannot be written."""
    return f"{error.filename or wanted}: {why(error)}"


def colour() -> bool:
    """Return whether standard output is a terminal on which colours are wanted."""
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def is_unwritten(error: OSError) -> bool:
    """Return whether an error says that a standard stream cannot be written."""
    return error.filename is None and error.errno in _UNWRITTEN


def unread() -> bool:
    """Raise an error if the reader of standard output has gone: a command that seldom writes would
    learn of it late. Return False.

    Raises:
        BrokenPipeError: It has.
    """
    watched = select.poll()
    with suppress(OSError, ValueError):  # what stands in for it in a test has no number
        watched.register(sys.stdout, 0)
    if watched.poll(0):
        raise BrokenPipeError
    return False


def close_stdout() -> None:
    """Redirect standard output to nowhere, so that Python's flush at exit does not fail again."""
    _close(sys.stdout)


def _close(stream: TextIO) -> None:
    with suppress(OSError, ValueError):  # what stands in for it in a test has no number
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def debugging(path: Path | None, words: Sequence[str]) -> Iterator[None]:
    """Log what is done meanwhile into a new file, if one is named.

    Args:
        path: The file, None for none.
        words: The words of the command line, which are written down first.

    Raises:
        UsageError: The file exists or cannot be made.
    """
    if not path:
        yield
        return
    import platform

    from verl_tui import __version__
    from verl_tui.secrets import own_mask

    check_target(path)
    with ExitStack() as stack:
        with writing(path):
            log = stack.enter_context(debug_log.recording(path, own_mask()))
        try:
            python, system = platform.python_version(), platform.system()
            debug_log.note(f"verl-tui {__version__}, Python {python}, {system}")
            debug_log.note(f"command line: {' '.join(words)}")
            yield
            debug_log.note("done")
        finally:
            if log.problem is not None:
                print_message(f"{path}: {log.problem}: the debug log ends early")


# -- options, paths, the configuration -------------------------------------------------------------


class Options(Namespace):
    """The options and paths of a command line, by their names."""

    def has(self, option: str) -> bool:
        """Return whether an option without a default was given."""
        value = getattr(self, option.lstrip("-").replace("-", "_"), None)
        return value is not None and value is not False

    @cached_property
    def settings(self) -> Config:
        """The configuration with the changes of the command line, its rules and notification
        settings checked.
        """
        config = load_config(self.config)
        for sentence in broken():
            raise ConfigError(sentence)
        # else there is nothing of the user's to check
        if config.guide or config.notify:
            try:
                guide_of(config)
                settings_for(config)
            except ValueError as error:
                raise ConfigError(f"{config_path(self.config)}: {error}") from error
        ascii = getattr(self, "ascii", False) or config.ascii
        mouse = config.mouse and not getattr(self, "no_mouse", False)
        return replace(config, ascii=ascii, mouse=mouse)

    @cached_property
    def now(self) -> float:
        """The moment of the command, in seconds since the epoch."""
        return time.time()

    def load(self) -> Monitor:
        """Return the runs at the named paths, read and judged, with a message on what was not
        read.
        """
        from verl_tui.monitor import load

        monitor = load(self.paths, self.settings, self.now)
        print_message(*monitor.sentences)
        return monitor

    def baseline_first(self, monitor: Monitor, purpose: str) -> Sequence[Run]:
        """Return the runs that contain a training, the baseline first (the first run with numbers,
        where none is named); others are left out with a message.

        Args:
            monitor: Has read.
            purpose: What runs are needed for, named in the error if there are none.

        Raises:
            UsageError: No run has numbers, or none has that name.
        """
        from verl_tui.runs.run_id import find_run
        from verl_tui.runs.views.state import State, state

        def is_training(run: Run) -> bool:
            return bool(run.keys) or state(run, self.now) is not State.NO_TRAINING

        found = monitor.runs.values()
        runs = list(filter(is_training, found))
        if left := ", ".join(run.name for run in found if run not in runs):
            print_message(f"left out, as there is no training in it: {left}")
        first = next((run for run in runs if run.keys), None)
        if not first:
            raise NothingError(f"no run with numbers to {purpose}")
        if self.baseline is not None:
            first = find_run(runs, self.baseline)
        return sorted(runs, key=lambda run: run is not first)


def piped(paths: Sequence[str]) -> bool:
    """Return whether one of these paths means standard input."""
    from verl_tui.sources import pipe

    return any(map(pipe.is_meant, paths))


def need_runs(paths: Sequence[str]) -> None:
    """Look once at what the paths lead to, with a message on each problem, and on what is waited
    for while there is no run. The readers are imported only if a server has to be asked.

    Raises:
        UsageError: There is no run, and none may come.
    """
    from verl_tui.sources.discovery.passed_over import sentences
    from verl_tui.sources.http import addresses

    if any(map(addresses.is_meant, paths)):
        from verl_tui.sources.feed import Feed

        found = Feed(paths).scan()
    else:
        from verl_tui.sources.discovery.finder import Finder

        found = Finder(paths).scan()
    said = [*found.problems]
    if not found.runs:
        said += [*found.pending, *sentences(found.passed)]
    if not (found.runs or found.pending):
        raise NothingError("; ".join(said) or "no run found")
    print_message(*said)


def guide_of(config: Config) -> Guide:
    """Return the rules, with the user's changes; they take a while to import."""
    from verl_tui.health.guide_settings import load_guide

    return load_guide(config.guide)


def settings_for(config: Config) -> NotifySettings:
    """Return what the user wants to be notified of."""
    from verl_tui.notify.notify_settings import NotifySettings, parse_settings

    if not config.notify:
        return NotifySettings()
    return parse_settings(config.notify, {rule.id for rule in guide_of(config).rules})


def destination_for(
    settings: NotifySettings, preset: str | None = None
) -> Destination | None:
    """Return where messages go, None where the user has named no address.

    Raises:
        UsageError: The address or its file is not usable, or apprise is missing.
    """
    from verl_tui.notify.delivery import destination

    found = destination(os.environ, settings.file, preset or settings.preset)
    if found and found.preset == "apprise" and not find_spec("apprise"):
        raise UsageError(
            f"{found.where}: this address needs apprise: pip install 'verl-tui[notify]'"
        )
    return found


def notifier_for(config: Config, command: str | None = None) -> Notifier | None:
    """Return the notifier of a command that sends without an option, None if there is no address or
    the user has turned that off; without a command, that of one which was asked to send.

    Raises:
        UsageError: It was, and there is no address.
    """
    settings = settings_for(config)
    if command not in (None, *settings.commands):
        return None
    to = destination_for(settings)
    if to:
        from verl_tui.notify.notifier import Notifier

        return Notifier(settings, to)
    if command is None:
        raise UsageError(NO_ADDRESS)
    return None


def need_terminal(paths: Sequence[str] = ()) -> None:
    """Refuse to start without a terminal, before Textual is imported: it would wait for one."""
    from verl_tui.sources import pipe

    keys = pipe.has_keys() if piped(paths) else sys.stdin.isatty()
    if os.environ.get("TEXTUAL_DRIVER"):
        return  # what draws elsewhere, such as textual-serve, has said so
    if os.environ.get("TERM") in ("dumb", "unknown"):
        why = f"this terminal (TERM={os.environ['TERM']}) cannot be drawn on"
    elif keys and sys.stdout.isatty():
        return
    else:
        why = "this is not a terminal"
    raise NothingError(
        f"{why}: use `verl-tui check PATH` for a report, or `--snapshot FILE.svg` for a picture"
    )
