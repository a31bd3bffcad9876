"""`verl-tui compare`: settings and outcomes of several runs side by side, with statistics."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING

from verl_tui.commands.shared import (
    Options,
    plain_output,
    print_message,
)
from verl_tui.given_files import UsageError
from verl_tui.words import counted

if TYPE_CHECKING:
    from verl_tui.comparison.compare import Comparison
    from verl_tui.health.finding import Moment
    from verl_tui.monitor import Monitor

HELP = """
Settings and outcomes of several runs side by side, with differences and their intervals.

--baseline RUN
--columns LIST  write these columns first: the last, best, max or min value of a metric, that at a
                step, or a setting: 'reward, best val, reward@200, lr'
--where CONDITION  compare only the runs that meet it: 'reward > 0.6 and lr < 1e-5', 'not val'
--sort COLUMN  greatest first; --sort=-COLUMN, least first
--last N  average the last N logged values (default: a tenth of the median run's, at least 10 and
          at most 100)
--align end|step|time  compare each run at its end, all at the same step, or after the same time
          (default: end)
| --md    write Markdown, for a pull request
| --csv   write a table with one row per run
| --json
PATH...
--config FILE

for example:
    verl-tui compare 'logs/run_*'
    verl-tui compare 'logs/run_*' --baseline run_3 --md
    verl-tui compare logs --where 'reward > 0.6' --columns 'best val, lr' --sort 'best val'

exit codes: 0 done, 3 nothing readable
"""


def run(options: Options) -> int:
    """Write the comparison; return the exit code."""
    from verl_tui.comparison.compare import compare
    from verl_tui.comparison.run_columns import value_of
    from verl_tui.health.finding import Moment
    from verl_tui.runs.time.step_clocks import Alignment

    monitor = options.load()
    at = Moment(options.now, monitor.verdicts)
    columns = _narrow(monitor, options, at)
    found = compare(
        options.baseline_first(monitor, "compare"),
        monitor.verdicts,
        monitor.guide,
        options.now,
        alignment=Alignment[options.align.upper()],
        last=options.last,
    )
    asked = {
        run.name: {one: value_of(one, run, at) for one in columns}
        for run in monitor.runs.values()
    }
    found = found._replace(asked=asked if columns else {})
    print(_written(found, options), end="", flush=True)
    return 0


def _narrow(monitor: Monitor, options: Options, at: Moment) -> tuple[str, ...]:
    """Leave the runs that are asked for, in their order; return the columns."""
    from verl_tui.comparison.run_columns import apart, meeting, parse_columns, sorted_by

    runs, sort = [*monitor.runs.values()], options.sort or ""
    columns, said = parse_columns(options.columns or "", runs, at)
    order, wrong = parse_columns(sort.removeprefix("-"), runs, at)
    if said or wrong:
        raise UsageError(said or wrong)
    if options.where is not None:
        try:
            found, said = meeting(options.where, runs, at)
        except ValueError as error:
            raise UsageError(f"--where: {error}") from None
        said = f", {said}" * bool(said)
        print_message(f"{len(found)} of {counted(len(runs), 'run')} match{said}")
        runs = found
    for column in order[:1]:
        runs = sorted_by(column, runs, at, up=sort.startswith("-"))
    monitor.runs = {run.name: run for run in runs}
    return apart(columns, runs)


def _written(found: Comparison, options: Options) -> str:
    from verl_tui.comparison.written import as_csv, as_data, as_markdown, as_text

    if not (options.json or options.csv or options.md):
        wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        return as_text(found, wide)
    plain_output()
    if options.json:
        return json.dumps(as_data(found), indent=2, allow_nan=False) + "\n"
    return as_csv(found) if options.csv else as_markdown(found)
