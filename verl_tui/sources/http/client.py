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
from contextlib import closing
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin

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
_CHUNK = 64 * 1024
AUTHORIZATION = "VERL_TUI_HTTP_AUTHORIZATION"
"""Environment variable that holds a whole header, `Bearer …`, for every server that the user
names.
"""

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


class Question(NamedTuple):
    """What to ask, and where."""

    connection: http.client.HTTPConnection
    target: str
    headers: Mapping[str, str]


class TooLargeError(ValueError):
    """An answer is larger than the text says."""


def exchanged(
    opened: Callable[[], Question],
    body: str | bytes | None,
    deadline: float,
    limit: int,
) -> Reply:
    """Return the answer to what is posted, or asked for where there is no body.

    Args:
        opened: Returns what to ask; what it raises counts as no answer.
        body: What to post.
        deadline: Seconds that it may take in all.
        limit: Bytes of the answer at most.

    Raises:
        NoAnswerError: There is none; the error behind it is its cause.
    """
    end = monotonic() + deadline
    try:
        connection, target, headers = opened()
        with closing(connection):
            method = "GET" if body is None else "POST"
            headers = {"User-Agent": f"verl-tui/{__version__}", **headers}
            connection.request(method, target, body, headers)
            with connection.getresponse() as response:
                stated = {name.lower(): one for name, one in response.getheaders()}
                return Reply(response.status, stated, _body(response, end, limit))
    except TimeoutError as error:
        why = f"gives no complete answer within {deadline:g} s"
        raise NoAnswerError(why) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NoAnswerError(_reason(error)) from error


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


def connected(
    host: str, port: int | None, timeout: float, *, secure: bool
) -> http.client.HTTPConnection:
    """Return a connection that opens as soon as something is asked.

    Raises:
        OSError: The file with further certificates cannot be read, or holds none.
    """
    if not secure:
        return http.client.HTTPConnection(host, port, timeout=timeout)
    return http.client.HTTPSConnection(host, port, timeout=timeout, context=trust())


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
            raise OSError(
                None,
                f"{CA_FILE}: {one_line(further)} holds no certificates that can be read",
            ) from error
    return context


class Client:
    """Asks servers, and follows them to other addresses of theirs."""

    def __init__(
        self,
        *,
        deadline: float = _DEADLINE,
        limit: int = _LIMIT,
        login: bool = True,
    ) -> None:
        """Ask nothing yet.

        Args:
            deadline: Seconds that a question may take in all.
            limit: Bytes of an answer at most.
            login: Whether the user's login may go there.
        """
        self.received = 0
        """Bytes of all answers."""
        self._deadline = deadline
        self._limit = limit
        self._login = login

    def ask(self, address: Address, *, form: str | None = None) -> bytes:
        """Return what a server answers.

        Args:
            address: Of the server.
            form: What to send, url-encoded; without it nothing is sent.

        Raises:
            NoAnswerError: There is none that can be used.
        """
        for _ in range(_REDIRECTS + 1):
            status, headers, body = self._answer(address, form)
            if status not in _MOVED:
                break
            address = self._onward(address, headers.get("location", ""))
        else:
            raise NoAnswerError("redirects without end")
        if status == HTTPStatus.OK:
            return body
        reason = _REASONS.get(status, f"answers with HTTP {status}")
        raise NoAnswerError(reason, status, body[:_CHUNK])

    def _onward(self, address: Address, location: str) -> Address:
        try:
            onward = addresses.parse_address(urljoin(address.text, location))
        except ValueError as error:
            raise NoAnswerError("redirects without naming an address") from error
        if onward.origin != address.origin:
            raise NoAnswerError(
                f"redirects to another server, {onward.place}: name that one if it is meant"
            )
        return onward

    def _answer(self, address: Address, form: str | None) -> Reply:
        """Ask once."""
        headers = {"Accept": "*/*"}
        if self._login:
            headers |= _login(address.host)
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        secure = address.scheme == "https"

        def opened() -> Question:
            connection = connected(
                address.host, address.port, self._deadline, secure=secure
            )
            return Question(connection, address.path, headers)

        answer = exchanged(opened, form, self._deadline, self._limit)
        told = answer.headers.keys() & {"content-length", "transfer-encoding"}
        if answer.body and not told and not answer.body.endswith(_ENDS):
            raise NoAnswerError(_BREAKS_OFF)
        self.received += len(answer.body)
        return answer


def _login(host: str) -> dict[str, str]:
    """Return the header that authorises a request: the environment's, else a login from `~/.netrc`
    for that host.
    """
    stated = os.environ.get(AUTHORIZATION, "").strip()
    if stated:
        if stated.isprintable() and stated.isascii():
            return {"Authorization": stated}
        return {}
    try:
        known = netrc.netrc(os.environ.get("NETRC") or None).authenticators(host)
    except (OSError, netrc.NetrcParseError, UnicodeError):
        return {}
    if known is None or not known[2]:
        return {}
    login = base64.b64encode(f"{known[0] or ''}:{known[2]}".encode()).decode()
    return {"Authorization": f"Basic {login}"}
