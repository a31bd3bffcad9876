"""Metrics that trainers on Hugging Face's (TRL, ms-swift, …) print as a Python dict.

Hugging Face (`transformers/trainer_callback.py`, `ProgressCallback.on_log`) writes `{'loss': 0.1,
…, 'epoch': 0.01}`, mostly without a step: `verl_tui.sources.formats.console.dict_steps` finds it.
Versions from 5 on print all values as strings, and None for non-finite numbers. ms-swift states
`'global_step/max_steps': '10/438'`, others `step` or the like.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import orjson

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind, Progress, Restart
from verl_tui.sources.fields.jsonl import Fields, flatten, names, written_number
from verl_tui.sources.fields.row_batcher import Item, MetricRow, joined_notes
from verl_tui.sources.formats.console.dict_steps import PrintedDict, StepResolver
from verl_tui.sources.formats.console.line_parts import (
    ANOTHER,
    DRAWN,
    BarRestarts,
    any_of,
    elapsed,
)
from verl_tui.sources.formats.metrics_json import FROM_ZERO, FROM_ZERO_NOTE
from verl_tui.text import decoded, one_line
from verl_tui.trainers import trainers
from verl_tui.words import counted

_ENDS_TEXT = pattern(rb"^\s*$|[\]}]\s*$|[\w.!%)]$")
"""What may stand before a dict: nothing, a bar, another dict, or what was printed right before."""
_BEHIND = pattern(rf"\s*(?:$|\d{{1,3}}%\|)|{ANOTHER}|[\w(\[{{]|\s\{{'")
"""What may stand behind one: what was printed right behind it, and the same with a bar's, another
process's or another dict's beginning behind spaces.
"""
_CALL = pattern(
    r"\b(?:np\.\w+|tensor|array)\(([^(),\[\]]{1,40}|\[[^()]*\])(?:, [^()]*)?\)"
)
_WORD = pattern(r"(?<=[\s\[])(?:None|True|False|nan|-?inf)(?=[,}\]])")
_JSON = {"None": "null", "True": "true", "False": "false"}
_QUOTED = pattern(r'"[^"\n]*"')
_OF_ALL = pattern(r"(\d{1,15})/(\d{1,15})")
_BRACE = pattern(r"[{}]")
_BAR = pattern(
    rb"\s*(?P<named>Train: *)?" + DRAWN + rb"(?P<at>\d{1,15})/(?P<total>\d{1,15}) \["
)
"""The nameless bar of a training; ms-swift names it."""
_STEP_OF_ALL = ("global_step/max_steps", "iteration")
"""ms-swift's names of `10/438`, that of its Megatron trainers behind."""
_STEPS = names("dict_step")
"""Names of a dict's step."""
_TOTALS = ("max_steps", "total_steps")
_MOST_STEPS = 10**15
_METRIC = pattern(r"loss|reward|grad_norm|learning_rate|accuracy")
"""A dict that states its step is one of metrics if a key contains one of these."""
_TRAINED = {*names("dict_trained")}
_OF_EVALUATION = ("eval_", "train_", "test_")
_PPO = {"objective/rlhf_reward", "loss/value_avg"}
"""In a dict of TRL's PPO, which prints it before the bar goes on to its step
(`trl/trainer/ppo_trainer.py`); RLOO, which does so too, counts its steps from 0.
"""
_HINT = pattern(
    rb"\{'[^{}\n]{0,4000}?(?<=')"
    rb"(?:loss|reward|grad_norm|learning_rate|objective/rlhf_reward|eval_\w+|train_runtime)': "
    rb"(?:[^\n]|(?<![}\s])\n(?![{\s])){0,4000}?'epoch': '?\d"
)
"""A dict of metrics, which a terminal may have wrapped."""

VERL, _TRL, _OTHER = "verl", "TRL", "Hugging Face"
_ON_TRANSFORMERS = ("ms-swift", "LLaMA-Factory", _TRL)
"""Trainers that print the dicts of transformers' trainer."""
_METRICS, _SIGNED, _KEYS, _MENTIONED, _DICT = range(5)
"""What shows a trainer, the best evidence first."""
_FIRST = 2000
"""First lines in which a trainer's name is looked for: all of them show it at once."""
_SHOWN = [(one.name, one.lines) for one in trainers() if one.lines]
_MAY_SHOW = any_of(word for _, shown in _SHOWN for word in shown.words)


def hinted(head: bytes) -> bool:
    """Return True if the beginning of a text file contains a dict of metrics."""
    return _HINT.search(head) is not None


def read_dict(written: bytes) -> tuple[dict[str, float | None], int, bytes]:
    """Return what a dict as `repr` writes it says: its numbers and None values, those of dicts in
    it under `name/name`; how many values are none; and what is printed after it. All of that is
    empty if it cannot be parsed.
    """
    text = decoded(written).rstrip()
    end = _end(text)
    if not end or not _BEHIND.match(text, end):
        return {}, 0, b""
    values: dict[str, float | None] = {}
    unread = 0
    for name, value in flatten(_parsed(text[:end])).items():
        if isinstance(value, str):
            values |= _numbers(name, value)
        elif isinstance(value, int | float | None):
            values[name] = None if value is None else float(value)
        else:
            unread += 1
    return values, unread, text[end:].strip().encode()


def _end(text: str) -> int:
    """Return where a dict ends, 0 if it does not."""
    depth = 0
    for brace in _BRACE.finditer(text):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    return 0


def _parsed(text: str) -> Fields:
    if "(" in text:
        text = _CALL.sub(r"\1", text)
    text = _QUOTED.sub("''", text)
    as_json = _WORD.sub(lambda found: _JSON.get(found[0], f'"{found[0]}"'), text)
    try:
        found = orjson.loads(as_json.replace("'", '"'))
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _numbers(name: str, text: str) -> Mapping[str, float]:
    """Return the numbers of a text; transformers from 5 on prints all values so."""
    if name in _STEP_OF_ALL and (found := _OF_ALL.fullmatch(text)):
        return {name: float(found[1]), "max_steps": float(found[2])}
    number = written_number(text)
    return {} if number is None else {name: number}


class TrainerDetector:
    """Detects which trainer writes a console; what was read in which pieces makes no difference.

    The shape of metrics is the best evidence: verl's step lines, the blocks of other trainers, keys
    that only one trainer's dicts have. ms-swift's and LLaMA-Factory's loggers sign their lines;
    both use TRL's trainers, so their signature goes before TRL's keys. A log without metrics, such
    as a start that failed, has names of modules in it at least. How lines show a trainer is in its
    file in `verl_tui.trainers`.
    """

    def __init__(self) -> None:
        self._signs: set[tuple[int, int, str]] = set()
        """Kind of evidence, the trainer's rank and name."""
        self._possible: Sequence[str] = [name for name, _ in _SHOWN]
        """Trainers that may be meant where they are mentioned."""

    @property
    def name(self) -> str | None:
        """Name of the console after its trainer, None while nothing shows it."""
        signs = (
            one
            for one in self._signs
            if one[0] != _MENTIONED or one[2] in self._possible
        )
        best = min(signs, default=None)
        return f"{best[2]} console" if best else None

    def searches(self, number: int) -> bool:
        """Return True if a line that holds no metrics may still show a trainer's name."""
        return number <= _FIRST and not any(one[0] <= _SIGNED for one in self._signs)

    def see_line(self, line: bytes, number: int) -> None:
        """Look for a trainer's name in a line that holds no metrics, with its prefix."""
        if not (self.searches(number) and _MAY_SHOW.search(line)):
            return
        for name, shown in _SHOWN:
            if shown.signed.search(line):
                self._signs.add((_SIGNED, shown.rank, name))
            elif shown.mentioned.search(line):
                self._signs.add((_MENTIONED, shown.rank, name))

    def see_metrics(self, trainer: str) -> None:
        """Note that there are metrics as only one trainer writes them."""
        self._signs.add((_METRICS, trainer != VERL, trainer))

    def see_dict(self, keys: Iterable[str]) -> None:
        """Recognise a trainer by the keys of a dict of metrics."""
        self._possible = _ON_TRANSFORMERS
        own = [(one.rank, name) for name, one in _SHOWN if {*one.keys} & {*keys}]
        rank, name = min(own, default=(0, _OTHER))
        kind = {_TRL: _KEYS, _OTHER: _DICT}.get(name, _SIGNED)
        self._signs.add((kind, rank, name))


class DictReader:
    """Reads the dicts of one console, and the bars that give steps to those that state none."""

    def __init__(self) -> None:
        self.steps = StepResolver()
        self.trainer = TrainerDetector()
        self.counted = 0
        """Dicts whose steps were counted, not stated."""
        self.behind = b""
        """What another process printed after the last dict."""
        self.unread = 0
        """Values that are not read: lists, and dicts with something that is no literal."""
        self._from_zero = False
        """True where the console counts steps from 0 and other files of the run from 1."""
        self.rows = 0
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
        return joined_notes(
            f"{steps} estimated: the console states none" if self.counted else None,
            FROM_ZERO_NOTE if self._from_zero else None,
        )

    def read(self, part: bytes, number: int) -> Sequence[Item] | None:
        """Return the records of a line with a dict in it, None if it is no dict of metrics."""
        at = part.find(b"{'")
        # Most lines with a brace are something else, and long: check the cheap things first.
        if part.rfind(b"}") < at or not _ENDS_TEXT.search(part, 0, at):
            return None
        values, unread, behind = read_dict(part[at:])
        written = {key: math.nan if one is None else one for key, one in values.items()}
        new = _printed(written)
        if not _is_metrics(written, new):
            self.unread += not written and hinted(part)
            return None
        self.behind = behind
        self.unread += unread
        self._line = number
        self.trainer.see_dict(written)
        if "train_runtime" in written:  # the training ends, without metrics of a step
            self.steps.printed(new._replace(values={}, training=False))
            text = part[: len(part) - len(behind)][:2000]
            said = one_line(decoded(text), 400)
            return [*self.placed(), Event(EventKind.FINISHED, said, number)]
        self.steps.printed(new)
        if new.step is None:
            return ()
        return (Progress(new.step, _stated(written, _TOTALS)),)

    def bar(self, part: bytes) -> Sequence[Item]:
        """Take a line that ends with a bar; return the dicts it places, and the progress."""
        found = _BAR.match(part)
        if not found:
            return ()
        at, total = int(found["at"]), int(found["total"])
        self.steps.bar(at, total)
        if total != self.steps.total and not found["named"]:
            return ()
        seconds = elapsed(part, found.end())
        progress = Progress(at, total, seconds)
        before = self._bar.follow(at, seconds) if seconds is not None else None
        if before is None:
            return (progress,)
        return Restart(f"the bar began again behind step {before:,}"), progress

    def settled(self) -> Sequence[Item]:
        """Return rows for all dicts that wait: no bar may come."""
        self.steps.settle()
        return self.placed()

    def placed(self) -> Sequence[Item]:
        """Return rows for the dicts whose steps are known now, and where another training starts or
        resumes.
        """
        out: list[Item] = []
        found, self.steps.placed = self.steps.placed, []
        for one, step, was_counted, first in found:
            if first and self._reached is not None:
                text = f"steps went back from {self._reached} to {step}"
                if step >= self._reached:
                    text = f"went on from step {self._reached} after another start"
                out.append(Event(EventKind.RESUMED, text, self._line, max(0, step - 1)))
            if one.training:
                if step < (self._reached or 0):
                    self._bar.confirm()
                self._reached = step
            if one.values:
                self.rows += 1
                self.counted += was_counted
                shift = one.values.keys() == FROM_ZERO  # LLaMA-Factory's PPO
                self._from_zero |= shift
                estimated = one.step is None
                out.append(MetricRow.of(step + shift, one.values, estimated=estimated))
        return out


def _printed(written: Mapping[str, float]) -> PrintedDict:
    places = (*_STEPS, *_TOTALS)
    metrics = {key: one for key, one in written.items() if key not in places}
    is_evaluation = any(key.startswith(_OF_EVALUATION) for key in written)
    is_training = bool(_TRAINED & written.keys()) or not is_evaluation
    ahead = int(written.keys() >= _PPO)
    return PrintedDict(metrics, is_training, _stated(written, _STEPS), ahead)


def _is_metrics(written: Mapping[str, float], new: PrintedDict) -> bool:
    """Return True for a dict of a training's metrics that states its step or epoch."""
    if new.step is None and "epoch" not in written:
        return False
    named = new.step is not None and any(map(_METRIC.search, written))
    trained = _TRAINED & {*written, *(key.partition("/")[0] for key in written)}
    return named or not new.training or bool(trained)


def _stated(written: Mapping[str, float], names: Sequence[str]) -> int | None:
    """Return the step, or the total of steps, that a dict states under one of some names."""
    value = next((written[key] for key in names if key in written), None)
    if value is None or not 0 <= value < _MOST_STEPS or value != int(value):
        return None
    return int(value)
