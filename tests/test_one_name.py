"""One word, one thing: a class or a type is named like no other."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import verl_tui

PACKAGE = Path(verl_tui.__file__).parent
DEFINED = re.compile(
    r"^(?:class ([A-Z]\w*)|([A-Z]\w*[a-z]\w*)(?:: TypeAlias)? = )", re.MULTILINE
)


def test_no_two_classes_or_types_have_the_same_name():
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for found in DEFINED.finditer(path.read_text(encoding="utf-8")):
            places[found[1] or found[2]].append(str(path.relative_to(PACKAGE)))
    assert len(places) > 500, "they are not found any more"
    assert not {name: where for name, where in places.items() if len(where) > 1}
