"""The written forms of a report: foreign text stays text, nothing is silently left out."""

from __future__ import annotations

import json
import re
from math import inf, nan
from pathlib import Path
from xml.etree import ElementTree

import pytest
from colours import contrast
from reported import COMMAND, KL, NOW, REWARD, monitor_of, report_of, rising

from verl_tui import __version__
from verl_tui.records import Sample
from verl_tui.rendering.session.notes import NoteBook
from verl_tui.report.documents import report_text
from verl_tui.report.record import make_report
from verl_tui.report.svg import PAGE_STYLE, policy

HOSTILE = "<img src=x onerror=alert(1)>"
FORMS = ("html", "md", "json")


def form(report, name):
    return report_text(report, name, [], "-")


def bad(name="a"):
    """Return a run whose KL explodes."""
    return {name: {REWARD: rising(), KL: [0.01] * 40 + [0.8] * 20}}


def asked(step, score, response):
    return Sample(step, "2+2?", response, score, "4")


@pytest.mark.parametrize("name", FORMS)
def test_each_form_has_verdict_figures_finding_and_how_it_was_made(name):
    text = form(report_of(bad() | {"b": {REWARD: rising()}}), name)
    for words in (
        "circuit-breaker-kl",
        "critical",
        "learning rate",
        __version__,
        "a: b",
    ):
        assert words in text
    assert "verl-tui report runs -o r.html" in text


@pytest.mark.parametrize("runs", [1, 8])
@pytest.mark.parametrize(
    "values", [[nan] * 30, [inf] * 30, [0.5], [-1e308, 1e308], [0.0] * 30]
)
def test_odd_runs_are_written_in_each_form(runs, values):
    report = report_of({f"run{at}": {REWARD: values} for at in range(runs)})
    html, _, data = (form(report, name) for name in FORMS)
    assert json.loads(data, parse_constant=pytest.fail)["version"] == 1
    assert html.endswith("</html>\n")
    for figure in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        ElementTree.fromstring(figure)


def test_hostile_names_and_samples_stay_text():
    name = f"{HOSTILE}`|@x\x1b[31m"
    samples = [asked(60, 1.0, "</pre><script>alert(1)</script>```\n```js")]
    report = report_of(
        bad(name) | {"b": {REWARD: rising(), f"<b>{HOSTILE}": [1.0] * 60}},
        {name: samples},
    )
    html = form(report, "html")
    assert "<img" not in html
    assert "<script" not in html
    assert html.count("&lt;img src=x onerror=alert(1)&gt;") > 3
    assert "\x1b" not in html
    markdown = form(report, "md")
    outside = re.sub(r"(`{3,})text\n.*?\n\1\n", "", markdown, flags=re.DOTALL)
    assert "\\<img" in outside
    assert not re.search(r"(?<!\\)<(?!/?(details|summary)>)", outside)
    assert "\x1b" not in markdown


@pytest.mark.parametrize("name", ["html", "md"])
def test_secrets_and_homes_are_hidden(name):
    command = "log in with api_key=abcdef123456 at /home/ann/x"
    report = report_of(
        bad("/home/ann/run"), {"/home/ann/run": [asked(60, 1.0, command)]}
    )
    text = form(report, name)
    assert "~/run" in text
    assert "abcdef123456" not in text
    assert "/home/ann" not in text


def test_the_page_allows_only_its_own_style():
    html = form(report_of(bad()), "html")
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style == PAGE_STYLE
    assert f'content="{policy(style)}"' in html
    assert policy(style).startswith("default-src 'none'; style-src 'sha256-")
    assert not re.search(r'\s(style|on\w+|src)="', html)
    assert "url(" not in style
    assert set(re.findall(r'href="([^"]*)"', html)) == {
        f"#{one}" for one in re.findall(r'<h2 id="(\w+)"', html)
    }


def test_the_data_have_no_number_that_json_does_not_know():
    values = [*rising(), nan, inf]
    found = json.loads(form(report_of({"a": {REWARD: values}}), "json"))
    (curve,) = found["charts"][0]["curves"]
    assert curve["not_finite"] == [61, 62]
    assert curve["steps"] == [*range(1, 61)]
    assert curve["least"] == curve["greatest"]
    assert found["runs"][0]["check"]["name"] == "a"
    assert found["comparison"]["baseline"] == "a"


def test_markdown_shows_charts_as_text_or_as_files():
    report = report_of(bad())
    text = report_text(report, "md", [], "-")
    assert "```text\nreward  0.69" in text
    assert "![" not in text
    charts = [Path("a b/reward.svg"), Path("a b/kl.svg")]
    linked = report_text(report, "md", charts, "report.md")
    assert "![reward](a%20b/reward.svg)" in linked
    assert "```text\nreward" not in linked


def test_a_report_on_a_hundred_runs_stays_small_and_says_what_it_leaves_out():
    report = report_of(
        {f"run{at}": {REWARD: rising(12, at / 1e4)} for at in range(100)}
    )
    coloured = [run.name for run in report.drawn.coloured]
    assert coloured == ["run0", *(f"run{at}" for at in range(95, 100))]
    said = " ".join(report.left_out)
    assert "Of 100 runs 6 have a colour" in said
    assert "samples and hours of 94 runs are not shown" in said
    for name in FORMS:
        text = form(report, name)
        assert len(text) < 2_000_000
        assert "curves of 40 runs are not drawn" in text
        assert text.count("run99") > 1


@pytest.mark.parametrize("ground", [0, 1])
def test_text_and_curves_can_be_seen_on_each_ground(ground):
    said: dict[str, list[str]] = {}
    for name, colour in re.findall(r"--([\w-]+):(#\w{6})", PAGE_STYLE):
        said.setdefault(name, []).append(colour)
    colours = {name: both[ground] for name, both in said.items()}
    for below in (colours["ground"], colours["card"]):
        for role in ("text", "muted", "healthy", "info", "warning", "critical"):
            assert contrast(colours[role], below) >= 4.5, role
        for role, colour in colours.items():
            if role.startswith(("run-", "of-")):
                assert contrast(colour, below) >= 3, role


@pytest.mark.parametrize("name", FORMS)
def test_notes_are_listed_and_marked_and_stay_text(name, tmp_path):
    monitor = monitor_of({"a": {REWARD: rising()}})
    runs = [*monitor.runs.values()]
    without = form(make_report(monitor, runs, NOW, COMMAND, NoteBook()), name)
    book = NoteBook(tmp_path / "state.json")
    book.write(runs[0], 7, f"rate halved {HOSTILE}")
    text = form(make_report(monitor, runs, NOW, COMMAND, book), name)
    assert "rate halved" in text
    assert "rate halved" not in without
    if name == "json":
        (run,) = json.loads(text)["runs"]
        assert run["notes"] == [{"step": 7, "text": f"rate halved {HOSTILE}"}]
        return
    assert HOSTILE not in text
    assert "step 7: rate halved" in text
    assert ("mark noted" if name == "html" else "✎") in text
    assert "Notes on steps" in text
    assert "Notes on steps" not in without
