"""Addresses: from the environment or from a private file, and never shown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from verl_tui.given_files import UsageError
from verl_tui.notify.delivery import Destination, destination

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = "https://hooks.slack.com/services/T000/B000/X1Y2Z3-SECRET"

HOOK = "https://hooks.example.com/services/T000/B000/X1Y2Z3-SECRET"


def file(tmp_path: Path, text: str = f'url = "{ADDRESS}"\n', mode: int = 0o600) -> Path:
    path = tmp_path / "address.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("url", "preset", "for_apprise"),
    [
        (ADDRESS, "apprise", ADDRESS),
        ("https://open.feishu.cn/open-apis/bot/v2/hook/1", "apprise", "feishu://1"),
        ("https://open.larksuite.com/open-apis/bot/v2/hook/1", "apprise", "lark://1"),
        ("https://oapi.dingtalk.com/robot/send?access_token=1", "apprise", "dingtalk://1"),
        ("https://ntfy.sh/topic", "apprise", "https://ntfy.sh/topic"),
        ("HTTP://10.0.0.1:8080/hook", "json", "HTTP://10.0.0.1:8080/hook"),
        ("mailto://user:pass@example.com", "apprise", "mailto://user:pass@example.com"),
    ],
)  # fmt: skip
def test_an_address_shows_its_preset(url, preset, for_apprise):
    found = destination({"VERL_TUI_NOTIFY_URL": url})
    assert found is not None
    assert (found.preset, found.for_apprise) == (preset, for_apprise)


def test_a_token_that_apprise_would_not_use_is_refused():
    environment = {"VERL_TUI_NOTIFY_URL": ADDRESS, "VERL_TUI_NOTIFY_TOKEN": "S3CRET"}
    with pytest.raises(UsageError, match="within the address only") as caught:
        destination(environment)
    assert "S3CRET" not in str(caught.value)


def test_a_private_file_holds_the_address(tmp_path):
    text = f'url = "{HOOK}"\ntoken = "SECRET1"\n'
    for mode in (0o600, 0o400):
        path = file(tmp_path, text, mode)
        assert destination({}, path) == Destination(HOOK, str(path), "json", "SECRET1")
        found = destination(
            {"VERL_TUI_NOTIFY_FILE": str(path), "VERL_TUI_NOTIFY_TOKEN": "t"}
        )
        assert found == Destination(HOOK, str(path), "json", "t")
        path.unlink()


def test_it_is_never_shown(tmp_path):
    environment = {"VERL_TUI_NOTIFY_URL": HOOK, "VERL_TUI_NOTIFY_TOKEN": "SEC12345"}
    found = destination(environment)
    assert found is not None
    assert "SEC" not in repr(found)
    assert "example" not in repr(found)
    assert found.name == "the webhook from VERL_TUI_NOTIFY_URL"
    said = f"POST {HOOK} failed: hooks.example.com /services/T000/B000/X1Y2Z3-SECRET SEC12345"
    assert found.hide(said) == "POST … failed: … … …"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_may_read_is_refused(tmp_path, mode):
    path = file(tmp_path, mode=mode)
    with pytest.raises(UsageError) as caught:
        destination({}, path)
    assert str(caught.value) == (
        f"{path}: others may read or change it (mode {mode:04o}): chmod 600 {path}"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("url = https://X1Y2Z3-SECRET", "a file with an address has a line url"),
        ('webhook = "https://X1Y2Z3-SECRET"', "a file with an address has a line url"),
        ("url = 3", "a file with an address has a line url"),
        ('token = "x"', "a file with an address has a line url"),
        (f'url = "{HOOK}"\nsecret = "x"', "a file with an address has a line url"),
        ('url = "https://"', "has no host in it"),
        ('url = "https://me:X1Y2Z3-SECRET@host/"', "has a login in it"),
        ('url = "https://host:X1Y2Z3-SECRET/"', "is no address"),
        ('url = "hooks/X1Y2Z3-SECRET"', "is no address"),
        ('url = "https://host/a b"', "an address has only ASCII letters"),
    ],
)
def test_what_is_no_address_is_said_without_it(tmp_path, text, why):
    path = file(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        destination({}, path)
    assert str(caught.value).startswith(f"{path}: {why}")
    assert "X1Y2Z3" not in str(caught.value)


def test_what_is_no_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    wrong = {"pipe": "is no file", "": "is a directory"}
    wrong["nowhere"] = "no such file or directory"
    for name, why in wrong.items():
        with pytest.raises(UsageError) as caught:
            destination({}, tmp_path / name)
        assert str(caught.value) == f"{tmp_path / name}: {why}"
