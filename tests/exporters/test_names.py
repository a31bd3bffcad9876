"""Names of what is written."""

from verl_tui.exporters.file_names import unique_names


def test_names_are_safe_and_unique() -> None:
    assert unique_names(
        ["a/b", "a b", "A_B", "../..", "", "训练", "x" * 400, ".hidden"]
    ) == [
        "a_b",
        "a_b-2",
        "A_B-3",
        "run",
        "run-2",
        "训练",
        "x" * 200,
        "hidden",
    ]


def test_a_name_that_is_taken_is_left_alone() -> None:
    assert unique_names(["a", "b"], taken=["A", "c"]) == ["a-2", "b"]


def test_no_name_is_taken_for_an_option_or_a_formula() -> None:
    assert unique_names(["-rf", "--", "=1+1", "+x"]) == ["rf", "run", "1+1", "x"]
