"""`python -m verl_tui` is the command `verl-tui`."""

from __future__ import annotations

import gc
import signal

if gc.isenabled():
    # Imported objects stay alive: collecting garbage every 700 objects would take a tenth of the
    # start.
    gc.set_threshold(200_000, *gc.get_threshold()[1:])
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl+c ends the process until a command begins: an exception in the middle of an import would
    # print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn

from verl_tui.cli import main
from verl_tui.commands.shared import EXIT_INTERRUPTED, complete_streams
from verl_tui.commands.signals import EndedError, end_tidily


def run() -> NoReturn:
    """Run a command and end the process with its exit code.

    Threads that still read are not waited for: a file system or a driver may hang. Python would end
    them while it shuts down, which in native code aborts the whole process up to Python 3.13
    (https://github.com/python/cpython/issues/87135), so the process ends before. It does so after
    an interrupt, too: one that came within `exec`, as in the making of a dataclass, would have
    Python end by the signal, although it was caught.
    """
    complete_streams()
    try:
        code = main(ready=end_tidily)
    except EndedError as ended:
        code = ended.code
    if code == EXIT_INTERRUPTED or any(
        thread.daemon for thread in threading.enumerate()
    ):
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    run()
