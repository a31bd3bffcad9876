"""Measures how often each rule speaks on the healthy runs of `tests/scenarios`; writes the rate
beside the rule in the guide.

    python tests/health/null_rates.py [SEEDS]
    python tests/health/null_rates.py --write

The first prints what each rule said of SEEDS runs of each kind; the second measures 24 of each and
writes `null_rate` into guide.toml.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from argparse import ArgumentParser
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1])]

from scenarios.healthy import HEALTHY
from scenarios.worlds import FORMS, NOW, write

from verl_tui.config import Config
from verl_tui.health import guide as guide_module
from verl_tui.health.finding import Severity
from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.monitor import load

if TYPE_CHECKING:
    from collections.abc import Iterable

SEEDS, MOST, FEWEST = 24, 0.01, 20
"""Runs of each kind, the share of them that a rule may speak of, and how many make a rate."""
SAYS_SO = {"plateau", "restart"}
"""Rules that tell of what healthy runs do, too: stand still, begin anew."""


def measure(
    seeds: int, first: int = 0, kinds: Iterable[str] = HEALTHY
) -> tuple[Counter[str], Counter[str]]:
    """Return of how many runs each rule spoke, by its unique name, and how many it judged."""
    guide = load_guide()
    rules = [replace(one, id=one.name, variant="") for one in guide.rules]
    least = {one.id: min(one.severity, Severity.WARNING) for one in rules}
    spoke: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    for name, seed in product(kinds, range(first, first + seeds)):
        world = HEALTHY[name](random.Random(f"{name} {seed}"))
        form = FORMS[world.dialect][seed % len(FORMS[world.dialect])]
        with tempfile.TemporaryDirectory() as scratch:
            path = write(world, Path(scratch) / "run", form)
            (run,) = load([str(path)], Config(), NOW).runs.values()
        verdict = Judge(replace(guide, rules=tuple(rules)), run).verdict(NOW)
        said = {one.id for one in verdict.history if one.severity >= least[one.id]}
        spoke.update(said - SAYS_SO)
        judged.update(least.keys() - {one.id for one in verdict.not_judged} | said)
    return spoke, judged


def written(text: str, spoke: Counter[str], judged: Counter[str]) -> str:
    """Return the text of `guide.toml` with the rate beside each rule that was judged."""
    head, *rest = text.split("[[rule]]\n")
    for at, rule in enumerate(rest):
        fields = dict(re.findall(r'^(id|variant) = "(.*)"$', rule, re.MULTILINE))
        name = "/".join(fields.values())
        rate = f'null_rate = "{spoke[name]:,} of {judged[name]:,}"'
        rate = rate + "\\n" if judged[name] >= FEWEST else ""
        bare = re.sub(r"^null_rate = .*\n", "", rule, flags=re.MULTILINE)
        place = re.compile(r"^(source = .*\n)", re.MULTILINE)
        rest[at] = place.sub(rf"\1{rate}", bare, count=1)
    return "[[rule]]\n".join([head, *rest])


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("seeds", nargs="?", type=int, default=SEEDS)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    rates = measure(asked.seeds)
    for rule in load_guide().rules:
        print(f"{rule.name}: {rates[0][rule.name]} of {rates[1][rule.name]}")
    if asked.write:
        place = Path(guide_module.__file__).with_name("guide.toml")
        place.write_text(written(place.read_text(encoding="utf-8"), *rates), "utf-8")
