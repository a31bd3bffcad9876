"""What a line of a console states in words: turning points of the training, such as starts,
checkpoints, stages and normal ends, numbers of steps, and addresses of engines.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind
from verl_tui.secrets import hide
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ORDER = "zqjxkvbywgp?mfu,.c:d_lhrsnioate "
"""Letters by how well they are searched for: those that are rare in English text and in logs, yet
in many words, then all others (`?`), then the common ones.
"""
TABLE = toml_table(__file__, "events.toml")


def any_of(words: Iterable[str]) -> re.Pattern[bytes]:
    """Return a pattern that is found in all texts that contain one of the words, and in no others.

    A search pauses at each letter that it looks for, and tries one after the other. So these are
    few and rare ones, the most common first; from there it looks back at what stands before.
    """
    by_letter: dict[str, set[str]] = {}
    for word in words:
        letter = min(word, key=_place)
        before, _, behind = word.partition(letter)
        known = f"(?<={re.escape(before + letter)})" if before else ""
        by_letter.setdefault(letter, set()).add(known + re.escape(behind))
    parts = (
        f"{re.escape(letter)}(?:{'|'.join(sorted(rest))})"
        for letter, rest in sorted(by_letter.items(), key=lambda one: -_place(one[0]))
    )
    return pattern("|".join(parts).encode())


def _place(letter: str) -> int:
    if letter in _ORDER:
        return _ORDER.find(letter)
    return _ORDER.index("?")


def words_of(rows: str) -> list[str]:
    """Return words one of which is in each line that some rows of the table describe."""
    return [word for entry in TABLE[rows] for word in entry.get("words", ())]


def form_of(kind: str, rows: str = "event") -> re.Pattern[bytes]:
    """Return what finds all lines of a kind, see `events.toml`."""
    forms = [one["match"] for one in TABLE[rows] if one.get("kind", kind) == kind]
    whole = "|".join(forms)
    for name in ("shell", "code"):
        whole = whole.replace(f"{{{name}}}", TABLE[name])
    return pattern(whole.encode(), re.MULTILINE if rows == "first" else 0)


WORDS, STATED = words_of("event"), words_of("stated")
_MAY_TURN, _MAY_STATE = any_of(WORDS), any_of(STATED)
_STATED = form_of("", "stated")


_TURNING_POINTS = [
    (pattern(entry["match"].encode()), EventKind(entry["kind"]))
    for entry in TABLE["event"]
    if "words" in entry
]


def turning_point(part: bytes, number: int) -> Event | None:
    """Return the event that a line states, None for most.

    Args:
        part: The line without the prefix of a process.
        number: Its number.
    """
    for form, kind in _TURNING_POINTS if _MAY_TURN.search(part) else ():
        if found := form.search(part):
            groups = found.groupdict()
            step = groups.get("step")
            text = shown(groups.get("text") or part)
            return Event(kind, text, number, int(step) if step else None)
    return None


def shown(text: bytes) -> str:
    """Return a line as an event keeps it: safe, without secrets, not too long."""
    return one_line(hide(text[:2000].decode("utf-8", "replace")), 400)


def stated(part: bytes) -> Mapping[str, int]:
    """Return the numbers that a line states, by what they count, see `events.toml`."""
    said: dict[str, int] = {}
    for found in _STATED.finditer(part) if _MAY_STATE.search(part) else ():
        name = found.lastgroup or ""
        said.setdefault(name, int(found[name].replace(b",", b"") or 0))
    return said


# -- engines -----------------------------------------------------------------------------------
# A log may hold anything: only IP addresses with a port are taken, and only from such lines.

ENGINES = words_of("engine")
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
