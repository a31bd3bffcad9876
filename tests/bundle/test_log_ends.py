"""The ends of logs and their tracebacks, and what samples are left out of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.bundle.logs import LEFT_OUT, read_end, without_samples

TRACEBACK = (
    'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    f()\n'
    'ValueError: 7 is odd\n'
)  # fmt: skip


def test_the_last_lines_are_kept_and_it_is_said_which(tmp_path):
    path = tmp_path / "train.log"
    path.write_text("".join(f"line {at}\n" for at in range(100)))
    end = read_end(path, 3)
    assert end.lines == ["line 97", "line 98", "line 99"]
    assert end.note.startswith("3 lines, its end, of 790 bytes")
    assert read_end(path, 100).note.startswith("100 lines, all of it")


def test_each_kind_of_traceback_is_kept_once_with_its_number(tmp_path):
    path = tmp_path / "train.log"
    again = TRACEBACK.replace("7", "9")
    other = TRACEBACK.replace("Value", "Key")
    path.write_text(f"x\n{TRACEBACK}step:1 - a:1\n{again}y\n{other}")
    found = read_end(path, 1).tracebacks
    assert found == [f"{TRACEBACK}[2 of this kind]", other.strip()]


@given(st.binary(max_size=400), st.integers(1, 5))
def test_any_bytes_have_an_end(tmp_path_factory, data, most):
    path = tmp_path_factory.getbasetemp() / "any.log"
    path.write_bytes(data + b"\n" + TRACEBACK.encode()[: len(data)] + data)
    assert len(read_end(path, most).lines) <= most


@pytest.mark.parametrize("prefix", ["", "(TaskRunner pid=3) "])
def test_samples_of_verl_are_left_out(prefix):
    text = "before\n[prompt] my\nsecret\n[response] text\n[ground_truth] 1\n[score] 0.5\nafter"
    printed = [f"{prefix}{line}" for line in text.splitlines()]
    assert without_samples(printed) == [printed[0], LEFT_OUT, printed[-1]]


def test_tables_of_trl_are_left_out():
    table = ["╭──── Step 3 ────╮", "│ secret │ 0.5 │", "╰────────────────╯"]
    assert without_samples(["a", *table, "b"]) == ["a", LEFT_OUT, "b"]


def test_texts_in_json_are_left_out_and_what_programs_say_of_themselves_stays():
    printed = "x" * 100
    form = '{{"loss": 1, "prompt": "{0}", "text": "{0}", "error": "{1}"}}'
    (line,) = without_samples([form.format(printed, printed)])
    assert line == form.format(LEFT_OUT, printed)
    assert without_samples(['{"text": "' + printed]) == [LEFT_OUT]
    assert without_samples(["{'loss': 1}"]) == ["{'loss': 1}"]
