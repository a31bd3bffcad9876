"""The user's configuration: one TOML file, one dataclass whose field docstrings are its manual."""

from __future__ import annotations

import ast
import difflib
import inspect
import math
import os
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from verl_tui.given_files import UsageError, read_given

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from dataclasses import Field

ENVIRONMENT = "VERL_TUI_CONFIG"
"""Environment variable that names another configuration file."""


class ConfigError(UsageError):
    """The configuration cannot be used; its text is one sentence that names file, key and what is
    expected.
    """


def _option(default: Any, **about: Any) -> Any:
    """Return a field with what its annotation cannot say: its `example`, the `least` and what is
    `above` allowed.
    """
    if isinstance(default, dict):
        return field(default_factory=lambda: MappingProxyType(default), metadata=about)
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Config:
    """Everything a user can set, with its default. The docstrings are the manual: `verl-tui config`
    prints them.
    """

    charts: tuple[str, ...] = _option(
        (), example='["reward", "policy_kl", "timing_s/gen"]'
    )
    """Charts in the order of showing: indicators (`reward`, `policy_kl`) or the log's own metric
    keys. Empty: reward with validation, KL and loss, then entropy, response length, gradient norm,
    clip fraction and throughput, as far as the log has them.
    """
    response_limit: int | None = _option(None, example="1024", least=1)
    """Longest response in tokens, for logs that do not state it. Rules about response length are
    multiples of it; without it they assume 512 and say so.
    """
    refresh: float = _option(0.5, least=0.05)
    """Seconds between two repaints at least. Where nothing is new, nothing is painted."""
    gpu_interval: float = _option(2.0, least=0.2)
    """Seconds between two readings of this machine's GPUs."""
    poll_interval: float | None = _option(None, example="30", least=1.0)
    """Seconds between two questions to an address (`http://…`) or an engine. Not set: 5 for a
    `/metrics` page, and for a Prometheus server the shortest of its scrape intervals; more often
    than that it is never asked.
    """
    scrape_engines: bool = False
    """Ask the engines (vLLM, SGLang) that a run's console names for their figures, at
    `http://HOST:PORT/metrics`. verl has them with `rollout.disable_log_stats=false`. Off, nothing
    is asked that you do not name yourself.
    """
    workers: int | None = _option(None, example="2", least=0)
    """Processes that read large logs (above 32 MiB together), and that judge long runs for commands
    without a screen, behind other programs in priority. Not set: as many as there are cores to use,
    8 at most. 0: none.
    """
    theme: str = "textual-dark"
    """Colours, by the name of a theme; the command palette (ctrl+p) lists them. The one chosen
    there holds at the next starts, too, until this says something else. `colour-blind-dark` and
    `colour-blind-light` tell good, bad and curves apart for everybody. Terminals of sixteen
    colours, and NO_COLOR, begin with `sixteen-colours`.
    """
    ascii: bool | None = _option(None, example="true")
    """Draw with ASCII only. Not set: decided from the locale."""
    mouse: bool = True
    """Listen to the mouse. Without it the terminal's own text selection works."""
    bell: bool = False
    """Ring the terminal's bell when something is found while you watch, or a run
    finishes. What lay on disk before and what you have acknowledged ring nothing.
    """
    desktop: str = _option("off", choices=("off", "osc9", "osc777"))
    """Have the terminal show the same as a notification on the desktop: `osc9` (iTerm2,
    WezTerm, kitty, Windows Terminal), `osc777` (foot, Ghostty, urxvt), or `off`. Inside tmux this
    needs `set -g allow-passthrough on`.
    """
    desktop_from: str = _option("critical", choices=("warning", "critical"))
    """Least severity of a finding that rings the bell or shows a notification; the end of a run
    always does.
    """
    notify: Mapping[str, Any] = _option(
        {},
        example='severity = "warning"\nstates = ["finished", "crashed", "stalled"]\n'
        'repeat_after = 120\nper_hour = 20\nquiet = "22:00-07:30"\n\n'
        '[notify.runs."debug_*"]\nseverity = "none"\nstates = []',
    )
    """Messages to a chat, a phone or a program, which are sent once there is an address in the
    environment (VERL_TUI_NOTIFY_URL) or in a `file` that nobody else may read. `severity` is the
    least of a finding (`none`: no findings), `ids` names the only findings to report, `states` the
    states, `cleared = true` reports the end of findings, too. A finding that lasts is reported
    again after `repeat_after` minutes; not set: never. At most `per_hour` messages go out, and in
    `quiet` hours only critical ones (with `critical_passes = false` none); the others are summed up
    later. `commands` says which of `watch` and `guard` send, `guard` which of the guard's own
    events. `preset` is json or apprise, if the address does not show it. A table in `runs` holds
    other choices for the runs whose names fit its pattern.
    """
    targets: Mapping[str, float] = _option(
        {}, example='validation = 0.70\n"samples/acc" = 0.9'
    )
    """Values that metrics are to reach: indicators or the log's own keys. Charts draw a line there
    and say at which step it was reached, so does `verl-tui check`.
    """
    keys: Mapping[str, str] = _option({}, example='quit = "q,ctrl+q"\npause = "space"')
    """Other keys for actions: an action's name, as the help screen shows it, and its keys separated
    by commas.
    """
    guide: Mapping[str, Any] = _option(
        {},
        example='silence = ["gpu-idle"]\n\n'
        "[guide.rules.kl-high]\nthreshold = 0.15\n\n"
        '[guide.rules.my-length]\nseverity = "warning"\ncondition = "above"\n'
        'metric = "response_length/mean"\nthreshold = 4000\nwindow = 20',
    )
    """Changes to the rules that `verl-tui guide` lists: `silence` names rules not to be heard of,
    `rules` holds other values for a rule's fields, or rules of one's own.
    """

    def __post_init__(self) -> None:
        """Hand the limit of response length on to the guide, which judges by it."""
        if self.response_limit is not None and "response_limit" not in self.guide:
            limit = {"response_limit": self.response_limit}
            object.__setattr__(self, "guide", MappingProxyType({**self.guide, **limit}))


_LONGEST = 2**20
"""Bytes of a configuration: whoever names another file by mistake is not to wait for its end."""


def config_path(path: Path | None = None) -> Path:
    """Return the configuration file in force.

    Args:
        path: File named by the user; without it the environment variable's, else the one in the
            user's configuration directory.
    """
    if path is not None:
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
    named = path is not None or bool(os.environ.get(ENVIRONMENT))
    path = config_path(path)
    try:
        return _config(path, _parsed(path))
    except (FileNotFoundError, NotADirectoryError) as error:
        if not named:  # users of services may have no home, or /dev/null for one
            return Config()
        absent = isinstance(error, FileNotFoundError)
        reason = "no such configuration file" if absent else "not a directory"
        raise ConfigError(f"{path}: {reason}") from error
    except OSError as error:
        raise ConfigError(
            f"{path}: {(error.strerror or str(error)).lower()}"
        ) from error


def _parsed(path: Path) -> Mapping[str, Any]:
    """Return what a TOML file holds.

    Raises:
        OSError: The file cannot be read.
        ConfigError: It is no TOML.
    """
    content = read_given(path, _LONGEST + 1)
    if len(content) > _LONGEST:
        raise ConfigError(f"{path}: is too long for a configuration")
    try:
        found: dict[str, Any] = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: is not valid TOML: too deep") from error
    except ValueError as error:  # of a number that is too long, too
        raise ConfigError(f"{path}: is not valid TOML: {error}") from error
    return found


def documented_defaults() -> str:
    """Return all fields with their documentation as a TOML file in which every setting is commented
    out.
    """
    manual = _manual()
    tables = [item for item in fields(Config) if _default(item) == {}]
    plain = [item for item in fields(Config) if item not in tables]
    return "\n".join(_entry(item, manual[item.name]) for item in (*plain, *tables))


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


TRUTH = Setting("true or false", lambda value: isinstance(value, bool))
_SECONDS = Setting("a number of seconds", is_number, float)
_KINDS: Mapping[Any, Setting] = {
    tuple[str, ...]: Setting(
        "a list of texts",
        lambda value: isinstance(value, list) and all(map(_is_text, value)),
        tuple,
    ),
    int | None: Setting("a whole number", lambda value: type(value) is int),
    float: _SECONDS,
    float | None: _SECONDS,
    str: Setting("a text", _is_text),
    bool | None: TRUTH,
    bool: TRUTH,
    Mapping[str, float]: _table(" of numbers", is_number),
    Mapping[str, str]: _table(" of texts", _is_text),
    Mapping[str, Any]: _table(""),
}
"""Type of a field -> what its value must be. A new field of one of these types needs no code."""


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
            near = difflib.get_close_matches(key, known, 1)
            listed = f"known are {', '.join(known)}"
            hint = f"did you mean `{near[0]}`?" if near else listed
            raise ValueError(f"unknown key `{place}{key}`; {hint}")
        try:
            if not known[key].fits(value):
                raise ValueError(known[key].expected)
            values[key] = known[key].convert(value)
        except ValueError as error:
            sentence = f"`{place}{key}` must be {error}, not {_toml(value)}"
            raise ValueError(sentence) from None
    return values


def _config(path: Path, data: Mapping[str, Any]) -> Config:
    hints = get_type_hints(Config)
    known = {
        item.name: _required(item, _KINDS[hints[item.name]]) for item in fields(Config)
    }
    try:
        values = read_settings(data, known)
        if "response_limit" in values.get("guide", ()):
            raise ValueError(
                "`response_limit` stands at the top of the file, not in [guide]"
            )
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    return Config(**values)


def _required(item: Field[Any], kind: Setting) -> Setting:
    """Return what a field's value must be, its limits considered."""
    least = item.metadata.get("least")
    choices = item.metadata.get("choices")
    if choices is not None:
        return Setting(f"one of {', '.join(choices)}", lambda value: value in choices)
    if least is None:
        return kind
    words = f"{kind.expected}, at least {least}"
    return kind._replace(
        expected=words, fits=lambda value: kind.fits(value) and value >= least
    )


def _manual() -> dict[str, str]:
    """Return the docstring under each field of `Config`, on one line."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(Config))).body
    assert isinstance(definition, ast.ClassDef)
    manual = {}
    for item, below in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(item, ast.AnnAssign)
            and isinstance(item.target, ast.Name)
            and isinstance(below, ast.Expr)
        ):
            manual[item.target.id] = " ".join(ast.literal_eval(below.value).split())
    return manual


def _entry(item: Field[Any], text: str) -> str:
    """Return one field: prose behind `# `, settings behind a bare `#`, so that one keystroke puts
    them in force.
    """
    default = _default(item)
    example: str = item.metadata.get("example", "")
    lines = [f"# {line}" for line in textwrap.wrap(text, 98)]
    if default == {}:
        lines += ["# Default: empty. For example:", f"#[{item.name}]"]
        lines += [f"#{line}" if line else "" for line in example.split("\n")]
    elif default is None:
        lines += ["# Default: not set. For example:", f"#{item.name} = {example}"]
    else:
        lines += [f"# For example: {item.name} = {example}"] if example else []
        lines += [f"#{item.name} = {_toml(default)}"]
    return "\n".join(lines) + "\n"


def _default(item: Field[Any]) -> Any:
    if not callable(item.default_factory):
        return item.default
    return dict(item.default_factory())


def _toml(value: object) -> str:
    """Return a value as TOML writes it, for the manual and for messages."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, Mapping):
        pairs = (f"{key} = {_toml(one)}" for key, one in value.items())
        return f"{{{', '.join(pairs)}}}"
    return str(value)
