"""The front page of the paper: what stands on it, how long it is, and that its links lead on."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from nbhelpers.answers import Answer, write_answer
from nbhelpers.files import write_json
from nbhelpers.paper import Front, write_paper
from nbhelpers.paper._front import FIRST, SUMMARY
from nbhelpers.study import NOTEBOOKS, question

STAGES = sorted(path.stem for path in NOTEBOOKS.glob("[0-9]*.ipynb"))
STAGES = [stage for stage in STAGES if stage not in ("01-your-program", "02-workbench", "90-paper")]
SAID = Answer(
    "no",
    "The replay takes <half> as long as the anomaly took: 0.52 (0.50 to 0.55, n = 30 rounds).",
    "replayed over recorded run time",
    *(0.52, 0.50, 0.55),
    n=30,
    n_of="rounds",
    published="8.6 % (Persson et al. 2025, Table 7)",
)
INTERVAL = Answer("page faults", "Page faults.", "share", 12.0, 10.0, 15.0, "%", 40)
NOTHING = Answer("cannot tell here", "No number.")
VIEW = '<div class="linked-view">runs</div>'


def study_of(build: Path, answers=(SAID, INTERVAL, NOTHING)) -> Path:
    """A profile whose stages have all answered."""
    for number, stage in enumerate(STAGES):
        folder = build / "results" / stage
        folder.mkdir(parents=True)
        answer = answers[number % len(answers)]
        write_answer(folder / "found.json", stage, question(stage), answer, [])
        page = build / "pages" / f"{stage}.html"
        page.parent.mkdir(exist_ok=True)
        page.write_text("<p>page</p>")
    machine = {"cpu_model": "AMD EPYC", "cpus": [0, 1], "kernel": "6.1.2-x"}
    write_json(build / "provenance" / "00-machine.json", {"data_from": machine})
    return build


class Words(HTMLParser):
    """What a reader sees: text outside head and styles."""

    def __init__(self, page: str):
        super().__init__()
        self.found: list[str] = []
        self.links: list[str] = []
        self._hidden = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self._hidden = tag if tag in ("style", "title", "script") else self._hidden
        self.links += [value for name, value in attrs if name == "href" and tag == "a"]

    def handle_endtag(self, tag):
        self._hidden = "" if tag == self._hidden else self._hidden

    def handle_data(self, data):
        self.found += [] if self._hidden else data.split()


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """The front page of that profile; the notebook of its summary shows a linked view."""
    build = study_of(tmp_path_factory.mktemp("study") / "quick")
    outputs = [{"data": {"text/html": html.splitlines(keepends=True)}} for html in ("<p>", VIEW)]
    cells = [{"source": "# 15"}, {"outputs": [{"text": "said"}, *outputs]}]
    write_json(build / "notebooks" / "15-account.ipynb", {"cells": cells})
    return write_paper(build)


def test_each_stage_has_a_card_or_a_line_with_its_question_and_answer(index):
    page = index.read_text()
    card = r'<h2><a href="\.\./pages/(.+?)\.html">.*?</a></h2>(.*?)</article>'
    cards = dict(re.findall(card, page, re.S))
    lines = dict(re.findall(r'<li class="\w+"><a href="\.\./pages/(.+?)\.html">(.*?)</li>', page))
    assert set(cards) | set(lines) == set(STAGES) and list(cards) == list(FIRST)
    assert len(cards) == 7 and not set(cards) & set(lines)
    said = cards[next(stage for stage in FIRST if not STAGES.index(stage) % 3)]
    assert '"word">No</p>' in said and "0.52 (0.5 to 0.55), n = 30 rounds" in said
    assert "Published: 8.6 % (Persson 2025, Table 7)" in said
    assert "as long as the anomaly took" in said
    assert '"word">page faults' in page and "Cannot tell here" in page
    assert (
        "AMD EPYC, 2 CPUs, Linux 6.1.2, bare metal or virtual." in page and "Profile quick" in page
    )
    assert "&lt;half&gt;" in page and "<half>" not in page


def test_the_front_page_begins_with_the_summary_and_the_runs(index):
    page = index.read_text()
    answers = {one.stage: one.answer.sentence for one in Front(index.parent.parent).answers}
    assert page.index(answers[SUMMARY[0]].split("<")[0]) < page.index(VIEW) < page.index("<article")


def test_every_link_leads_to_a_file(index):
    for page in index.parent.glob("*.html"):
        for link in Words(page.read_text()).links:
            if not link.startswith(("#", "https:")):
                assert (page.parent / link.split("#")[0]).exists(), (page.name, link)


def test_in_a_notebook_the_cards_lead_to_notebooks(tmp_path):
    front = Front(study_of(tmp_path / "quick"))
    links = Words(front._repr_html_()).links
    assert sorted(links) == [f"{stage}.ipynb" for stage in STAGES]
    assert f"{question('00-machine')} no." in repr(front)
    assert "no stage has answered" in repr(Front(tmp_path / "nothing"))
