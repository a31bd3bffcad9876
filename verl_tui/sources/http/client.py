"""Asks HTTP servers that may be slow, wrong, huge or hostile: every question ends in an answer or
in one sentence.

No answer lasts longer than its deadline, none is larger than its limit, and no redirect
leads to another server, so that a login goes only where the user pointed.
"""

from __future__ import annotations

import base64
import http.client
import netrc
import os
import socket
import ssl
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import URLError
from urllib.parse import urljoin
from urllib.request import (
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from verl_tui import __version__
from verl_tui.given_files import is_ordinary
from verl_tui.sources.http import addresses
from verl_tui.sources.http.addresses import NoAnswerError
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from verl_tui.sources.http.addresses import Address

CA_FILE = "VERL_TUI_HTTP_CA_FILE"
"""Environment variable that names certificates to be trusted besides those of this machine."""
AUTHORIZATION = "VERL_TUI_HTTP_AUTHORIZATION"
"""Environment variable that holds a whole header, `Bearer …`, for every server that the user
names.
"""
_CHUNK = 64 * 1024
_DEADLINE = 20.0
"""Seconds that a question may take in all: twice what Prometheus gives a scrape by default."""
_LIMIT = 64 * 2**20
"""Bytes of an answer: 300,000 points of Prometheus come to 10 MB."""
_REDIRECTS = 3
_BREAKS_OFF = "breaks off in the middle of its answer"
_ENDS = (b"\n", b"}")
"""Last bytes of a page of metrics, and of JSON, that are whole."""
_MOVED = (301, 302, 307, 308)
_REASONS = {
    401: f"asks for a login: put one into ~/.netrc, or a header into {AUTHORIZATION}",
    403: "refuses access (HTTP 403)",
    404: "finds nothing at this address (HTTP 404)",
}
"""Statuses of redirects, and what is said of some others."""


class Reply(NamedTuple):
    """What a server has sent."""

    status: int
    headers: Mapping[str, str]
    """By name in small letters."""
    body: bytes


class TooLargeError(ValueError):
    """An answer is larger than the text says."""


def exchanged(
    url: str,
    headers: Mapping[str, str],
    body: bytes | None,
    deadline: float,
    limit: int,
    proxies: Mapping[str, str] | None = None,
) -> Reply:
    """Return the answer to what is posted, or asked for where there is no body.

    Args:
        url: Where.
        headers: What is sent besides.
        body: What to post.
        deadline: Seconds that it may take in all.
        limit: Bytes of the answer at most.
        proxies: Addresses of proxies by scheme.

    Raises:
        NoAnswerError: There is none; the error behind it is its cause.
    """
    end = monotonic() + deadline
    try:
        own = {"User-Agent": f"verl-tui/{__version__}", **headers}
        asker = OpenerDirector()
        asker.add_handler(ProxyHandler(dict(proxies or {})))
        asker.add_handler(HTTPHandler())
        if url.startswith("https:"):
            asker.add_handler(HTTPSHandler(context=trust()))
        asked = Request(url, body, own)  # noqa: S310 - no handler asks but for HTTP
        with asker.open(asked, timeout=deadline) as response:
            stated = {name.lower(): one for name, one in response.getheaders()}
            return Reply(response.status, stated, _body(response, end, limit))
    except (OSError, http.client.HTTPException, ValueError) as error:
        own_error: Any = error.reason if isinstance(error, URLError) else error
        why = f"gives no complete answer within {deadline:g} s"
        if not isinstance(own_error, TimeoutError):
            why = _reason(own_error)
        raise NoAnswerError(why) from own_error


def _body(response: http.client.HTTPResponse, end: float, limit: int) -> bytes:
    body = bytearray()
    while part := response.read1(_CHUNK):
        body += part
        if len(body) > limit:
            mib = limit >> 20
            raise TooLargeError(f"{mib} MiB" if mib else f"{limit >> 10} KiB")
        # A server that sends a byte now and then never runs into a socket's own time-out.
        if monotonic() > end:
            raise TimeoutError
    if response.length:
        raise http.client.IncompleteRead(bytes(body))
    return bytes(body)


def _reason(error: Exception) -> str:
    for kind, say in _SENTENCES:
        if isinstance(error, kind):
            return say(error)
    return f"does not speak HTTP: {one_line(str(error), 80) or type(error).__name__}"


_SENTENCES: tuple[tuple[type[Exception], Callable[[Any], str]], ...] = (
    (TooLargeError, lambda error: f"answers with more than {error}"),
    (
        ConnectionRefusedError,
        lambda _: "refuses the connection: nothing is listening there",
    ),
    (socket.gaierror, lambda _: "is an unknown host"),
    (
        ssl.SSLCertVerificationError,
        lambda error: (
            f"has a certificate that is not trusted ({error.verify_message}):"
            f" {CA_FILE} names others"
        ),
    ),
    (
        ssl.SSLError,
        lambda error: (
            f"fails to encrypt (TLS): {one_line(error.reason or str(error), 80)}"
        ),
    ),
    (ConnectionError, lambda _: "closes the connection without an answer"),
    (http.client.IncompleteRead, lambda _: _BREAKS_OFF),
    (
        OSError,
        lambda error: str(error.strerror or error or "cannot be reached").lower(),
    ),
)
"""A sentence for each class of errors; the first that fits counts: special ones come first."""


def trust() -> ssl.SSLContext:
    """Return which certificates are trusted.

    Raises:
        OSError: The file with further ones cannot be read, or holds none.
    """
    context = ssl.create_default_context()
    if further := os.environ.get(CA_FILE):
        try:
            if not is_ordinary(further):  # a pipe would have us wait for its writer
                raise OSError(None, "no file")
            context.load_verify_locations(further)
        except (OSError, ssl.SSLError) as error:
            why = (
                f"{CA_FILE}: {one_line(further)} holds no certificates that can be read"
            )
            raise OSError(None, why) from error
    return context


class Client:
    """Asks servers, and follows them to other addresses of theirs.

    Args:
        deadline: Seconds that a question may take in all.
        login: Whether the user's login may go there.
    """

    def __init__(self, *, deadline: float = _DEADLINE, login: bool = True) -> None:
        self.received = 0
        """Bytes of all answers."""
        self._deadline = deadline
        self._login = login

    def ask(self, address: Address, *, form: str | None = None) -> bytes:
        """Return what a server answers.

        Args:
            address: Of the server.
            form: What to send, url-encoded; without it nothing is sent.

        Raises:
            NoAnswerError: There is none that can be used.
        """
        headers = {
            "Accept": "*/*",
            **(_login(address.hostname or "") if self._login else {}),
        }
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        sent = None if form is None else form.encode()
        for _ in range(_REDIRECTS + 1):
            reply = exchanged(address.text, headers, sent, self._deadline, _LIMIT)
            if reply.status not in _MOVED:
                break
            address = _onward(address, reply.headers.get("location", ""))
        else:
            raise NoAnswerError("redirects without end")
        self.received += len(reply.body)
        return _whole(reply)


def _whole(reply: Reply) -> bytes:
    status, headers, body = reply
    told = headers.keys() & {"content-length", "transfer-encoding"}
    if body and not told and not body.endswith(_ENDS):
        raise NoAnswerError(_BREAKS_OFF)
    if status != http.HTTPStatus.OK:
        reason = _REASONS.get(status, f"answers with HTTP {status}")
        raise NoAnswerError(reason, status, body[:_CHUNK])
    return body


def _onward(address: Address, location: str) -> Address:
    try:
        onward = addresses.parse_address(urljoin(address.text, location))
    except ValueError as error:
        raise NoAnswerError("redirects without naming an address") from error
    if onward.origin != address.origin:
        raise NoAnswerError(
            f"redirects to another server, {onward.netloc}: name that one if it is meant"
        )
    return onward


def _login(host: str) -> dict[str, str]:
    """Return the header that authorises a request: the environment's, else a login from `~/.netrc`
    for that host.
    """
    stated = os.environ.get(AUTHORIZATION, "").strip()
    if stated:
        sent = stated.isprintable() and stated.isascii()
        return {"Authorization": stated} if sent else {}
    try:
        known = netrc.netrc(os.environ.get("NETRC") or None).authenticators(host)
    except (OSError, netrc.NetrcParseError, UnicodeError):
        return {}
    if known is None or not known[2]:
        return {}
    login = base64.b64encode(f"{known[0] or ''}:{known[2]}".encode()).decode()
    return {"Authorization": f"Basic {login}"}
