"""The run that each file belongs to: the one that it was first assigned to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.sources.discovery.found import is_events, log_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from verl_tui.sources.discovery.found import FoundFile, FoundRun


class FileOwners:
    """The runs that files were assigned to.

    A file stays with its first run even if later files suggest another one: nothing shown is
    taken away or shown twice. Only settings may belong to several runs.
    """

    def __init__(self) -> None:
        self._names: dict[Path, str] = {}
        """The name of the run that each file was first assigned to."""
        self._shared: dict[tuple[str, str], int] = {}
        """Places among a run's sources that several files of one log share."""

    def name(self, run: FoundRun) -> str:
        """Return a run's name: the one that its first file was found under."""
        logs = [file for file in run.files if file.format is not None]
        logs.sort(key=lambda file: not file.is_log)
        known = [file.path for file in logs]
        name = next(
            (self._names[path] for path in known if path in self._names), run.name
        )
        for path in known:
            self._names.setdefault(path, name)
        return name

    def owns(self, run: str, file: FoundFile) -> bool:
        """Return whether a file is of a run of that name, or of none so far."""
        return self._names.get(file.path, run) == run

    def ordinal(self, run: str, file: FoundFile, count: int) -> int:
        """Return a file's place among its run's sources, by age.

        The event files of one log share one: the later of two values is found by their times,
        see `verl_tui.sources.formats.tensorboard.reader`.

        Args:
            run: Name of the run.
            file: One of its files.
            count: How many sources it has already.
        """
        if not is_events(file.path):
            return count
        return self._shared.setdefault((run, log_name(file)), count)

    def forget(self, files: Iterable[Path]) -> list[str]:
        """Forget all files of the runs that some of these files belong to; return their names.

        Of what lies within a file, and of a directory that was one source, its files decide.
        """
        places = set(files)
        folders = {path.parent for path in places}
        gone = {
            name: None
            for path, name in self._names.items()
            if path in folders or not places.isdisjoint((path, *path.parents))
        }
        self._names = {
            path: name for path, name in self._names.items() if name not in gone
        }
        self._shared = {
            key: at for key, at in self._shared.items() if key[0] not in gone
        }
        return list(gone)
