"""Writes down what crosses between the app and its workers: sources, and what they read.

The columns of a block of rows are one piece of bytes, and its keys, which come again with each
block, are unpacked once.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from array import array
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from verl_tui.records import MetricRows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MOST_KEYS = 1024
"""Sets of keys that are remembered: a run has a handful."""
_NUMBER = 8
"""Bytes of a number in a column."""


def packed(one: object) -> bytes:
    """Return an object as bytes.

    Raises:
        Exception: It holds something that cannot be written down.
    """
    out = io.BytesIO()
    pickler = pickle.Pickler(out, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = {
        **copyreg.dispatch_table,
        ModuleType: _by_name,
        MetricRows: _joined,
    }
    pickler.dump(one)
    return out.getvalue()


def unpacked(data: bytes) -> Any:
    """Return the object that was packed, by this process or by the one that has started it: never
    by anybody else.

    Raises:
        Exception: It cannot be made here.
    """
    return pickle.loads(data)  # noqa: S301


def _by_name(module: ModuleType) -> tuple[Callable[[str], ModuleType], tuple[str]]:
    """Return how to write a module, which formats are: by its name."""
    return import_module, (module.__name__,)


def _joined(rows: MetricRows) -> tuple[Any, ...] | str:
    """Return how to write rows: their columns one behind the other, where all of them are packed
    numbers.
    """
    columns = rows.columns
    if not all(isinstance(one, array) and one.typecode == "d" for one in columns):
        return rows.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    orders = array("q", rows.orders)
    rest = rows.steps, orders, rows.times, rows.mean, rows.progress, rows.estimated
    return _rows, (_packed_keys(rows.keys), b"".join(columns), *rest)  # type: ignore[arg-type]


def _rows(
    keys: bytes, numbers: bytes, steps: Sequence[int], orders: Sequence[int], *rest: Any
) -> MetricRows:
    """Return rows that were written so."""
    size = len(steps) * _NUMBER
    columns = [
        array("d", numbers[at : at + size]) for at in range(0, len(numbers), size)
    ]
    return MetricRows(_keys(keys), steps, tuple(columns), orders, *rest)


@lru_cache(_MOST_KEYS)
def _packed_keys(keys: tuple[str, ...]) -> bytes:
    return pickle.dumps(keys, pickle.HIGHEST_PROTOCOL)


@lru_cache(_MOST_KEYS)
def _keys(data: bytes) -> tuple[str, ...]:
    """Return keys, the same ones each time."""
    known: tuple[str, ...] = pickle.loads(data)  # noqa: S301 - packed as all of it
    return known
