"""The user's configuration: one TOML file, one dataclass, and its manual, `config.toml`."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import tomli

from verl_tui.given_files import UsageError, read_given, why
from verl_tui.words import nearest

ENVIRONMENT = "VERL_TUI_CONFIG"
"""Environment variable that names another configuration file."""


class ConfigError(UsageError):
    """The configuration cannot be used; its text is one sentence that names file, key and what is
    expected.
    """


@dataclass(frozen=True)
class Config:
    """Everything a user can set, with its default. What each means, `config.toml` says, which
    `verl-tui config` prints.
    """

    charts: tuple[str, ...] = ()
    response_limit: int | None = None
    refresh: float = 0.5
    gpu_interval: float = 2.0
    poll_interval: float | None = None
    theme: str = "textual-dark"
    ascii: bool | None = None
    mouse: bool = True
    bell: bool = False
    desktop: str = "off"
    desktop_from: str = "critical"
    notify: Mapping[str, Any] = field(default_factory=dict)
    targets: Mapping[str, float] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    guide: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Hand the limit of response length on to the guide, which judges by it."""
        if self.response_limit is not None and "response_limit" not in self.guide:
            limit = {"response_limit": self.response_limit}
            object.__setattr__(self, "guide", MappingProxyType({**self.guide, **limit}))


_LONGEST = 2**20
"""Bytes of a configuration: nobody who names another file by mistake waits for its end."""


def config_path(path: Path | None = None) -> Path:
    """Return the configuration file in force.

    Args:
        path: File named by the user; without it the environment variable's, else the one in the
            user's configuration directory.
    """
    if path:
        return path
    named = os.environ.get(ENVIRONMENT)
    if named:
        return Path(named).expanduser()
    from platformdirs import user_config_path

    return user_config_path("verl-tui") / "config.toml"


def load_config(path: Path | None = None) -> Config:
    """Return the configuration; the defaults where no file was named and the usual one does not
    exist.

    Args:
        path: File named by the user, see `config_path`.

    Raises:
        ConfigError: The file cannot be read, is no TOML, or has an unknown key or a value of the
            wrong type.
    """
    named = path is not None or os.environ.get(ENVIRONMENT)
    path = config_path(path)
    try:
        content = read_given(path, _LONGEST + 1)
    except OSError as error:
        # users of services may have no home, or /dev/null for one
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not named:
            return Config()
        raise ConfigError(f"{path}: {why(error)}") from error
    if len(content) > _LONGEST:
        raise ConfigError(f"{path}: is too long for a configuration")
    try:
        table = tomli.loads(content.decode("utf-8-sig"))
    except (
        ValueError,
        RecursionError,
    ) as error:  # no text, too long a number, too deep
        raise ConfigError(f"{path}: is not valid TOML: {error}") from error
    try:
        return Config(**_values(table))
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None


def documented_defaults() -> str:
    """Return all fields with their documentation as a TOML file in which every setting is commented
    out: prose behind `# `, settings behind a bare `#`, so that one keystroke puts them in force.
    """
    return Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")


class Setting(NamedTuple):
    """The requirement that a TOML value must meet."""

    expected: str
    """In words, as they stand behind `must be`."""
    fits: Callable[[Any], bool]
    convert: Callable[[Any], Any] = lambda value: value
    """May raise ValueError, with other words."""


def is_number(value: object) -> bool:
    """Return whether a value is a number, and finite; true and false are none."""
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _table(words: str, kind: Callable[[object], bool] = lambda _: True) -> Setting:
    """Return a table whose values are all of one kind."""
    return Setting(
        f"a table{words}",
        lambda value: isinstance(value, dict) and all(map(kind, value.values())),
        MappingProxyType,
    )


def one_of(*choices: str) -> Setting:
    """Return one of these texts."""
    return Setting(f"one of {', '.join(choices)}", lambda value: value in choices)


def texts(*among: str) -> Setting:
    """Return a list of texts, of these if any are named."""

    def fits(value: object) -> bool:
        known = isinstance(value, list) and all(map(_is_text, value))
        return known and (not among or set(among).issuperset(value))  # type: ignore[arg-type]

    return Setting(f"a list of {', '.join(among) or 'texts'}", fits, frozenset)


def whole(least: int) -> Setting:
    """Return a whole number from one on."""
    return Setting(
        f"a whole number, at least {least}",
        lambda value: type(value) is int and value >= least,
    )


def _seconds(least: float) -> Setting:
    return Setting(
        f"a number of seconds, at least {least}",
        lambda value: is_number(value) and value >= least,
        float,
    )


TRUTH = Setting("true or false", lambda value: isinstance(value, bool))
_SETTINGS: Mapping[str, Setting] = {
    "charts": texts()._replace(convert=tuple),
    "response_limit": whole(1),
    "refresh": _seconds(0.05),
    "gpu_interval": _seconds(0.2),
    "poll_interval": _seconds(1.0),
    "theme": Setting("a text", _is_text),
    "ascii": TRUTH,
    "mouse": TRUTH,
    "bell": TRUTH,
    "desktop": one_of("off", "osc9", "osc777"),
    "desktop_from": one_of("warning", "critical"),
    "notify": _table(""),
    "targets": _table(" of numbers", is_number),
    "keys": _table(" of texts", _is_text),
    "guide": _table(""),
}
"""What the value of each field must be."""


def read_settings(
    table: Mapping[str, Any], known: Mapping[str, Setting], place: str = ""
) -> dict[str, Any]:
    """Return the values of a table.

    Args:
        table: As the file has it.
        known: The keys that it may have, with what their values must be.
        place: What stands before a key where it is named, such as `notify.`.

    Raises:
        ValueError: An unknown key or a value of the wrong kind; one sentence for people.
    """
    values = {}
    for key, value in table.items():
        if key not in known:
            hint = nearest(key, known, 1) or f"known are {', '.join(known)}"
            raise ValueError(f"unknown key `{place}{key}`; {hint}")
        try:
            if not known[key].fits(value):
                raise ValueError(known[key].expected)
            values[key] = known[key].convert(value)
        except ValueError as error:
            found = json.dumps(value, ensure_ascii=False, default=str)  # much as TOML
            found = found.replace("NaN", "nan")
            raise ValueError(f"`{place}{key}` must be {error}, not {found}") from None
    return values


def _values(table: Mapping[str, Any]) -> dict[str, Any]:
    values = read_settings(table, _SETTINGS)
    if "response_limit" in values.get("guide", ()):
        raise ValueError(
            "`response_limit` stands at the top of the file, not in [guide]"
        )
    return values
