"""The main job, as the README has it: `make paper`, with a handful of runs, and from the recorded
campaign.
"""

import hashlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from nbhelpers.answers import Answered, read_answers
from nbhelpers.lab import shipped_answers

from .pages import check, dead_links, look
from .processes import run

REPOSITORY = Path(__file__).resolve().parent.parent
RECORDED = REPOSITORY / "data" / "recorded"
MOST_PX, MOST_WORDS = 4500, 900  # of a page, for somebody who has five minutes
_SAYS = 'class="output_subarea output_stream output_stderr'  # a warning stands on the page


def make_paper(profile: str) -> list[str]:
    command = ["make", "-j2", "paper", f"PROFILE={profile}", f"PY={sys.executable}"]
    # `make test` may be what runs us
    outside = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    result = run(*command, cwd=REPOSITORY, env=outside)
    assert result.returncode == 0, result.stdout + result.stderr
    pages = (REPOSITORY / "build" / profile / "pages").glob("*.html")
    assert not [page.stem for page in pages if _SAYS in page.read_text()]
    *made, last = result.stdout.splitlines()
    assert last == f"Open build/{profile}/paper/index.html"
    return [line.split()[0] for line in made if line.endswith(".html")]


def results(profile: str) -> dict[str, str]:
    folder = REPOSITORY / "build" / profile / "results"
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def said(answers: Iterable[Answered]) -> dict[str, tuple]:
    return {one.stage: (one.answer.answer, one.answer.sentence) for one in answers}


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_whole_pipeline_runs_here_and_a_second_time_does_nothing():
    """From nothing: data of an older library are kept aside, since its configs may have been
    others.
    """
    run("make", "measure-again", "PROFILE=smoke", cwd=REPOSITORY, check=True)
    make_paper("smoke")
    paper = (REPOSITORY / "build/smoke/paper/index.html").read_text()
    assert "no conclusions" in paper and "Persson" in paper
    assert make_paper("smoke") == []


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_recorded_campaign_gives_the_same_bytes_every_time_and_the_shipped_answers():
    """Its campaigns refuse another noise than was injected: so who changes trace, average, delta or
    merge sees here that the recorded replays were of something else.
    """
    make_paper("recorded")
    before = results("recorded")
    for copy in RECORDED.glob("*/handed-on/*"):  # what a notebook that runs alone starts from
        made = before[f"{copy.parents[1].name}/{copy.name}"]
        assert made == hashlib.sha256(copy.read_bytes()).hexdigest(), copy
    made = said(read_answers(REPOSITORY / "build/recorded/results"))
    shipped = said(shipped_answers().values())
    both = made.keys() & shipped.keys()  # the answer of an extra's page may not be shipped
    assert len(both) > 15 and not [stage for stage in both if made[stage] != shipped[stage]]
    for stage in ("20-delta-config", "50-attribution"):
        words = ("-m", "nbhelpers", "stage", stage, "--profile", "recorded")
        run(sys.executable, *words, cwd=REPOSITORY, check=True)
    assert results("recorded") == before and len(before) > 40
    figure = REPOSITORY / "build/recorded/results/35-planted-anomaly/planted.png"
    assert figure.read_bytes() == (REPOSITORY / "docs/figures/planted.png").read_bytes(), "README's"
    front = (REPOSITORY / "build/recorded/paper/index.html").read_text()
    assert "nothing measured on your machine" in front


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_page_of_the_recorded_campaign_can_be_read(opened):
    make_paper("recorded")
    build = REPOSITORY / "build" / "recorded"
    paths = [*sorted((build / "pages").glob("[0-8]*.html")), build / "paper" / "index.html"]
    pages = [look(opened, path.resolve()) for path in paths]
    assert len(pages) > 15
    for seen in pages:
        check(seen)
        assert seen.heights[1280] <= MOST_PX and seen.words <= MOST_WORDS, seen.path.name
        assert seen.answer_ends is not None or seen.path.name == "index.html", seen.path.name
        assert dead_links(seen, {one.path: one.ids for one in pages}) == [], seen.path.name
