"""Records of samples in which prompt, response and reward lie deep within, as `verl_tui.trainers`
tells where.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from verl_tui.trainers import trainers

GAP = "trainer − engine log-prob"
"""Name of what is shown of the tokens' log-probabilities."""
_LEVELS = "▁▂▃▄▅▆▇█"
_CELLS = 40
"""Most cells of their picture; in a longer response one stands for several tokens."""
_FORMS = tuple(
    (files.has, files.fields, files.log_probs)
    for one in trainers()
    for files in one.samples
    if files.fields
)


def flat_sample(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record with the fields that verl writes; as it is where no trainer is known to
    write it.
    """
    for has, fields, log_probs in _FORMS:
        if has <= record.keys():
            found = {name: _at(record, path) for name, path in fields.items()}
            if log_probs:
                found[GAP] = token_gap(*(_at(record, path) for path in log_probs))
            return {name: value for name, value in found.items() if value is not None}
    return record


def _at(value: Any, path: str) -> Any:
    """Return what stands at a path within a value, None where it leads nowhere."""
    here, _, rest = path.partition(".")
    if not here:
        return _weighted(value)
    if here in ("*", "1:"):
        return _joined([_at(one, rest) for one in _elements(value)[here == "1:" :]])
    try:
        found = value[here] if isinstance(value, Mapping) else value[int(here)]
    except (KeyError, IndexError, ValueError, TypeError):
        return None
    return _at(found, rest)


def _joined(found: list[Any]) -> Any:
    """Return texts as one, other things as a list; None for nothing."""
    known = [one for one in found if one is not None]
    if known and all(isinstance(one, str) for one in known):
        return "\n\n".join(known)
    return known or None


def _elements(value: Any) -> list[Any]:
    return list(value.values() if isinstance(value, Mapping) else value or ())


def _weighted(value: Any) -> Any:
    """Return a part of a reward times its weight, anything else as it is."""
    if isinstance(value, Mapping) and value.keys() >= {"score", "weight"}:
        return (value["score"] or 0.0) * value["weight"]
    return value


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
