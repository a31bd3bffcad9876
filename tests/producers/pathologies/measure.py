"""Judges the trainings of the bench that have been made, and prints the tables of
`tests/scenarios/README.md`.

python tests/producers/pathologies/measure.py [--extracts] [HALF]

Each run is read as a user has it: its directory, its console alone, and its scalars as verl's
console and verl's file logger would have written them. `--extracts` writes the scalars into
`tests/data/pathologies`, for the ordinary tests.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from producers.pathologies import extracts
from producers.pathologies.judge import Judged, Outcome, judge, warnings
from producers.pathologies.make import made, place
from producers.pathologies.training import halves as listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from producers.pathologies.training import Half, Training

EXTRACTS = Path(__file__).parents[2] / "data" / "pathologies"
READ_AS = ("directory", "train.log alone", "verl's console", "verl's file logger")


def paths(half: Half, training: Training, scratch: Path) -> Iterator[tuple[str, Path]]:
    """Yield how a training is read, and the path that is."""
    home = place(half, training)
    yield READ_AS[0], home
    yield READ_AS[1], home / "train.log"
    scalars = extracts.extract(home, training.settings)
    for form in READ_AS[2:]:
        yield (
            form,
            extracts.replay(scalars, form, scratch / half / form / training.name),
        )


def measured(half: Half, scratch: Path) -> dict[str, list[Judged]]:
    """Return how each made training of a half is judged, by how it is read."""
    found: dict[str, list[Judged]] = {form: [] for form in READ_AS}
    for training in listed()[half]:
        if not made(half, training):
            sys.stderr.write(f"{half} {training.name} is not made: left out\n")
            continue
        for form, path in paths(half, training, scratch):
            found[form].append(judge(training, warnings(path)))
    return found


def _count(judged: list[Judged], outcome: Outcome) -> int:
    return sum(one.outcome is outcome for one in judged)


def _totals(found: dict[Half, dict[str, list[Judged]]]) -> Iterator[str]:
    outcomes = (Outcome.IN_TIME, Outcome.LATE, Outcome.PARTLY, Outcome.MISSED)
    columns = " | ".join(outcome.value for outcome in outcomes)
    yield f"| half | read as | sick | {columns} | warned early | healthy | with a false warning |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for half, forms in found.items():
        for form, judged in forms.items():
            sick = [one for one in judged if one.training.fault]
            cells = [
                len(sick),
                *(_count(sick, outcome) for outcome in outcomes),
                sum(bool(one.early) for one in sick),
            ]
            cells += [len(judged) - len(sick), _count(judged, Outcome.FALSE)]
            yield f"| `{half}` | {form} | {' | '.join(map(str, cells))} |"


def _rules(found: dict[Half, dict[str, list[Judged]]]) -> Iterator[str]:
    """Yield a row a rule: how many faults it names and how many runs it wrongs, of directories."""
    names = Counter[tuple[str, str]]()
    wrongs = Counter[tuple[str, str]]()
    for half, forms in found.items():
        for one in forms[READ_AS[0]]:
            if one.named is not None:
                names[one.named.id, half] += 1
            false = one.early if one.training.fault else one.others
            wrongs.update({(episode.id, half) for episode in false})
    halves = list(found)
    yield f"| finding | {' | '.join(f'first to name, `{half}` | false, `{half}`' for half in halves)} |"
    yield "|---|" + "---:|---:|" * len(halves)
    for id in sorted({id for id, _ in names | wrongs}):
        yield f"| `{id}` | {' | '.join(f'{names[id, half]} | {wrongs[id, half]}' for half in halves)} |"


def _runs(judged: dict[str, list[Judged]]) -> Iterator[str]:
    yield f"| training | truth | onset | by | {' | '.join(READ_AS)} |"
    yield "|---|---|---:|---:|" + "---|" * len(READ_AS)
    for row in zip(*judged.values(), strict=True):
        training = row[0].training
        fault = training.fault
        cells = [
            training.name,
            training.why,
            *((str(fault.onset), str(fault.by)) if fault else ("–", "–")),
        ]
        yield f"| {' | '.join([*cells, *map(_verdict, row)])} |"


def _verdict(one: Judged) -> str:
    reported = f": {_at(one.named)}" if one.named else ""
    if one.named is None and one.others:
        reported = ": " + ", ".join(dict.fromkeys(map(_at, one.others[:3])))
    early = f"; early {', '.join(map(_at, one.early[:3]))}" if one.early else ""
    return f"{one.outcome.value}{reported}{early}"


def _at(episode: object) -> str:
    return f"`{episode.id}` at {episode.raised_step}"


def main(words: list[str]) -> None:
    """Print the tables; write the extracts where that is asked for."""
    halves = [
        half for half in listed() if half in words or not set(words) & set(listed())
    ]
    if "--extracts" in words:
        for half in halves:
            for training in listed()[half]:
                if made(half, training):
                    scalars = extracts.extract(place(half, training), training.settings)
                    extracts.write(scalars, EXTRACTS / half / f"{training.name}.json")
    with tempfile.TemporaryDirectory() as scratch:
        found = {half: measured(half, Path(scratch)) for half in halves}
    for lines in (_totals(found), _rules(found), *map(_runs, found.values())):
        sys.stdout.write("\n".join([*lines, "", ""]))


if __name__ == "__main__":
    main(sys.argv[1:])
