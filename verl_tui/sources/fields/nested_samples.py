"""Records of samples in which prompt, response and reward lie deep within, as `verl_tui.trainers`
tells where.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verl_tui.sources.fields.token_gap import token_gap
from verl_tui.trainers import trainers

GAP = "trainer − engine log-prob"
"""Name of what is shown of the tokens' log-probabilities."""
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
