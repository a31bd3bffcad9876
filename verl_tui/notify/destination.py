"""Where messages go: an address and its secrets, which are never shown.

They come from the environment, or from a file that nobody else may read.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from verl_tui.given_files import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from urllib.parse import SplitResult

URL = "VERL_TUI_NOTIFY_URL"
TOKEN = "VERL_TUI_NOTIFY_TOKEN"  # noqa: S105 - a variable's name
FILE = "VERL_TUI_NOTIFY_FILE"
"""Environment variables: the address, the access token of a webhook, or a file that holds both."""
PRESETS = ("json", "apprise")
_CHATS = {
    "hooks.slack.com": "",
    "hooks.slack-gov.com": "",
    "ntfy.sh": "",
    "open.feishu.cn": "feishu",
    "open.larksuite.com": "lark",
    "oapi.dingtalk.com": "dingtalk",
    "api.dingtalk.io": "dingtalk",
}
"""Host that apprise speaks to -> its scheme, where apprise does not know the address as the service
shows it.
"""
_WEB = ("http", "https")
_SIGNS = frozenset(map(chr, range(33, 127)))
_LARGEST = 64 * 1024
"""Bytes of a file with an address."""
_SHORTEST = 4
"""Characters of a part of an address that are hidden where they appear in a sentence."""


class DestinationError(UsageError):
    """There is no usable address; the text is one sentence, without the address."""


@dataclass(frozen=True, slots=True)
class Destination:
    """An address, with what gives access. Its `repr` shows nothing of either."""

    url: str = field(repr=False)
    where: str
    """Where the address was found: a variable's name, or a file's path."""
    preset: str
    token: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """Name for people, without the address."""
        kind = "address" if self.preset == "apprise" else "webhook"
        return f"the {kind} from {self.where}"

    @property
    def for_apprise(self) -> str:
        """The address as apprise writes it."""
        parts = urlsplit(self.url)
        scheme = _CHATS.get(parts.hostname or "")
        if not scheme:
            return self.url
        stated = parse_qs(parts.query).get("access_token", [parts.path])[0]
        return f"{scheme}://{stated.rpartition('/')[2]}"

    def hide(self, text: str) -> str:
        """Return a sentence without any part of the address or what gives access."""
        found = urlsplit(self.url)
        parts = {self.url, self.token, found.netloc, found.path, found.query}
        parts |= {*re.split(r"[/?&=@:]", f"{found.netloc}{found.path}?{found.query}")}
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
    url, token, named = (environment.get(one, "").strip() for one in (URL, TOKEN, FILE))
    where = URL
    if not url:
        path = Path(named).expanduser() if named else file
        if path is None:
            return None
        url, kept = read_private(path)
        token = token or kept
        where = str(path)
    if why := _no_address(url, preset):
        raise DestinationError(f"{where}: {why}")
    preset = preset or _usual(urlsplit(url))
    if preset == "apprise" and token:
        raise DestinationError(
            f"{where}: apprise takes a token within the address only, such as "
            "ntfys://TOKEN@ntfy.sh/TOPIC"
        )
    return Destination(url, where, preset, token)


def read_private(path: Path) -> tuple[str, str]:
    """Return the address and the token that a file holds.

    Raises:
        DestinationError: It cannot be read, others may read it, or it has something else in it.
    """
    try:
        # A named pipe would have us wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:  # noqa: PTH123 - it was opened already
            if why := _not_private(path, os.fstat(descriptor)):
                raise DestinationError(f"{path}: {why}")
            data = tomllib.loads(file.read(_LARGEST).decode("utf-8-sig"))
    except OSError as error:
        raise DestinationError(
            f"{path}: {(error.strerror or str(error)).lower()}"
        ) from None
    except (ValueError, RecursionError):  # no text, no TOML, or too deep
        # The parser's own words could quote the address.
        raise DestinationError(
            f'{path}: is not valid TOML; a file with an address has a line url = "…", and may have '
            "one for token"
        ) from None
    if not all(key in ("url", "token") and isinstance(data[key], str) for key in data):
        raise DestinationError(f"{path}: only url and token stand in it, each a text")
    if not data.get("url"):
        raise DestinationError(f"{path}: has no url")
    return data["url"].strip(), data.get("token", "").strip()


def _not_private(path: Path, status: os.stat_result) -> str | None:
    """Return why a file cannot be trusted with an address, None if it can."""
    if not stat.S_ISREG(status.st_mode):
        return "is no file"
    if status.st_uid not in (os.geteuid(), 0):
        return "belongs to somebody else, who could change the address"
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        return f"others may read or change it (mode {mode:04o}): chmod 600 {path}"
    if status.st_size > _LARGEST:
        return "is too large for a file with an address"
    return None


def _no_address(url: str, preset: str | None) -> str | None:
    """Return why something is no address, without showing it; None if it is one."""
    if not set(url) <= _SIGNS:
        return "an address has only ASCII letters, and no spaces"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is no address"
    if not parts.scheme:
        return "is no address: it begins with https://, say"
    if preset == "apprise":
        return None
    if parts.scheme not in _WEB:
        return preset and f"preset {preset} needs an address with https://"
    if not parts.hostname:
        return "has no host in it"
    if "@" in parts.netloc:
        return f"has a login in it; put a token into {TOKEN} instead"
    return None


def _usual(parts: SplitResult) -> str:
    """Return the preset of an address."""
    is_webhook = parts.scheme in _WEB and parts.hostname not in _CHATS
    return "json" if is_webhook else "apprise"
