"""Metrics that other trainers print as a Python dict: Hugging Face's (TRL), slime's, OpenRLHF's.

Hugging Face (`transformers/trainer_callback.py`, `ProgressCallback.on_log`) writes `{'loss': 0.1, …, 'epoch': 0.01}`
without a step, after the bar of the training has moved on and before it is drawn again: its step is that of the bar
last seen. tqdm leaves out bars of quick steps, and most of a training that was resumed; the bar after a dict is always
drawn, so where the one before a dict lags behind, the distance of the dicts before it tells. Without any bar
(`disable_tqdm`) the dicts are counted: their step is their number, times `logging_steps` where the console states it.
Newer versions print all values as strings.

slime prints `rollout N: {…}`, `step N: {…}`, `perf N: {…}`, `eval N: {…}` (`backends/megatron_utils/{data,model}.py`,
`ray/rollout.py`). Its step counts updates, several a rollout: they are averaged as one step of the rollout before
them, as verl does it. OpenRLHF prints `Global step N: {…}` (`trainer/ppo_trainer.py`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verl_tui.records import Event, EventKind, Progress
from verl_tui.sources.gather import Row
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.records import Record

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|nan|inf)"
_PAIR = re.compile(
    r"'(?P<key>[^'\n]{1,300})': (?:"
    rf"(?P<quote>')?(?P<call>tensor\(|np\.\w+\()?(?P<number>{_NUMBER})(?(call)(?:, [^()]*)?\))(?(quote)')"
    r"|'[^'\n]*'|\"[^\"\n]*\"|None|True|False|(?:tensor\(|array\()?\[[^\[\]]*\](?:[^(){}\[\]]*\))?"
    r")(?=, '|\}$)"
)
_NAMED = re.compile(rb"(?:^|[\s\]])(?P<what>rollout|step|perf|eval|Global step) (?P<step>\d{1,15}): $")
_NAME = 40
"""Bytes before a dict that may name it."""
_BAR = re.compile(rb"\s*\d+%\|[^|]*\|\s*(?P<at>\d{1,15})/(?P<total>\d{1,15}) \[")
"""A bar without a name, as that of the training is."""
_ELAPSED = re.compile(rb"(?:(\d{1,9}):)?(\d\d):(\d\d)<")
"""What tqdm says behind a bar's `[`."""
_EVERY = re.compile(rb"logging_steps['\"]?\s*[=: ]\s*(\d{1,9})\b")
_NAMES = {b"rollout": "rollout/", b"step": "train/", b"perf": "perf/", b"eval": "eval/"}
"""What keys of slime begin with, beside those of a user's own."""
_TRAINED = {"loss", "reward", "learning_rate", "grad_norm"}
_HINT = re.compile(
    rb"\{'[^{}\n]{0,4000}?(?<=')(?:loss|reward|grad_norm|learning_rate|eval_\w+|train_runtime)': [^{}\n]{0,4000}?"
    rb"'epoch': '?\d"
    rb"|(?:rollout|step|perf) \d+: \{'(?:rollout|train|perf)/|Global step \d+: \{'"
)


def hinted(head: bytes) -> bool:
    """Tell whether the beginning of a text file holds such a dict."""
    return _HINT.search(head) is not None


def elapsed(part: bytes, at: int) -> float | None:
    """Return the seconds that a bar has taken so far, from the text behind its bracket."""
    found = _ELAPSED.match(part, at)
    if found is None:
        return None
    hours, minutes, seconds = (int(group or 0) for group in found.groups())
    return 3600.0 * hours + 60.0 * minutes + seconds


class DictReader:
    """Reads the dicts of one console; remembers the bars, since Hugging Face's dicts state no step."""

    def __init__(self) -> None:
        self._drawn: tuple[int, int] | None = None
        """Place and length of the bar last drawn: before a dict of training, that of the training."""
        self._at: int | None = None
        """Where the bar of the training stands."""
        self._total: int | None = None
        """Its length."""
        self._told: float | None = None
        """The epoch of the last dict of training, until the bar behind it tells its step."""
        self._last: tuple[int, float] | None = None
        """Step and epoch of the last dict of training, as the bar behind it told."""
        self._stride = 0
        """Steps between the last two of them."""
        self._count = 0
        """Dicts of training so far."""
        self._every = 1
        """Steps between two of them, where the console states it."""
        self._rollout: int | None = None

    def read(self, part: bytes, number: int) -> tuple[Row | Record, ...]:
        """Return what a line with a dict in it says; nothing where it is none of these."""
        at = part.find(b"{'")
        # Most lines with a brace are something else, and long: this is to be found out quickly.
        if not part.rstrip().endswith(b"}"):
            return ()
        if part.startswith(b": ", at - 2):
            named = _NAMED.search(part[max(0, at - _NAME) : at])
            return self._named(named, part[at:]) if named is not None else ()
        before = part[:at].rstrip()
        metrics = _numbers(part[at:]) if not before or before.endswith(b"]") else {}
        if "epoch" not in metrics or not _is_training(metrics):
            return ()
        if "train_runtime" in metrics:
            text = one_line(part[:2000].decode("utf-8", "replace"), 400)
            return (Event(EventKind.FINISHED, text, number),)
        step = self._step(metrics)
        progress = (Progress(self._at, self._total),) if self._total is not None else ()
        return (*progress, Row(step, tuple(metrics), tuple(metrics.values())))

    def bar(self, part: bytes) -> Progress | None:
        """Take a line with a bar; return how far the training is, once it is known which bar tells."""
        found = _BAR.match(part)
        if found is None:
            return None
        self._drawn = int(found["at"]), int(found["total"])
        if self._drawn[1] != self._total:
            return None
        self._at = self._drawn[0]
        if self._told is not None:
            if self._last is not None and self._at > self._last[0]:
                self._stride = self._at - self._last[0]
            self._last, self._told = (self._at, self._told), None
        return Progress(self._at, self._total, elapsed(part, found.end()))

    def every(self, part: bytes) -> None:
        """Take a line that names `logging_steps`."""
        if found := _EVERY.search(part):
            self._every = max(1, int(found.group(1)))

    def _named(self, found: re.Match[bytes], written: bytes) -> tuple[Row | Record, ...]:
        what, step, metrics = found["what"], int(found["step"]), _numbers(written)
        if what == b"Global step":
            fits = bool(_TRAINED & metrics.keys() or "policy_loss" in metrics)
        else:
            fits = any(key.startswith(_NAMES[what]) for key in metrics)
        if not fits:
            return ()
        update = what == b"step"
        if what == b"rollout":
            self._rollout = step
        elif update and self._rollout is not None:
            step = self._rollout
        return (Row(step, tuple(metrics), tuple(metrics.values()), mean=update),)

    def _step(self, metrics: Mapping[str, float]) -> int:
        """Return the step of a dict without one."""
        if _TRAINED & metrics.keys():
            self._count += 1
            if self._drawn is not None and self._is_of_training(*self._drawn):
                self._turn_to(*self._drawn)
            self._told = metrics["epoch"]
            if self._last is not None and self._at is not None and self._told > self._last[1]:
                return max(self._at, self._last[0] + self._stride)
        return self._at if self._at is not None else self._count * self._every

    def _turn_to(self, at: int, total: int) -> None:
        """Take the bar before a dict as that of the training, which may be another one, or may have been resumed."""
        if total != self._total:
            self._last, self._stride = None, 0
        elif self._last is not None and at < self._last[0]:
            self._last = None
        self._at, self._total = at, total

    def _is_of_training(self, at: int, total: int) -> bool:
        """Tell whose bar stands before a dict of training: an evaluation before it has left a full one."""
        return self._total in (None, total) or at < total


def _is_training(metrics: Mapping[str, float]) -> bool:
    return bool(_TRAINED & metrics.keys()) or any(key.startswith(("eval_", "train_")) for key in metrics)


def _numbers(written: bytes) -> dict[str, float]:
    """Return the numbers of a flat dict as `repr` writes it; nothing where any of it is something else."""
    text = written.decode("utf-8", "replace").rstrip()
    numbers: dict[str, float] = {}
    at = 1
    while found := _PAIR.match(text, at):
        if found["number"] is not None:
            numbers[safe(found["key"], 300)] = float(found["number"])
        at = found.end() + 2
    return numbers if at == len(text) + 1 else {}
