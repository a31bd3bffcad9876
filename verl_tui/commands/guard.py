"""`verl-tui guard`: follow runs without a screen, stop those that have gone mad, keep the best of
others.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from verl_tui.commands.shared import (
    Options,
    guide_of,
    need_runs,
    notifier_for,
    print_message,
)
from verl_tui.commands.signals import heeded
from verl_tui.given_files import UsageError, why
from verl_tui.words import nearest

if TYPE_CHECKING:
    from verl_tui.config import Config
    from verl_tui.guard import Guard, Orders

HELP = """
Follow runs without a screen; run a command when a circuit breaker trips, or at each new best.

--on ID... without --on-best  also trip on this finding
--on-best METRIC    run CMD at each new best of this metric instead: an indicator or the log's own
                    key, with :min or :max
--kl LIMIT          threshold of circuit-breaker-kl (0.2, if not given)
--reward-drop SHARE  threshold of circuit-breaker-reward (0.2, if not given)
--count N           breaches in a row that trip either of them (5, if not given)
--dry-run           report the command, but do not run it
PATH...
--config FILE

for example:
    verl-tui guard logs/run_7 -- scancel 4711
    verl-tui guard logs/run_7 --on hang -- ./stop.sh

CMD gets these facts as environment variables: VERL_TUI_RUN, _RUN_ID, _PATHS, _STATE, _FINDING,
_SEVERITY, _STEP, _SINCE_STEP, _KEY, _MESSAGE, _EVIDENCE and _ADVICE; with --on-best in
VERL_TUI_RUN, _RUN_ID, _PATHS, _METRIC, _KEY, _STEP, _VALUE, _PATH (the checkpoint of that step),
_NEAREST_STEP and _NEAREST_PATH. Events are one line of JSON each.

exit codes: 0 nothing tripped, 2 something tripped, 3 nothing readable, 128 + N ended by signal N
"""

USAGE = "verl-tui guard [OPTION]... PATH... [-- CMD [ARG]...]"
REST = "command"


def run(options: Options) -> int:
    """Follow until all runs have ended or a signal comes; return the exit code."""
    from verl_tui.guard import BREAKERS, QUIET, TRIPPED, Orders
    from verl_tui.runs.views.checkpoints import BestBy

    named = options.on or ()
    command = tuple(options.command)
    if command and shutil.which(command[0]) is None:
        raise UsageError(f"{command[0]}: no such command, or not executable")
    config = _limited(options)
    paths = options.paths
    need_runs(paths)
    best = None if options.on_best is None else BestBy.of(options.on_best)
    orders = Orders(frozenset((*BREAKERS, *named)), command, options.dry_run, best)
    return TRIPPED if _follow(paths, config, orders).tripped else QUIET


def _follow(paths: Sequence[str], config: Config, orders: Orders) -> Guard:
    """Follow, and notify the user of what happens where that is wanted."""
    from verl_tui.guard import Guard, follow
    from verl_tui.monitor import Monitor

    guard, notifier = Guard(Monitor(config), orders), notifier_for(config, "guard")
    problem = ""
    try:
        stop = heeded(reader=False)
        for now, happened in follow(paths, guard, stop, print_message):
            events = []
            for event in happened:
                events.append(event)
                known, problem = problem, _write_event(event)
                if problem not in ("", known):
                    print_message(f"standard output: {problem}; the guard goes on")
            if notifier:
                notifier.send_changes(guard.monitor, now)
                # a finding first, then the command that it set off
                for event in events:
                    notifier.tell(event, now)
                print_message(*filter(None, (notifier.news(),)))
        return guard
    finally:
        if notifier is not None:
            print_message(*notifier.close())


def _limited(options: Options) -> Config:
    """Return the configuration with the limits of the command line, once the named findings are
    known to exist.
    """
    config = options.settings
    known = {rule.id for rule in guide_of(config).rules}
    for id in {*(options.on or ())} - known:
        hint = nearest(id, known, cutoff=0.3) or "`verl-tui guide` lists them"
        raise UsageError(f"--on {id}: no such finding; {hint}")
    rules = {name: dict(rule) for name, rule in config.guide.get("rules", {}).items()}
    thresholds = {
        "circuit-breaker-kl": options.kl,
        "circuit-breaker-reward": options.reward_drop,
    }
    for name, threshold in thresholds.items():
        for field, value in (("threshold", threshold), ("count", options.count)):
            if value is not None:
                rules.setdefault(name, {})[field] = value
    return replace(config, guide={**config.guide, "rules": rules}) if rules else config


def _write_event(event: Mapping[str, object]) -> str:
    """Write an event; return why it cannot be written, empty if it can.

    Raises:
        BrokenPipeError: Its reader has gone, which ends the guard as it ends other programs.
    """
    # Paths stand in it as they are: escapes keep what is in them from the terminal, and any
    # encoding has ASCII.
    try:
        print(json.dumps(event, allow_nan=False), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        return why(error)
    return ""
