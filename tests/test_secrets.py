"""Keys, tokens and passwords are hidden; settings that only sound so are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_reading import read_run

from verl_tui.cli import main
from verl_tui.secrets import HIDDEN, hide, hide_setting

if TYPE_CHECKING:
    from pathlib import Path

HEX = "0123456789abcdef" * 2 + "01234567"
HF = "hf_" + "aB3" * 11


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WANDB_API_KEY", HEX),
        ("+ray_init.runtime_env.env_vars.WANDB_API_KEY", HEX),
        ("use_wandb", HEX),
        ("wandb-key", "short"),
        ("hub_token", "abc"),
        ("push_to_hub_token", "abc"),
        ("token", "abc"),
        ("db.password", "hunter2"),
        ("judge_secret", "x y"),
        ("AWS_ACCESS_KEY_ID", "AKIA"),
        ("judge.key", HEX),
        ("anything", HF),
    ],
)
def test_a_setting_that_gives_access_is_hidden(name: str, value: str) -> None:
    assert hide_setting(name, value) == HIDDEN


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data.prompt_key", "prompt"),
        ("data.reward_fn_key", "data_source"),
        ("tokenizer.eos_token", "<|im_end|>"),
        ("data.image_key", "images"),
        ("max_tokens", 512),
        ("hub_token", None),
        ("hub_token", "<HUB_TOKEN>"),
        ("api_key", "${oc.env:OPENAI_API_KEY}"),
        ("use_auth_token", True),
        ("use_wandb", True),
        ("git.commit", HEX),
        ("loss_agg_mode", "token-mean"),
        ("trainer.experiment_name", "qwen3-8b_gsm8k_2026-11-22"),
        ("wandb.name", "qwen3-8b"),
        ("password", ""),
    ],
)
def test_other_settings_stay(name: str, value: object) -> None:
    assert hide_setting(name, value) == value


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"export WANDB_API_KEY={HEX} LR=1", f"export WANDB_API_KEY={HIDDEN} LR=1"),
        (f"['a.api_key={HEX}', 'b=1']", f"['a.api_key={HIDDEN}', 'b=1']"),
        (f"{{'WANDB_API_KEY': '{HEX}'}}", f"{{'WANDB_API_KEY': '{HIDDEN}'}}"),
        (f"--hub_token {HEX} --lr 1", f"--hub_token {HIDDEN} --lr 1"),
        (f"Incorrect key provided: sk-{HEX}.", f"Incorrect key provided: {HIDDEN}."),
        ("postgres://bob:hunter2@host/db", f"postgres://bob:{HIDDEN}@host/db"),
        ("401: invalid access token provided", "401: invalid access token provided"),
        ("KeyError: 'reward_fn_key'", "KeyError: 'reward_fn_key'"),
        ("at http://localhost:8265/jobs", "at http://localhost:8265/jobs"),
    ],
)
def test_of_a_line_only_the_secret_is_hidden(line: str, expected: str) -> None:
    assert hide(line) == expected


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_taken(name: str, text: str) -> None:
    assert isinstance(hide_setting(name, text), str)


def test_a_log_with_keys_shows_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        f"+ WANDB_API_KEY={HEX} python3 -m verl.trainer.main_ppo data.n=8 a.lr=1e-6 +b.token={HEX} --use_wandb {HEX}\n"
        f"Error executing job with overrides: ['a.lr=1', 'b.n=2', 'c.n=3', 'd.api_key={HEX}']\n"
        f"Traceback (most recent call last):\nopenai.AuthenticationError: Incorrect API key provided: {HF}\n"
    )
    run = read_run(path)
    assert run.settings["data.n"] == 8
    assert HEX not in repr(run.settings)
    main(["check", str(path), "--json"])
    said = capsys.readouterr().out
    assert "AuthenticationError" in said
    assert "api_key" in said
    assert not [secret for secret in (HEX, HF) if secret in said]
