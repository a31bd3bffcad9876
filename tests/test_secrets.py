"""Keys, tokens and passwords are hidden; settings that only sound so are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_reading import read_run

from verl_tui.cli import main
from verl_tui.secrets import HIDDEN, Mask, hide, hide_setting

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
        ("SLACK_WEBHOOK_URL", "https://chat.example/hooks/x"),
        ("VERL_TUI_NOTIFY_URL", "https://chat.example/hooks/x"),
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


def test_a_log_with_keys_shows_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


# -- texts for others -------------------------------------------------------------------------------

MASK = Mask(
    {"WANDB_API_KEY": HEX, "SHELL": "/bin/bash", "HOME": "/data/carol"},
    user="alice",
    host="node-17.cluster",
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"logged in with {HEX}", f"logged in with {HIDDEN}"),
        ("--hub_token hunter2 --lr 1", f"--hub_token {HIDDEN} --lr 1"),
        ("['--api-key', 'a b', '--lr']", f"['--api-key', {HIDDEN}, '--lr']"),
        ("password=abc user=x", f"password={HIDDEN} user=x"),
        ('{"password": "a, b", "n": 1}', f'{{"password": {HIDDEN}, "n": 1}}'),
        ("GET /x?token=abc&n=1", f"GET /x?token={HIDDEN}&n=1"),
        ("Authorization: Bearer abc.def==", f"Authorization: Bearer {HIDDEN}"),
        ("postgres://bob:p@ss/w@host:5432/db", f"postgres://{HIDDEN}@host:5432/db"),
        ("https://x0x0@github.com/a/b", f"https://{HIDDEN}@github.com/a/b"),
        (f"https://{'x0' * 1500}@host/a", f"https://{HIDDEN}@host/a"),
        (f"https://{'x0' * 1500}:basic@host/a", f"https://{HIDDEN}@host/a"),
        (f"https://aws:{'x0' * 1500}@host/a b@c", f"https://{HIDDEN}@host/a b@c"),
        ("https://hooks.slack.com/services/T0/B0/xyz", f"https://hooks.slack.com/services/{HIDDEN}"),
        ("/home/eve/run /mnt/fs/home/eve/x", "~/run ~/x"),
        ("File \"/root/.cache/x.py\"", 'File "~/.cache/x.py"'),
        (r"C:\Users\Eve Doe\x.py", r"~\x.py"),
        ("file:///Users/eve/x", "file://~/x"),
        ("%2Fhome%2Feve%2Fx", "~%2Fx"),
        ("/data/carol/logs /data/carola", "~/logs /data/carola"),
        ("alice on node-17: ssh alice@node-17.cluster", "USER on HOST: ssh EMAIL"),
        ("events.out.tfevents.1700.gpu9.12.0", "events.out.tfevents.1700.HOST.12.0"),
        ("ip=131.2.3.4, 10.0.0.7:6379", "ip=IP, IP:6379"),
        (f"-----BEGIN PRIVATE KEY-----\n{HEX}\n-----END PRIVATE KEY-----", HIDDEN),
        (f"{HEX}AAAA\n-----END RSA PRIVATE KEY-----", HIDDEN),
        ("\x1b[31mred\x1b[0m", "red"),
    ],
)  # fmt: skip
def test_a_text_for_others_says_neither_secrets_nor_who_and_where(
    line: str, expected: str
) -> None:
    assert MASK.text(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "token: 12, num_tokens=3, max_tokens: 512, eos_token: <|im_end|>",
        "data.reward_fn_key=data_source",
        "hub_token: null, password=None, use_auth_token=True, api_key=${oc.env:KEY}",
        "nvidia-curand-cu12==10.3.2.106 torch 2.6.0 12.1.3.1",
        "at http://localhost:8265/jobs, http://127.0.0.1/x",
        "File \"/opt/venv/lib/python3.12/site-packages/verl/x.py\", line 3",
        "commit 0123456789abcdef0123456789abcdef00000000",
        "malice and nodes stay",
    ],
)  # fmt: skip
def test_other_text_for_others_stays(line: str) -> None:
    assert MASK.text(line) == line


def test_names_are_learnt_from_homes_unless_they_are_words_of_the_training() -> None:
    mask = Mask({})
    mask.spare({"verl"})
    mask.learn("/home/mallory/a /home/verl/b /home/ubuntu/c")
    assert mask.text("mallory's verl on ubuntu") == "USER's verl on ubuntu"


def test_names_stay_on_request_and_homes_do_not() -> None:
    mask = Mask({}, user="alice", host="node-17", keep_names=True)
    assert (
        mask.text("alice@node-17: /home/alice/x at 10.0.0.7:80")
        == "alice@node-17: ~/x at 10.0.0.7:80"
    )


def test_data_are_masked_by_their_names_as_well() -> None:
    data = {
        "a": {
            "hub_token": "x",
            "password": 12345678,
            "max_tokens": 5,
            "l": ["/home/eve/q"],
        },
        "secret": ["y"],
        "n": None,
    }
    assert MASK.data(data) == {
        "a": {"hub_token": HIDDEN, "password": HIDDEN, "max_tokens": 5, "l": ["~/q"]},
        "secret": [HIDDEN],
        "n": None,
    }


@given(st.text(max_size=200))
def test_any_text_is_masked(text: str) -> None:
    MASK.learn(text)
    assert isinstance(MASK.text(text), str)


def test_addresses_that_messages_go_to_are_in_no_text_for_others() -> None:
    mask = Mask({"VERL_TUI_NOTIFY_URL": "https://chat.example/hook-1"})
    assert (
        mask.text("post to https://chat.example/hook-1 failed")
        == f"post to {HIDDEN} failed"
    )
