"""Errors of verl-tui's own, counted by their place and written as a report."""

from __future__ import annotations

from verl_tui.failures import Failures
from verl_tui.secrets import Mask


def raised(error: Exception, depth: int = 0) -> Exception:
    try:
        if depth:
            raise raised(error, depth - 1)
        raise error
    except Exception as found:  # noqa: BLE001 - whatever it is
        return found


def test_errors_of_one_place_are_one_failure():
    failures = Failures()
    assert failures.sentence() == ""
    for _ in range(3):
        failure = failures.add(raised(ValueError("x")))
    failures.add(raised(KeyError("y")))
    assert failure.words.startswith("ValueError in test_failures_report.py:")
    assert failure.count == 3
    assert failures.sentence().startswith(
        "4 errors of verl-tui's own cost a part of the screen: "
    )
    report = failures.report(Mask({}))
    assert report.count("Traceback (most recent call last)") == 2
    assert ": 3 errors" in report


def test_a_report_is_masked_and_safe():
    failures = Failures()
    assert failures.report(Mask({})) == ""
    failures.add(
        raised(ValueError("/home/anna/x \x1b[31m WANDB_API_KEY=0123456789abcdef"))
    )
    report = failures.report(Mask({}))
    assert "ValueError: ~/x" in report
    assert "\x1b" not in report
    assert "0123456789abcdef" not in report
    assert report.startswith("verl-tui ")
    assert "textual " in report.splitlines()[1]
