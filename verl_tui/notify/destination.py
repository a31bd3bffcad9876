"""Where messages go: an address and its secrets, which are never shown.

They come from the environment, or from a file that nobody else may read.
"""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping
    from urllib.parse import SplitResult

URL = "VERL_TUI_NOTIFY_URL"
SECRET = "VERL_TUI_NOTIFY_SECRET"  # noqa: S105 - a variable's name
TOKEN = "VERL_TUI_NOTIFY_TOKEN"  # noqa: S105 - as above
FILE = "VERL_TUI_NOTIFY_FILE"
"""Environment variables: the address, the secret of Feishu's or DingTalk's signature, an access
token of ntfy or of any webhook, or a file that holds these three.
"""
_HOSTS = {
    "hooks.slack.com": "slack",
    "hooks.slack-gov.com": "slack",
    "open.feishu.cn": "feishu",
    "open.larksuite.com": "feishu",
    "oapi.dingtalk.com": "dingtalk",
    "api.dingtalk.io": "dingtalk",
    "ntfy.sh": "ntfy",
}
"""Host of an address -> the preset that it speaks."""
_LARGEST = 64 * 1024
"""Bytes of a file with an address."""
_SHORTEST = 4
"""Characters of a part of an address that are hidden where they appear in a sentence."""


class DestinationError(Exception):
    """There is no usable address; the text is one sentence, without the address."""


@dataclass(frozen=True, slots=True)
class Destination:
    """An address, with what gives access. Its `repr` shows nothing of either."""

    url: str = field(repr=False)
    where: str
    """Where the address was found: a variable's name, or a file's path."""
    preset: str
    secret: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """Name for people, without the address."""
        kind = "address" if self.preset == "apprise" else "webhook"
        return f"the {kind} from {self.where}"

    @property
    def parts(self) -> SplitResult:
        """The parts of the address."""
        return urlsplit(self.url)

    def hide(self, text: str) -> str:
        """Return a sentence without any part of the address or what gives access."""
        found = self.parts
        parts = [self.url, self.secret, self.token, found.netloc, found.hostname or ""]
        parts += [
            found.path,
            found.query,
            *found.path.split("/"),
            *found.query.split("&"),
        ]
        parts += [one.partition("=")[2] for one in found.query.split("&")]
        for part in sorted(parts, key=len, reverse=True):
            text = text.replace(part, "…") if len(part) >= _SHORTEST else text
        return text


def destination(
    environment: Mapping[str, str], file: Path | None = None, preset: str | None = None
) -> Destination | None:
    """Return the destination of messages, None if the user has named no address.

    Args:
        environment: Environment variables.
        file: File with the address, unless the environment names an address or another file.
        preset: Form of the messages, by default that of the address.

    Raises:
        DestinationError: The address or the file is not usable.
    """
    found = {name: environment.get(name, "").strip() for name in (URL, SECRET, TOKEN)}
    where = URL
    if not found[URL]:
        named = environment.get(FILE, "").strip()
        path = Path(named).expanduser() if named else file
        if path is None:
            return None
        found = read_private(path) | {k: v for k, v in found.items() if v}
        where = str(path)
    _check(found[URL], where, preset)
    scheme = urlsplit(found[URL]).scheme.lower()
    host = urlsplit(found[URL]).hostname or ""
    usual = _HOSTS.get(host, "json") if scheme in ("http", "https") else "apprise"
    return Destination(found[URL], where, preset or usual, found[SECRET], found[TOKEN])


def read_private(path: Path) -> dict[str, str]:
    """Return what a file with an address holds, by the names of the environment variables.

    Raises:
        DestinationError: It cannot be read, others may read it, or it has something else in it.
    """
    try:
        # A named pipe would have us wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:  # noqa: PTH123 - it was opened already
            _check_private(path, os.fstat(descriptor))
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise DestinationError(
            f"{path}: {(error.strerror or str(error)).lower()}"
        ) from None
    try:
        data = tomllib.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):  # no text, no TOML, or too deep
        # The parser's own words could quote the address.
        raise DestinationError(
            f'{path}: is not valid TOML; a file with an address has a line url = "…", and may have '
            "lines for secret and token"
        ) from None
    return _entries(path, data)


def _entries(path: Path, data: Mapping[str, Any]) -> dict[str, str]:
    names = {"url": URL, "secret": SECRET, "token": TOKEN}
    for key, value in data.items():
        if key not in names or not isinstance(value, str):
            raise DestinationError(
                f"{path}: only url, secret and token stand in it, each a text"
            )
    if not data.get("url"):
        raise DestinationError(f"{path}: has no url")
    return {variable: data.get(key, "").strip() for key, variable in names.items()}


def _check_private(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise DestinationError(f"{path}: is no file")
    if status.st_uid not in (os.geteuid(), 0):
        raise DestinationError(
            f"{path}: belongs to somebody else, who could change the address"
        )
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise DestinationError(
            f"{path}: others may read or change it (mode {mode:04o}): chmod 600 {path}"
        )
    if status.st_size > _LARGEST:
        raise DestinationError(f"{path}: is too large for a file with an address")


def _check(url: str, where: str, preset: str | None) -> None:
    """Refuse what is no address, without showing it."""
    if not url.isprintable() or not url.isascii() or " " in url:
        raise DestinationError(
            f"{where}: an address has only ASCII letters, and no spaces"
        )
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise DestinationError(f"{where}: is no address") from None
    if not parts.scheme:
        raise DestinationError(f"{where}: is no address: it begins with https://, say")
    if preset == "apprise":
        return
    if parts.scheme.lower() in ("http", "https"):
        _check_webhook(parts, where)
    elif preset is not None:
        raise DestinationError(
            f"{where}: preset {preset} needs an address with https://"
        )


def _check_webhook(parts: SplitResult, where: str) -> None:
    if not parts.hostname:
        raise DestinationError(f"{where}: has no host in it")
    if "@" in parts.netloc:
        raise DestinationError(
            f"{where}: has a login in it; put a token into {TOKEN} instead"
        )
