"""The configuration screen: who the run is, all its settings, the difference to others."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from run_views import logged
from watching import check_shown, loaded, press, text

from verl_tui.records import Settings
from verl_tui.rendering.config_rows import (
    difference_page,
    full_entry,
    matching,
    page_rows,
    settings_page,
)
from verl_tui.rendering.text.piece import text_of
from verl_tui.runs.run import Run
from verl_tui.tui.screens.config import ConfigScreen

GRPO = {
    "algorithm.adv_estimator": "grpo",
    "actor.optim.lr": 1e-06,
    "data.seed": 1,
    "trainer.experiment_name": "one",
}
PPO = {
    "algorithm.adv_estimator": "gae",
    "actor.optim.lr": "1e-6",
    "data.seed": 7,
    "trainer.experiment_name": "two",
}


def configured(name, said, origin="console"):
    return logged(Run(name), Settings(said, origin))


def texts(page, width):
    rows, *_ = page_rows(page, width)
    return [text_of(row).rstrip() for row in rows]


def test_identity_then_every_setting_with_where_it_was_read():
    run = configured("grpo", {**GRPO, "trainer.resume": None, "trainer.val": True})
    assert texts(settings_page(run), 90) == [
        "run",
        "experiment     one    trainer.experiment_name",
        "algorithm      GRPO   algorithm.adv_estimator",
        "learning rate  1e-06  actor.optim.lr",
        "",
        "settings: 6",
        "actor.optim.lr           1e-06  console",
        "algorithm.adv_estimator  grpo   console",
        "data.seed                1      console",
        "trainer.experiment_name  one    console",
        "trainer.resume           null   console",
        "trainer.val              true   console",
    ]


def test_what_was_asked_for_on_the_command_line_is_marked_in_words():
    run = configured("grpo", {"a.lr": 1e-6, "b.n": 8}, "console")
    logged(run, Settings({"a.lr": "1e-6"}, ".hydra/overrides.yaml"))
    page = matching(settings_page(run), "a.lr", clear="esc")
    (entry,) = page.entries[-1:]
    assert (entry.note, entry.role) == ("console, override", "override")
    assert ".hydra/overrides.yaml says 1e-6" in entry.about


def test_difference():
    one = configured("one", {**GRPO, "only.one": 3})
    two = configured("two", PPO)
    page = difference_page([one, two])
    assert texts(page, 70) == [
        "at a glance: 2",
        "experiment               one                    two",
        "algorithm                GRPO                   PPO",
        "",
        "differences: 2",
        "algorithm.adv_estimator  grpo                   gae",
        "data.seed                1                      7",
        "",
        "set in some runs only: 1",
        "only.one                 3                      –",
        "",
        "names and places: 1",
        "trainer.experiment_name  one                    two",
    ]
    head = text_of(page_rows(page, 70)[2][0])
    assert head.split() == ["setting", "one", "two"]
    assert [
        entry.label
        for entry in matching(difference_page([one, two]), "seed", clear="esc").entries
    ] == ["data.seed"]


def test_the_chosen_one_in_full():
    long = "/data/" + "x" * 150
    page = settings_page(configured("grpo", {"trainer.dir": long}))
    entry = page.entries[0]
    assert "…" in texts(page, 60)[1]
    shown = full_entry(entry, 60, 6)
    assert "".join(text for row in shown for text, _ in row).count("x") == 150
    assert entry.text == f"trainer.dir={long}"
    assert full_entry(entry, 60, 0) == []
    assert full_entry(None, 60, 4) == []
    cut = full_entry(entry, 40, 2)
    assert [cell_len(text_of(row)) <= 40 for row in cut] == [True, True]
    assert cut[-1][0][0].endswith("…"), "what is cut says so"
    both = difference_page([configured("a", {"n": 1}), configured("b", {"n": True})])
    assert [text_of(row) for row in full_entry(both.entries[0], 40, 1)] == [
        "n: 1 | true …"
    ]


# -- on a screen -----------------------------------------------------------------------------------


@pytest.fixture
def runs(tmp_path):
    for name, lr in (("run_a", 1e-6), ("run_b", 5e-6)):
        directory = tmp_path / name
        directory.mkdir()
        (directory / "config.yaml").write_text(
            f"algorithm: ppo\nlearning_rate: {lr}\nseed: 1\ndata: {'x' * 200}\n"
        )
        (directory / "verl_logs.jsonl").write_text(
            '{"scope": "rollout", "step": 1, "reward_mean": 2.5}\n'
        )
    return [str(tmp_path / "run_a"), str(tmp_path / "run_b")]


async def test_opens_filters_compares_copies_and_closes(runs, monkeypatch):
    app = loaded(*runs)
    copied: list[str] = []
    monkeypatch.setattr(
        type(app), "copy_to_clipboard", lambda _self, words: copied.append(words)
    )
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "c")
        check_shown(app, "configuration of run_a", "config.yaml")
        await press(pilot, "slash", "s", "e", "e", "d", "enter", "y")
        assert "settings: 1 of 4" in text(app)
        assert copied == ["seed=1"]
        await press(pilot, "escape", "d")
        check_shown(app, "differences of run_a", "5e-06", "differences: 1")
        await press(pilot, "escape", "right_square_bracket")
        assert "configuration of run_b" in text(app)
        await press(pilot, "escape")
        assert not isinstance(app.screen, ConfigScreen)
