"""The health panel: findings worst first, what unfolds, badges where there is little room."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from panel_host import SIZES, Host, count_paints
from run_views import HOSTILE, NOW, make_run, make_view

from verl_tui.health.finding import Finding, NotJudged, Severity, Verdict
from verl_tui.records import Batch, Event, EventKind, MetricRows, SourceStatus
from verl_tui.runs.run import Run
from verl_tui.tui.panels.health import HealthPanel

if TYPE_CHECKING:
    from verl_tui.rendering.session.snapshot import View

COLLAPSE = Finding(
    "policy-collapse",
    Severity.CRITICAL,
    "The reward fell from 3.1 to 0.4 within 60 steps.",
    4990,
    4930,
    ("reward 0.41 at step 4990",),
    "Set kl_coef to 0.02.",
    "verl tutorial",
)
KL_HIGH = Finding(
    "kl-high",
    Severity.WARNING,
    "The KL is above 0.02.",
    4990,
    4700,
    ("0.031",),
    "Raise it.",
    "doc",
    "kl",
)
LONG = Finding("response-long", Severity.INFO, "Responses grow.", 4990, 4400)
SKIPPED = tuple(
    NotJudged(rule, f"the log has no {rule}") for rule in ("kl-low", "gpu-idle")
)


def view(
    *findings: Finding, skipped: tuple[NotJudged, ...] = SKIPPED, steps: int = 120
) -> View:
    return make_view(
        make_run(steps=steps), verdicts={"grpo": Verdict(findings, skipped)}
    )


def sick() -> View:
    return view(COLLAPSE, KL_HIGH, LONG)


async def shown(what: View, size: tuple[int, int], *keys: str) -> str:
    app = Host(HealthPanel())
    async with app.run_test(size=size) as pilot:
        app.panel.show(what)
        await pilot.press(*keys)
        await pilot.pause()
        return app.text


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_any_size_and_any_text(ascii_only: bool) -> None:
    findings = [
        Finding(
            text,
            Severity(i % 3),
            text,
            i,
            i * 10**8,
            (text, text),
            text,
            text,
            key=text,
        )
        for i, text in enumerate(HOSTILE)
    ]
    what = view(*findings, skipped=tuple(NotJudged(text, text) for text in HOSTILE))
    app = Host(HealthPanel())
    async with app.run_test(size=SIZES[0]) as pilot:
        for size in SIZES:
            await pilot.resize_terminal(*size)
            for seen in (what, view(), make_view(), replace(view(), loading=True)):
                app.panel.show(replace(seen, ascii_only=ascii_only))
                await pilot.press("j", "space", "v", "G", "enter", "k")
                assert app.lines, size
                await pilot.press("v", "pagedown")
                assert app.lines, size


async def test_findings_with_their_message_and_step() -> None:
    text = await shown(sick(), (50, 16))
    assert (
        text.index("✖ policy-collapse")
        < text.index("▲ kl-high")
        < text.index("• response-long")
    )
    assert "since step 4930" in text
    assert "The reward fell from 3.1 to 0.4" in text
    assert "kl_coef" not in text
    assert text.count("2 not applicable (v: why)") == text.count("not applicable") == 1
    assert "the log has no" not in text


async def test_without_a_frame_a_row_counts_the_rules_that_were_not_judged() -> None:
    app = Host(HealthPanel(classes="-bare"))
    async with app.run_test(size=(60, 16)) as pilot:
        app.panel.show(sick())
        await pilot.pause()
        assert app.text.count("2 rules not applicable (v: why)") == 1
        row = next(i for i, line in enumerate(app.lines) if "not applicable (v" in line)
        await pilot.click(HealthPanel, offset=(5, row))
        await pilot.pause()
        assert "the log has no gpu-idle" in app.text


async def test_findings_stand_apart_only_where_there_is_room() -> None:
    roomy = (await shown(sick(), (60, 20))).split("\n")
    tight = (await shown(sick(), (60, 9))).split("\n")
    distance = [
        next(i for i, line in enumerate(lines) if "kl-high" in line)
        - next(i for i, line in enumerate(lines) if "policy-collapse" in line)
        for lines in (roomy, tight)
    ]
    assert distance == [3, 2]


async def test_what_unfolds_takes_the_place_of_badges() -> None:
    app = Host(HealthPanel())
    async with app.run_test(size=(60, 6)) as pilot:
        app.panel.show(sick())
        await pilot.press("space")
        assert "policy-collapse" in app.text
        assert "+1" not in app.text
        await pilot.press("space")
        assert "✖ policy-collapse ▲ kl-high" in app.text
        await pilot.press("v")
        assert "gpu-idle: the log has no gpu-idle" in app.text
        await pilot.press("v")
        assert "✖ policy-collapse ▲ kl-high" in app.text
        await pilot.press("space", "pagedown")
        assert "Set kl_coef" in app.text


async def test_a_finding_unfolds_and_folds() -> None:
    app = Host(HealthPanel())
    async with app.run_test(size=(60, 24)) as pilot:
        app.panel.show(sick())
        await pilot.press("j", "j")
        for key in ("enter", "space"):
            await pilot.press(key)
            assert "· 0.031" in app.text, key
            assert "→ Raise it." in app.text, key
            assert "source: doc" in app.text, key
            assert "Set kl_coef" not in app.text, key
            await pilot.press(key)
            assert "Raise it." not in app.text, key
        # So does what was not judged.
        await pilot.press("v")
        assert "gpu-idle: the log has no gpu-idle" in app.text
        await pilot.press("v")
        assert "gpu-idle" not in app.text


async def test_mouse() -> None:
    app = Host(HealthPanel())
    async with app.run_test(size=(60, 24)) as pilot:
        app.panel.show(sick())
        await pilot.pause()
        row = next(i for i, line in enumerate(app.lines) if "kl-high" in line)
        await pilot.click(HealthPanel, offset=(5, row))
        assert app.said == ["kl-high"]
        assert "Raise it." not in app.text
        await pilot.double_click(HealthPanel, offset=(5, row))
        await pilot.pause()
        assert "Raise it." in app.text
        await pilot.click(HealthPanel, offset=(5, 23))
        await pilot.pause()
        assert "the log has no gpu-idle" in app.text
        assert "(v: why)" not in app.text


async def test_moving_follows() -> None:
    app = Host(HealthPanel())
    async with app.run_test(size=(60, 24)) as pilot:
        app.panel.show(sick())
        await pilot.press("j", "j", "k", "G", "g")
        assert app.said == [
            "policy-collapse",
            "kl-high",
            "policy-collapse",
            "response-long",
            "policy-collapse",
        ]


async def test_the_app_can_choose_in_a_circle() -> None:
    app = Host(HealthPanel())
    async with app.run_test(size=(60, 24)) as pilot:
        panel = app.panel
        assert isinstance(panel, HealthPanel)
        assert panel.choose_next(1) is None
        panel.show(sick())
        assert [panel.choose_next(1) for _ in range(4)] == [
            COLLAPSE,
            KL_HIGH,
            LONG,
            COLLAPSE,
        ]
        assert panel.choose_next(-1) == LONG
        await pilot.pause()
        assert app.said == []
        panel.action_next(1)
        await pilot.pause()
        assert app.said == ["policy-collapse"]


async def test_backwards_begins_at_the_end() -> None:
    app = Host(HealthPanel())
    async with app.run_test(size=(60, 24)):
        assert isinstance(app.panel, HealthPanel)
        app.panel.show(sick())
        assert app.panel.choose_next(-1) == LONG


async def test_the_chosen_finding_is_known_again_when_its_numbers_change() -> None:
    app = Host(HealthPanel())
    async with app.run_test(size=(60, 24)) as pilot:
        app.panel.show(sick())
        await pilot.press("j", "j", "enter")
        app.panel.show(
            view(replace(KL_HIGH, message="The KL is above 0.03.", step=5000), LONG)
        )
        await pilot.pause()
        assert "above 0.03" in app.text
        assert "Raise it." in app.text
        await pilot.press("j")
        assert app.said[-1] == "response-long"


async def test_another_run_begins_folded() -> None:
    app = Host(HealthPanel())
    async with app.run_test(size=(60, 24)) as pilot:
        app.panel.show(sick())
        await pilot.press("j", "enter")
        app.panel.show(
            make_view(make_run("other"), verdicts={"other": Verdict((COLLAPSE,))})
        )
        await pilot.pause()
        assert "policy-collapse" in app.text
        assert "Set kl_coef" not in app.text


def previewed(*findings: Finding) -> View:
    """Return a view of a run of which a preview is shown, with what its end shows."""
    shown = replace(view(*findings, skipped=()), loading=True)
    assert shown.run is not None
    shown.run.preview = True
    return shown


def judged_in_all() -> View:
    """Return a view of a run whose reward, KL, entropy and response length were judged."""
    keys = ("actor/ppo_kl", "actor/entropy", "response_length/mean")
    run = make_run(columns={key: [1.0] * 120 for key in keys})
    return make_view(run, verdicts={"grpo": Verdict((), SKIPPED[:1])})


def unknown() -> View:
    """Return a view of a run that logs nothing known."""
    run = Run("grpo")
    rows = MetricRows(("my_number",), [1, 2], [[0.1, 0.2]], [0, 1])
    run.apply(Batch("grpo", SourceStatus("/logs/grpo", "JSONL"), (rows,)), NOW)
    return make_view(run, verdicts={"grpo": Verdict((), SKIPPED[:1])})


def stepless() -> View:
    """Return a view of a run that ended before its first step."""
    run = make_run(steps=0)
    ended = Event(EventKind.FINISHED, "done", 1)
    run.apply(Batch("grpo", SourceStatus("/logs/grpo", "verl"), (ended,)), NOW)
    return make_view(run)


NOTHING = (
    (judged_in_all(), "✓ nothing found by 2 rules"),
    (
        view(skipped=SKIPPED[:1]),
        "○ nothing found by 2 of 3 rules; not logged: KL, entr",
    ),
    (
        view(
            skipped=tuple(NotJudged(r, "") for r in ("kl-high", "kl-low", "reward-low"))
        ),
        "○ no rule could judge it",
    ),
    (unknown(), "○ nothing to judge: no indicator of this log is known"),
    (make_view(), "○ waiting for a run"),
    (view(steps=0), "○ waiting for the first step"),
    (stepless(), "○ no step was logged"),
    (make_view(make_run()), "○ no verdict yet"),
    (replace(view(), loading=True), "○ reading 45%"),
    (previewed(), "○ reading 45%; a preview is shown"),
    (replace(judged_in_all(), ascii_only=True), "+ nothing found by 2 rules"),
)
"""What is shown, and what is said where no finding is."""


async def test_words_for_nothing() -> None:
    app = Host(HealthPanel())
    async with app.run_test(size=(60, 12)) as pilot:
        for what, words in NOTHING:
            for size in ((60, 12), (60, 5)):
                await pilot.resize_terminal(*size)
                app.panel.show(what)
                await pilot.pause()
                assert words in app.text, size


async def test_the_edge_says_that_findings_are_of_the_end_and_how_far_reading_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Host(HealthPanel())
    async with app.run_test(size=(60, 12)) as pilot:
        shown = previewed(replace(KL_HIGH, since_step=None))
        app.panel.show(shown)
        await pilot.pause()
        assert "kl-high" in app.text
        assert "since" not in app.text
        assert app.subtitle_words == "found at the end of its log; reading 45%"
        monkeypatch.setattr(shown.monitor, "loaded", lambda: 0.5)
        app.panel.show(shown)
        assert app.subtitle_words == "found at the end of its log; reading 50%"


async def test_badges_where_there_is_little_room() -> None:
    text = await shown(sick(), (36, 3))
    assert "✖ policy-collapse ▲ kl-high +1" in text
    assert "✖ policy-collapse ▲ kl-high • response-long" in await shown(sick(), (60, 3))
    assert "+2" in await shown(sick(), (24, 3))


async def test_the_edge_counts() -> None:
    app = Host(HealthPanel())
    async with app.run_test(size=(60, 12)) as pilot:
        app.panel.show(view(COLLAPSE, KL_HIGH, replace(KL_HIGH, key="other")))
        await pilot.pause()
        assert (
            app.subtitle_words == "1 critical · 2 warnings · 2 not applicable (v: why)"
        )
        await pilot.resize_terminal(34, 12)
        await pilot.pause()
        assert app.subtitle_words == "✖ 1 · ▲ 2 · 2 not applicable"
        app.panel.show(make_view())
        assert app.subtitle_words == ""


async def test_nothing_new_repaints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Host(HealthPanel())
    async with app.run_test(size=(120, 20)) as pilot:
        await pilot.press("j", "enter")
        for size in ((120, 20), (40, 12), (36, 5)):
            await pilot.resize_terminal(*size)
            for _ in range(3):
                app.panel.show(sick())
                await pilot.pause()
            with monkeypatch.context() as patch:
                counts = count_paints(patch)
                app.panel.show(sick())
                await pilot.pause()
                assert not counts, size


async def test_the_scroll_bar_goes_when_it_is_no_longer_needed() -> None:
    app = Host(HealthPanel())
    async with app.run_test(size=(40, 8)) as pilot:
        app.panel.show(sick())
        await pilot.pause()
        await pilot.resize_terminal(40, 3)
        await pilot.pause()
        await pilot.pause()
        assert not app.panel.query_one("Rows, Entries").show_vertical_scrollbar


CLIFF = Finding(
    "reward-cliff",
    Severity.WARNING,
    "The reward fell.",
    4990,
    4930,
    key="r",
    consequence_of="policy-collapse",
)
FOLLOWS = replace(KL_HIGH, consequence_of="policy-collapse")


async def test_what_only_follows_is_counted_and_unfolds() -> None:
    what = view(COLLAPSE, FOLLOWS, CLIFF, LONG)
    text = await shown(what, (60, 24))
    assert "+2 consequences: kl-high, reward-cliff" in text
    assert "The KL is above" not in text
    assert "1 critical · 1 info" in text
    unfolded = await shown(what, (60, 30), "j", "space")
    assert (
        unfolded.index("policy-collapse")
        < unfolded.index("+2 consequences")
        < unfolded.index("▲ kl-high")
    )
    assert (
        unfolded.index("The KL is above")
        < unfolded.index("▲ reward-cliff")
        < unfolded.index("response-long")
    )
    assert "1 critical · 1 info" in unfolded


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_consequences_at_any_size(ascii_only: bool) -> None:
    what = replace(view(COLLAPSE, FOLLOWS, CLIFF), ascii_only=ascii_only)
    app = Host(HealthPanel())
    async with app.run_test(size=SIZES[0]) as pilot:
        for size in SIZES:
            await pilot.resize_terminal(*size)
            app.panel.show(make_view())  # after which all is folded
            app.panel.show(what)
            await pilot.press("j", "space", "j", "space", "j", "k")
            await pilot.pause()
            assert app.lines, size


async def test_stepping_through_findings_passes_over_what_is_folded() -> None:
    app = Host(HealthPanel())
    async with app.run_test(size=(60, 24)) as pilot:
        app.panel.show(view(COLLAPSE, FOLLOWS, CLIFF, LONG))
        await pilot.pause()
        steps = [app.panel.choose_next(1) for _ in range(3)]
        assert [one and one.id for one in steps] == [
            "policy-collapse",
            "response-long",
            "policy-collapse",
        ]
        app.panel.action_unfold()
        await pilot.pause()
        steps = [app.panel.choose_next(1) for _ in range(3)]
        assert [one and one.id for one in steps] == [
            "kl-high",
            "reward-cliff",
            "response-long",
        ]
