"""`verl-tui notify`: send a test message, or show what would be sent of runs."""

from __future__ import annotations

from verl_tui.commands.shared import (
    NO_ADDRESS,
    Options,
    destination_for,
    print_message,
    settings_for,
)
from verl_tui.given_files import NothingError, UsageError

HELP = """
Send a test notification (--test), or show what would be sent of runs (--show PATH).

--test  send a message, and say what happened
--show  show messages, send nothing
--preset json|apprise  how they are sent (by the address, if not given); with --show, json writes
        the JSON
PATH...  log, directory, quoted glob, address or -; none with --test
--config FILE

for example:
    verl-tui notify --show 'logs/run_*'
    VERL_TUI_NOTIFY_URL=https://… verl-tui notify --test

The address comes from the environment variable VERL_TUI_NOTIFY_URL, or from the file that
VERL_TUI_NOTIFY_FILE names, and is never shown.

exit codes: 0 done, 3 nothing readable, 69 the test message could not be sent
"""

EXIT_UNSENT = 69
"""A message that could not be sent."""


def run(options: Options) -> int:
    """Send or show; return the exit code."""
    if options.test == options.show:
        raise UsageError(
            "either --test sends a message, or --show PATH shows what would be sent"
        )
    if options.test == bool(options.paths):
        raise UsageError("--test sends one message and reads no PATH, --show needs one")
    return _test(options) if options.test else _show(options)


def _test(options: Options) -> int:
    from verl_tui.notify.delivery import NotSentError, deliver
    from verl_tui.notify.message import Message

    to = destination_for(settings_for(options.settings), options.preset)
    if not to:
        raise UsageError(NO_ADDRESS)
    try:
        words = "this is a test: messages from here arrive"
        answer = deliver(to, Message(event="test", time=options.now, message=words))
    except NotSentError as error:
        print_message(str(error))
        return EXIT_UNSENT
    print(f"sent through {to.name} as {to.preset}: {answer}")
    return 0


def _show(options: Options) -> int:
    """Show what a check would send, the limits considered."""
    from verl_tui.notify.delivery import json_of
    from verl_tui.notify.notifier import Changes
    from verl_tui.notify.notify_settings import Limits

    now = options.now
    settings = settings_for(options.settings)
    monitor = options.load()
    if not monitor.runs:
        return NothingError.code
    found = Changes(settings).messages(monitor, now)
    limits = Limits(settings)
    shown = limits.due(found, now)
    if options.preset == "json":
        print("".join(f"{json_of(one)}\n" for one in shown), end="")
    else:
        print("\n".join(f"{one.text}\n" for one in shown), end="")
    if not found:
        print_message("nothing would be sent: see severity, ids and states in [notify]")
    if limits.waiting:
        print_message(
            f"{limits.waiting} more would be held back (quiet hours, {settings.per_hour} an hour)"
        )
    return 0
