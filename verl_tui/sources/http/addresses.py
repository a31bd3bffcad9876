"""Recognise HTTP addresses among the paths that a user named."""

from __future__ import annotations

import re
from time import localtime, strftime
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from verl_tui.patterns import pattern
from verl_tui.text import one_line

_SCHEME = pattern(r"https?://", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}


class Unreached(NamedTuple):
    """An address that nothing has come from so far."""

    address: str
    reason: str
    since: float | None
    """When it was asked first without an answer, None if it is still being asked for the first
    time.
    """

    @property
    def sentence(self) -> str:
        """Sentence for headless commands."""
        return f"{self.address}: {self.reason}{asked_again(self.since)}"


def asked_again(since: float | None) -> str:
    """Return what is added to a reason for which nothing comes."""
    if since is None:
        return ""
    return f" (since {strftime('%H:%M:%S', localtime(since))}; it is asked again)"


class NoAnswerError(Exception):
    """A question without an answer; its text is a sentence for people without a subject: `refuses
    the connection`.
    """

    def __init__(self, why: str, status: int | None = None, body: bytes = b"") -> None:
        super().__init__(why)
        self.status = status
        """The answer, None if there was none."""
        self.body = body
        """The beginning of what it said."""


def is_meant(spec: str) -> bool:
    """Return whether what the user named is an address."""
    return _SCHEME.match(spec) is not None


def parse_address(spec: str) -> str:
    """Return the address that a user named, in its usual spelling; it holds no login.

    Raises:
        ValueError: It is none that can be asked; the message says why, for people.
    """
    if not spec.isprintable() or not spec.isascii() or " " in spec:
        raise ValueError("an address has only ASCII letters and no spaces")
    try:
        parts = urlsplit(spec)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"is no address: {one_line(str(error), 100)}") from error
    if "@" in parts.netloc:
        raise ValueError(
            "a login in an address is seen by everybody on this machine: "
            "put a header into VERL_TUI_HTTP_AUTHORIZATION"
        )
    if not parts.hostname:
        raise ValueError("has no host in it")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if port not in (None, _PORTS[parts.scheme]):
        host = f"{host}:{port}"
    return urlunsplit((parts.scheme, host, parts.path or "/", parts.query, ""))


def without_login(spec: str) -> str:
    """Return what the user named as it may be shown, without a login."""
    return one_line(re.sub(r"(?<=://)[^/]*@", "", spec), 200)
