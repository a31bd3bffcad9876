"""What each trainer writes: a TOML file beside this module for each of them.

A file says how the trainer's console states a step, and which of its metrics mean an indicator,
each with its definition and the line of source where it was read. A trainer of your own is one more
file, in the folder `trainers` of the configuration directory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import tomli

from verl_tui.config import config_path
from verl_tui.patterns import NamePattern, pattern
from verl_tui.toml_tables import toml_table

INDICATOR_TABLE: dict[str, dict[str, str]]
INDICATOR_TABLE = toml_table(str(Path(__file__).parent), "indicators.toml")
"""What a spelling may mean; `verl_tui.indicators` says what each is."""


class Form(NamedTuple):
    """How a console states a step; what follows, up to another kind of line, belongs to it."""

    trainer: str
    """The trainer's name."""
    word: bytes
    """Every line that states a step contains it."""
    step: re.Pattern[bytes]
    """Found in such a line, the step as `step`, and how many there are as `total`; metrics may
    stand behind it. Where steps count from 1 again in each epoch, a line of its own states the
    `epoch`. Where it matches `update`, it is averaged with others as one step of the `rollout`
    before it.
    """
    row: re.Pattern[bytes]
    """What stands before the metrics of a line, where other lines may come between: then the block
    goes on until the next step. Empty where no other lines may.
    """
    key: str = ""
    """The metric of a block that is its step, where no line states it."""


class Lines(NamedTuple):
    """How lines of a console that hold no metrics show whose it is."""

    rank: int
    """Of several that lines show, the one with the lowest holds: others are what it builds on."""
    words: Sequence[str]
    """Every line that mentions it contains one of these."""
    mentioned: re.Pattern[bytes]
    """Modules of it, as tracebacks and loggers name them."""
    signed: re.Pattern[bytes]
    """How its logger signs lines; never found where it does not."""
    keys: Sequence[str]
    """Names that only its dicts of metrics have."""


class Spelling(NamedTuple):
    """A metric that means an indicator."""

    indicator: str
    key: NamePattern
    """As the trainer logs it; in the tables a `*` stands for a part of the name, and ` - ` between
    two names for the difference of their values in one record.
    """
    written: tuple[str, ...]
    """The same as in the table, and with what may stand before all names of the trainer."""
    definition: str
    """What it is by the trainer's formula."""
    source: str
    """File and line where that was read."""
    factor: float = 1.0
    """What values are multiplied with to be the indicator's: -1 for a negated one."""


class SampleFiles(NamedTuple):
    """Where samples of a trainer lie, and what stands in them."""

    name: NamePattern
    """Of a step's file or folder, with the `step`."""
    has: frozenset[str]
    """Fields by which a record is known."""
    inner: str = ""
    """The file in a step's folder, as a glob where there is one a sample; empty where the step has
    a file.
    """
    fields: Mapping[str, str] = {}
    """Field of a sample as verl writes it -> where its value stands in a record: names and indices
    between dots, `*` for all of a list or dict, `1:` for all from the second on; none where verl's
    own names serve.
    """
    validation: str = "never"
    """`always`, `never`, or `named`: where their directory is called after one."""


class Trainer(NamedTuple):
    """What is known of one trainer."""

    name: str
    own: Sequence[NamePattern]
    """Metrics that no other one writes."""
    console: Sequence[Form]
    """How it states steps; none where it needs a reader of its own, or states no metrics."""
    names: Sequence[Spelling]
    """The best spelling of an indicator first."""
    others: Sequence[NamePattern]
    """Metrics that look like an indicator and are none."""
    samples: Sequence[SampleFiles] = ()
    mixed: Sequence[tuple[NamePattern, float]] = ()
    """Metrics of the share of groups whose answers differ in their reward, each with its factor."""
    everywhere: int = 0
    """Not 0 where others borrow its names, so that they count in any log: behind those of trainers
    with lower numbers.
    """
    lines: Lines | None = None


@cache
def spellings() -> Mapping[str, tuple[str, ...]]:
    """Return indicator -> the names that mean it in any log, the best first."""
    found: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for one in sorted(trainers(), key=lambda one: one.everywhere):
        for name in one.names if one.everywhere else ():
            found[name.indicator] += name.written
    return found


@cache
def trainers() -> tuple[Trainer, ...]:
    """Return all trainers: the user's own ones first, as far as their files can be read."""
    own, _ = _users()
    return (*own, *map(_read, sorted(Path(__file__).parent.glob("*.toml"))))


def broken() -> tuple[str, ...]:
    """Return a sentence for each file of the user's that cannot be used."""
    return _users()[1]


@cache
def _users() -> tuple[tuple[Trainer, ...], tuple[str, ...]]:
    """Return the user's own trainers, and why others of these files cannot be used."""
    found, why = [], []
    for file in sorted((config_path().parent / "trainers").glob("*.toml")):
        try:
            found.append(_read(file))
        except KeyError as error:  # noqa: PERF203 - a broken file costs no other
            why.append(f"{file}: has no {error}")
        except (OSError, ValueError, TypeError, RecursionError, re.error) as error:
            why.append(f"{file}: {error}")
    return tuple(found), tuple(why)


def _read(file: Path) -> Trainer:
    return trainer_of(tomli.loads(file.read_text(encoding="utf-8")))


@lru_cache(256)
def writers(keys: tuple[str, ...]) -> Sequence[Trainer]:
    """Return the trainers whose own metrics are among the keys of a log."""
    # Asked for at each judgement, while keys hardly ever change.
    return [
        one
        for one in trainers()
        if any(own.fullmatch(key) for own in one.own for key in keys)
    ]


def trainer_of(table: dict[str, Any]) -> Trainer:
    """Return a trainer by its table; raises KeyError for what is missing in it, ValueError
    for what is wrong.
    """
    name = table["name"]
    if strange := table.keys() - {*Trainer._fields, "prefix"}:
        raise ValueError(f"a trainer has no {', '.join(sorted(strange))}")
    rows = defaultdict(tuple, table)
    return Trainer(
        name,
        [_keys(one) for one in rows["own"]],
        [_form(name, one) for one in rows["console"]],
        [_spelling(table.get("prefix", ""), *one) for one in table["names"]],
        [_keys(one[0]) for one in rows["others"]],
        [_samples(one) for one in rows["samples"]],
        [(_keys(one[0]), *(one[3:] or [1.0])) for one in rows["mixed"]],
        table.get("everywhere", 0),
        _lines(table["lines"]) if "lines" in table else None,
    )


@cache
def differences() -> Mapping[str, list[str]]:
    """Return the metrics that no record holds but two others make, the second of which is taken
    from the first.
    """
    names = (name.written[0] for one in trainers() for name in one.names)
    return {name: name.split(" - ") for name in names if " - " in name}


def _lines(table: dict[str, Any]) -> Lines:
    signed = pattern(table.get("signed", "(?!)").encode())
    named = pattern(table["mentioned"].encode())
    return Lines(table["rank"], table["words"], named, signed, table.get("keys", ()))


def _spelling(prefix: str, indicator: str, name: str, *more: Any) -> Spelling:
    if indicator not in INDICATOR_TABLE:
        raise ValueError(f"no indicator is called {indicator}")
    written = (name, prefix + name) if prefix else (name,)
    return Spelling(indicator, _keys(*written), written, *more)


def _keys(*written: str) -> NamePattern:
    forms = ("[^/]+".join(map(re.escape, one.split("*"))) for one in written)
    return NamePattern("|".join(forms))


def _samples(table: dict[str, Any]) -> SampleFiles:
    known = {"name": NamePattern(table["name"]), "has": frozenset(table["has"])}
    return SampleFiles(**table | known)


def _form(trainer: str, table: dict[str, str]) -> Form:
    row = re.compile(table.get("row", "").encode())
    step = re.compile(table["step"].encode())
    if not table.get("key") and "step" not in step.groupindex:
        raise ValueError("`step` needs a group (?P<step>…)")
    return Form(trainer, table["word"].encode(), step, row, table.get("key", ""))
