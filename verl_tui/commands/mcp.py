"""`verl-tui mcp PATH...`: answers as tools for agents, by the Model Context Protocol."""

from __future__ import annotations

import os
import select
import signal
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

from verl_tui import __version__
from verl_tui.commands.signals import at_end
from verl_tui.given_files import UsageError

if TYPE_CHECKING:
    from verl_tui.commands.shared import Options

HELP = """
Answers of get, check, compare and explain as tools for agents (MCP).

PATH...  log, directory, quoted glob or address
--config FILE

for example:
    verl-tui mcp logs
    verl-tui mcp 'logs/run_*' --config agents.toml

A client starts this command and asks it for tools on standard input. All only read, and only at or
below PATH..., links resolved; keys, tokens and passwords in answers are hidden.

exit codes: 0 the client has gone, 128 + N ended by signal N
"""


def run(options: Options) -> int:
    """Serve until the client goes away; return the exit code."""
    paths = options.paths
    _ = options.settings
    try:
        import anyio
        import mcp.server.stdio  # noqa: F401 - all of it is there, or nothing
    except ModuleNotFoundError as error:
        raise UsageError("`mcp` needs mcp: pip install 'verl-tui[mcp]'") from error
    at_end(signal.SIG_DFL)  # what waits for standard input ends in no other way
    Thread(target=_end_without_reader, args=[os.dup(1)], daemon=True).start()
    if options.config is not None:
        os.environ["VERL_TUI_CONFIG"] = str(options.config)  # for all commands
    anyio.run(_serve, *paths)
    return 0


def _end_without_reader(output: int) -> None:
    """End the program at once, also within a call, when nobody can read an answer any more."""
    reader = select.poll()
    reader.register(output, 0)
    reader.poll()
    os._exit(0)


async def _serve(*paths: str) -> None:
    from anyio.to_thread import run_sync
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    from verl_tui.commands.help import agents_page
    from verl_tui.commands.tools import answer, described, tools

    reads = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    offered = [types.Tool(**described(one), annotations=reads) for one in tools()]

    async def list_tools(*_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=offered)

    async def call_tool(_: object, asked: Any) -> types.CallToolResult:
        call = partial(answer, asked.name, asked.arguments or {}, paths)
        try:
            text, failed = await run_sync(call, abandon_on_cancel=True), False
        except UsageError as error:
            text, failed = str(error), True
        content = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[content], is_error=failed)

    server = Server(
        "verl-tui",
        version=__version__,
        instructions=agents_page().partition("## Stop, or do not\n")[2],
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
