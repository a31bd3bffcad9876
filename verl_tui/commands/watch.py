"""`verl-tui PATH...`: watch runs in the terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from verl_tui.commands.shared import (
    Options,
    check_target,
    need_runs,
    need_terminal,
    notifier_for,
    print_message,
    writing,
)
from verl_tui.commands.signals import heeded

if TYPE_CHECKING:
    from verl_tui.config import Config

HELP = """
Watch runs in the terminal (the default command).

--config FILE
--ascii
--no-mouse
| --events             write what happens as lines of JSON on standard output, without a screen,
                       until all runs have ended
| --snapshot FILE.svg  draw one frame into FILE.svg or FILE.txt and exit
--size COLSxROWS     size of the snapshot (default: 120x40)
PATH...

for example:
    verl-tui 'logs/run_*'
    some-training 2>&1 | verl-tui -
    verl-tui logs/run_7 --snapshot run_7.svg
    verl-tui watch 'logs/run_*' --events

exit codes: 0 done, 2 (--events) a run ended critical, 3 nothing readable, or no terminal
"""

_FAREWELL = 3.0
"""Seconds in which the last notifications may go out once the user has quit."""


def run(options: Options) -> int:
    """Draw until the user leaves; return the exit code."""
    paths, config = options.paths, options.settings
    if options.events:
        return _tell(paths, config)
    if options.snapshot is None:
        need_terminal(paths)
    else:
        check_target(options.snapshot, replaces=True)
    need_runs(paths)
    # a page in a browser sends nothing, since each page would send the same
    mute = options.snapshot is not None or os.environ.get("TEXTUAL_DRIVER")
    notifier = None if mute else notifier_for(config, "watch")
    from verl_tui.tui import watch

    drawn = None if options.snapshot is None else writing(options.snapshot)
    try:
        with drawn or nullcontext():
            return watch(
                paths,
                config,
                snapshot=options.snapshot,
                size=options.size,
                notifier=notifier,
            )
    finally:
        if notifier:
            print_message(*notifier.close(_FAREWELL))


def _tell(paths: Sequence[str], config: Config) -> int:
    """Write events until all runs have ended; return the exit code."""
    from verl_tui.check.data import CRITICAL
    from verl_tui.guard import Events, bounded, follow
    from verl_tui.monitor import Monitor

    need_runs(paths)
    events = Events(Monitor(config))
    for _, happened in follow(paths, events, heeded(), print_message):
        for one in happened:
            print(json.dumps(bounded(one)), flush=True)
    return CRITICAL if events.critical else 0
