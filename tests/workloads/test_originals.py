"""`make originals`: a pinned source is fetched by git, checked, built and found; another one is
refused, and without a network the message says what to do.
"""

import os
import re
import shutil
import subprocess

import pytest

from nbhelpers.places import shipped
from nbhelpers.studies import originals
from nbhelpers.workloads import descriptions, program, stream
from nbhelpers.workloads.description import FOLDER

HERE = shipped() / "workloads" / "originals"
LINES = [line.partition(" ")[::2] for line in (HERE / "programs.txt").read_text().splitlines()]


def test_each_program_is_pinned_checked_licensed_and_described():
    source = {}
    for word, rest in LINES:
        source = source | {word: rest}
        if word == "program":
            name = rest.split()[0]
            commit = source["source"].split()[1]
            assert re.fullmatch(r"[0-9a-f]{40}", commit) and source["licence"]
            assert re.fullmatch(r"[0-9a-f]{64}", source["sha256"])
            text = (FOLDER / f"{name}.yml").read_text()
            assert name in descriptions() and commit[:8] in text and "make originals" in text


def git(folder, *words):
    known = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    for who in ("AUTHOR", "COMMITTER"):
        known |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@b"}
    done = subprocess.run(["git", *words], cwd=folder, env=os.environ | known, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


@pytest.fixture
def installs(tmp_path):
    """Runs install.sh in a folder of its own, on a repository with one program."""
    if not shutil.which("git"):
        pytest.skip("no git here: apt-get install git")
    source = tmp_path / "from" / "me" / "tiny"
    source.mkdir(parents=True)
    (source / "makefile").write_text(
        "tiny:\n\tprintf '#!/bin/sh\\necho made\\n' > $@; chmod +x $@\n"
    )
    git(source, "init", "-q")
    git(source, "add", "makefile")
    git(source, "commit", "-q", "-m", "one")
    commit = git(source, "rev-parse", "HEAD")
    place = tmp_path / "here"
    (place / "workloads" / "originals").mkdir(parents=True)

    def run(sha256: str, origin=tmp_path / "from"):
        lines = [
            f"source me/tiny {commit}",
            f"sha256 {sha256}",
            "licence none",
            "program babelstream tiny",
        ]
        text = "\n".join([*lines, "build make tiny", ""])
        (place / "workloads" / "originals" / "programs.txt").write_text(text)
        script = ["sh", HERE / "install.sh"]
        env = os.environ | {"ORIGINALS_FROM": str(origin)}
        done = subprocess.run(
            script, cwd=place, env=env, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_what_is_fetched_is_checked_built_and_found(installs, tmp_path, monkeypatch):
    status, said = installs("0" * 64)
    assert status == 1 and "is not what it was" in said and "Building" not in said
    status, said = installs(re.findall(r"[0-9a-f]{64}", said)[0])
    assert status == 0 and "licence: none" in said, said
    monkeypatch.setenv("NOISEBOOK_BIN", str(tmp_path / "here" / "build" / "bin"))
    found = program(description="babelstream", elements=512).command
    assert found[0].endswith("/bin/originals/babelstream") and "512" in found
    assert subprocess.run(found, capture_output=True).stdout == b"made\n"


def test_without_the_network_it_says_what_to_do(installs, tmp_path):
    status, said = installs("0" * 64, tmp_path / "nowhere")
    assert status == 1 and "rewrites" in said and "ORIGINALS_FROM=" in said


@pytest.mark.long
def test_a_short_target_asks_babelstream_for_no_fewer_repeats_than_it_takes(tmp_path):
    """On large arrays two repeats take longer than the target; it refuses one."""
    if not originals.original("stream"):
        pytest.skip(originals.NOT_BUILT)
    both = originals.pairs({"stream": stream(2, 2**23)}, tmp_path, 0.02)["stream"]
    words = both["original"].command
    assert words[words.index("-n") + 1] == "2"
