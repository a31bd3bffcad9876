"""`verl-tui report` on files: forms, what is refused, and the page in a browser."""

from __future__ import annotations

from typing import Any

import pytest
from browser import page
from jsonl import write_jsonl

from verl_tui.cli import main

HOSTILE = "<img src=x onerror=alert(1)>"


def write(folder, by=0.01):
    """Write the log of a run of 40 steps whose KL explodes, with a dump of samples."""
    lines = [
        {"step": s, "data": {"critic/score/mean": by * s, "actor/ppo_kl": 0.8 if s > 25 else 0.01}}
        for s in range(1, 41)
    ]  # fmt: skip
    write_jsonl(folder / "train.jsonl", lines)
    rows = [
        {"input": "2+2?", "output": f"{HOSTILE} {n}", "score": n, "step": 40}
        for n in range(3)
    ]
    write_jsonl(folder / "rollouts" / "40.jsonl", rows)
    return folder


@pytest.fixture
def run(tmp_path):
    return write(tmp_path / "run_7")


@pytest.mark.parametrize("ending", ["md", "html", "json"])
def test_the_ending_says_the_form(run, ending, asked):
    out = run.parent / f"report.{ending}"
    assert asked("report", run, "-o", out, code=0).err == f"wrote {out}\n"
    text = out.read_text(encoding="utf-8")
    begins = {"md": "# run\\_7", "html": "<!DOCTYPE html>", "json": '{"version": 1'}
    assert text.startswith(begins[ending])
    assert "img src=x onerror=alert(1)" in text
    assert "chosen from 3 samples" in text
    assert sorted(path.name for path in run.parent.iterdir()) == [out.name, "run_7"]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ([], 64, "name a file with -o"),
        (["-o", "{folder}/r.pdf"], 64, "ends in .md, .html or .json"),
        (["-o", "{folder}/s.html", "--status"], 64, "--status writes Markdown"),
        (["-o", "{folder}/s.HTM", "--format", "json"], 64, "s.HTM: --format html goes with this ending, --format json with .json"),
        (["-o", "{folder}", "--format", "md"], 73, "is a directory"),
        (["-o", "{folder}/none/r.md"], 73, "there is no directory"),
        (["-o", "{folder}/there.md"], 73, "there.md exists: --force replaces it"),
        (["-o", "{folder}/link.md"], 73, "link.md exists"),
        (["-o", "{folder}/r.md", "--baseline", "nobody"], 64, "nobody is none of the runs"),
    ],
)  # fmt: skip
def test_what_is_refused(run, words, code, sentence, capsys):
    folder = run.parent
    (folder / "there.md").write_text("mine")
    (folder / "link.md").symlink_to(folder / "nowhere")
    assert (
        main(["report", str(run), *(word.format(folder=folder) for word in words)])
        == code
    )
    assert sentence in capsys.readouterr().err
    assert (folder / "there.md").read_text() == "mine"
    assert not (folder / "nowhere").exists()


def test_force_replaces_a_file_and_never_writes_through_a_link(run):
    mine = run.parent / "mine.md"
    link = run.parent / "link.md"
    mine.write_text("mine")
    link.symlink_to(mine)
    assert main(["report", str(run), "-o", str(link), "--force"]) == 0
    assert mine.read_text() == "mine"
    assert not link.is_symlink()
    assert main(["report", str(run), "-o", str(mine), "--force"]) == 0
    assert mine.read_text().startswith("# run\\_7")


def test_charts_beside_a_report(run, asked):
    folder = run.parent / "out"
    words = [
        "report",
        str(run),
        "-o",
        str(run.parent / "r.md"),
        "--charts",
        str(folder),
    ]
    assert main(words) == 0
    assert {path.name for path in folder.iterdir()} == {"reward.svg", "policy-kl.svg"}
    assert "](out/policy-kl.svg)" in (run.parent / "r.md").read_text()
    other = [
        str(run.parent / "other.md") if word.endswith("r.md") else word
        for word in words
    ]
    assert "reward.svg" in asked(*other, code=73).err
    assert not (run.parent / "other.md").exists()


@pytest.mark.browser
async def test_the_page_in_a_browser(tmp_path):
    write(tmp_path / "runs" / HOSTILE)
    write(tmp_path / "runs" / "other", 0.02)
    out = tmp_path / "r.html"
    assert main(["report", str(tmp_path / "runs"), "-o", str(out)]) == 0
    heard: list[dict[str, Any]] = []
    async with page("about:blank") as opened:
        for domain in ("Log", "Runtime", "Page"):
            await opened.call(f"{domain}.enable")
        opened.listen("Log.entryAdded", heard.append)
        opened.listen("Runtime.consoleAPICalled", heard.append)
        opened.listen("Runtime.exceptionThrown", heard.append)
        opened.listen("Page.javascriptDialogOpening", heard.append)
        await opened.call("Page.navigate", url=out.as_uri())
        for width in (1200, 400):
            size = {
                "width": width,
                "height": 800,
                "deviceScaleFactor": 1,
                "mobile": False,
            }
            await opened.call("Emulation.setDeviceMetricsOverride", **size)
            seen = await opened.value(
                "[document.readyState, document.querySelectorAll('svg.chart path').length,"
                " document.images.length, document.scripts.length, document.body.innerText,"
                " document.documentElement.scrollWidth, getComputedStyle(document.body).maxWidth]"
            )
            state, paths, images, scripts, text, wide, most = seen
            assert (state, images, scripts, most) == ("complete", 0, 0, "1180px")
            assert paths > 10
            assert HOSTILE in text
            assert wide <= width
        assert opened.asked_for <= {out.as_uri()}
        assert not opened.refused
    assert heard == []
