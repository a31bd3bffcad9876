"""The health panel: findings worst first, and what unfolds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from panel_host import Host
from run_views import make_run, make_view

from verl_tui.health.finding import Finding, NotJudged, Severity, Verdict
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
    "kl-high", Severity.WARNING, "The KL is above 0.02.", 4990, 4700, ("0.031",), "Raise it.", "doc", "kl"
)  # fmt: skip
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


async def test_findings_with_their_message_and_step():
    text = await shown(sick(), (50, 16))
    assert (
        text.index("✖ policy-collapse")
        < text.index("▲ kl-high")
        < text.index("• response-long")
    )
    assert "since step 4930" in text
    assert "The reward fell from 3.1 to 0.4" in text
    assert "kl_coef" not in text
    assert "not applicable" not in text, "only who asks is told"
    assert "the log has no" not in text
    asked = await shown(sick(), (50, 30), "v")
    assert "2 rules not applicable" in asked
    assert "the log has no gpu-idle" in asked


async def test_a_finding_unfolds_and_folds():
    app = Host(HealthPanel())
    async with app.run_test(size=(60, 24)) as pilot:
        app.panel.show(sick())
        await pilot.press("j", "j")
        await pilot.press("space")
        assert "· 0.031" in app.text
        assert "→ Raise it." in app.text
        assert "source: doc" in app.text
        assert "Set kl_coef" not in app.text
        await pilot.press("space")
        assert "Raise it." not in app.text
        assert app.said == []
        await pilot.press("enter")
        assert "Raise it." not in app.text
        assert app.said == ["kl-high"]
        # So does what was not judged.
        await pilot.press("v")
        assert "gpu-idle: the log has no gpu-idle" in app.text
        await pilot.press("v")
        assert "gpu-idle" not in app.text


async def test_mouse():
    app = Host(HealthPanel())
    async with app.run_test(size=(60, 24)) as pilot:
        app.panel.show(sick())
        await pilot.pause()
        row = next(i for i, line in enumerate(app.lines) if "kl-high" in line)
        await pilot.click(HealthPanel, offset=(5, row))
        assert app.said == []
        await pilot.double_click(HealthPanel, offset=(5, row))
        await pilot.pause()
        assert app.said == ["kl-high"]
        assert "Raise it." not in app.text


CLIFF = Finding(
    "reward-cliff", Severity.WARNING, "The reward fell.", 4990, 4930, key="r", consequence_of="policy-collapse"
)  # fmt: skip
FOLLOWS = replace(KL_HIGH, consequence_of="policy-collapse")


async def test_what_only_follows_is_counted_and_unfolds():
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
