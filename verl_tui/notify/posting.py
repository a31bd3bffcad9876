"""Posts one request to a server that may be slow, wrong, huge or hostile.

No post lasts longer than its deadline, no answer is larger than its limit, and no redirect is
followed: secrets go only where the user pointed.
"""

from __future__ import annotations

import base64
import http.client
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from verl_tui.sources.http.addresses import NoAnswerError
from verl_tui.sources.http.client import Question, connected, exchanged, trust

if TYPE_CHECKING:
    from verl_tui.notify.presets import Request
    from verl_tui.sources.http.client import Reply

DEADLINE = 10.0
"""Seconds of a post in all: chats answer within one."""
_LIMIT = 64 * 1024
"""Bytes of an answer: chats send less than 1 kB."""
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


def post(request: Request, *, now: float, deadline: float = DEADLINE) -> Reply:
    """Post and return the answer of a server that took it.

    Args:
        request: What to post.
        now: Seconds since the epoch: some servers name the time of the next attempt.
        deadline: Seconds that it may take in all.

    Raises:
        NotSentError: The server did not take it.
    """

    def opened() -> Question:
        connection, target, further = _connection(urlsplit(request.url), deadline)
        return Question(connection, target, {**request.headers, **further})

    try:
        reply = exchanged(opened, request.body, deadline, _LIMIT)
    except NoAnswerError as error:
        passing = not isinstance(error.__cause__, ValueError)
        raise NotSentError(str(error), passing=passing) from None
    status = reply.status
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return reply
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        raise NotSentError(f"redirects (HTTP {status}), which is not followed")
    passing = status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    wait = _wait(reply.headers.get("retry-after", ""), now)
    raise NotSentError(f"answers with HTTP {status}", passing=passing, wait=wait)


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
    return connected(to.hostname or "", to.port, timeout, secure=secure)


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
