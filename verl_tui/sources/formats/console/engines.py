"""Addresses of engines, as verl and vLLM print them.

A log may hold anything: only IP addresses with a port are taken, and only from such lines.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

from verl_tui.patterns import pattern
from verl_tui.sources.formats.console.events import form_of, words_of

WORDS = words_of("engine")
_NAMES = form_of("", "engine")
_PLACE = pattern(r"(\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.]{2,45}\]):(\d{1,5})")
_ACTOR = pattern(rb"\s?\((?P<actor>[^()\s]+) pid=")
_IP = pattern(rb"\bip=([0-9A-Fa-f:.]{2,45})")
"""Ray adds it for processes on other machines than the driver's."""


class EngineReader:
    """Reads the addresses of one console; a restarted process replaces its old ones."""

    def __init__(self) -> None:
        self._stated: dict[tuple[bytes, str], tuple[bytes, list[str]]] = {}
        """By actor and kind of line: the process that printed it last, and its addresses."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Addresses of the engines' metrics: `http://10.0.0.1:43211/metrics`."""
        stated = (one for _, found in self._stated.values() for one in found)
        return tuple(dict.fromkeys(stated))

    def read(self, prefix: bytes, part: bytes) -> None:
        """Take a line.

        Args:
            prefix: Names the Ray actor that printed it, empty for the driver.
            part: The line without the prefix.
        """
        found = _NAMES.match(part)
        if found is None:
            return
        kind = found.lastgroup or ""
        places = found[kind].decode("latin-1").split(", ")
        host = _IP.search(prefix)
        on = host[1].decode() if host is not None else ""
        new = [one for place in places if (one := _address(place.strip("'"), on))]
        if new:
            actor = _ACTOR.match(prefix)
            key = actor["actor"] if actor is not None else b"", kind
            process, known = self._stated.get(key, (prefix, []))
            self._stated[key] = prefix, [*(known if process == prefix else ()), *new]

    def forget(self) -> None:
        """Forget all addresses: the training has ended."""
        self._stated.clear()


def _address(place: str, host: str) -> str | None:
    """Return the address of an engine's metrics, None if it cannot be reached, or is no machine's:
    clouds serve credentials at link-local addresses.

    Args:
        place: Host and port as printed.
        host: IP address of the machine that printed the line, empty for the driver's.
    """
    found = _PLACE.fullmatch(place)
    if found is None or not 0 < int(found[2]) < 2**16:
        return None
    try:
        ip = ip_address(found[1].strip("[]"))
        if ip.is_unspecified:  # it listens on all interfaces of its machine
            ip = ip_address(host or ("::1" if ip.version == 6 else "127.0.0.1"))
    except ValueError:
        return None
    name = f"[{ip}]" if ip.version == 6 else f"{ip}"
    is_reached = not host if ip.is_loopback else _is_a_machine(ip)
    return f"http://{name}:{int(found[2])}/metrics" if is_reached else None


def _is_a_machine(ip: IPv4Address | IPv6Address) -> bool:
    plain = (ip.ipv4_mapped if isinstance(ip, IPv6Address) else None) or ip
    odd = plain.is_link_local or plain.is_multicast or plain.is_unspecified
    return not (odd or plain.is_reserved)
