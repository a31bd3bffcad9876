"""`verl-tui explain`: why a run is as its verdict says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from verl_tui.commands.shared import (
    Options,
    guide_of,
    print_messages,
)
from verl_tui.given_files import NothingError
from verl_tui.text import one_line

HELP = "why a run broke: what moved first, what shows it, what to change"
EXAMPLES = ("verl-tui explain logs/run_7", "verl-tui explain logs/run_7 --md")
OPTIONS = """
--run NAME  which of several runs
| --md  write Markdown, for an issue: keys, passwords and home directories are hidden
| --json  write one JSON object on one line
PATH...  directory, log, quoted glob or address of a run, or -
--config FILE
"""


def run(options: Options) -> int:
    """Write the explanation; return the exit code."""
    from verl_tui.answers.run_reading import read_run
    from verl_tui.explain import explain
    from verl_tui.health.judge import Judge

    now = options.now
    guide = guide_of(options.configuration())
    reading = read_run(options.need_paths(), options.run, now, alive=True)
    print_messages(reading.sentences)
    run = reading.run
    if not any(one.records for one in run.statuses):
        raise NothingError(f"nothing readable so far in {run.name}")
    found = explain(run, Judge(guide, run).verdict(now), guide, now)
    print(json.dumps(found) if options.json else _written(found, md=options.md))
    return 0


def _written(found: Mapping[str, Any], *, md: bool) -> str:
    """Return the explanation as text, or as Markdown."""
    from verl_tui.comparison.written import escaped
    from verl_tui.explain import told
    from verl_tui.secrets import Mask

    name = one_line(found["run"])
    rows = [(label, one_line(text, 2000)) for label, text in told(found) if text]
    if not md:
        return "\n".join([name, *(f"  {label:<10} {text}" for label, text in rows)])
    mask = Mask(keep_names=True).text
    lines = (f"- **{label}**: {escaped(mask(text))}" for label, text in rows)
    return "\n".join([f"## {escaped(mask(name))}", "", *lines])
