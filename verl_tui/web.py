"""The app in a browser: serves it with textual-serve to everyone who has the address with its
token.

textual-serve answers everybody who reaches its port, and any page in a browser on this machine may
open a WebSocket to it. So nothing is answered without a cookie, which only the address with the
token gives, and which browsers do not send along with what other sites ask for.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import aiohttp_jinja2
from aiohttp import web
from jinja2 import FileSystemLoader
from textual_serve.server import Server

if TYPE_CHECKING:
    import asyncio

_POLICY = (
    "default-src 'none'; connect-src 'self'; font-src 'self'; img-src 'self' data:; script-src "
    "'self' 'unsafe-inline'; "
    "style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Keeps the page from asking anybody else for anything; textual-serve's would load a font from
Google.
"""
_REFUSED = "Open the address that `verl-tui web` printed, with its token.\n"


class WebServer(Server):
    """Runs a command, a process for each page that is open, and shows in the page what it draws."""

    def __init__(self, command: str, host: str, port: int, public_url: str) -> None:
        """Begin to listen when `serve_until` is called.

        Args:
            command: A shell's, starts a Textual app.
            host: Address that it listens at.
            port: And the port.
            public_url: Where browsers reach it, if it is not there that it listens.
        """
        shown = f"[{host}]" if ":" in host else host
        super().__init__(
            command,
            host,
            port,
            title="verl-tui",
            public_url=public_url or f"http://{shown}:{port}",
        )
        self.token = secrets.token_urlsafe(24)
        self._cookie = f"verl_tui_{port}"
        """Browsers distinguish hosts, but not ports."""

    async def serve_until(
        self, stop: asyncio.Event, tell: Callable[[str], None]
    ) -> None:
        """Serve.

        Args:
            stop: Ends it.
            tell: Called with the address to open, once it listens.

        Raises:
            OSError: It cannot listen there.
        """
        app = web.Application(middlewares=[self._admitted])
        aiohttp_jinja2.setup(app, loader=FileSystemLoader(self.templates_path))
        app.router.add_get("/", self.handle_index)
        app.router.add_get("/ws", self.handle_websocket, name="websocket")
        app.router.add_get("/download/{key}", self.handle_download, name="download")
        app.router.add_static("/static", self.statics_path, name="static")
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, self.host, self.port).start()
            tell(
                f"open {self.public_url}/?token={self.token} in a browser; ctrl+c ends it"
            )
            await stop.wait()
        finally:
            await runner.cleanup()

    @web.middleware
    async def _admitted(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        if self._is_token(request.cookies.get(self._cookie, "")):
            answer = await handler(request)
            answer.headers["Content-Security-Policy"] = _POLICY
            return answer
        if request.path == "/" and self._is_token(request.query.get("token", "")):
            entered = web.HTTPFound("/")
            entered.set_cookie(
                self._cookie, self.token, httponly=True, samesite="Strict"
            )
            return entered
        return web.Response(status=403, text=_REFUSED)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(
            given.encode("utf-8", "replace"), self.token.encode()
        )
