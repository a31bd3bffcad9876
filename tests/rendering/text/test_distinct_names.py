"""Names in a column of little room differ as far as that is possible."""

from __future__ import annotations

import pytest

from verl_tui.rendering.text.short_names import distinct_names

VALIDATION = (
    "validation lowest score of samples",
    "validation highest score of samples",
    "validation repetition",
)


@pytest.mark.parametrize(
    ("names", "cells", "expected"),
    [
        (("reward", "entropy"), 10, ["reward", "entropy"]),
        (("policy loss",), 10, ["policy lo…"]),
        (VALIDATION, 10, ["…lowest s…", "…highest …", "…repetiti…"]),
        (
            ("update actor time", "update actor per token"),
            12,
            ["update…time", "…per token"],
        ),
        (
            ("peak memory, reserved", "peak memory, allocated"),
            12,
            ["pea…reserved", "…allocated"],
        ),
        (
            ("actor/pg_clipfrac", "actor/pg_clipfrac_lower"),
            11,
            ["actor…pfrac", "actor…lower"],
        ),
        (
            ("tokens of a rank, balanced min", "tokens of a rank, balanced max"),
            14,
            ["tokens of…min", "tokens of…max"],
        ),
        (
            tuple(
                f"system/gpu.{number}.memoryAllocated{unit}"
                for number in (0, 1)
                for unit in ("", "Bytes")
            ),
            10,
            ["…0.me…ated", "…0.me…ytes", "…1.me…ated", "…1.me…ytes"],
        ),
    ],
)
def test_what_names_share_is_cut_first(
    names: tuple[str, ...], cells: int, expected: list[str]
) -> None:
    found = distinct_names(names, cells)
    assert [*found] == [*names]
    assert len(set(found.values())) == len(names)
    assert [*found.values()] == expected
