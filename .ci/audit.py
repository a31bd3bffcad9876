"""Audits what is installed with verl-tui: licences that its users can live with, and no known
vulnerability.

Vulnerabilities are asked for only where a service answers that knows them, and skipped, which is
said, elsewhere.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.request import urlopen

from packaging.requirements import Requirement

EXTRAS = frozenset({"mcp", "notify", "parquet", "prometheus", "stacks", "web"})
"""All that a user may ask for; what is not installed here is passed over."""
ALLOWED = frozenset(
    {
        *(
            "0BSD",
            "Apache-2.0",
            "BSD-2-Clause",
            "BSD-3-Clause",
            "CNRI-Python",
            "ISC",
            "MIT",
            "MIT-0",
        ),
        *("CC0-1.0", "MPL-2.0", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib"),
    }
)
"""By SPDX. MPL-2.0 binds changes to its own files only; CC0-1.0 gives parts of numpy away."""
_IN_WORDS = (
    (r"apache", "Apache-2.0"),
    (r"\bmit\b|permission is hereby granted, free of charge", "MIT"),
    (r"\bbsd\b", "BSD-3-Clause"),
    (r"\bisc\b", "ISC"),
    (r"mozilla|\bmpl\b", "MPL-2.0"),
    (r"python software foundation|\bpsf\b", "PSF-2.0"),
    (r"unlicense", "Unlicense"),
)
"""What the metadata of older packages say, as regular expressions."""
_SERVICE = "https://pypi.org/pypi/{}/{}/json"
"""Where PyPI tells of a package's version."""
_PATIENCE = 3.0
"""Seconds to wait for the service."""
_LONGEST = 120.0
"""Seconds that the audit may take."""


def dependencies(
    name: str, extras: frozenset[str], known: dict[str, Distribution]
) -> dict[str, Distribution]:
    """Return the packages that one needs, with all that they need in turn."""
    for text in distribution(name).requires or ():
        wanted = Requirement(text)
        marker = wanted.marker
        if marker and not any(
            marker.evaluate({"extra": extra}) for extra in extras or {""}
        ):
            continue
        try:
            found = distribution(wanted.name)
        except PackageNotFoundError:
            continue
        key = found.name.lower()
        if key not in known or wanted.extras:
            known[key] = found
            dependencies(wanted.name, frozenset(wanted.extras), known)
    return known


def licences(package: Distribution) -> set[str]:
    """Return a package's licences by SPDX; what is not understood stays as it stands there."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return set(
            re.findall(r"[\w.+-]+", re.sub(r"\b(AND|OR|WITH)\b", " ", expression))
        )
    stated = [
        one
        for one in metadata.get_all("Classifier") or ()
        if one.startswith("License ::")
    ]
    return {
        _by_words(one)
        for one in stated or [metadata.get("License") or _beginning(package)]
    }


def _beginning(package: Distribution) -> str:
    """Return the beginning of a package's own text of its licence."""
    files = (
        file for file in package.files or () if re.match("licen[cs]e", file.name, re.I)
    )
    return next((file.read_text()[:400] for file in files), "none stated")


def _by_words(words: str) -> str:
    fits = (
        spdx
        for expression, spdx in _IN_WORDS
        if re.search(expression, words, re.IGNORECASE)
    )
    return next(fits, words.strip().splitlines()[0])


def check_licences(packages: dict[str, Distribution]) -> bool:
    """Say which licences there are; return whether all are allowed."""
    found = {name: licences(package) for name, package in packages.items()}
    counts = Counter(one for several in found.values() for one in several)
    print(
        f"licences of {len(found)} packages: {', '.join(map(' '.join, _named(counts)))}"
    )
    strange = {
        name: several - ALLOWED for name, several in found.items() if several - ALLOWED
    }
    for name, several in strange.items():
        print(
            f"{name}: {', '.join(sorted(several))} is none of the licences in {__file__}"
        )
    return not strange


def _named(counts: Counter[str]) -> list[tuple[str, str]]:
    return [(name, str(count)) for name, count in counts.most_common()]


def service_answers(package: Distribution) -> bool:
    """Return whether an index answers here that knows vulnerabilities; many mirrors do not."""
    address = _SERVICE.format(package.name, package.version)
    try:
        with urlopen(address, timeout=_PATIENCE) as answer:  # noqa: S310 - it is https
            return "vulnerabilities" in json.load(answer)
    except (OSError, ValueError):
        return False


def check_vulnerabilities(packages: dict[str, Distribution]) -> bool:
    """Have pip-audit look the packages up; return whether it found none."""
    if not service_answers(packages["rich"]):
        print("vulnerabilities: skipped, no service that knows any answers here")
        return True
    pinned = "".join(
        f"{name}=={package.version}\n" for name, package in packages.items()
    )
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "requirements.txt")
        file.write_text(pinned)
        words = (
            "--no-deps",
            "--disable-pip",
            "--progress-spinner",
            "off",
            "--requirement",
            file,
        )
        command = [sys.executable, "-m", "uv", "tool", "run", "pip-audit", *words]
        try:
            ended = subprocess.run(command, timeout=_LONGEST, check=False)  # noqa: S603 - no shell
            return ended.returncode == 0
        except subprocess.TimeoutExpired:
            print(f"vulnerabilities: skipped, no answer within {_LONGEST:g} s")
            return True


def main() -> int:
    """Audit; return 1 where something is not as it should be."""
    packages = dependencies("verl-tui", EXTRAS, {})
    return 0 if check_licences(packages) & check_vulnerabilities(packages) else 1


if __name__ == "__main__":
    sys.exit(main())
