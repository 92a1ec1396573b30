"""The hook for a language model: off unless configured, asked over real HTTP, its text marked as a
machine's.
"""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from nbhelpers.errors import InputError, Unavailable
from nbhelpers.mitigation.language_model import request_explanation


@contextmanager
def serving(status: int, body: bytes, received: list):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            received.append((self.path, dict(self.headers), sent))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(text: str) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


def test_is_off_unless_configured(monkeypatch):
    monkeypatch.delenv("NOISEBOOK_MODEL_URL", raising=False)
    with pytest.raises(Unavailable, match="no language model is configured"):
        request_explanation("page-faults")


def test_sends_what_is_known_and_marks_what_comes_back(monkeypatch):
    received = []
    with serving(200, answer(" Look at malloc. "), received) as address:
        monkeypatch.setenv("NOISEBOOK_MODEL_URL", address)
        monkeypatch.setenv("NOISEBOOK_MODEL", "small")
        monkeypatch.setenv("NOISEBOOK_MODEL_KEY", "word")
        text = request_explanation("minor_faults", "Why?")
    path, headers, sent = received[0]
    assert text.startswith("[Written by a language model") and text.endswith("Look at malloc.")
    assert (path, headers["Authorization"], sent["model"]) == (
        "/v1/chat/completions",
        "Bearer word",
        "small",
    )
    assert (
        "first touch of a page" in sent["messages"][0]["content"]
        and sent["messages"][1]["content"] == "Why?"
    )


@pytest.mark.parametrize(
    "status, body, error",
    [(500, b"", Unavailable), (200, b"<html>", InputError), (200, b'{"choices": []}', InputError)],
)
def test_a_server_that_fails_is_told(monkeypatch, status, body, error):
    with serving(status, body, []) as address:
        monkeypatch.setenv("NOISEBOOK_MODEL_URL", address)
        with pytest.raises(error):
            request_explanation("page-faults")


def test_nobody_there_and_no_address_of_the_web(monkeypatch):
    with serving(200, b"", []) as address:
        pass
    monkeypatch.setenv("NOISEBOOK_MODEL_URL", address)
    with pytest.raises(Unavailable, match="does not answer"):
        request_explanation("page-faults", timeout_s=5)
    monkeypatch.setenv("NOISEBOOK_MODEL_URL", "file:///etc")
    with pytest.raises(InputError, match="not one of the web"):
        request_explanation("page-faults")
