"""A webhook on loopback that answers as it is told, byte by byte if need be."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
"""More than the limit of an answer."""
HANGING = b""
"""No answer at all: the connection stays open."""


def answer(status: int, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"HTTP/1.1 {status} Reason", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join((*lines, "Connection: close", "", "")).encode() + body


@dataclass
class Received:
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Webhook:
    port: int
    answers: list[bytes]
    """For one request after the other; the last one for all that follow."""
    received: list[Received] = field(default_factory=list)
    open: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/T0P-SECRET"

    def serve(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                self.open.append(connection)
                connection.settimeout(20)
                with suppress(OSError):
                    self.answer(connection)

    def answer(self, connection: socket.socket) -> None:
        if connection.recv(1, socket.MSG_PEEK) == b"\x16":  # the beginning of TLS
            with connection:
                connection.sendall(self.answers[0])
            return
        file = connection.makefile("rb")
        target = file.readline().decode().split()[1]
        headers = {}
        while line := file.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        body = file.read(int(headers.get("content-length", 0)))
        self.received.append(Received(target, headers, body))
        text = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if text == HANGING:
            return
        with connection, file:
            connection.sendall(text)


@contextmanager
def webhook(answers: Sequence[bytes] = (OK,)) -> Iterator[Webhook]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        found = Webhook(listening.getsockname()[1], list(answers))
        thread = threading.Thread(target=found.serve, args=(listening,), daemon=True)
        thread.start()
        yield found
        listening.shutdown(socket.SHUT_RDWR)
        for connection in found.open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        thread.join(5)
        for connection in found.open:
            connection.close()
