"""An executed notebook is written to papermill's other places too, here a real HTTP server."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nbformat
import papermill
import pytest

from nbhelpers.artifact.upload import require_target, upload_notebook
from nbhelpers.errors import InputError

REPOSITORY = Path(__file__).resolve().parents[2]


class Store(BaseHTTPRequestHandler):
    """Takes files by PUT, and nothing below /full."""

    files: dict[str, bytes] = {}

    def do_PUT(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        full = self.path.startswith("/full")
        self.send_response(507 if full else 201)
        self.end_headers()
        if not full:
            self.files[self.path] = content

    def log_message(self, *arguments):
        pass


@pytest.fixture
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Store.files.clear()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def executed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("executed")
    cells = [nbformat.v4.new_code_cell("print('süß', 6 * 7)")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "source.ipynb")
    target = folder / "00-machine.ipynb"
    papermill.execute_notebook(
        str(folder / "source.ipynb"), str(target), kernel_name="python3", progress_bar=False
    )
    return target


def test_a_server_gets_the_executed_notebook(address, executed):
    target = f"{address}/study/today"
    require_target(target)
    assert upload_notebook(executed, f"{target}/") == f"{target}/00-machine.ipynb"
    assert list(Store.files) == ["/study/today/00-machine.ipynb"]
    sent = json.loads(Store.files["/study/today/00-machine.ipynb"])
    assert sent == json.loads(executed.read_text())
    assert sent["cells"][0]["outputs"][0]["text"] == ["süß 42\n"]


def test_a_folder_gets_it_too(tmp_path, executed):
    upload_notebook(executed, str(tmp_path / "a ü" / "b"))
    assert (tmp_path / "a ü/b/00-machine.ipynb").read_text() == executed.read_text()


def test_a_server_that_refuses_is_an_error_that_says_where_the_notebook_is(address, executed):
    with pytest.raises(InputError, match="507") as error:
        upload_notebook(executed, f"{address}/full")
    assert str(executed) in str(error.value) and not Store.files


@pytest.mark.parametrize(
    "path, module, extra",
    [
        ("s3://bucket/a", "boto3", "s3"),
        ("gs://bucket/a", "gcsfs", "gcs"),
        ("abs://account/a", "azure.storage.blob", "azure"),
    ],
)
def test_a_missing_package_is_named_with_the_command_before_anything_runs(path, module, extra):
    try:
        __import__(module)
    except ImportError:
        with pytest.raises(InputError, match=rf"needs the package {module}") as error:
            require_target(path)
        assert f"-m pip install 'papermill[{extra}]'" in str(error.value)
    else:
        require_target(path)


def test_an_unknown_scheme_is_answered_by_those_that_are_known():
    with pytest.raises(InputError, match=r"cannot write to ftp://(?s:.*)https://.*s3://"):
        require_target("ftp://host/a")


def test_a_stage_is_refused_before_it_runs():
    command = [sys.executable, "-m", "nbhelpers.stages", "run", "00-machine"]
    done = subprocess.run(
        [*command, "--profile", "recorded", "--output", "ftp://host/a"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and not done.stdout and "OUTPUT=ftp://host/a" in done.stderr


@pytest.mark.long
def test_a_stage_of_the_recorded_study_reaches_the_server(address):
    command = [sys.executable, "-m", "nbhelpers.stages", "run", "00-machine"]
    done = subprocess.run(
        [*command, "--profile", "recorded", f"--output={address}/here"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and f"{address}/here/00-machine.ipynb" in done.stdout
    assert json.loads(Store.files["/here/00-machine.ipynb"])["cells"]
