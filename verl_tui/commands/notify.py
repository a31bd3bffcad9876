"""`verl-tui notify`: send a test message, or show what would be sent of runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError
from verl_tui.commands.notifying import NO_ADDRESS, destination_for, settings_for
from verl_tui.commands.options import (
    config_option,
    configuration,
    paths_argument,
    paths_of,
)
from verl_tui.commands.output import EXIT_NOTHING, print_message, print_messages

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from verl_tui.commands.arguments import CommandParser
    from verl_tui.config import Config
    from verl_tui.notify.message import Message

EXIT_UNSENT = 69
"""A message that could not be sent."""
NAME = "notify"
HELP = "send a test notification (--test), or show what would be sent of runs (--show PATH)"
EXAMPLES = (
    "VERL_TUI_NOTIFY_URL=https://… verl-tui notify --test",
    "verl-tui notify --show 'logs/run_*'",
)
EXITS = "0 done, 3 nothing readable, 69 the test message could not be sent"


def options(parser: CommandParser) -> None:
    """Add its options."""
    from verl_tui.notify.preset_names import PRESETS

    parser.epilog = (
        "The address comes from the environment variable VERL_TUI_NOTIFY_URL, or from the file "
        "that VERL_TUI_NOTIFY_FILE names, and is never shown."
    )
    parser.add_argument(
        "--test", action="store_true", help="send a message, and say what happened"
    )
    parser.add_argument(
        "--show", action="store_true", help="show messages, send nothing"
    )
    preset = "form of the messages (default: that of the address); with --show, write their JSON"
    parser.add_argument("--preset", choices=PRESETS, help=preset)
    paths_argument(parser)
    config_option(parser)


def run(options: argparse.Namespace) -> int:
    """Send or show; return the exit code."""
    if options.test == options.show:
        raise CommandError(
            "either --test sends a message, or --show PATH shows what would be sent"
        )
    if options.test and options.paths:
        raise CommandError("--test sends one message and reads no PATH")
    config = configuration(options)
    if options.test:
        return _test(options, config)
    return _show(options, config)


def _test(options: argparse.Namespace, config: Config) -> int:
    from verl_tui.notify.delivery import deliver
    from verl_tui.notify.message import trial
    from verl_tui.notify.posting import NotSentError

    to = destination_for(settings_for(config), options.preset)
    if to is None:
        raise CommandError(NO_ADDRESS)
    try:
        answer = deliver(to, trial(time.time()), time.time)
    except NotSentError as error:
        print_message(str(error))
        return EXIT_UNSENT
    print(f"sent through {to.name} as {to.preset}: {answer}")
    return 0


def _show(options: argparse.Namespace, config: Config) -> int:
    """Show what a check would send, the limits considered."""
    from verl_tui.monitor import load
    from verl_tui.notify.changes import Changes
    from verl_tui.notify.notifier import limits_of

    now = time.time()
    settings = settings_for(config)
    monitor = load(paths_of(options, "verl-tui notify --show logs/run_7"), config, now)
    print_messages(monitor.sentences)
    if not monitor.runs:
        return EXIT_NOTHING
    found = Changes(settings).look(monitor, now)
    limits = limits_of(settings)
    shown = limits.take(found, now)
    _write(
        shown,
        options.preset or settings.preset,
        now,
        as_json=options.preset is not None,
    )
    if not found:
        print_message("nothing would be sent: see severity, ids and states in [notify]")
    if limits.held_back:
        print_message(
            f"{limits.held_back} more would be held back (quiet hours, {settings.per_hour} an hour)"
        )
    return 0


def _write(
    messages: Sequence[Message], preset: str | None, now: float, *, as_json: bool
) -> None:
    from verl_tui.notify.destination import Destination
    from verl_tui.notify.presets import request

    if not as_json or preset == "apprise":
        print("\n\n".join(one.text for one in messages))
        return
    # No address, so no signature either: its topic and host are made up.
    to = Destination("https://host.invalid/topic", "nowhere", preset or "json")
    for one in messages:
        print(request(to, one, now).body.decode())
