"""Serves metrics over HTTP as they were published: a request reads and computes nothing.

An endpoint that other machines can reach must ask for a password or encrypt; `verl_tui.commands`
enforces that.
"""

from __future__ import annotations

import base64
import hmac
import ipaddress
import socket
import ssl
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING

from prometheus_client import generate_latest

if TYPE_CHECKING:
    from verl_tui.exporters.prometheus import Exposition

PATH = "/metrics"
_TEXT = "text/plain; charset=utf-8"
_METRICS = "text/plain; version=0.0.4; charset=utf-8"
"""The text format, which every scraper reads
(prometheus.io/docs/instrumenting/exposition_formats).
"""


class MetricsServer(ThreadingMixIn, TCPServer):
    """Serves the newest exposition."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 32

    def __init__(
        self,
        bind: str,
        port: int,
        *,
        login: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Listen at once, so that a port in use is known before anything is read.

        Args:
            bind: An address of this machine, or its name.
            port: 0 for any that is free.
            login: `user:password` that is asked for.
            tls: Certificate and key, see `encryption`.

        Raises:
            OSError: The address or port cannot be had.
        """
        self.address_family, _, _, _, (host, *_) = socket.getaddrinfo(
            bind, port, type=socket.SOCK_STREAM
        )[0]
        self.body = b""
        """The newest exposition as text, empty before there is one."""
        self.authorization = b""
        """What a request's header of this name must hold, empty for anything."""
        if login is not None:
            self.authorization = b"Basic " + base64.b64encode(login.encode())
        super().__init__((str(host), port), _Request)
        if tls:
            # Each request's own thread shakes hands, so that a slow client holds up no other.
            self.socket = tls.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        shown = f"[{host}]" if self.address_family == socket.AF_INET6 else host
        scheme = "https" if tls else "http"
        self.address = f"{scheme}://{shown}:{self.server_address[1]}{PATH}"
        """Where the metrics are."""
        threading.Thread(
            target=self.serve_forever, args=(0.1,), name="endpoint", daemon=True
        ).start()

    def show(self, exposition: Exposition) -> None:
        """Answer with this exposition from now on."""
        self.body = generate_latest(exposition)

    def close(self) -> None:
        """Stop, without waiting for a request under way."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a broken connection: that is the client's concern."""


class _Request(BaseHTTPRequestHandler):
    server: MetricsServer
    server_version = "verl-tui"
    sys_version = ""
    timeout = 10.0
    """Seconds that a client may take for a request, or to receive the answer."""

    def do_GET(self) -> None:
        """Answer with the metrics."""
        body, wanted = self.server.body, self.server.authorization
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        # in a time independent of what is given
        if wanted and not hmac.compare_digest(given, wanted):
            self._answer(
                HTTPStatus.UNAUTHORIZED, b"a user name and a password are needed\n"
            )
        elif self.path.partition("?")[0] != PATH:
            self._answer(HTTPStatus.NOT_FOUND, f"the metrics are at {PATH}\n".encode())
        elif not body:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, b"nothing has been read yet\n")
        else:
            self._answer(HTTPStatus.OK, body, _METRICS)

    do_HEAD = do_GET  # noqa: N815 - as the class above names it

    def _answer(self, status: HTTPStatus, body: bytes, kind: str = _TEXT) -> None:
        self.send_response(status)
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", 'Basic realm="verl-tui"')
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log no requests: there is one every few seconds."""


def is_loopback(bind: str) -> bool:
    """Return whether only this machine reaches an address.

    Raises:
        OSError: There is no such address.
    """
    found = {str(entry[4][0]) for entry in socket.getaddrinfo(bind, None)}
    return all(
        ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in found
    )


def encryption(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the TLS context of a server.

    Raises:
        OSError: A file cannot be read, or is no certificate or key; `ssl.SSLError` is one.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key, password="")
    return context
