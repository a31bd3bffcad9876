"""`verl-tui export csv`: every numeric metric as a table."""

from __future__ import annotations

from verl_tui.commands.shared import (
    EXIT_OWN_ERROR,
    Options,
    check_target,
    plain_output,
    print_message,
    print_note,
    writing,
)
from verl_tui.given_files import NothingError

HELP = """
Every numeric metric, one row per step.

-o, --output FILE|-|DIR  - is standard output (default: -)
PATH...
--config FILE

for example:
    verl-tui export csv logs/run_7 -o run_7.csv
    verl-tui export csv logs/run_7 | head

exit codes: 0 done, 3 nothing readable
"""


def run(options: Options) -> int:
    """Write the tables; return the exit code."""
    from verl_tui.exporters.csv import export
    from verl_tui.runs.views.provenance import ESTIMATED, has_estimated_steps

    check_target(options.output, replaces=True)
    runs = [run for run in options.load().runs.values() if run.keys]
    if not runs:
        raise NothingError("no numbers to export")
    plain_output()
    with writing(options.output):
        files, problems = export(runs, options.output)
    for run in filter(has_estimated_steps, runs):
        print_note(f"{run.name}: {ESTIMATED}")
    for path in files:
        print_note(f"wrote {path}")
    print_message(*problems)
    return EXIT_OWN_ERROR if problems else 0
