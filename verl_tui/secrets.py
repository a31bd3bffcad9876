"""Hides secrets: launch commands, configurations and errors hold API keys, tokens and passwords.

They are recognised by their names (`WANDB_API_KEY`, `hub_token`, `password`) and by the forms that
services give their keys. Names alone are not enough: `prompt_key` and `eos_token` are everyday
settings of a training. This is a heuristic: a key of an unknown form under an inconspicuous name
stays as it is.

On the screen of its owner a line loses no more than that. A text for others loses more (`Mask`):
all values under such names, the values of this environment's own keys, home directories, and the
names of users and hosts; and what is a secret in one of several texts is hidden in all of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from verl_tui.patterns import LONGEST_NAME, NamePattern, pattern
from verl_tui.text import one_line, safe
from verl_tui.toml_tables import toml_table

# -- what they look like, by `secret_forms.toml` --------------------------------------------------


_TABLE = toml_table(__file__, "secret_forms.toml")
_OPTIONS = [
    rf"(?<![\w.-]){name}\s(?:[^\n]{{0,300}}?\s)?(?:{option})"
    for name, options in _TABLE["programs"].items()
    for option in options
]
_PARTS: dict[str, str] = {
    "CHAT": "|".join(_TABLE["chats"].values()),
    "PROGRAM": "|".join(rf"{name}\s" for name in _TABLE["programs"]),
    "PASSWORD": "|".join(_OPTIONS),
}


def _filled(form: str) -> str:
    """Return a form with what its parts stand for, in one line."""
    return re.sub("<<(.*?)>>", lambda named: _PARTS[named[1]], form).replace("\n", "")


for _name, _form in _TABLE["parts"].items():
    _PARTS[_name] = _filled(_form)
_NAMES, _SAYS_NOTHING = _PARTS["NAMES"], _PARTS["SAYS_NOTHING"]
_ANY_NAME = pattern(_filled("<<ANY>>$"), re.IGNORECASE)
"""The end of a name under which a text for others shows nothing."""
_FORMS = pattern(rf"(?<![A-Za-z0-9])(?:{'|'.join(_TABLE['keys'].values())})")
"""Keys by their own form."""
_WEBHOOK = pattern(_filled("((?:<<CHAT>>))<<UP_TO_BLANK>>"))
_PLACES = [
    (
        pattern(_filled(one["sign"])),
        pattern(
            _filled(f"(?P<before>{one['before']})(?P<value>{one['value']})"),
            re.IGNORECASE | re.MULTILINE,
        ),
    )
    for one in _TABLE["places"]
]
"""What a line with a secret has, in small letters; and what stands before the secret, with it."""
_SIGNS = {"://", *(sign.pattern for sign, _ in _PLACES)}
_SUSPECT = pattern("|".join(sorted(_SIGNS)), re.MULTILINE)
"""What every line has, in small letters, that holds a secret known by its place, or an address."""
_NEXT = [
    (
        pattern(_filled(one["end"] + r"\s{0,3}$"), re.IGNORECASE),
        pattern(_filled(one["line"])),
    )
    for one in _TABLE["next"]
]
"""The end of a line whose value stands on the next one, and that line."""
_PUBLIC = frozenset(_TABLE["domains"]["public"].split())
"""Domains of services that everybody uses: their names say nothing of who writes."""


# -- on the screen of their owner ------------------------------------------------------------------


HIDDEN = "***"

_NAME = NamePattern(rf"(?:.*[._/-])?(?:\w*(?:{_NAMES})(?:_id)?|token)")
_RANDOM = pattern(r"(?=(?:\D*\d){3})(?=.*[A-Za-z])[\w-]{20,}")
_STATED = pattern(
    rf"((?:{_NAMES})(?:_id)?['\"]?(?:\s{{0,3}}[=:]\s{{0,3}}|[ ]['\"]?)['\"]?)"
    r"([^\s'\",;)\]}]{8,})",
    re.IGNORECASE,
)
_ENDS, _MAYBE = map(tuple, _TABLE["ends"].values())
"""How names end of what gives access, but for `_id`, and of what may hold a key."""
_MAY_STATE = pattern(_PARTS["VALUED"])
"""Found, in small letters, where a name may have a value behind it; most lines have none."""
_IN_ADDRESS = pattern(r"(://[^\s:/@]{1,100}:)[^\s/@]{1,200}(?=@)")
"""A password in an address: `postgres://user:password@host`."""


def hide_setting(name: str, value: object) -> object:
    """Return a setting's value, hidden where it gives access; switches, numbers and what is not set
    stay.
    """
    if not isinstance(value, str) or not value:
        return value
    end = name.lower()[-LONGEST_NAME:]  # which says what it is of
    if value.isascii() and (
        (end.removesuffix("_id").endswith(_ENDS) and _NAME.fullmatch(end))
        or (end.endswith(_MAYBE) and _RANDOM.fullmatch(value))
    ):
        return value if value.startswith(("${", "<")) else HIDDEN
    return hide(value)


def hide(text: str) -> str:
    """Return a line of text with keys, tokens and passwords hidden."""
    if _MAY_STATE.search(text.lower()):
        text = _STATED.sub(_hidden, text)
    text = _FORMS.sub(HIDDEN, text)
    return _WEBHOOK.sub(rf"\1{HIDDEN}", _IN_ADDRESS.sub(rf"\1{HIDDEN}", text))


def shown(text: str | None, longest: int = 500) -> str | None:
    """Return text from a log as one line of so many characters that is safe to send."""
    return text and one_line(hide(one_line(text, 2 * longest)), longest)


def _hidden(found: re.Match[str]) -> str:
    """Hide what follows a name, if it is no ordinary word (`invalid access token provided`) and no
    reference to an environment variable.
    """
    is_word = not (
        "=" in found[1] or ":" in found[1] or any(map(str.isdigit, found[2]))
    )
    return found[0] if is_word or found[2].startswith("${") else found[1] + HIDDEN


# -- in texts for others ---------------------------------------------------------------------------


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
_ADDRESS = pattern(
    r"(?P<before>\b(?:https?|wss?|ssh|s?ftp|git|grpcs?|tcp|udp|ray|rediss?|postgres\w{0,6}|mysql"
    r"|mongodb|amqps?|hdfs|nfs|smb|ldaps?|socks5h?|kafka|nats|etcd|zmq)(?:\+[a-z0-9]{1,10})?://"
    r"(?:[^\s/@'\"<>]{0,300}@)?"
    r"|\b(?:host(?:name)?(?:=|['\"]?:)|connect to host)\s?['\"]?(?=[\w-]{1,100}[.\d-])"
    r"|(?<![\w.+-])[\w.+-]{1,32}@(?=[\w.-]{1,250}:[~/]))(?P<host>[A-Za-z0-9][\w.-]{0,250})"
)
"""The host of an address, of an error of connection, or of a shell's prompt: `root@gpu-7:~#`."""
_DESCRIBED = pattern(r"\s*['\"]?desc['\"]?\s{0,3}:")
_NO_KEY = pattern(
    rf"[/~$<{{]|.*(?:://|\*\*\*)|[A-Z][A-Z_]*$|{_SAYS_NOTHING}$|-?[\d.]+e[+-]?\d+$"
)
_EVERYBODY = frozenset(
    {"root", "user", "users", "ubuntu", "admin", "runner", "shared", "public"}
)
_SHORTEST_NAME = 3
_SHORTEST_KEY = 6
_LONG_KEY, _LONG_PHRASE, _LONGEST_KEY = 12, 16, 400
_MOST_LEARNT = 1000
"""Secrets, users or hosts that are looked for everywhere: each takes its time in each text."""
_MOST_ITEMS = 100
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
                and name != "PWD"  # where the shell is
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
        self.keep_homes = False
        """Whether home directories stay, for a reader who needs the paths."""
        self._spared: frozenset[str] = frozenset()
        self._learnt: set[str] = set()
        """What was a secret in some text."""
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
        """Take note of a text's secrets, and of the users and hosts in its paths and addresses."""
        for found in _HOME.finditer(text):
            self._add(self._users, found[1] or found[2] or "")
        for found in _EVENT_HOST.finditer(text):
            self._add(self._hosts, found[2])
        for found in _ADDRESS.finditer(text):
            if _is_private(found["host"]):
                self._add(self._hosts, found["host"])
        # lines of texts that stand in JSON end so
        _without_secrets(safe(text).replace("\\n", "\n"), self._note)

    def text(self, text: str) -> str:
        """Return a text without escape sequences, secrets, homes and names; lines stay lines."""
        text = _PRIVATE_KEY.sub(HIDDEN, safe(text))
        for key in self._keys:
            text = text.replace(key, HIDDEN)
        if self._learnt:
            text = _any_of(self._learnt).sub(HIDDEN, text)
        text = _FORMS.sub(HIDDEN, _without_secrets(text, len))
        if not self.keep_homes:
            text = self._home.sub("~", text) if self._home else text
            text = _HOME.sub("~", text)
        if self._keep_names:
            return text
        return self._without_names(text)

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Return as many lines, masked as one text: what a secret is may stand in another line."""
        text = _PRIVATE_KEY.sub(
            lambda key: re.sub(r"[^\n]+", HIDDEN, key[0]), safe("\n".join(lines))
        )
        self.learn(text)
        return self.text(text).split("\n")[: len(lines)]  # of none there is one still

    def data(self, value: Any, name: str = "") -> Any:
        """Return data for JSON with all of its texts masked, those under the name of a secret as a
        whole.

        Args:
            value: Mappings, lists, texts, numbers.
            name: What it is called.
        """
        if isinstance(value, dict):
            return {
                self.text(str(key)): self.data(
                    one, name if key == "value" else str(key)
                )
                for key, one in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.data(one, name) for one in value]
        if name and _is_hidden(name, value):
            return HIDDEN
        if not isinstance(value, str):
            return value
        return self.text(value)

    def _note(self, value: str) -> None:
        """Take note of a secret, where it is not an everyday word."""
        plain = value.strip("\\'\"[] ")
        for one in (plain, plain.partition(":")[2]):
            if (
                len(self._learnt) < _MOST_LEARNT
                and _is_telling(one)
                and one.lower() not in self._spared
            ):
                self._learnt.add(one)

    def _add(self, known: set[str], name: str) -> None:
        if (
            len(known) < _MOST_LEARNT
            and len(name) >= _SHORTEST_NAME
            and name.lower() not in _EVERYBODY
            and not name.isdigit()
        ):
            known.add(name)

    def _without_names(self, text: str) -> str:
        text = _MAIL.sub("EMAIL", text)
        text = _EVENT_HOST.sub(r"\1HOST", text)
        text = _ADDRESS.sub(_without_host, text)
        for known, sign in ((self._hosts, "HOST"), (self._users, "USER")):
            names = {name for name in known if name.lower() not in self._spared}
            if names:
                text = _any_of(names).sub(sign, text)
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


def _without_secrets(text: str, note: Callable[[str], object]) -> str:
    """Return a text without what its place makes a secret; note each secret."""
    if not _SUSPECT.search(text.lower()):
        return text
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if _SUSPECT.search(line.lower()):
            lines[at] = _strictly_hidden(line, note)
            for end, value in _NEXT:
                opened = end.search(line[-LONGEST_NAME:])
                if opened:
                    _hide_next(lines, at + 1, value, note, opened[0].rstrip()[-1])
                    break
    return "\n".join(lines)


def _strictly_hidden(line: str, note: Callable[[str], object]) -> str:
    def hidden(found: re.Match[str]) -> str:
        note(found["value"])
        return found["before"] + HIDDEN

    def without_user(word: re.Match[str]) -> str:
        before, sign, host = word[0].rpartition("@")
        for user in _USER_INFO.findall(before + sign):
            note(user.removesuffix("@"))
        return _USER_INFO.sub(f"{HIDDEN}@", before + sign) + host

    if "://" in line and "@" in line:
        line = _WORD.sub(without_user, line)
    small = line.lower()
    for sign, place in _PLACES:
        if sign.search(small):
            line = place.sub(hidden, line)
    return line


def _hide_next(
    lines: list[str],
    at: int,
    form: re.Pattern[str],
    note: Callable[[str], object],
    opened: str,
) -> None:
    """Hide the value of a name at the end of the line before, or the values of a list; W&B's files
    describe it first.
    """
    for number in range(at, min(at + _MOST_ITEMS, len(lines))):
        line = lines[number]
        found = form.match(line)
        if found:
            note(found["value"])
            lines[number] = found["before"] + HIDDEN + line[found.end() :]
            if opened != "[" and not (opened == ":" and found["before"].endswith("- ")):
                return
        elif not _DESCRIBED.match(line):
            return


def _is_telling(value: str) -> bool:
    """Return whether a secret is no word, number, path or name that stands elsewhere, too."""
    if not _SHORTEST_KEY <= len(value) <= _LONGEST_KEY or _NO_KEY.match(value):
        return False
    digits = any(map(str.isdigit, value))
    letters = any(map(str.isalpha, value))
    mixed = value.lower() != value != value.upper()
    return letters and (
        digits
        or (mixed and len(value) >= _LONG_KEY)
        or (len(value) >= _LONG_PHRASE and "/" not in value)
    )


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    longest = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{longest})(?![A-Za-z0-9])")


def _without_host(address: re.Match[str]) -> str:
    if _is_private(address["host"]):
        return address["before"] + "HOST"
    return address[0]


def _is_private(host: str) -> bool:
    """Return whether a host is a machine, or of a domain, that says who writes."""
    name = host.rstrip(".").lower()
    top = name.rpartition(".")[2]
    if name.startswith("localhost") or top.isdecimal():
        return False
    if top == name:
        return "-" in name or any(map(str.isdigit, name))
    return not any(name == known or name.endswith(f".{known}") for known in _PUBLIC)


def _is_hidden(name: str, value: object) -> bool:
    """Return whether a value is a secret, judged by its name."""
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value):
        return False
    if re.fullmatch(_SAYS_NOTHING, str(value)):
        return False
    end = name[-LONGEST_NAME:]
    if _NAME.fullmatch(end) or _ANY_NAME.search(end):
        return True
    return hide_setting(name, str(value)) == HIDDEN
