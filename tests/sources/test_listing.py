"""What is known of a directory with a file a step is what lies there."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.sources.folders.step_files import StepFolder
from verl_tui.sources.formats.rollouts import step_in


def dump(directory: Path, step: int) -> Path:
    path = directory / f"{step}.jsonl"
    path.write_text("{}\n")
    return path


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "remove", "wait"]), st.integers(1, 20)),
        max_size=30,
    )
)
def test_what_is_known_is_what_lies_there(steps: list[tuple[str, int]]) -> None:
    reported = set[int]()
    with TemporaryDirectory() as name:
        directory = Path(name)
        listing = StepFolder(directory / "*", 0, step_in)
        for what, number in steps:
            path = directory / f"{number}.jsonl"
            if what == "add":
                dump(directory, number)
            elif what == "remove":
                path.unlink(missing_ok=True)
            for step, stamp in listing.changes().items():
                (reported.discard if stamp is None else reported.add)(step)
            assert reported == {int(one.stem) for one in directory.iterdir()}
