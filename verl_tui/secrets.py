"""Hides secrets: launch commands, configurations and errors hold API keys, tokens and passwords.

They are recognised by their names (`WANDB_API_KEY`, `hub_token`, `password`) and by the forms that
services give their keys. Names alone are not enough: `prompt_key` and `eos_token` are everyday
settings of a training. This is a heuristic: a key of an unknown form under an inconspicuous name
stays as it is.

On the screen of its owner a line loses no more than that. A text for others loses more (`Mask`):
all values under such names, the values of this environment's own keys, home directories, and the
names of users and hosts.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import LONGEST_NAME, NamePattern, pattern
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HIDDEN = "***"

_NAMES = (
    r"(?:api|access|secret|private|auth|account|wandb|swanlab|comet|license)[_-]?key"
    r"|(?:api|hub|hf|hugging[_-]?face|auth|access|wandb|swanlab|github|gitlab|bearer|session"
    r"|refresh|bot|login)[_-]?token"
    r"|secret|password|passwd|passphrase|credentials?|(?:web[_-]?hook|notify)[_-]?url"
)
_NAME = NamePattern(rf"(?:.*[._/-])?(?:\w*(?:{_NAMES})(?:_id)?|token)", re.IGNORECASE)
_MAYBE = NamePattern(r".*(?:key|token|wandb|swanlab|comet|login)", re.IGNORECASE)
"""Names of settings that may hold a key, if what they hold looks like one."""
_RANDOM = pattern(r"(?=(?:\D*\d){3})(?=.*[A-Za-z])[\w-]{20,}")
_STATED = pattern(
    rf"((?:{_NAMES})(?:_id)?['\"]?(?:\s{{0,3}}[=:]\s{{0,3}}|[ ]['\"]?)['\"]?)"
    r"([^\s'\",;)\]}]{8,})",
    re.IGNORECASE,
)
_FORMS = pattern(
    r"\b(?:hf_[A-Za-z0-9]{20,}|sk-[\w-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}"
    r"|glpat-[\w-]{16,}"
    r"|A[KS]IA[0-9A-Z]{16}|xox[abeprs]-[\w-]{10,}|wandb_v\d_\w{20,}|nvapi-[\w-]{20,}|AIza[\w-]{35}"
    r"|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{40,}|gsk_\w{20,}|LTAI[A-Za-z0-9]{12,}"
    r"|eyJ[\w-]{10,1000}\.[\w-]{10,}\.[\w-]*)"
)
"""Keys of Hugging Face, OpenAI and those after it, GitHub, GitLab, AWS, Slack, W&B, NVIDIA, Google,
npm, PyPI, Groq and Alibaba; JSON web tokens.
"""
_WEBHOOK = pattern(
    r"((?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks|ntfy\.sh"
    r"|/open-apis/bot/v2/hook|webhook\.office\.com)/)[^\s'\"<>]+"
)
"""Addresses that let anybody write to a chat."""
_IN_ADDRESS = pattern(r"(://[^\s:/@]{1,100}:)[^\s/@]{1,200}(?=@)")
"""A password in an address: `postgres://user:password@host`."""


def hide_setting(name: str, value: object) -> object:
    """Return a setting's value, hidden where it gives access; switches, numbers and what is not set
    stay.
    """
    if not isinstance(value, str) or not value:
        return value
    end = name[-LONGEST_NAME:]  # which says what it is of
    if value.isascii() and (
        _NAME.fullmatch(end) or (_MAYBE.fullmatch(end) and _RANDOM.fullmatch(value))
    ):
        if value.startswith(("${", "<")):
            return value
        return HIDDEN
    return hide(value)


def hide(text: str) -> str:
    """Return a line of text with keys, tokens and passwords hidden."""
    text = _FORMS.sub(HIDDEN, _STATED.sub(_hidden, text))
    return _WEBHOOK.sub(rf"\1{HIDDEN}", _IN_ADDRESS.sub(rf"\1{HIDDEN}", text))


def _hidden(found: re.Match[str]) -> str:
    """Hide what stands behind a name, if it is no ordinary word (`invalid access token provided`)
    and no reference to an environment variable.
    """
    if found[2].startswith("${"):
        return found[0]
    named = "=" in found[1] or ":" in found[1] or any(map(str.isdigit, found[2]))
    if named:
        return found[1] + HIDDEN
    return found[0]


_SAYS_NOTHING = (
    r"(?:None|null|nil|True|False|true|false"
    r"|-?\d{1,6}(?:\.\d+)?|<[\w |-]+>|\$\{?[\w.:]+\}?)"
)
"""Values that are no secrets under any name: switches, counts, references."""
_ANY_NAME = (
    rf"(?:{_NAMES})(?:_id)?|(?<![A-Za-z0-9_])(?:token|pwd|sig|signature|x-amz-\w+)"
)
_ASSIGNED = pattern(
    rf"((?:{_ANY_NAME})\\?['\"]?\s{{0,3}}[=:]\s{{0,3}})"
    rf"(?!\\?['\"]?{_SAYS_NOTHING}(?:[\s'\"\\,;)\]}}&]|$))"
    r"(?:\"[^\"\n]*(?:\"|$)|'[^'\n]*(?:'|$)|[^\s'\",;)\]}&]+)",
    re.IGNORECASE | re.MULTILINE,
)
_OPTION = pattern(
    rf"((?<![\w.-])--?[\w.-]{{0,60}}?(?:{_NAMES}|token)(?:_id)?['\"]?,?[ ]+)(?!['\"]?-)"
    r"(?:\"[^\"\n]*(?:\"|$)|'[^'\n]*(?:'|$)|[^\s'\",;]+)",
    re.IGNORECASE | re.MULTILINE,
)
"""A word of a command line and the one behind it, also where the words stand as a list."""
_SUSPECT = pattern(
    r"key|token|secret|pass(?:w|p)|credential|pwd|sig|x-amz|auth|bearer|login|://|hook|ntfy",
    re.IGNORECASE,
)
"""Every line with a secret that is recognised by its name, or is part of an address, has one of
these.
"""
_HEADER = pattern(
    r"(\bauthorization\b['\"]?\s{0,3}[:=]\s{0,3}['\"]?(?:\w+ )?|\bbearer )[^\s'\",;]+",
    re.IGNORECASE,
)
_LOGIN = pattern(r"(\blogin (?:-\S{1,100} ){0,10})[\w-]{20,}")
_WORD = pattern(r"[^\s'\"<>]+")
_USER_INFO = pattern(r"(?<=://)(?!\d+/)(?:[^/@:]*:(?!\d+/).*|[^/@:]+@)")
"""A user, or a user and a password whatever is in it, at the beginning of what stands before the
host of an address; with the `@` behind it.
"""
_PRIVATE_KEY = pattern(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?:^[A-Za-z0-9+/=]{16,}\n){1,120}-----END [A-Z ]*PRIVATE KEY-----",
    re.DOTALL | re.MULTILINE,
)
_SLASH = r"(?:\\?/|%2[Ff])"
_OWNER = r"[^/\s'\"`:,;()\[\]{}<>|%\\]+"
_HOME = pattern(
    rf"(?:{_SLASH}[\w.@+-]+){{0,6}}?{_SLASH}(?:home|homes|users|Users){_SLASH}({_OWNER})"
    rf"|[A-Za-z]:(?:\\{{1,2}}|/)Users(?:\\{{1,2}}|/)((?:[^\\/\n'\"<>|:]{{1,64}}(?=\\))|{_OWNER})"
    r"|(?<![\w/.~-])/root(?![\w.-])"
)
"""Home directories of Linux, macOS, Windows and of file systems that clusters share."""
_EVENT_HOST = pattern(r"(\.tfevents\.\d+\.)([A-Za-z0-9][\w-]*)")
_MAIL = pattern(r"[\w.+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}")
_IP = pattern(
    r"(?<![\w.=-])(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2,3}(?![\w.])"
    r"|(?<=ip=)\d{1,3}(?:\.\d{1,3}){3}|(?<=[/@])\d{1,3}(?:\.\d{1,3}){3}(?=:\d)"
)
"""Addresses of machines; `12.1.3.1` is also the version of a library, so others stay."""
_EVERYBODY = frozenset(
    {"root", "user", "users", "ubuntu", "admin", "runner", "shared", "public"}
)
_SHORTEST_NAME = 3
_SHORTEST_KEY = 6
_OWN = ("VERL_TUI_NOTIFY_", "VERL_TUI_LOGIN")
"""Variables of verl-tui itself that hold an address, or a login, for nobody else."""


class Mask:
    """Hides secrets in texts meant for others, and who made them where.

    Names of users are learnt from the home directories that the texts name, so that `learn` sees
    all of them before the first is masked.
    """

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        *,
        user: str = "",
        host: str = "",
        keep_names: bool = False,
    ) -> None:
        """Know this machine.

        Args:
            environment: Its variables; the values of those that are named like keys are hidden
                wherever they stand.
            user: Who is logged in, empty where unknown.
            host: Name of this machine, with its domain or without.
            keep_names: Whether names of users and hosts, mail and IP addresses stay. Homes do not.
        """
        self._keys = sorted(
            {
                value.strip()
                for name, value in environment.items()
                if len(value.strip()) >= _SHORTEST_KEY
                and (name.startswith(_OWN) or _is_hidden(name, value.strip()))
            },
            key=len,
            reverse=True,
        )
        home = environment.get("HOME", "").rstrip("/")
        self._home = (
            re.compile(rf"{re.escape(home)}(?![\w.-])") if home.count("/") > 1 else None
        )
        self._keep_names = keep_names
        self._spared: frozenset[str] = frozenset()
        self._users: set[str] = set()
        self._hosts: set[str] = set()
        self._add(self._users, user)
        for name in (host, host.partition(".")[0]):
            self._add(self._hosts, name)

    def spare(self, words: Iterable[str]) -> None:
        """Name words that are no names of people, such as parts of metrics: `verl` has a home on
        some machines.
        """
        self._spared |= {word.lower() for word in words}

    def learn(self, text: str) -> None:
        """Take note of the names of users and hosts that a text's paths hold."""
        for found in _HOME.finditer(text):
            self._add(self._users, found[1] or found[2] or "")
        for found in _EVENT_HOST.finditer(text):
            self._add(self._hosts, found[2])

    def text(self, text: str) -> str:
        """Return a text without escape sequences, secrets, homes and names; lines stay lines."""
        text = _PRIVATE_KEY.sub(HIDDEN, safe(text))
        for key in self._keys:
            text = text.replace(key, HIDDEN)
        if _SUSPECT.search(text):
            lines = text.split("\n")
            for at, line in enumerate(lines):
                if _SUSPECT.search(line):
                    lines[at] = _strictly_hidden(line)
            text = "\n".join(lines)
        text = _FORMS.sub(HIDDEN, text)
        if self._home is not None:
            text = self._home.sub("~", text)
        text = _HOME.sub("~", text)
        if self._keep_names:
            return text
        return self._without_names(text)

    def data(self, value: Any, name: str = "") -> Any:
        """Return data for JSON with all of its texts masked, those under the name of a secret as a
        whole.

        Args:
            value: Mappings, lists, texts, numbers.
            name: What it is called.
        """
        if isinstance(value, dict):
            return {
                self.text(str(key)): self.data(one, str(key))
                for key, one in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.data(one, name) for one in value]
        if name and _is_hidden(name, value):
            return HIDDEN
        if not isinstance(value, str):
            return value
        return self.text(value)

    def _add(self, known: set[str], name: str) -> None:
        if (
            len(name) >= _SHORTEST_NAME
            and name.lower() not in _EVERYBODY
            and not name.isdigit()
        ):
            known.add(name)

    def _without_names(self, text: str) -> str:
        text = _MAIL.sub("EMAIL", text)
        text = _EVENT_HOST.sub(r"\1HOST", text)
        for known, sign in ((self._hosts, "HOST"), (self._users, "USER")):
            names = {name for name in known if name.lower() not in self._spared}
            if names:
                any_of = "|".join(
                    re.escape(one) for one in sorted(names, key=len, reverse=True)
                )
                text = re.sub(
                    rf"(?<![A-Za-z0-9])(?:{any_of})(?![A-Za-z0-9])", sign, text
                )
        return _IP.sub("IP", text)


def own_mask(*, keep_names: bool = False) -> Mask:
    """Return what hides this environment's secrets, its user and its host."""
    import getpass
    import platform

    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        # no name for this number, as in some containers
        user = ""
    return Mask(user=user, host=platform.node(), keep_names=keep_names)


def _strictly_hidden(line: str) -> str:
    """Return a line without the values under names of secrets and in addresses."""
    if "://" in line and "@" in line:
        line = _WORD.sub(_without_user, line)
    line = _HEADER.sub(rf"\1{HIDDEN}", line)
    line = _ASSIGNED.sub(rf"\1{HIDDEN}", line)
    line = _OPTION.sub(rf"\1{HIDDEN}", line)
    return _LOGIN.sub(rf"\1{HIDDEN}", hide(line))


def _without_user(word: re.Match[str]) -> str:
    """Return a word without the users and passwords before the hosts of addresses."""
    before, sign, host = word[0].rpartition("@")
    return _USER_INFO.sub(f"{HIDDEN}@", before + sign) + host


def _is_hidden(name: str, value: object) -> bool:
    """Return whether a value is a secret, judged by its name."""
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value):
        return False
    if re.fullmatch(_SAYS_NOTHING, str(value)):
        return False
    return hide_setting(name, str(value)) == HIDDEN or bool(
        _NAME.fullmatch(name[-LONGEST_NAME:])
    )
