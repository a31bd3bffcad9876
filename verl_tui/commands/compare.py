"""`verl-tui compare`: settings and outcomes of several runs side by side, with statistics."""

from __future__ import annotations

import json
import shutil
import sys
import time
from typing import TYPE_CHECKING

from verl_tui.commands.options import (
    BASELINE,
    CONFIG,
    PATHS,
    baseline_first,
    configuration,
    loaded,
)
from verl_tui.commands.output import plain_output

if TYPE_CHECKING:
    import argparse

    from verl_tui.comparison.compare import Comparison

HELP = "settings and outcomes of several runs side by side, with differences and their intervals"
EXAMPLES = (
    "verl-tui compare 'logs/run_*'",
    "verl-tui compare 'logs/run_*' --baseline run_3 --md",
)
OPTIONS = f"""{BASELINE}
--last N  average the last N logged values (default: a tenth of the median run's, at least 10 and
          at most 100)
--align end|step|time  compare each run at its end, all at the same step, or after the same time
          (default: end)
| --md    write Markdown, for a pull request
| --csv   write a table with one row per run
| --json  write JSON for programs
{PATHS}{CONFIG}"""


def run(options: argparse.Namespace) -> int:
    """Write the comparison; return the exit code."""
    from verl_tui.comparison.compare import compare
    from verl_tui.runs.time.step_clocks import Alignment

    now = time.time()
    monitor = loaded(options, now, configuration(options))
    found = compare(
        baseline_first(monitor, options.baseline, now, "compare"),
        monitor.verdicts,
        monitor.guide,
        now,
        alignment=Alignment[options.align.upper()],
        last=options.last,
    )
    print(_written(found, options), end="", flush=True)
    return 0


def _written(found: Comparison, options: argparse.Namespace) -> str:
    from verl_tui.comparison.written import as_csv, as_data, as_markdown, as_text

    if not (options.json or options.csv or options.md):
        wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        return as_text(found, wide)
    plain_output()
    if options.json:
        return json.dumps(as_data(found), indent=2, allow_nan=False) + "\n"
    return as_csv(found) if options.csv else as_markdown(found)
