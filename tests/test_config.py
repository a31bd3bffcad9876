"""The configuration: defaults, every type, and errors that say which file, which key and what is
expected.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import pytest
import tomli
from file_writing import write_file

from verl_tui.config import (
    Config,
    ConfigError,
    documented_defaults,
    load_config,
)
from verl_tui.health.guide_settings import load_guide

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Nobody's own configuration is read."""
    home = tmp_path / "home"
    monkeypatch.setattr("platformdirs.user_config_path", lambda name: home / name)
    return home


def written(tmp_path: Path, text: str) -> Path:
    return write_file(tmp_path / "my.toml", text)


def refusal(tmp_path: Path, text: str) -> str:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_defaults_without_a_file():
    assert load_config() == Config()


def test_every_field_can_be_set(tmp_path):
    text = (
        'charts = ["reward", "timing_s/gen"]\nresponse_limit = 2048\nrefresh = 1\ngpu_interval = 5.5\n'
        'theme = "nord"\nascii = false\nmouse = false\n[keys]\nquit = "ctrl+q"\n'
        '[guide]\nsilence = ["gpu-idle"]\n[guide.rules.kl-high]\nthreshold = 0.3\n'
    )
    config = load_config(written(tmp_path, text))
    assert config.charts == ("reward", "timing_s/gen")
    assert config.response_limit == 2048
    assert config.refresh == 1.0
    assert type(config.refresh) is float
    assert (config.gpu_interval, config.theme) == (5.5, "nord")
    assert (config.ascii, config.mouse) == (False, False)
    assert config.keys == {"quit": "ctrl+q"}
    guide = load_guide(config.guide)
    assert guide.response_limit == 2048
    assert guide.silenced == {"gpu-idle"}
    kl_high = guide.rule("kl-high")
    assert kl_high is not None
    assert kl_high.threshold == 0.3


def test_the_limit_of_responses_reaches_the_guide():
    assert load_guide(Config(response_limit=1024).guide).response_limit == 1024
    assert load_guide(Config().guide).response_limit is None
    changed = dataclasses.replace(Config(response_limit=1024), ascii=True)
    assert changed.guide == {"response_limit": 1024}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("refrsh = 1", "unknown key `refrsh`; did you mean refresh?"),
        ('refresh = "fast"', '`refresh` must be a number of seconds, at least 0.05, not "fast"'),
        ("refresh = 0", "`refresh` must be a number of seconds, at least 0.05, not 0"),
        ("refresh = nan", "`refresh` must be a number of seconds, at least 0.05, not nan"),
        ("refresh = true", "`refresh` must be a number of seconds, at least 0.05, not true"),
        ("response_limit = 1.5", "`response_limit` must be a whole number, at least 1, not 1.5"),
        ("response_limit = -3", "`response_limit` must be a whole number, at least 1, not -3"),
        ('charts = "reward"', '`charts` must be a list of texts, not "reward"'),
        ("charts = [1]", "`charts` must be a list of texts, not [1]"),
        ("mouse = 1", "`mouse` must be true or false, not 1"),
        ('ascii = "yes"', '`ascii` must be true or false, not "yes"'),
        ('desktop = "on"', '`desktop` must be one of off, osc9, osc777, not "on"'),
        ("desktop = true", "`desktop` must be one of off, osc9, osc777, not true"),
        ('desktop_from = "info"', '`desktop_from` must be one of warning, critical, not "info"'),
        ("theme = 3", "`theme` must be a text, not 3"),
        ("[keys]\nquit = 1", '`keys` must be a table of texts, not {"quit": 1}'),
        (
            '[targets]\nreward = 1\nvalidation = "x"',
            '`targets` must be a table of numbers, not {"reward": 1, "validation": "x"}',
        ),
        ("guide = 1", "`guide` must be a table, not 1"),
        ("[guide]\nresponse_limit = 3", "`response_limit` stands at the top of the file, not in [guide]"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_said_in_one_sentence(tmp_path, text, message):
    assert refusal(tmp_path, text) == message


def test_broken_toml_says_where(tmp_path):
    said = refusal(tmp_path, 'theme = "nord"\nmouse = maybe\n')
    assert re.match(r"is not valid TOML: .*line 2", said)


def test_a_named_file_must_exist(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match=r"nowhere\.toml: no such file or directory"):
        load_config(tmp_path / "nowhere.toml")
    monkeypatch.setenv("VERL_TUI_CONFIG", str(tmp_path / "elsewhere.toml"))
    with pytest.raises(ConfigError, match=r"elsewhere\.toml: no such file or"):
        load_config()


def test_a_directory_and_other_encodings_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="is a directory"):
        load_config(tmp_path)
    (tmp_path / "latin.toml").write_bytes('theme = "é"'.encode("latin-1"))
    with pytest.raises(ConfigError, match="is not valid TOML: 'utf-8' codec"):
        load_config(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("a = " + "[" * 100_000, "is not valid TOML: TOML inline arrays"),
        ("a = " + "1" * 5000, "is not valid TOML: .* integer"),
        ("a = 1 # " + "x" * 2**20, "is too long for a configuration"),
    ],
    ids=["deep", "digits", "long"],
)
def test_what_no_configuration_looks_like_is_refused(tmp_path, text, wrong):
    path = write_file(tmp_path / "config.toml", text)
    with pytest.raises(ConfigError, match=wrong):
        load_config(path)


def test_a_home_that_is_no_directory_holds_no_configuration(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("HOME", str(home))
    assert load_config() == Config()
    with pytest.raises(ConfigError, match="not a directory"):
        load_config(home / "config.toml")


def test_the_manual_describes_every_field_and_changes_nothing():
    text = documented_defaults()
    for item in dataclasses.fields(Config):
        name = item.name
        assert re.search(rf"^#(?:{name} = |\[{name}\]$)", text, re.MULTILINE), name
    assert tomli.loads(text) == {}
    assert text.count("\n\n") >= len(dataclasses.fields(Config)) - 1


def test_the_manual_is_a_working_configuration_once_uncommented(tmp_path):
    text = re.sub(r"^#(?! )", "", documented_defaults(), flags=re.MULTILINE)
    config = load_config(written(tmp_path, text))
    load_guide(config.guide)
    defaults = Config()
    examples = re.findall(r"For example:\n#\[?(\w+)", documented_defaults())
    for item in dataclasses.fields(Config):
        if item.name not in examples:
            assert getattr(config, item.name) == getattr(defaults, item.name)
