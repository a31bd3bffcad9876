"""`verl-tui PATH...`: watch runs in the terminal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import size, snapshot
from verl_tui.commands.notifying import notifier_for
from verl_tui.commands.options import (
    EXAMPLE,
    need_terminal,
    paths_and_config,
    paths_argument,
    screen_options,
)
from verl_tui.commands.output import (
    EXIT_NOTHING,
    check_target,
    print_messages,
    unwritten,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from verl_tui.commands.arguments import CommandParser
    from verl_tui.config import Config
    from verl_tui.notify.notifier import Notifier
    from verl_tui.sources.discovery.finder import Discovery

_FAREWELL = 3.0
"""Seconds in which the last notifications may go out once the user has quit."""
NAME = "watch"
HELP = "watch runs in the terminal (the default command)"
EXAMPLES = (
    "verl-tui 'logs/run_*'",
    "some-training 2>&1 | verl-tui -",
    "verl-tui logs/run_7 --snapshot run_7.svg",
)
EXITS = "0 done, 3 nothing readable or no terminal"


def options(parser: CommandParser) -> None:
    """Add its options."""
    unnamed(parser)
    paths_argument(parser)


def unnamed(parser: CommandParser) -> None:
    """Add the options that may stand before the first path if no command is named."""
    screen_options(parser)
    frame = "draw one frame into FILE.svg or FILE.txt and exit"
    parser.add_argument("--snapshot", type=snapshot, metavar="FILE", help=frame)
    parser.add_argument(
        "--size",
        type=size,
        default=(120, 40),
        metavar="COLSxROWS",
        help="size of the snapshot (default: 120x40)",
    )


def run(options: argparse.Namespace) -> int:
    """Draw until the user leaves; return the exit code."""
    paths, config = paths_and_config(options, EXAMPLE)
    if options.snapshot is None:
        need_terminal(paths)
    else:
        check_target(options.snapshot, replaces=True)
    found = _search(paths)
    print_messages(found.problems)
    if not found.runs and not found.pending:
        return EXIT_NOTHING
    notifier = None if options.snapshot is not None else _notifier(config)
    from verl_tui.tui import watch

    try:
        return watch(
            paths,
            config,
            snapshot=options.snapshot,
            size=options.size,
            notifier=notifier,
        )
    except OSError as error:
        if options.snapshot is None:
            raise
        raise unwritten(error, options.snapshot) from error
    finally:
        if notifier is not None:
            print_messages(notifier.close(_FAREWELL))


def _search(paths: Sequence[str]) -> Discovery:
    """Look once at what the paths lead to; the readers are imported after the first frame, unless a
    server has to be asked.
    """
    from verl_tui.sources.discovery.finder import Finder
    from verl_tui.sources.http import addresses

    if not any(map(addresses.is_meant, paths)):
        return Finder(paths).scan()
    from verl_tui.sources.feed import Feed

    return Feed(paths).scan()


def _notifier(config: Config) -> Notifier | None:
    """Return the notifier; a page in a browser has none, since each page would send the same."""
    if os.environ.get("TEXTUAL_DRIVER"):
        return None
    return notifier_for(config, NAME)
