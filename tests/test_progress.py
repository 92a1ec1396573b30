"""Progress: what is shown where and when, on a real terminal (a pty), in a real kernel, in a pipe,
and not at all.
"""

import contextlib
import io
import os
import pty
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nbhelpers import progress
from nbhelpers.progress import Stream, each, for_command, reporting, task

from .processes import run_python

REPOSITORY = Path(__file__).resolve().parent.parent
SLOW = """
import time
from nbhelpers.progress import each
for name in each(range(6), "weighing", "stones"):
    time.sleep({pause})
print("done")
"""


class Noted:
    """A reporter that keeps what it is told, and when."""

    def __init__(self, after_s: float = 0.0):
        self.after_s, self.lines, self.ends, self.at_s = after_s, [], [], []

    def show(self, line: str, urgent: bool = False) -> None:
        self.lines.append(line)
        self.at_s.append(time.monotonic())

    def end(self, line: str) -> None:
        self.ends.append(line)


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


def test_a_script_on_a_terminal_shows_one_line_after_two_seconds_and_what_it_was():
    shown, printed = on_a_terminal(SLOW.format(pause=0.6))
    lines = shown.split("\r")
    assert printed == "done\n"
    assert any(
        line.startswith("weighing: 4 of 6 stones, ") and " left" in line for line in lines
    ), shown
    assert not any("1 of 6" in line or "2 of 6" in line for line in lines), (
        "before two seconds nothing is shown"
    )
    assert any(line.startswith("weighing: 6 stones in ") for line in lines[-2:]), shown


def test_without_a_terminal_nothing_is_written():
    code = "from nbhelpers.progress import task\nwith task('x', urgent=True): print('done')"
    done = run_python(code)
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_at_most_twice_a_second_and_the_last_task_ends_the_line():
    noted = Noted()
    with reporting(noted):
        for _ in each(range(150), "counting", "grains"):
            time.sleep(0.005)
    assert all(
        later - earlier >= progress.EVERY_S for earlier, later in zip(noted.at_s, noted.at_s[1:])
    )
    assert 2 <= len(noted.lines) <= 5 and noted.ends == [""], "less than two seconds: no line stays"


def test_other_threads_and_forked_children_say_nothing():
    noted = Noted()

    def beside():
        with task("beside", urgent=True):
            pass

    with reporting(noted), task("own", urgent=True):
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
    assert noted.lines == ["own"]


def test_an_error_ends_the_line_and_a_closed_terminal_ends_nothing():
    noted = Noted()
    with reporting(noted), pytest.raises(ZeroDivisionError), task("dividing", urgent=True):
        1 / 0
    assert noted.ends == [""]
    closed = io.StringIO()
    closed.close()
    with reporting(Stream(closed, 0.0)), task("goes on", urgent=True) as shown:
        shown.at(1)


def test_a_log_has_a_plain_line_now_and_then(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(progress, "EVERY_S", 0.1)
    monkeypatch.setattr(progress, "LONG_S", 0.5)
    monkeypatch.setattr(progress, "PLAIN_EVERY_S", 0.3)
    with reporting(Stream(log, after_s=0.0)):
        for _ in each(range(5), "step", "steps"):
            time.sleep(0.15)
    lines = log.getvalue().splitlines()
    assert 2 <= len(lines) <= 5 and lines[-1].startswith("step: 5 steps in ")
    assert "\r" not in log.getvalue()
    monkeypatch.setattr(sys, "stderr", log)
    with for_command():
        assert progress._state.reporter.stream is log


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_stages_kernel_shows_the_line_on_the_terminal_of_make(tmp_path):
    """A kernel started as `stages` starts it: the line is on the terminal, not in the notebook, and
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
    assert f"{head}starting" in lines and f"{head}measuring nbody: 0 of 4 runs" in lines, shown
    assert lines[-1] == "" and "\n" not in shown.split("starting")[-1], "nothing stays"
    assert "measuring" not in "".join(map(str, made_outputs(tmp_path / "b.ipynb")))
    assert printed == "False\n"


def made_outputs(path: Path) -> list:
    import nbformat

    return [out for cell in nbformat.read(path, 4).cells for out in cell.get("outputs", [])]


NOTEBOOK = """
import time
from nbhelpers.progress import each, task
for _ in each(range(5), 'weighing', 'stones'): time.sleep(0.45)
with task('quick'): pass
with task('second', urgent=True): time.sleep(2.1)
"""


@pytest.mark.timeout(120)
def test_in_a_notebook_the_line_is_updated_and_ends_short(tmp_path):
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
    assert html.count("noisebook-progress") == 2 and " left" not in html
    assert "weighing: 5 stones in " in html and "second: 2." in html
    assert 2 <= updates.count("update_display_data") <= 12
    nbformat.write(notebook, tmp_path / "a.ipynb")
    page = export_page(tmp_path / "a.ipynb", tmp_path / "a.html").read_text()
    assert "weighing: 5 stones in " in page and " s left" not in page
