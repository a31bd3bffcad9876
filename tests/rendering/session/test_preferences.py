"""What is remembered from one start to the next."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
from file_writing import write_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verl_tui.rendering.session.preferences import (
    ENVIRONMENT,
    StateFile,
    UserState,
    state_path,
)


def test_remembers(tmp_path):
    path = tmp_path / "new" / "state.json"
    file = StateFile(path)
    assert file.state == UserState()
    assert (
        file.change(
            lambda state: replace(state.with_pin("actor/kl"), metrics_columns=3)
        )
        == ""
    )
    assert StateFile(path).state == UserState(pins=("actor/kl",), metrics_columns=3)
    assert [item.name for item in path.parent.iterdir()] == ["state.json"]


def test_two_apps_do_not_forget_for_each_other(tmp_path):
    path = tmp_path / "state.json"
    one, other = StateFile(path), StateFile(path)
    one.change(lambda state: state.with_pin("a"))
    other.change(lambda state: state.with_pin("b"))
    one.change(lambda state: replace(state, metrics_rows=2))
    assert (
        one.state == StateFile(path).state == UserState(pins=("a", "b"), metrics_rows=2)
    )


def test_keeps_what_a_newer_version_wrote(tmp_path):
    path = write_file(tmp_path / "state.json", '{"colour": "mauve", "pins": ["a"]}')
    StateFile(path).change(lambda state: state.with_pin("b"))
    assert json.loads(path.read_text()) == {
        **json.loads(json.dumps(asdict(UserState()))),
        "colour": "mauve",
        "pins": ["a", "b"],
    }


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"pins": "a"}', '{"pins": [1]}', '{"metrics_columns": true}', '{"metrics_columns": -1}',
     '{"metrics_rows": 1e99}', '{"metrics_table": 1}', "[" * 100_000, "\x00\xff"],
)  # fmt: skip
def test_damage_costs_what_is_damaged(tmp_path, text):
    path = tmp_path / "state.json"
    path.write_text(text, encoding="latin-1")
    file = StateFile(path)
    assert file.state == UserState()
    assert file.change(lambda state: state.with_pin("a")) == ""
    assert StateFile(path).state.pins == ("a",)


def test_no_text_of_the_file_can_write_to_the_terminal(tmp_path):
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"run_columns": ["\x1b[31mred", "\u202ex", "\ud800"]}))
    assert all(text.isprintable() for text in StateFile(path).state.run_columns)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60))
def test_any_bytes_are_read(tmp_path, data):
    path = write_file(tmp_path / "state.json", data)
    assert isinstance(StateFile(path).state, UserState)


def test_nothing_is_left_behind_where_writing_fails(tmp_path):
    path = tmp_path / "state.json"
    path.mkdir()
    assert "not remembered" in StateFile(path).change(lambda state: state.with_pin("a"))
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_holds_all_the_same(tmp_path):
    path = tmp_path / "state.json"
    file = StateFile(path)
    path.mkdir()
    for key in ("a", "b"):
        assert "not remembered" in file.change(lambda state: state.with_pin(key))  # noqa: B023
    assert file.state.pins == ("a", "b")


def test_where_it_lies(monkeypatch, tmp_path):
    monkeypatch.setenv(ENVIRONMENT, "")
    assert state_path() is None
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "mine.json"))
    assert state_path() == tmp_path / "mine.json"
    monkeypatch.delenv(ENVIRONMENT)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    found = state_path()
    assert found.name == "state.json"
