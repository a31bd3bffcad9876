"""One name for a metric that the files of a run spell in two ways.

Hugging Face's trainers print `loss` and `eval_loss` and keep them so in their state; what they
report to W&B, TensorBoard and trackio is `train/loss` and `eval/loss` (`rewrite_logs` in
`transformers/integrations`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_SPLITS = ("eval", "test")


class Spellings:
    """The names of a run's metrics: of two spellings the first that came."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        """Spelling -> the name of its metric."""
        self._own: set[str] = set()
        """Spellings in a trainer's own records, which all state their epoch."""
        self._path: dict[str, str] = {}
        """The source in which each spelling came first."""

    def name(self, key: str, beside: Collection[str], path: str) -> str:
        """Return the name of a metric that has come.

        Args:
            key: As it is spelled.
            beside: All keys of its record.
            path: Of the source.
        """
        name = self.names.get(key)
        if name is None:
            other = self._other(key, beside)
            # A source with both spellings means two metrics.
            same = other is not None and self._path[other] != path
            name = self.names[key] = (
                self.names[other] if same and other is not None else key
            )
            self._path[key] = path
        return name

    def _other(self, key: str, beside: Collection[str]) -> str | None:
        """Return the other spelling of the same metric, None where none has come."""
        own = _own(key)
        if own is not None:
            return own if own in self._own else None
        if "epoch" not in beside:
            return None
        self._own.add(key)
        reported = _reported(key)
        return reported if reported in self.names else None


def _own(key: str) -> str | None:
    """Return the trainer's own spelling of a key that it reports, None if it reports no such
    key.
    """
    split, slash, rest = key.partition("/")
    if not slash or not rest:
        return None
    if split in _SPLITS:
        return f"{split}_{rest}"
    return rest if split == "train" else None


def _reported(key: str) -> str:
    """Return how a trainer reports a metric."""
    split, _, rest = key.partition("_")
    return f"{split}/{rest}" if split in _SPLITS and rest else f"train/{key}"
