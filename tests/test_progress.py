"""Progress: what is shown where and when, on a real terminal (a pty), in a real kernel, in a pipe,
and not at all.
"""

import contextlib
import io
import os
import pty
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nbhelpers import progress
from nbhelpers.progress import each, for_command, reporting, task
from nbhelpers.reading import read_json

from .processes import run_python

REPOSITORY = Path(__file__).resolve().parent.parent
SLOW = """
import time
from nbhelpers.progress import each
for name in each(range(6), "weighing", "stones"):
    time.sleep({pause})
print("done")
"""


class Noted(progress._Screen):
    """A terminal that keeps what it shows, and when."""

    def __init__(self):
        self.lines, self.at_s = [], []

    def show(self, row: int, line: str) -> None:
        self.lines.append(line)
        self.at_s.append(time.monotonic())


@pytest.fixture
def noted(monkeypatch):
    screen = Noted()
    monkeypatch.setattr(progress, "_places", [(screen, "")])
    return screen


def on_a_terminal(code: str) -> tuple[str, str]:
    """What a Python program writes to its standard error, a terminal, and to its standard output, a
    pipe.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, text=True
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while read := os.read(ours, 4096):
            shown += read
    os.close(ours)
    return shown.decode(), process.communicate()[0]


def test_a_script_on_a_terminal_shows_a_bar_after_two_seconds_and_what_it_was():
    shown, printed = on_a_terminal(SLOW.format(pause=0.6))
    lines = shown.split("\r")
    assert printed == "done\n"
    assert any(re.match(r"weighing:  67%\|.*\| 4/6 stones \[00:0[2-9]<", line) for line in lines), (
        shown
    )
    assert "1/6" not in shown and "2/6" not in shown, "before two seconds nothing is shown"
    assert any(re.match("weighing: 6 stones in 00:0[3-9]", line) for line in lines[-2:]), shown


def test_without_a_terminal_nothing_is_written():
    code = "from nbhelpers.progress import task\nwith task('x', urgent=True): print('done')"
    done = run_python(code)
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_at_most_twice_a_second_without_a_thread(noted, monkeypatch):
    monkeypatch.setattr(progress, "LONG_S", 0.0)
    for _ in each(range(150), "counting", "grains"):
        time.sleep(0.005)
    threads = [type(one).__name__ for one in threading.enumerate()]
    assert "TMonitor" not in threads, "it would look at the bars during runs"
    *during, _ = noted.at_s
    assert all(later - earlier >= 0.45 for earlier, later in zip(during, during[1:]))
    assert len(during) >= 2 and noted.lines[-1].startswith("counting: 150 grains in 00:0")


def test_other_threads_and_forked_children_say_nothing(noted):
    def beside():
        with task("beside", urgent=True):
            pass

    with task("own", urgent=True):
        thread = threading.Thread(target=beside)
        thread.start()
        thread.join()
        child = os.fork()
        if child == 0:
            try:
                beside()
            finally:
                os._exit(len(noted.lines))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert set(noted.lines) == {"own", ""}


def test_an_error_ends_the_bar_and_a_closed_log_ends_nothing(noted):
    with pytest.raises(ZeroDivisionError), task("dividing", urgent=True):
        1 / 0
    assert noted.lines[0] == "dividing" and noted.lines[-1] == ""
    closed = io.StringIO()
    closed.close()
    with reporting(closed), task("goes on", urgent=True) as bar:
        bar.update(1)


def test_a_log_has_a_line_when_a_step_begins_and_one_when_it_has_ended(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(progress, "LONG_S", 0.3)
    monkeypatch.setattr(progress, "EVERY_S", 0.1)
    monkeypatch.setattr(sys, "stderr", log)
    with for_command():
        with task("measuring", 4, "runs", urgent=True) as runs:
            for _ in range(4):
                with task("within", 2, "parts", urgent=True) as parts:
                    time.sleep(0.15)
                    parts.update(2)
                runs.update(1)
        with task("trying a", urgent=True) as tried:
            tried.set_description_str("trying b")
        with task("quick", 1):
            pass
    begun, ended, *others = log.getvalue().split("\n")
    assert begun == "measuring: 4 runs" and ended.startswith("measuring: 4 runs in 00:0")
    assert others == ["trying a", "trying b", ""]


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_stages_kernel_shows_the_bar_on_the_terminal_of_make(tmp_path):
    """A kernel started as `stages` starts it: the bar is on the terminal, not in the notebook, and
    programs that are measured do not see its head.
    """
    cell = (
        "import os\nfrom nbhelpers.progress import task\n"
        "with task('measuring nbody', 4, 'runs', urgent=True):\n"
        "    assert 'NOISEBOOK_PROGRESS' not in os.environ"
    )
    code = f"""
import nbformat, os
from pathlib import Path
from nbhelpers import stages
from nbhelpers.stages import shown
cells = [nbformat.v4.new_code_cell({cell!r})]
nbformat.write(nbformat.v4.new_notebook(cells=cells), {str(tmp_path / "a.ipynb")!r})
stages.notebook_of = lambda stage: Path({str(tmp_path / "a.ipynb")!r})
with shown("10-trace-collection", 90.0):
    stages._execute("a", Path({str(tmp_path / "b.ipynb")!r}), {{}})
print("NOISEBOOK_PROGRESS" in os.environ)
"""
    shown, printed = on_a_terminal(code)
    head = "10-trace-collection (about 90 s): "
    lines = [line.strip() for line in shown.split("\r")]
    assert f"{head}starting" in lines, shown
    assert any(line.startswith(f"{head}measuring nbody:   0%|") for line in lines), shown
    assert lines[-1] == "" and "\n" not in shown.split("starting")[-1], "nothing stays"
    (made,) = read_json(tmp_path / "b.ipynb")["cells"]
    assert "measuring" not in str(made["outputs"])
    assert printed == "False\n"


NOTEBOOK = """
import time
from nbhelpers.progress import each, task
for _ in each(range(5), 'weighing', 'stones'): time.sleep(0.45)
with task('quick'): pass
with task('second', urgent=True): time.sleep(2.1)
"""
ENDED = r">weighing: 5 stones in 00:(\d\d)\nsecond: 00:(\d\d)<"  # later beside other work


@pytest.mark.timeout(120)
def test_in_a_notebook_the_bar_is_updated_and_ends_short(tmp_path):
    """A real kernel: what is left in the outputs, and on the exported page, is one short line for
    each long task.
    """
    import nbformat
    from nbclient import NotebookClient

    from nbhelpers.page import export_page

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NOTEBOOK)])
    updates = []
    client = NotebookClient(
        notebook, kernel_name="python3", resources={"metadata": {"path": str(REPOSITORY)}}
    )
    handle = client.process_message
    client.process_message = lambda message, *given: (
        updates.append(message["msg_type"]),
        handle(message, *given),
    )[1]
    client.execute()
    outputs = notebook.cells[0].outputs
    assert [output.output_type for output in outputs] == ["display_data"]
    html = outputs[0].data["text/html"]
    [(weighing_s, second_s)] = re.findall(ENDED, html)
    assert min(int(weighing_s), int(second_s)) >= 2 and "quick" not in html
    # at most twice a second, and at the end of each
    most = 2 * (int(weighing_s) + int(second_s) + 2) + 2
    assert 2 <= updates.count("update_display_data") <= most
    nbformat.write(notebook, tmp_path / "a.ipynb")
    page = export_page(tmp_path / "a.ipynb", tmp_path / "a.html").read_text()
    assert re.search(ENDED, page) and "5/5" not in page
