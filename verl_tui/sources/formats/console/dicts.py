"""Metrics that trainers on Hugging Face's (TRL, ms-swift, …) print as a Python dict.

Hugging Face (`transformers/trainer_callback.py`, `ProgressCallback.on_log`) writes `{'loss': 0.1,
…, 'epoch': 0.01}`, mostly without a step: `verl_tui.sources.formats.console.dict_steps` finds it.
Versions from 5 on print all values as strings, and None for non-finite numbers. ms-swift states
`'global_step/max_steps': '10/438'`, others `step` or the like.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind, Progress, Restart
from verl_tui.sources.fields.row_batcher import MetricRow, joined_notes
from verl_tui.sources.formats.console.bars import DRAWN, BarRestarts, elapsed
from verl_tui.sources.formats.console.dict_steps import PrintedDict, StepResolver
from verl_tui.sources.formats.console.printed_dicts import read_dict
from verl_tui.sources.formats.metrics_json import FROM_ZERO, FROM_ZERO_NOTE
from verl_tui.text import one_line
from verl_tui.trainers import trainers
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from verl_tui.records import Record

_ENDS_TEXT = pattern(rb"^\s*$|\]\s*$|[\w.!%)]$")
"""What may stand before a dict: nothing, a bar, or what was printed right before it."""
_BAR = pattern(
    rb"\s*(?:Train: *)?" + DRAWN + rb"(?P<at>\d{1,15})/(?P<total>\d{1,15}) \["
)
"""The nameless bar of a training; ms-swift names it."""
_STEPS = (
    "global_step", "global_step/max_steps", "step", "current_steps", "train/global_step",
    "iteration", "iter",
)  # fmt: skip
"""Names of a dict's step."""
_TOTALS = ("max_steps", "total_steps")
_PLACES = frozenset({*_STEPS, *_TOTALS})
_MOST_STEPS = 10**15
_METRIC = pattern(r"loss|reward|grad_norm|learning_rate|accuracy")
"""A dict that states its step is one of metrics if a key contains one of these."""
_TRAINED = {"loss", "reward", "learning_rate", "grad_norm", "objective/rlhf_reward"}
_OF_EVALUATION = ("eval_", "train_", "test_")
_PPO = {"objective/rlhf_reward", "loss/value_avg"}
"""In a dict of TRL's PPO, which prints it before the bar goes on to its step
(`trl/trainer/ppo_trainer.py`); RLOO, which does so too, counts its steps from 0.
"""
_HINT = pattern(
    rb"\{'[^{}\n]{0,4000}?(?<=')"
    rb"(?:loss|reward|grad_norm|learning_rate|objective/rlhf_reward|eval_\w+|train_runtime)': "
    rb"[^\n]{0,4000}?'epoch': '?\d"
)

VERL = "verl console"
_TRL, _OTHER = "TRL console", "Hugging Face console"
_ON_TRANSFORMERS = ("ms-swift console", "LLaMA-Factory console", _TRL)
"""Trainers that print the dicts of transformers' trainer."""
_FIRST = 2000
"""First lines in which a trainer's name is looked for: all of them show it at once."""
_SHOWN = {
    f"{one.name} console": one.lines
    for one in sorted(trainers(), key=lambda one: one.lines.rank if one.lines else 0)
    if one.lines is not None
}
"""Those that build on others come before these."""


def hinted(head: bytes) -> bool:
    """Return True if the beginning of a text file contains a dict of metrics."""
    return _HINT.search(head) is not None


class TrainerDetector:
    """Detects which trainer writes a console; what was read in which pieces makes no difference.

    The shape of metrics is the best evidence: verl's step lines, the blocks of other trainers, keys
    that only one trainer's dicts have. ms-swift's and LLaMA-Factory's loggers sign their lines;
    both use TRL's trainers, so their signature goes before TRL's keys. A log without metrics, such
    as a start that failed, has names of modules in it at least. How lines show a trainer is in its
    file in `verl_tui.trainers`.
    """

    def __init__(self) -> None:
        self._shown: str | None = None
        """By metrics that only this trainer writes so."""
        self._signed: str | None = None
        self._likely: str | None = None
        """By the keys of dicts."""
        self._mentioned: frozenset[str] = frozenset()

    @property
    def name(self) -> str | None:
        """Name of the console after its trainer, None while nothing shows it."""
        possible = _SHOWN if self._likely is None else _ON_TRANSFORMERS
        mentioned = (name for name in possible if name in self._mentioned)
        likely = self._likely if self._likely == _TRL else next(mentioned, self._likely)
        return self._shown or self._signed or likely

    def looks_at(self, number: int) -> bool:
        """Return True if a line that holds no metrics may still show a trainer's name."""
        return number <= _FIRST and self._shown is None and self._signed is None

    def line(self, prefix: bytes, part: bytes, number: int) -> None:
        """Look for a trainer's name in a line that holds no metrics, behind its prefix."""
        if not self.looks_at(number):
            return
        line = prefix + part
        for name, shown in _SHOWN.items():
            if not any(map(line.__contains__, shown.words)):
                continue
            if shown.signed is not None and shown.signed.search(line) is not None:
                self._signed = name
            elif shown.mentioned.search(line) is not None:
                self._mentioned |= {name}

    def metrics(self, trainer: str) -> None:
        """Note that there are metrics as only one trainer writes them."""
        if self._shown != VERL:
            self._shown = trainer

    def dict(self, keys: Container[str]) -> None:
        """Recognise a trainer by the keys of a dict of metrics."""
        own = (
            name
            for name, shown in _SHOWN.items()
            if any(key in keys for key in shown.keys)
        )
        found = next(own, _OTHER)
        if found not in (_TRL, _OTHER):
            self._signed = self._signed or found
        elif self._likely != _TRL:
            self._likely = found


class DictReader:
    """Reads the dicts of one console, and the bars that give steps to those that state none."""

    def __init__(self) -> None:
        self.steps = StepResolver()
        self.program = TrainerDetector()
        self.counted = 0
        """Dicts whose steps were counted, not stated."""
        self.behind = b""
        """What another process printed behind the last dict."""
        self.unread = 0
        """Values that are not read: lists, and dicts with something that is no literal."""
        self._from_zero = False
        """True where the console counts steps from 0 and other files of the run from 1."""
        self._placed = 0
        """All dicts with metrics so far."""
        self._line = 0
        """Number of the last dict's line."""
        self._reached: int | None = None
        """Step of the last dict of training."""
        self._bar = BarRestarts()

    @property
    def note(self) -> str | None:
        """Say how many steps were estimated, or shifted."""
        steps = counted(self.counted, "step is", "steps are")
        estimated = f"{steps} estimated: the console states none"
        from_zero = FROM_ZERO_NOTE if self._from_zero else None
        return joined_notes(estimated if self.counted else None, from_zero)

    @property
    def counts_most(self) -> bool:
        """True if most steps were counted."""
        return 2 * self.counted > self._placed

    def read(self, part: bytes, number: int) -> Sequence[MetricRow | Record] | None:
        """Return the records of a line with a dict in it, None if it is no dict of metrics."""
        at = part.find(b"{'")
        # Most lines with a brace are something else, and long: check the cheap things first.
        if part.rfind(b"}") < at or not _ENDS_TEXT.search(part, 0, at):
            return None
        found = read_dict(part[at:])
        values = found.values.items()
        written = {key: math.nan if one is None else one for key, one in values}
        step, total = (_stated(written, names) for names in (_STEPS, _TOTALS))
        if not _is_metrics(written, stated=step is not None):
            self.unread += not written and hinted(part)
            return None
        self.behind = found.behind
        self.unread += found.lists
        self._line = number
        self.program.dict(written)
        if "train_runtime" in written:  # the training ends, without metrics of a step
            self.steps.printed(PrintedDict((), (), training=False, step=step))
            text = part[: len(part) - len(found.behind)][:2000]
            said = one_line(text.decode("utf-8", "replace"), 400)
            return [*self.placed(), Event(EventKind.FINISHED, said, number)]
        self.steps.printed(_printed(written, step))
        return [Progress(step, total)] if step is not None else []

    def bar(self, part: bytes) -> Sequence[MetricRow | Record]:
        """Take a line that ends with a bar; return the dicts it places, and the progress."""
        found = _BAR.match(part)
        if found is None:
            return ()
        at, total = int(found["at"]), int(found["total"])
        self.steps.bar(at, total)
        if total != self.steps.total:
            return ()
        seconds = elapsed(part, found.end())
        before = self._bar.follow(at, seconds) if seconds is not None else None
        said = f"the bar began again behind step {before or 0:,}"
        again = [Restart(said)] if before is not None else []
        return [*again, Progress(at, total, seconds)]

    def settled(self) -> Sequence[MetricRow | Record]:
        """Return rows for all dicts that wait: no bar may come."""
        self.steps.settle()
        return self.placed()

    def placed(self) -> Sequence[MetricRow | Record]:
        """Return rows for the dicts whose steps are known now, and where another training starts or
        resumes.
        """
        out: list[MetricRow | Record] = []
        found, self.steps.placed = self.steps.placed, []
        for one, step, was_counted, first in found:
            if first and self._reached is not None:
                text = f"steps went back from {self._reached} to {step}"
                if step >= self._reached:
                    text = f"went on from step {self._reached} after another start"
                before = max(0, step - 1)
                out.append(Event(EventKind.RESUMED, text, self._line, before))
            self._reached = step if one.training else self._reached
            if one.keys:
                self._placed += 1
                self.counted += was_counted
                shift = set(one.keys) == FROM_ZERO  # LLaMA-Factory's PPO
                self._from_zero |= shift
                estimated = one.step is None
                row = MetricRow(step + shift, one.keys, one.values, estimated=estimated)
                out.append(row)
        return out


def _printed(written: Mapping[str, float], step: int | None) -> PrintedDict:
    keys = tuple(key for key in written if key not in _PLACES)
    return PrintedDict(
        keys,
        tuple(written[key] for key in keys),
        training=bool(_TRAINED & written.keys()) or not _is_evaluation(written),
        epoch=written.get("epoch"),
        step=step,
        ahead=int(written.keys() >= _PPO),
    )


def _is_metrics(written: Mapping[str, float], *, stated: bool) -> bool:
    """Return True for a dict of a training's metrics that states its step or epoch."""
    if not (stated or "epoch" in written):
        return False
    return (
        bool(_TRAINED & {*written, *(key.partition("/")[0] for key in written)})
        or _is_evaluation(written)
        or (stated and any(map(_METRIC.search, written)))
    )


def _is_evaluation(written: Mapping[str, float]) -> bool:
    return any(key.startswith(_OF_EVALUATION) for key in written)


def _stated(written: Mapping[str, float], names: Sequence[str]) -> int | None:
    """Return the step, or the total of steps, that a dict states under one of some names."""
    value = next((written[key] for key in names if key in written), None)
    if value is None or not 0 <= value < _MOST_STEPS or value != int(value):
        return None
    return int(value)
