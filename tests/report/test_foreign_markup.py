"""Whatever a log holds, the elements and attributes of a report and of its pictures are our own."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st
from property_examples import examples
from reported import REWARD, report_of, rising

from verl_tui.records import Sample
from verl_tui.report.documents import report_text, write_charts

MARK = "zqx"
"""Stands in all foreign elements and attributes, and in nothing of ours."""
FOREIGN = st.lists(
    st.sampled_from(
        (
            f"<{MARK}>", f"</svg></text><{MARK}/>", f'" on{MARK}="', f"' {MARK}='1", f"<!-- {MARK}",
            f"<![CDATA[<{MARK}>", "]]>", "-->", f"&lt;{MARK}&gt;", "&#60;", f"<?{MARK}?>", "<!DOCTYPE x",
            "</style>", "</pre>", "</title>", "<", ">", '"', "&", "\x00", "\x1b[31m", "\ud800", " ",
        )
    ),
    min_size=1, max_size=5,
).map("".join)  # fmt: skip


class Shape(HTMLParser):
    """The elements of a page with the names of their attributes, and what is no element."""

    def __init__(self, page):
        super().__init__()
        self.found: set[tuple[str, ...]] = set()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.add((tag, *sorted(name for name, _ in attrs)))

    def handle_comment(self, data):
        self.found.add(("comment", data))

    def unknown_decl(self, data):
        self.found.add(("declaration", data))

    def handle_pi(self, data):
        self.found.add(("instruction", data))


@settings(max_examples=examples(0.3))
@given(run=FOREIGN, metric=FOREIGN, text=FOREIGN)
def test_no_element_and_no_attribute_comes_from_a_log(run, metric, text):
    samples = [Sample(9, text, text, 1.0, text)]
    columns = {REWARD: rising(9), metric: rising(9)}
    report = report_of({run: columns, "b": columns}, {run: samples})
    shape = Shape(report_text(report, "html", [], "-")).found
    assert not [one for one in shape if MARK in "".join(one)]
    assert not {one[0] for one in shape} & {
        "comment",
        "declaration",
        "instruction",
        "script",
        "img",
    }
    with TemporaryDirectory() as folder:
        for path in write_charts(report, Path(folder)):
            for element in ElementTree.parse(path).iter():
                assert MARK not in f"{element.tag} {' '.join(element.attrib)}"
