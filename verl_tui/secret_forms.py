"""What secrets look like, by `secret_forms.toml`: names of settings and variables, places, forms
that services give their keys, addresses that let anybody write to a chat, programs that take a
password as a word.
"""

from __future__ import annotations

import re

from verl_tui.patterns import pattern
from verl_tui.toml_tables import toml_table

_TABLE = toml_table(__file__, "secret_forms.toml")
_OPTIONS = [
    rf"(?<![\w.-]){name}\s(?:[^\n]{{0,300}}?\s)?(?:{option})"
    for name, options in _TABLE["programs"].items()
    for option in options
]
_PARTS: dict[str, str] = {
    "CHAT": "|".join(_TABLE["chats"].values()),
    "PROGRAM": "|".join(rf"{name}\s" for name in _TABLE["programs"]),
    "PASSWORD": "|".join(_OPTIONS),
}


def _filled(form: str) -> str:
    """Return a form with what its parts stand for, in one line."""
    parts = re.sub("<<(.*?)>>", lambda named: _PARTS[named[1]], form)
    return parts.replace("\n", "")


for _name, _form in _TABLE["parts"].items():
    _PARTS[_name] = _filled(_form)
NAMES, SAYS_NOTHING = _PARTS["NAMES"], _PARTS["SAYS_NOTHING"]
ANY_NAME = pattern(_filled("<<ANY>>$"), re.IGNORECASE)
"""The end of a name under which a text for others shows nothing."""
FORMS = pattern(rf"(?<![A-Za-z0-9])(?:{'|'.join(_TABLE['keys'].values())})")
"""Keys by their own form."""
WEBHOOK = pattern(_filled("((?:<<CHAT>>))<<UP_TO_BLANK>>"))
_SIGNS = [_filled(place["sign"]) for place in _TABLE["places"]]
_SECRETS = [
    _filled(f"(?P<before>{place['before']})(?P<value>{place['value']})")
    for place in _TABLE["places"]
]
PLACES = [
    (pattern(sign), pattern(secret, re.IGNORECASE | re.MULTILINE))
    for sign, secret in zip(_SIGNS, _SECRETS, strict=True)
]
"""What a line with a secret has, in small letters; and what stands before the secret, with it."""
SUSPECT = pattern("|".join(sorted({"://", *_SIGNS})), re.MULTILINE)
"""What every line has, in small letters, that holds a secret known by its place, or an address."""
NEXT = [
    (
        pattern(_filled(one["end"] + r"\s{0,3}$"), re.IGNORECASE),
        pattern(_filled(one["line"])),
    )
    for one in _TABLE["next"]
]
"""The end of a line whose value stands on the next one, and that line."""
PUBLIC = frozenset(_TABLE["domains"]["public"].split())
"""Domains of services that everybody uses: their names say nothing of who writes."""
