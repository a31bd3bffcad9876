"""`python -m verl_tui` is the command `verl-tui`."""

from __future__ import annotations

import gc
import os
import signal

# numpy would start a thread for each core that multiplies matrices, of which there are none here.
# A guard's command gets `os.environ`, which does not have this.
os.putenv("OPENBLAS_NUM_THREADS", "1")
if gc.isenabled():
    # Imported objects stay alive: collecting garbage every 700 objects would take a tenth of the
    # start.
    gc.set_threshold(200_000, *gc.get_threshold()[1:])
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl+c ends the process until a command begins: an exception in the middle of an import would
    # print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import sys
from contextlib import suppress
from typing import NoReturn

from verl_tui.cli import main
from verl_tui.commands.shared import complete_streams
from verl_tui.commands.signals import EndedError, end_tidily


def run() -> NoReturn:
    """Run a command and end the process with its exit code, at once.

    Python's own shutdown takes a sixth of a short command's time to free what ends with the process
    anyway. It would end threads that still read (a file system or a driver may hang), which in
    native code aborts the whole process up to Python 3.13
    (https://github.com/python/cpython/issues/87135). After an interrupt that came within `exec`, as
    in the making of a dataclass, it would end by the signal, although that was caught.
    """
    complete_streams()
    try:
        code = main(ready=end_tidily)
    except EndedError as ended:
        code = ended.code
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
