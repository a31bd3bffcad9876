"""Addresses of engines, as verl, vLLM and SGLang print them.

verl prints a list (`LLMServerManager`, before 0.7 `AgentLoopManager`:
verl/workers/rollout/llm_server.py and verl/experimental/agent_loop/agent_loop.py), vLLM and SGLang
print a line of their own and one of uvicorn's. A log may hold anything: only IP addresses with a
port are taken, and only from such lines.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

from verl_tui.patterns import pattern

WORDS = (
    "Manager: [",
    "Manager Hybrid: [",
    "Uvicorn running",
    "vLLM API server",
    "ServerArgs(",
)
"""Every line that is read here contains one of these."""
_LISTED = pattern(
    rb"^(LLMServerManager|AgentLoopManager(?: Hybrid)?): "
    rb"\[('[^',\s]{1,80}'(?:, '[^',\s]{1,80}'){0,1023})\]\s*$"
)
_VLLM = pattern(
    rb"^(?:INFO [\d: .-]{1,30}\[?[\w./]{1,80}:\d{1,6}\] )?"
    rb"Starting vLLM API server(?: \d{1,4})? on http://(\S{1,80})\s*$"
)
_SGLANG = b"server_args=ServerArgs("
_UVICORN = pattern(
    rb"^INFO: {1,8}Uvicorn running on http://(\S{1,80}) \(Press CTRL\+C to quit\)\s*$"
)
_VLLM_PROCESS = pattern(rb"^\(APIServer pid=\d{1,9}\) ")
_PLACE = pattern(
    r"(?:(localhost|\d{1,3}(?:\.\d{1,3}){3})|\[([0-9A-Fa-f:.]{2,45})\]):(\d{1,5})"
)
_ACTOR = pattern(rb"^\s?\((?P<actor>[^()\s]+) pid=")
_IP = pattern(rb"\bip=([0-9A-Fa-f:.]{2,45})")
"""Ray adds it for processes on other machines than the driver's."""


class EngineReader:
    """Reads the addresses of one console; a restarted process replaces its old ones."""

    def __init__(self) -> None:
        self._stated: dict[tuple[bytes, bytes], tuple[bytes, dict[str, None]]] = {}
        """By actor and kind of line: the process that printed it last, and its addresses."""
        self._starting: set[bytes] = set()
        """Processes that are engines but have not yet printed an address."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Addresses of the engines' metrics: `http://10.0.0.1:43211/metrics`."""
        return tuple(
            dict.fromkeys(one for _, found in self._stated.values() for one in found)
        )

    def read(self, prefix: bytes, part: bytes) -> None:
        """Take a line.

        Args:
            prefix: Names the Ray actor that printed it, empty for the driver.
            part: The line without the prefix.
        """
        if b"Manager" in part and (listed := _LISTED.match(part)):
            self._take(prefix, listed[1], [one[1:-1] for one in listed[2].split(b", ")])
        elif _SGLANG in part:
            self._starting.add(prefix)
        elif b"vLLM API server" in part or b"Uvicorn running" in part:
            self._server(prefix, _VLLM_PROCESS.sub(b"", part))

    def forget(self) -> None:
        """Forget all addresses: the training has ended."""
        self._stated.clear()
        self._starting.clear()

    def _server(self, prefix: bytes, part: bytes) -> None:
        found = _VLLM.match(part)
        if found is None and prefix in self._starting:
            # uvicorn also serves rewards and tools: the line is an engine's only behind its own.
            found = _UVICORN.match(part)
            self._starting -= {prefix} if found is not None else set()
        if found is not None:
            self._take(prefix, b"server", [found[1]])

    def _take(self, prefix: bytes, kind: bytes, places: list[bytes]) -> None:
        actor = _ACTOR.match(prefix)
        key = actor["actor"] if actor is not None else b"", kind
        process, known = self._stated.get(key, (prefix, {}))
        host = _IP.search(prefix)
        stated = (
            _address(place, host[1].decode() if host is not None else "")
            for place in places
        )
        found = dict.fromkeys(one for one in stated if one is not None)
        if found:
            self._stated[key] = prefix, known | found if process == prefix else found


def _address(place: bytes, host: str) -> str | None:
    """Return the address of an engine's metrics, None if it cannot be reached.

    Args:
        place: Host and port as printed.
        host: IP address of the machine that printed the line, empty for the driver's.
    """
    found = _PLACE.fullmatch(place.decode("latin-1"))
    if found is None or not 0 < int(found[3]) < 2**16:
        return None
    ip = _reachable(found[1] or found[2], host)
    if ip is None or not _is_a_machine(ip) or (ip.is_loopback and host):
        return None
    return f"http://{f'[{ip}]' if ip.version == 6 else ip}:{int(found[3])}/metrics"


def _reachable(name: str, host: str) -> IPv4Address | IPv6Address | None:
    """Return the address to connect to for the one that an engine listens at, None for others."""
    try:
        ip = ip_address("127.0.0.1" if name == "localhost" else name)
        if ip.is_unspecified and host:  # it listens on all interfaces of its machine
            ip = ip_address(host)
    except ValueError:
        return None
    if ip.is_unspecified:
        return ip_address("::1" if ip.version == 6 else "127.0.0.1")
    return ip


def _is_a_machine(ip: IPv4Address | IPv6Address) -> bool:
    """Return True if an engine may listen at `ip`; clouds serve credentials at link-local ones."""
    plain = (ip.ipv4_mapped if isinstance(ip, IPv6Address) else None) or ip
    is_reserved = isinstance(plain, IPv4Address) and plain.is_reserved
    return not (plain.is_link_local or plain.is_multicast or is_reserved)
