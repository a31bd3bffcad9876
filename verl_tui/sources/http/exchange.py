"""One question to an HTTP server that may be slow, wrong, huge or hostile.

It lasts no longer than its deadline, and its answer is no larger than its limit.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui import __version__
from verl_tui.given_files import is_ordinary
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CA_FILE = "VERL_TUI_HTTP_CA_FILE"
"""Environment variable that names certificates to be trusted besides those of this machine."""
UNANSWERED = (OSError, http.client.HTTPException, ValueError)
"""Errors of a question without an answer; `Exchange.why` says it to people."""
_CHUNK = 64 * 1024


class Reply(NamedTuple):
    """What a server has sent."""

    status: int
    headers: Mapping[str, str]
    """By name in small letters."""
    body: bytes


class TooLargeError(ValueError):
    """An answer is too large."""


class Exchange:
    """One connection, one request, one answer."""

    def __init__(self, deadline: float, limit: int) -> None:
        """Ask nothing yet.

        Args:
            deadline: Seconds that it may take in all.
            limit: Bytes of the answer at most.
        """
        self._deadline = deadline
        self._limit = limit
        self._late = False

    def run(
        self,
        connection: http.client.HTTPConnection,
        target: str,
        body: str | bytes | None,
        headers: Mapping[str, str],
    ) -> Reply:
        """Return the answer to what is posted, or asked for where there is no body.

        Raises:
            UNANSWERED: There is none.
        """
        # A server that sends a byte now and then never runs into a socket's own time-out.
        watchdog = threading.Timer(self._deadline, self._cut, (connection,))
        watchdog.daemon = True
        watchdog.start()
        try:
            method = "GET" if body is None else "POST"
            headers = {"User-Agent": f"verl-tui/{__version__}", **headers}
            connection.request(method, target, body, headers)
            with connection.getresponse() as response:
                stated = {name.lower(): one for name, one in response.getheaders()}
                return Reply(response.status, stated, self._body(response))
        finally:
            watchdog.cancel()
            connection.close()

    def why(self, error: Exception) -> str:
        """Return in a few words why there is no answer."""
        if isinstance(error, TimeoutError) or self._late:
            return f"gives no complete answer within {self._deadline:g} s"
        if isinstance(error, TooLargeError):
            mib = self._limit >> 20
            size = f"{mib} MiB" if mib else f"{self._limit >> 10} KiB"
            return f"answers with more than {size}"
        return _reason(error)

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        body = bytearray()
        while not self._late and (part := response.read1(_CHUNK)):
            body += part
            if len(body) > self._limit:
                raise TooLargeError
        if self._late:
            raise TimeoutError
        return bytes(body)

    def _cut(self, connection: http.client.HTTPConnection) -> None:
        self._late = True
        if connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)


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
