"""Measures how often each rule speaks on runs without a fault; writes the rate beside the rule in
the guide.

    python tests/health/null_rates.py [DRAWS [FIRST]]
    python tests/health/null_rates.py --write

The first prints what each rule said of DRAWS runs of each kind and dialect; the second measures 40
of each and writes `null_rate` into guide.toml.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from nulls import KINDS, Null, draw, is_validation
from planted import STATUS, batch, rows

from verl_tui.health import guide as guide_module
from verl_tui.health.diagnoses import DIAGNOSES
from verl_tui.health.finding import Severity
from verl_tui.health.guide import DIALECTS, Guide
from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.records import Event, EventKind
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from verl_tui.health.finding import Verdict
    from verl_tui.records import Record

DRAWS = 40
"""Runs of each kind in each dialect: 200 in each dialect that a rule judges."""
MOST = 0.01
"""Share of them that a rule may speak of."""
_WATCHED = 60
"""Points that a run is watched for as it grows."""
_KNOWN = 4
"""Points after which the pace of a run is known."""


@dataclass
class Rates:
    """What each rule, by its unique name, did on runs without a fault."""

    judged: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Rule and dialect -> runs that had its input."""
    raised: dict[tuple[str, str], list[Null]] = field(default_factory=dict)
    """Rule and dialect -> the runs that it spoke of."""

    def rate(self, rule: str) -> tuple[int, int]:
        """Return how many runs a rule spoke of, and of how many."""
        raised = sum(
            len(nulls) for (name, _), nulls in self.raised.items() if name == rule
        )
        return raised, sum(
            count for (name, _), count in self.judged.items() if name == rule
        )


def apart(guide: Guide) -> Guide:
    """Return the guide with an id of its own for each variant, so that a verdict tells which of
    them spoke.
    """
    return replace(
        guide,
        rules=tuple(replace(rule, id=rule.name, variant="") for rule in guide.rules),
    )


def _alive(id: str) -> bool:
    return id in DIAGNOSES and DIAGNOSES[id].alive


def _lived(null: Null, guide: Guide) -> Verdict:
    """Return what was said of a run that was watched as it grew, just before each further step."""
    run, chance, now = Run("null"), null.chance, 0.0
    judge = Judge(guide, run)
    validating = chance.uniform(0.0, 2.0)  # as long as so many steps
    for i in range(min(_WATCHED, null.count)):
        validated = (i + 1) % null.every == 0
        row = {
            key: values[i : i + 1]
            for key, values in null.columns.items()
            if validated or not is_validation(key)
        }
        # Nothing announces the first validation: by then the pace of plain steps is known.
        now += null.seconds(i) * (
            1.0 + (validating if validated and i > _KNOWN else 0.0)
        )
        # just before the step, when it has been silent for longest
        said = judge.verdict(now - 1e-3)
        records: list[Record] = [rows(row, null.steps[i : i + 1], order=i)]
        if validated:
            records.append(
                Event(EventKind.CHECKPOINT, "saved a checkpoint", i + 1, null.steps[i])
            )
        grown = STATUS._replace(bytes_read=100 * i + 100, modified=now)
        run.apply(batch(*records, status=grown, live=True), now=now)
    return said


def measure(nulls: Iterable[Null], guide: Guide | None = None) -> Rates:
    """Judge runs, and count what each rule said at any time."""
    rates, guide = Rates(), apart(guide or load_guide())
    severity = {rule.id: rule.severity for rule in guide.rules}
    alive = replace(guide, rules=tuple(rule for rule in guide.rules if _alive(rule.id)))
    finished = replace(
        guide, rules=tuple(rule for rule in guide.rules if not _alive(rule.id))
    )
    for null in nulls:
        verdicts = Judge(finished, null.run()).verdict(1.0), _lived(null, alive)
        silent = {one.id for verdict in verdicts for one in verdict.not_judged}
        # A diagnosis that tells of the good case as information has not raised anything.
        reported = (one for verdict in verdicts for one in verdict.history)
        spoke = {
            one.id
            for one in reported
            if one.severity >= min(severity[one.id], Severity.WARNING)
        }
        for rule in guide.rules:
            if null.says_so(rule.id) or (rule.id in silent and rule.id not in spoke):
                continue
            rates.judged[rule.id, null.dialect] += 1
            if rule.id in spoke:
                rates.raised.setdefault((rule.id, null.dialect), []).append(null)
    return rates


def drawn(draws: int, first: int = 0) -> Iterator[Null]:
    """Yield so many runs of each kind in each dialect."""
    return (
        draw(kind, dialect, seed)
        for dialect in DIALECTS
        for kind in KINDS
        for seed in range(first, first + draws)
    )


def tell(rates: Rates) -> None:
    """Print the rates of all rules, of those that spoke with the kinds of runs."""
    for rule in load_guide().rules:
        raised, judged = rates.rate(rule.name)
        by_dialect = ", ".join(
            f"{dialect} {len(rates.raised.get((rule.name, dialect), []))} of {rates.judged[rule.name, dialect]}"
            for dialect in DIALECTS
            if rates.judged[rule.name, dialect]
        )
        print(
            f"{'!' if raised > MOST * judged else ' '} {rule.name}: {raised} of {judged} ({by_dialect})"
        )
        spoken_of = (
            null
            for (name, _), nulls in rates.raised.items()
            if name == rule.name
            for null in nulls
        )
        if kinds := Counter(f"{null.dialect} {null.kind}" for null in spoken_of):
            print(
                "     ", ", ".join(f"{name} {count}" for name, count in kinds.items())
            )


def written(text: str, rates: Rates) -> str:
    """Return the text of `guide.toml` with the rate beside each rule that was judged."""
    rules = text.split("[[band]]", 1)[0].split("[[rule]]\n")
    head = "[[rule]]\n"
    reported = [rules[0], *(_with_rate(rule, rates) for rule in rules[1:])]
    return head.join(reported) + text[text.index("[[band]]") :]


def _with_rate(rule: str, rates: Rates) -> str:
    fields = dict(re.findall(r'^(id|variant) = "(.*)"$', rule, re.MULTILINE))
    raised, judged = rates.rate(
        "/".join(fields[name] for name in ("id", "variant") if name in fields)
    )
    rule = re.sub(r"^null_rate = .*\n", "", rule, flags=re.MULTILINE)
    if not judged:
        return rule
    return re.sub(
        r"^(source = .*\n)",
        rf'\1null_rate = "{raised:,} of {judged:,}"\n',
        rule,
        count=1,
        flags=re.MULTILINE,
    )


if __name__ == "__main__":
    if "--write" in sys.argv:
        place = Path(guide_module.__file__).with_name("guide.toml")
        rates = measure(drawn(DRAWS))
        tell(rates)
        place.write_text(
            written(place.read_text(encoding="utf-8"), rates), encoding="utf-8"
        )
    else:
        words = [int(word) for word in sys.argv[1:]]
        tell(
            measure(
                drawn(words[0] if words else DRAWS, words[1] if len(words) > 1 else 0)
            )
        )
