"""Metrics by prefix, and shelves of a grid."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.rendering.metrics.groups import (
    IN_ROWS,
    MetricGroup,
    grouped_keys,
    natural,
    rows_apart,
    shelves,
)

KEYS = st.lists(st.text(alphabet="ab/1", max_size=8), unique=True, max_size=60)


def test_by_the_first_part_of_the_name() -> None:
    keys = (
        "timing_s/gen",
        "critic/score/max",
        "actor/lr",
        "critic/kl",
        "timing_s/adv",
        "actor/loss",
        "perf/mfu",
        "loss",
    )
    assert grouped_keys(keys) == (
        MetricGroup("actor", ("actor/loss", "actor/lr")),
        MetricGroup("critic", ("critic/kl", "critic/score/max")),
        MetricGroup("timing_s", ("timing_s/adv", "timing_s/gen")),
        MetricGroup("other", ("loss", "perf/mfu")),
    )


def test_figures_of_machines_come_last() -> None:
    keys = ["system/cpu", "system/gpu.0.gpu", "train/loss", "train/kl", "epoch"]
    assert [group.name for group in grouped_keys(keys)] == ["train", "other", "system"]


def test_large_groups_are_divided() -> None:
    keys = [
        f"val-aux/{data}/score/{n}" for data in ("math", "code") for n in range(15)
    ] + [
        "val-aux/a/b",
        "val-aux/c",
    ]
    names = {group.name: len(group.keys) for group in grouped_keys(keys)}
    assert names == {"val-aux": 2, "val-aux/code": 15, "val-aux/math": 15}


def test_a_large_group_without_further_parts_stays_whole() -> None:
    (group,) = grouped_keys([f"train/{n}" for n in range(40)])
    assert group.name == "train"
    assert group.keys[:3] == ("train/0", "train/1", "train/2")
    assert group.short("train/7") == "7"


def test_numbers_in_names_sort_as_numbers() -> None:
    assert sorted(["layer10", "layer2", "Layer3", "layer"], key=natural) == [
        "layer",
        "layer2",
        "Layer3",
        "layer10",
    ]


@given(KEYS)
def test_every_key_is_in_one_group(keys: list[str]) -> None:
    groups = grouped_keys(keys)
    assert sorted(key for group in groups for key in group.keys) == sorted(keys)
    assert all(group.keys for group in groups)
    assert (
        len({group.name for group in groups if group.name != "other"})
        >= len(groups) - 2
    )


@given(KEYS, st.integers(1, 6))
def test_shelves_hold_all_in_order(keys: list[str], columns: int) -> None:
    groups = grouped_keys(keys)
    found = shelves(groups, columns)
    assert [key for shelf in found for key in shelf.keys] == [
        key for group in groups for key in group.keys
    ]
    assert all(1 <= len(shelf.keys) <= columns for shelf in found)
    assert all(shelf.keys[0] == shelf.group.keys[shelf.first] for shelf in found)


@given(
    KEYS,
    st.sets(st.text(alphabet="ab/1", max_size=8)),
    st.integers(1, 4),
    st.integers(0, 5),
)
def test_rows_come_last_with_several_rows_a_shelf(
    keys: list[str], constant: set[str], columns: int, lines: int
) -> None:
    groups = rows_apart(grouped_keys(keys), constant)
    assert sorted(key for group in groups for key in group.keys) == sorted(keys)
    apart = [group for group in groups if group.in_rows]
    assert apart == (
        [*groups[-1:]] if not constant.isdisjoint(keys) and set(keys) - constant else []
    )
    for shelf in shelves(groups, columns, lines):
        rows = shelf.text_rows or 1
        assert (rows - 1) * columns < len(shelf.keys) <= columns * rows
        assert (shelf.text_rows is None) is not shelf.group.in_rows
        assert rows <= max(1, lines)


def test_rows_of_text_are_gone_through_line_by_line() -> None:
    last = rows_apart(grouped_keys(["a", *"bcdef"]), set("bcdef"))[-1]
    assert last.name == IN_ROWS
    (shelf,) = shelves([last], 2, 3)
    assert shelf.beside("b", 1) == "d"
    assert shelf.beside("e", 1) == "f"
    assert shelf.beside("f", -1) == "d"
    assert shelf.beside("f", 1) is None
    assert shelf.beside("c", -1) is None
    assert (shelf.entered(1, 1), shelf.entered(1, -1), shelf.entered(0, -1)) == (
        "c",
        "f",
        "f",
    )
