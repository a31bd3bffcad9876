"""Asks HTTP servers that may be slow, wrong, huge or hostile: every question ends in an answer or
in one sentence.

No question lasts longer than its deadline, no answer is larger than its limit, and no redirect
leads to another server, so that a login goes only where the user pointed.
"""

from __future__ import annotations

import base64
import http.client
import netrc
import os
import socket
import ssl
import threading
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from verl_tui import __version__
from verl_tui.given_files import is_ordinary
from verl_tui.sources.http import addresses
from verl_tui.sources.http.addresses import NoAnswerError
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from verl_tui.sources.http.addresses import Address

AUTHORIZATION = "VERL_TUI_HTTP_AUTHORIZATION"
"""Environment variable that holds a whole header, `Bearer …`, for every server that the user
names.
"""
CA_FILE = "VERL_TUI_HTTP_CA_FILE"
"""Environment variable that names certificates to be trusted besides those of this machine."""

_DEADLINE = 20.0
"""Seconds that a question may take in all: twice what Prometheus gives a scrape by default."""
_LIMIT = 64 * 2**20
"""Bytes of an answer: 300,000 points of Prometheus come to 10 MB."""
_CHUNK = 64 * 1024
_REDIRECTS = 3
_ENDS = (b"\n", b"}")
"""Last bytes of a page of metrics, and of JSON, that are whole."""
_MOVED = {
    HTTPStatus.MOVED_PERMANENTLY,
    HTTPStatus.FOUND,
    HTTPStatus.TEMPORARY_REDIRECT,
    HTTPStatus.PERMANENT_REDIRECT,
}
_REASONS = {
    HTTPStatus.UNAUTHORIZED: "asks for a login: put one into ~/.netrc,"
    f" or a header into {AUTHORIZATION}",
    HTTPStatus.FORBIDDEN: "refuses access (HTTP 403)",
    HTTPStatus.NOT_FOUND: "finds nothing at this address (HTTP 404)",
}


class Client:
    """Asks one server. Used by one thread at a time."""

    def __init__(
        self,
        address: Address,
        *,
        deadline: float = _DEADLINE,
        limit: int = _LIMIT,
        login: bool = True,
    ) -> None:
        """Ask nothing yet.

        Args:
            address: Of the server.
            deadline: Seconds that a question may take in all.
            limit: Bytes of an answer at most.
            login: Whether the user's login may go there.
        """
        self.address = address
        self._login = login
        self.received = 0
        """Bytes of all answers."""
        self._deadline = deadline
        self._limit = limit
        self._connection: http.client.HTTPConnection | None = None
        self._late = False

    def ask(self, address: Address, *, form: str | None = None) -> bytes:
        """Return what a server answers.

        Args:
            address: Of the server that the client is for.
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
        reason = _REASONS.get(HTTPStatus(status)) if status in set(HTTPStatus) else None
        raise NoAnswerError(
            reason or f"answers with HTTP {status}", status, body[:_CHUNK]
        )

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

    def _answer(
        self, address: Address, form: str | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Ask once."""
        self._late = False
        self._connection = connection = self._connected()
        # A server that sends a byte now and then never runs into a socket's own time-out.
        watchdog = threading.Timer(self._deadline, self._cut)
        watchdog.daemon = True
        watchdog.start()
        try:
            headers = {"User-Agent": f"verl-tui/{__version__}", "Accept": "*/*"}
            if self._login:
                headers |= _login(address.host)
            if form is not None:
                headers["Content-Type"] = "application/x-www-form-urlencoded"
            method = "GET" if form is None else "POST"
            connection.request(method, address.path, form, headers)
            with connection.getresponse() as response:
                stated = {name.lower(): one for name, one in response.getheaders()}
                return response.status, stated, self._body(response)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoAnswerError(self._why(error)) from error
        finally:
            watchdog.cancel()
            connection.close()

    def _connected(self) -> http.client.HTTPConnection:
        """Return a connection that opens as soon as something is asked."""
        host, port, timeout = self.address.host, self.address.port, self._deadline
        if self.address.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=timeout)
        try:
            context = trust()
        except OSError as error:
            raise NoAnswerError(failure_reason(error)) from error
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        parts = []
        size = 0
        stated = response.length
        while part := response.read1(_CHUNK):
            size += len(part)
            self.received += len(part)
            if size > self._limit:
                raise NoAnswerError(
                    f"answers with more than {self._limit / 2**20:,.0f} MiB"
                )
            parts.append(part)
            if self._late:
                break
        if self._late:
            raise TimeoutError
        body = b"".join(parts)
        if _is_cut(body, stated, chunked=bool(response.chunked)):
            raise http.client.IncompleteRead(b"")
        return body

    def _cut(self) -> None:
        self._late = True
        sock = self._connection.sock if self._connection is not None else None
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _why(self, error: Exception) -> str:
        if isinstance(error, TimeoutError) or self._late:
            return f"gives no complete answer within {self._deadline:g} s"
        return failure_reason(error)


def _is_cut(body: bytes, stated: int | None, *, chunked: bool) -> bool:
    """Return whether an answer is shorter than it was to be; one of no stated length must end as a
    page of metrics or JSON does. Of one in chunks http.client knows.
    """
    if stated is not None:
        return len(body) < stated
    return not chunked and bool(body) and not body.endswith(_ENDS)


def failure_reason(error: Exception) -> str:
    """Return in a few words why a server cannot be read."""
    for kind, say in _SENTENCES:
        if isinstance(error, kind):
            return say(error)
    return f"does not speak HTTP: {one_line(str(error), 80) or type(error).__name__}"


_SENTENCES: tuple[tuple[type[Exception], Callable[[Any], str]], ...] = (
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
    (
        http.client.RemoteDisconnected,
        lambda _: "closes the connection without an answer",
    ),
    (http.client.IncompleteRead, lambda _: "breaks off in the middle of its answer"),
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
