"""`verl-tui export tensorboard`: event files, once or as the runs go on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from verl_tui.commands.shared import (
    EXIT_OWN_ERROR,
    Options,
    print_message,
    writing,
)
from verl_tui.commands.signals import write_runs
from verl_tui.given_files import NothingError, UsageError

if TYPE_CHECKING:
    from verl_tui.monitor import Monitor

HELP = """
TensorBoard event files, one directory per run.

-o, --output DIR    gets one directory per run
--follow            keep writing what is new until ctrl+c
--interval SECONDS  time between two writes with --follow (default: 30)
--samples N         samples of a step that become texts (default: 4)
PATH...
--config FILE

for example:
    verl-tui export tensorboard 'logs/run_*' -o board
    verl-tui export tensorboard logs/run_7 -o board --follow

exit codes: 0 done, 3 nothing readable
"""


def run(options: Options) -> int:
    """Write event files; return the exit code."""
    from verl_tui.exporters.tensorboard import LogDirectories

    if options.output is None:
        raise UsageError("name the directory with -o DIR")
    directories = LogDirectories(options.output, options.samples)

    def write_new(monitor: Monitor) -> None:
        for said in directories.write(tuple(monitor.runs.values()), time.time()):
            print_message(said)

    with writing(options.output):
        code = write_runs(options, write_new, follow=options.follow)
    if options.follow:
        return code
    if directories.failed:
        return EXIT_OWN_ERROR
    if directories.is_empty:
        raise NothingError("nothing was written")
    return 0
