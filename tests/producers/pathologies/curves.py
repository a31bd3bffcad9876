"""Shows the scalars of trainings as a table, for whoever judges by eye what is true of them.

python tests/producers/pathologies/curves.py NAME...
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from producers.pathologies.extracts import Extract, extract
from producers.pathologies.make import made, place
from producers.pathologies.training import halves

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN = re.compile(
    r"(?:eval_)?reward|rewards/.+/mean|reward_std|kl|entropy|grad_norm|clip_ratio/region_mean|frac_reward_zero_std"
    r"|completions/(?:mean_length|clipped_ratio)|step_time"
)
_COLUMNS = 15


def table(training: Extract) -> Iterator[str]:
    """Yield a line a metric: means of fifteen parts of the training, one after the other."""
    steps = list(training.records)
    width = -(-len(steps) // _COLUMNS)
    parts = [steps[at : at + width] for at in range(0, len(steps), width)]
    yield f"{training.name:26}" + "".join(f"{part[0]:8}" for part in parts)
    for key in dict.fromkeys(
        key
        for record in training.records.values()
        for key in record
        if _SHOWN.fullmatch(key)
    ):
        found = (
            [
                training.records[step][key]
                for step in part
                if key in training.records[step]
            ]
            for part in parts
        )
        yield f"{key[-25:]:26}" + "".join(
            f"{fmean(values):8.3g}" if values else 8 * " " for values in found
        )


def main(names: list[str]) -> None:
    """Print the tables of the trainings of these names that have been made."""
    for half, trainings in halves().items():
        for training in trainings:
            if training.name in names and made(half, training):
                sys.stdout.write(
                    "\n".join(
                        [
                            training.why,
                            *table(extract(place(half, training), {})),
                            "",
                            "",
                        ]
                    )
                )


if __name__ == "__main__":
    main(sys.argv[1:])
