"""Posts one request to a server that may be slow, wrong, huge or hostile.

No post lasts longer than its deadline, no answer is larger than its limit, and no redirect is
followed: secrets go only where the user pointed.
"""

from __future__ import annotations

import base64
import http.client
import socket
import threading
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from verl_tui import __version__
from verl_tui.sources.http.client import failure_reason, trust

if TYPE_CHECKING:
    from verl_tui.notify.presets import Request

DEADLINE = 10.0
"""Seconds of a post in all: chats answer within one."""
_LIMIT = 64 * 1024
"""Bytes of an answer: chats send less than 1 kB."""
_CHUNK = 8 * 1024
_LONGEST_WAIT = 300.0
"""Seconds that a server may have us wait before the next attempt."""
_PASSING = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
}
"""Answers besides 5xx after which another attempt may succeed."""


class NotSentError(Exception):
    """A message was not taken; the text is a sentence without a subject: `answers with HTTP 500`.

    It may hold parts of the address: `Destination.hide` takes them out.
    """

    def __init__(
        self, why: str, *, passing: bool = False, wait: float | None = None
    ) -> None:
        super().__init__(why)
        self.passing = passing
        """True if another attempt may succeed."""
        self.wait = wait
        """Seconds until the server wants another attempt, None if it does not state them."""


class Reply(NamedTuple):
    """The answer of a server."""

    status: int
    body: bytes


def post(request: Request, *, now: float, deadline: float = DEADLINE) -> Reply:
    """Post and return the answer of a server that took it.

    Args:
        request: What to post.
        now: Seconds since the epoch: some servers name the time of the next attempt.
        deadline: Seconds that it may take in all.

    Raises:
        NotSentError: The server did not take it.
    """
    attempt = _Attempt(deadline)
    try:
        status, after, body = attempt.run(request)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotSentError(
            attempt.why(error), passing=not isinstance(error, ValueError)
        ) from None
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return Reply(status, body)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        raise NotSentError(f"redirects (HTTP {status}), which is not followed")
    passing = status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    raise NotSentError(
        f"answers with HTTP {status}", passing=passing, wait=_wait(after, now)
    )


class _Attempt:
    """One connection, one request, one answer."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._late = False
        self._connection: http.client.HTTPConnection | None = None

    def run(self, request: Request) -> tuple[int, str, bytes]:
        """Return status, the header `Retry-After`, and the body."""
        # A server that sends a byte now and then never runs into a socket's own time-out.
        watchdog = threading.Timer(self._deadline, self._cut)
        watchdog.daemon = True
        watchdog.start()
        try:
            connection, target, further = _connection(
                urlsplit(request.url), self._deadline
            )
            self._connection = connection
            headers = {
                "User-Agent": f"verl-tui/{__version__}",
                **request.headers,
                **further,
            }
            connection.request("POST", target, request.body, headers)
            response = connection.getresponse()
            with response:
                return (
                    response.status,
                    response.getheader("Retry-After", ""),
                    self._body(response),
                )
        finally:
            watchdog.cancel()
            if self._connection is not None:
                self._connection.close()

    def why(self, error: Exception) -> str:
        """Return in a few words why there is no answer."""
        if isinstance(error, TimeoutError) or self._late:
            return f"gives no complete answer within {self._deadline:g} s"
        if isinstance(error, _TooLargeError):
            return f"answers with more than {_LIMIT // 1024} KiB"
        return failure_reason(error)

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        parts = []
        size = 0
        while part := response.read1(_CHUNK):
            size += len(part)
            if size > _LIMIT:
                raise _TooLargeError
            parts.append(part)
        if self._late:
            raise TimeoutError
        return b"".join(parts)

    def _cut(self) -> None:
        self._late = True
        sock = self._connection.sock if self._connection is not None else None
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class _TooLargeError(ValueError):
    """An answer is too large."""


def _connection(
    url: SplitResult, timeout: float
) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
    """Return a connection, the target of the request, and headers for a proxy on the way."""
    secure = url.scheme.lower() == "https"
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    proxy = _proxy(url)
    if proxy is None:
        return _direct(url, timeout, secure=secure), target, {}
    login = _proxy_login(proxy)
    if not secure:
        to_proxy = _direct(proxy, timeout, secure=proxy.scheme.lower() == "https")
        return to_proxy, f"http://{url.netloc}{target}", login
    tunnel = http.client.HTTPSConnection(
        proxy.hostname or "", proxy.port or 80, timeout=timeout, context=trust()
    )
    tunnel.set_tunnel(url.hostname or "", url.port or 443, login)
    return tunnel, target, {}


def _proxy(url: SplitResult) -> SplitResult | None:
    """Return the proxy that the environment names for an address, None for none.

    Raises:
        NotSentError: It is of a kind that is not supported, such as SOCKS.
    """
    named = "" if proxy_bypass(url.netloc) else getproxies().get(url.scheme.lower(), "")
    if not named:
        return None
    proxy = urlsplit(named if "://" in named else f"http://{named}")
    if proxy.scheme.lower() not in ("http", "https"):
        raise NotSentError(
            f"lies behind a proxy of the kind {proxy.scheme}: only http is supported"
        )
    return proxy


def _direct(
    to: SplitResult, timeout: float, *, secure: bool
) -> http.client.HTTPConnection:
    host = to.hostname or ""
    if secure:
        return http.client.HTTPSConnection(
            host, to.port, timeout=timeout, context=trust()
        )
    return http.client.HTTPConnection(host, to.port, timeout=timeout)


def _proxy_login(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {base64.b64encode(login).decode()}"}


def _wait(header: str, now: float) -> float | None:
    """Return the seconds of a `Retry-After`, which holds seconds or a date (RFC 9110, 10.2.3)."""
    text = header.strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:9]), _LONGEST_WAIT)
    try:
        at = parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(0.0, at - now), _LONGEST_WAIT)
