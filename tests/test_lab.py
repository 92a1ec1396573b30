"""`make lab`: copies that nobody overwrites, the contents, and notebooks that run by themselves."""

import html
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from nbhelpers import lab
from nbhelpers.errors import InputError
from nbhelpers.profiles import default_parameters, parameters_of
from nbhelpers.reading import read_json
from nbhelpers.study import NO_STAGES, NOTEBOOKS, notebook_files

from . import record
from .record import readme_table

REPOSITORY = Path(__file__).resolve().parent.parent
STAGES = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb") if path.stem not in NO_STAGES)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Results in a folder of this test's own."""
    for module in ("lab", "study"):
        monkeypatch.setattr(f"nbhelpers.{module}.results", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("stage", STAGES)
def test_a_notebook_by_itself_measures_here_as_much_as_the_quick_study(stage):
    assert parameters_of(stage, "quick") == {"profile": "quick"}
    assert parameters_of(stage, "here") == {"profile": "here"}
    assert default_parameters(stage)["profile"] == "here"


def source(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in read_json(path)["cells"]]


def test_a_copy_has_the_parameters_of_its_profile(elsewhere):
    folder = lab.working_copies("smoke")[0]
    spaces: dict = {}
    exec(source(folder / "30-injection.ipynb")[1], spaces)
    assert spaces["profile"] == "smoke" and spaces["runs"] == 3
    # Python 3.14 keeps the annotations of the cell as a function
    assert {"__annotations__", "__annotate__"} & set(spaces) and spaces["placement"] == "roam"


def test_the_links_of_a_copy_lead_somewhere(elsewhere):
    folder = lab.working_copies("recorded")[0]
    assert sorted(path.name for path in folder.glob("*.ipynb")) == sorted(
        path.name for path in notebook_files().values()
    )
    for path in folder.glob("*.ipynb"):
        for text in source(path):
            for target in re.findall(r"\]\(([^)#:]+)\)", text):
                assert (folder / target).exists(), (path.name, target)


def changed(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_what_somebody_changed_is_never_overwritten(elsewhere):
    folder = lab.working_copies("recorded")[0]
    mine, executed = folder / "30-injection.ipynb", folder / "00-machine.ipynb"
    changed(mine, "runs: int = 60", "runs: int = 7")
    changed(executed, '"outputs": []', '"outputs": [{"output_type": "stream"}]')
    before = mine.read_bytes(), executed.read_bytes()
    assert lab.working_copies("recorded")[1] == ["30-injection"]
    assert before == (mine.read_bytes(), executed.read_bytes())


def test_a_copy_that_nobody_changed_follows_the_notebook(elsewhere, tmp_path, monkeypatch):
    originals = tmp_path / "notebooks"
    originals.mkdir()
    shutil.copy(NOTEBOOKS / "00-machine.ipynb", originals)
    files = {path.stem: path for path in originals.iterdir()}
    monkeypatch.setattr(lab, "notebook_files", lambda: files)
    copy = lab.working_copies("recorded")[0] / "00-machine.ipynb"
    changed(originals / "00-machine.ipynb", "seconds: float = 1.0", "seconds: float = 2.0")
    assert not lab.working_copies("recorded")[1]
    assert "seconds: float = 2.0" in copy.read_text()


def test_the_contents_name_every_notebook_with_question_and_answer():
    shown = lab.contents("recorded").to_html()
    links = re.findall(r'href="([^"]+)\.ipynb"', shown)
    assert links == [stage for stage in notebook_files() if stage not in ("contents", "90-paper")]
    for stage, one in lab.answers("recorded").items():
        assert stage not in links or html.escape(one.question) in shown


def test_the_readme_has_the_shipped_answers():
    text = (REPOSITORY / "README.md").read_text()
    assert readme_table() in text


def test_answers_that_are_shipped_are_not_lost_where_they_were_not_made(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "results", lambda: tmp_path)
    before = (REPOSITORY / "data/recorded/answers.json").read_bytes()
    with pytest.raises(InputError, match="extra EXTRA=known_causes; make paper PROFILE=recorded"):
        record.ship_answers()
    assert before == (REPOSITORY / "data/recorded/answers.json").read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        ["--ip=0.0.0.0", "--IdentityProvider.token="],
        ["--ServerApp.ip=", "--ServerApp.token=''"],
        ["--ServerApp.ip=10.0.0.1", '--ServerApp.token=""', "--no-browser"],
        ["--ip", "0.0.0.0", "--IdentityProvider.token="],
        ["--ip", "0.0.0.0", "--IdentityProvider.token", ""],
        ["--IdentityProvider.token", "--ip", "::"],
    ],
)
def test_a_lab_that_is_open_to_everybody_is_refused(options):
    with pytest.raises(InputError, match="without a token"):
        lab.checked_options(options)


def test_an_address_of_the_users_own_is_the_only_one_else_it_is_loopback():
    for options in (["--ip=0.0.0.0"], ["--ServerApp.ip", "10.0.0.1", "--port=8889"]):
        assert lab.checked_options(options) == options
    for options in ([], ["--IdentityProvider.token="], ["--port", "8889"]):
        assert lab.checked_options(options) == ["--ServerApp.ip=127.0.0.1", *options]


@pytest.mark.long
@pytest.mark.timeout(120)
def test_the_server_asks_for_its_token_and_listens_on_loopback_only():
    """As `make lab` starts it, but for the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "nbhelpers", "lab", "--", "--no-browser", f"--port={port}"]
    server = subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 90
        while not (listening := addresses(port)) and time.monotonic() < until:
            time.sleep(0.1)
        assert listening == {"0100007F"}, "127.0.0.1 alone"
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/contents", timeout=20)
        assert refused.value.code == 403
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/lab", timeout=20) as page:
            assert "/login" in page.url
    finally:
        server.terminate()
        server.wait(30)


def addresses(port: int) -> set[str]:
    """The addresses that somebody listens on at a port, as /proc/net/tcp writes them."""
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    found = [(row[1].split(":"), row[3]) for row in rows]
    return {place[0] for place, state in found if int(place[1], 16) == port and state == "0A"}
