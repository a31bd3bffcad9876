"""Detects which trainer writes a console from the console itself.

The shape of metrics is the best evidence: verl's step lines, the blocks of other trainers, keys
that only one trainer's dicts have. ms-swift's and LLaMA-Factory's loggers sign their lines
(`[INFO:swift]`, `[INFO|2026-11-22 17:51:29] llamafactory.hparams.parser:523 >>`, before version 0.9
`- INFO - llamafactory.hparams.parser -`); both use TRL's trainers, so their signature goes before
TRL's keys. A log without metrics, such as a start that failed, has names of modules in it at least.
How lines show a trainer is in its file in `verl_tui.trainers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.trainers import trainers

if TYPE_CHECKING:
    from collections.abc import Container

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


class TrainerDetector:
    """Detects which trainer writes a console; what was read in which pieces makes no difference."""

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
