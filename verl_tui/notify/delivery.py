"""Where messages go, and how one gets there: as JSON to a webhook, or to a chat through apprise.

Addresses and secrets come from the environment, or from a file that nobody else may read, and are
never shown. No post lasts longer than its deadline, no answer is larger than its limit, and no
redirect is followed: secrets go only where the user pointed.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qs, urlsplit

import tomli

from verl_tui.given_files import UsageError, why
from verl_tui.health.finding import Severity
from verl_tui.sources.http.addresses import NoAnswerError

if TYPE_CHECKING:
    from verl_tui.notify.message import Message

DEADLINE = 10.0
"""Seconds of a post in all."""
_LIMIT = 64 * 1024
"""Bytes of an answer, of which only the status counts, and of a file with an address."""
_PASSING = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
}
"""Answers besides 5xx after which another attempt may succeed."""
URL = "VERL_TUI_NOTIFY_URL"
TOKEN = "VERL_TUI_NOTIFY_TOKEN"  # noqa: S105 - a variable's name
FILE = "VERL_TUI_NOTIFY_FILE"
"""Environment variables: the address, the access token of a webhook, or a file that holds both."""
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


class NotSentError(Exception):
    """A message was not taken; the text is one sentence, without the address."""

    def __init__(self, why: str, *, passing: bool = False) -> None:
        super().__init__(why)
        self.passing = passing
        """True if another attempt may succeed."""


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
        """Return a sentence without the address or what gives access."""
        parts = urlsplit(self.url)
        for part in (self.url, self.token, parts.netloc, parts.hostname, parts.path):
            text = text.replace(part, "…") if part and len(part) > 1 else text
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
        UsageError: The address or the file is not usable.
    """
    url, token, named = (environment.get(one, "").strip() for one in (URL, TOKEN, FILE))
    where = URL
    path = Path(named).expanduser() if named else file
    if not url and path:
        where = str(path)
        url, kept = read_private(path)
        token = token or kept
    if not url:
        return None
    try:
        return Destination(url, where, _form(url, preset, token), token)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None


def read_private(path: Path) -> tuple[str, str]:
    """Return the address and the token that a file holds.

    Raises:
        UsageError: It cannot be read, others may read it, or it has something else in it.
    """
    try:
        # A named pipe would have us wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - it was opened already
            if reason := _not_private(path, os.fstat(descriptor)):
                raise UsageError(f"{path}: {reason}")
            data = tomli.loads(file.read(_LIMIT).decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path}: {why(error)}") from None
    except (ValueError, RecursionError):  # no text, no TOML, or too deep
        data = {}  # the parser's own words could quote the address
    own = {key: one.strip() for key, one in data.items() if isinstance(one, str)}
    if not own.get("url") or own.keys() != data.keys() or own.keys() - {"url", "token"}:
        form = 'a file with an address has a line url = "…", and may have one for token'
        raise UsageError(f"{path}: {form}")
    return own["url"], own.get("token", "")


def _not_private(path: Path, status: os.stat_result) -> str | None:
    """Return why a file cannot be trusted with an address, None if it can."""
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        return "is no file"
    if status.st_uid not in (os.geteuid(), 0):
        return "belongs to somebody else, who could change the address"
    if mode & 0o077:
        return f"others may read or change it (mode {mode:04o}): chmod 600 {path}"
    return None


def _form(url: str, preset: str | None, token: str) -> str:
    """Return the preset of an address, unless one is stated.

    Raises:
        ValueError: It is none; the message says why, without showing it.
    """
    if not set(url) <= _SIGNS:
        raise ValueError("an address has only ASCII letters, and no spaces")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError("is no address") from None
    is_webhook = parts.scheme in _WEB and parts.hostname not in _CHATS
    form = preset or ("json" if is_webhook else "apprise")
    _check(parts, form, token)
    return form


def _check(parts: SplitResult, form: str, token: str) -> None:
    """Refuse an address that cannot be used."""
    if not parts.scheme:
        raise ValueError("is no address: it begins with https://, say")
    if parts.scheme in _WEB and not parts.hostname:
        raise ValueError("has no host in it")
    if form == "json":
        if parts.scheme not in _WEB:
            raise ValueError("preset json needs an address with https://")
        if "@" in parts.netloc:
            raise ValueError(f"has a login in it; put a token into {TOKEN} instead")
    elif token:
        within = "within the address only, such as ntfys://TOKEN@ntfy.sh/TOPIC"
        raise ValueError(f"apprise takes a token {within}")


def deliver(to: Destination, message: Message, deadline: float = DEADLINE) -> str:
    """Send a message and return how the server answered, in a few words: `HTTP 200`.

    Args:
        to: Where it goes.
        message: The message.
        deadline: Seconds that a post may take in all.

    Raises:
        NotSentError: It was not taken.
    """
    try:
        if to.preset == "apprise":
            return _by_apprise(to, message)
        return _posted(to, json_of(message).encode(), deadline)
    except NotSentError as error:
        why = f"{to.name} {to.hide(str(error))}"
        raise NotSentError(why, passing=error.passing) from None


def json_of(message: Message) -> str:
    """Return what is posted to a webhook."""
    return json.dumps(message.as_data(), ensure_ascii=False, allow_nan=False)


def _posted(to: Destination, body: bytes, deadline: float) -> str:
    # 40 ms, for who names an address
    from urllib.request import getproxies, proxy_bypass

    from verl_tui.sources.http.client import exchanged

    headers = {"Content-Type": "application/json; charset=utf-8"}
    if to.token:
        headers["Authorization"] = f"Bearer {to.token}"
    proxies = {} if proxy_bypass(urlsplit(to.url).netloc) else getproxies()
    try:
        status, *_ = exchanged(to.url, headers, body, deadline, _LIMIT, proxies)
    except NoAnswerError as error:
        passing = not isinstance(error.__cause__, ValueError)
        raise NotSentError(str(error), passing=passing) from None
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return f"HTTP {status}"
    if status < HTTPStatus.BAD_REQUEST:
        raise NotSentError(f"redirects (HTTP {status}), which is not followed")
    passing = status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    raise NotSentError(f"answers with HTTP {status}", passing=passing)


def _by_apprise(to: Destination, message: Message) -> str:
    # Its log would show the address, on the screen too.
    log = logging.getLogger("apprise")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    import apprise

    asset = apprise.AppriseAsset(app_id="verl-tui", http_redirects=False)
    service = apprise.Apprise(asset=asset)
    if not service.add(to.for_apprise):
        raise NotSentError("is none that apprise knows")
    kinds = {
        Severity.CRITICAL: apprise.NotifyType.FAILURE,
        Severity.WARNING: apprise.NotifyType.WARNING,
        Severity.INFO: apprise.NotifyType.INFO,
    }
    # Other formats would read signs in the text as markup.
    taken = service.notify(
        title=_calling_nobody(message.title),
        body=_calling_nobody(message.body),
        notify_type=kinds[message.severity],
        body_format=apprise.NotifyFormat.TEXT,
    )
    if not taken:
        raise NotSentError("did not take the message (apprise)", passing=True)
    return "taken by apprise"


def _calling_nobody(text: str) -> str:
    """Return a text that names nobody to a chat: `<at user_id="all">` or `@everyone` in a log
    would ring all phones.
    """
    return re.sub(r"(?<=[<@])(?=\S)", "\u200b", text)
