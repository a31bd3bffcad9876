"""How far the trainer's log-probabilities of a response's tokens lie from the engine's."""

from __future__ import annotations

from math import isfinite
from typing import Any

_LEVELS = "▁▂▃▄▅▆▇█"
_CELLS = 40
"""Most cells of the picture; in a longer response one stands for several tokens."""


def token_gap(trainer: Any, engine: Any, mask: Any) -> str | None:
    """Return the gap token by token as a picture, with its mean and its largest value; None where
    there is nothing to compare.

    Args:
        trainer: Log-probability of each token of prompt and response, by the trainer.
        engine: The same by the engine that sampled them.
        mask: Not 0 for the tokens of the response.
    """
    try:
        rows = list(zip(trainer, engine, mask, strict=True))
        gaps = [abs(float(own) - float(other)) for own, other, kept in rows if kept]
    except (TypeError, ValueError):
        return None
    if not gaps or not all(map(isfinite, gaps)):
        return None
    most = max(gaps)
    size = -(-len(gaps) // _CELLS)
    tops = (max(gaps[at : at + size]) for at in range(0, len(gaps), size))
    picture = "".join(_LEVELS[round(7 * top / most) if most else 0] for top in tops)
    return (
        f"{picture} mean {sum(gaps) / len(gaps):.2g}, "
        f"largest {most:.2g} at token {gaps.index(most) + 1} of {len(gaps)}"
    )
