"""What runs are called: as their experiment is, else as the folder or the file is that no other run
has.

Names that say only what lies in a folder (`logs`, `output`, `train`) and names that mean nothing
(`m950nfkl`) give way to what is above them.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_NOTHING = re.compile(
    r"(?:logs?|exps?|experiments?|out|outputs?|outdir|console|stdout|stderr|metrics|runs|tb|tensorboard(?:_logs?)?|events|wandb"
    r"|swanlog|files|samples|rollouts?|dumps?|results?|csv|train(?:ing|er)?|main(?:_ppo)?|nohup|slurm|data|default|tmp"
    r"|checkpoints?|ckpts?|attempt_\d+|rank[._-]?#?\d*|version_\d+|none|null|none_\w+|trainer_state|latest(?:-run)?"
    r"|checkpoint-\d+|global_step_\d+)"
    r"(?:[._-]?(?:logs?|data|dir|files|dumps?|out(?:put)?|metrics))?"
    r"|verl[_-]?(?:logs?|demo)?",
    re.IGNORECASE,
)
"""Names of what lies in a folder, not of an experiment."""
_ID = re.compile(
    r"[0-9a-f]{7,64}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\d+|(?:offline-)?run-\d{8}_\d{6}-\w+"
    r"|[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_.*|\d{4}-\d\d-\d\d|\d\d-\d\d-\d\d|v\d+-\d{8}-\d{6}"
)
"""Commits, ids, days and times."""
_TITLE = re.compile(
    rb"_name['\"]?\s*(?::|=|\s(?=[\w'\"./]))"
    rb"[ \t]*(?:\n\s+desc:[^\n]*)?(?:\n\s+value:)?[ \t]*"
    rb"(?:'(?P<a>[^'\n]*)'|\"(?P<b>[^\"\n]*)\"|(?P<c>[^\s'\",;)}\]#]+))"
)
"""An experiment's name in YAML, JSON, overrides, arguments on a command line, and dumps of
arguments.
"""
_NAMERS = re.compile(rb"(?:^|[^A-Za-z0-9_])(?:experiment|(?:wandb_)?run|exp)$")
"""Before `_name`: whose name it is."""
_UNSAID = {"none", "null", "", "???", "true", "false", "str", "optional[str]", "=", ":"}


def says_nothing(name: str) -> bool:
    """Tell whether a name is that of a thing, not of an experiment, or only an id."""
    if _NOTHING.fullmatch(name):
        return True
    return _ID.fullmatch(name) is not None and (name.isdecimal() or not name.isalpha())


def title(text: bytes) -> str:
    """Return what settings call the experiment, the name without its path; empty where they do not
    say.
    """
    for found in _TITLE.finditer(text):
        if not _NAMERS.search(text[max(0, found.start() - 16) : found.start()]):
            continue
        value = next(
            (group for group in (found["a"], found["b"], found["c"]) if group is not None), b""
        )
        name = value.decode("utf-8", "replace").strip().rstrip("/").rpartition("/")[2]
        if name.lower() not in _UNSAID and "$" not in name and not says_nothing(name):
            return one_line(name, 120)
    return ""


def place(relative: Sequence[str], above: Sequence[str]) -> str:
    """Return what a run is called by where it lies: its path without the parts at its end that say
    nothing.

    Args:
        relative: Parts of its path below what the user named, perhaps with a file's name at its
            end.
        above: Parts of the path of what the user named.
    """
    own = list(relative)
    while own and says_nothing(own[-1]):
        own.pop()
    if own:
        return "/".join(own)
    return next(
        (part for part in reversed(above) if not says_nothing(part) and part != "/"),
        "/".join(relative),
    )


def apart(names: Sequence[str], places: Sequence[Sequence[str]]) -> list[str]:
    """Return names that differ: where several are alike, with as much of their place as tells them
    apart.

    Args:
        names: What runs are called.
        places: Where each lies, in whole, as parts of a path with the file's name at its end where
            that tells.
    """
    alike = {name: count for name, count in Counter(names).items() if count > 1}
    out = list(names)
    for name in alike:
        members = [at for at, other in enumerate(names) if other == name]
        for at, words in zip(members, _differences([places[at] for at in members]), strict=True):
            out[at] = f"{name} ({words})" if words and words != name else name
    taken: Counter[str] = Counter()
    for at, name in enumerate(out):
        taken[name] += 1
        if taken[name] > 1:
            out[at] = f"{name} ({taken[name]})"
    return out


def _differences(places: Sequence[Sequence[str]]) -> list[str]:
    """Return in which part paths differ, one that says something rather than one that does not;
    else all that differs.

    Parts that all of them begin or end with tell nothing.
    """
    shortest = min(map(len, places))
    begin = next(
        (at for at in range(shortest) if len({place[at] for place in places}) > 1), shortest
    )
    end = next(
        (at for at in range(shortest - begin) if len({place[-1 - at] for place in places}) > 1),
        shortest - begin,
    )
    rests = [place[begin : len(place) - end] for place in places]
    columns = [[rest[at] if rest else "" for rest in rests] for at in (0, -1)]
    telling = [words for words in columns if len(set(words)) == len(words) and all(words)]
    for words in [words for words in telling if not any(map(says_nothing, words))] or telling:
        return [_without_date(word) for word in words]
    return ["/".join(rest) for rest in rests]


def _without_date(word: str) -> str:
    """Return the id of a run of W&B, whose folder says when it began as well; anything else as it
    is.
    """
    found = re.fullmatch(r"(?:offline-)?run-\d{8}_\d{6}-(.+)", word)
    return found[1] if found else word


def within(path: Path, top: Path) -> list[str]:
    """Return the parts of a path below another; its last part where it is no other."""
    return list(path.relative_to(top).parts) if top in path.parents else []
