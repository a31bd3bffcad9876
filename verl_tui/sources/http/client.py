"""Asks HTTP servers that may be slow, wrong, huge or hostile: every question ends in an answer or
in one sentence.

No answer lasts longer than its deadline, none is larger than its limit, and no redirect is
followed, so that a login goes only where the user pointed.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
from collections.abc import Mapping
from time import monotonic
from typing import Any
from urllib.error import URLError
from urllib.request import (
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from verl_tui import __version__
from verl_tui.sources.http.addresses import NoAnswerError
from verl_tui.text import one_line

CA_FILE = "SSL_CERT_FILE"
"""OpenSSL's environment variable that names the certificates to be trusted."""
AUTHORIZATION = "VERL_TUI_HTTP_AUTHORIZATION"
"""Environment variable that holds a whole header, `Bearer …`, for every server that the user
names.
"""
_CHUNK = 64 * 1024
_DEADLINE = 20.0
"""Seconds that a question may take in all: twice what Prometheus gives a scrape by default."""
_LIMIT = 64 * 2**20
"""Bytes of an answer: 300,000 points of Prometheus come to 10 MB."""
_REASONS = {
    401: f"asks for a login: put a header into {AUTHORIZATION}",
    403: "refuses access (HTTP 403)",
    404: "has no metrics at this address (HTTP 404)",
}
"""What is said of some statuses."""
_ENDS = (b"\n", b"}")
"""Last bytes of a page of metrics, and of JSON, that are whole."""
_BREAKS_OFF = "breaks off in the middle of its answer"
_SENTENCES: dict[type[Exception], str] = {
    OverflowError: "answers with more than {}",
    ConnectionRefusedError: "refuses the connection: nothing is listening there",
    socket.gaierror: "is an unknown host",
    ssl.SSLCertVerificationError: "has a certificate that is not trusted ({}):"
    f" {CA_FILE} names others",
    ssl.SSLError: "fails to encrypt (TLS): {}",
    ConnectionError: "closes the connection without an answer",
    http.client.IncompleteRead: _BREAKS_OFF,
    OSError: "cannot be reached: {}",
    Exception: "does not speak HTTP: {}",
}
"""What is said of errors; the first class that fits counts."""


def exchanged(
    url: str,
    headers: Mapping[str, str],
    body: bytes | None,
    deadline: float,
    limit: int,
    proxies: Mapping[str, str] | None = None,
) -> tuple[int, Mapping[str, str], bytes]:
    """Return the answer to what is posted, or asked for where there is no body: its status, its
    headers by names in small letters, and what it says.

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
        handlers = [ProxyHandler(dict(proxies or {})), UnknownHandler(), HTTPHandler()]
        if url.startswith("https:"):
            handlers.append(HTTPSHandler(context=ssl.create_default_context()))
        asker = OpenerDirector()
        for one in handlers:
            asker.add_handler(one)
        asked = Request(url, body, own)  # noqa: S310 - no handler asks but for HTTP
        with asker.open(asked, timeout=deadline) as response:
            stated = {name.lower(): one for name, one in response.getheaders()}
            return response.status, stated, _body(response, end, limit)
    except (OSError, http.client.HTTPException, ValueError, OverflowError) as error:
        cause: Any = error.reason if isinstance(error, URLError) else error
        why = f"gives no complete answer within {deadline:g} s"
        if not isinstance(cause, TimeoutError):
            why = _sentence(cause)
        raise NoAnswerError(why) from cause


def _body(response: http.client.HTTPResponse, end: float, limit: int) -> bytes:
    body = bytearray()
    while part := response.read1(_CHUNK):
        body += part
        if len(body) > limit:
            raise OverflowError(f"{limit / 2**20:g} MiB")
        # A server that sends a byte now and then never runs into a socket's own time-out.
        if monotonic() > end:
            raise TimeoutError
    if response.length:
        raise http.client.IncompleteRead(bytes(body))
    return bytes(body)


def _sentence(error: Exception) -> str:
    own = (getattr(error, name, "") for name in ("verify_message", "strerror"))
    words = next(filter(None, own), "") or str(error) or type(error).__name__
    fits = (says for kind, says in _SENTENCES.items() if isinstance(error, kind))
    says = next(fits, _SENTENCES[OSError])  # urllib has mere words, too
    return says.format(one_line(str(words), 160))


def ask(address: str, form: str | None = None, *, deadline: float = _DEADLINE) -> bytes:
    """Return what a server answers.

    Args:
        address: Of the server.
        form: What to send, url-encoded; without it nothing is sent.
        deadline: Seconds that the question may take in all.

    Raises:
        NoAnswerError: There is no answer that can be used.
    """
    headers = {"Accept": "*/*"}
    login = os.environ.get(AUTHORIZATION, "").strip()
    if login and login.isprintable() and login.isascii():
        headers["Authorization"] = login
    sent = None
    if form is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        sent = form.encode()
    status, told, body = exchanged(address, headers, sent, deadline, _LIMIT)
    if 300 <= status < 400:
        there = one_line(told.get("location", "elsewhere"), 160)
        raise NoAnswerError(f"redirects to {there}: name that address if it is meant")
    states_length = {"content-length", "transfer-encoding"} & told.keys()
    if body and not (states_length or body.endswith(_ENDS)):
        raise NoAnswerError(_BREAKS_OFF)
    if status != http.HTTPStatus.OK:
        reason = _REASONS.get(status, f"answers with HTTP {status}")
        raise NoAnswerError(reason, status, body[:_CHUNK])
    return body
