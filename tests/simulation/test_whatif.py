"""`noisebook whatif`: what the path consists of adds up, and follows what was asked for."""

import json

import pandas as pd
import pytest

from nbhelpers.cli import DONE, REFUSED, main
from nbhelpers.simulation import LogGOPS, patterns, write_goal
from nbhelpers.simulation.what_if import noise_named, reasons, whatif

NETWORK = LogGOPS(L=1000, o=100, g=50, G=1, O=0, S=10_000)


def test_a_ring_is_its_links_and_its_ranks():
    """Rank r computes 5 µs and sends 101 bytes on; everybody waits for the one before."""
    step = patterns.sweep((3, 1), 101, 1, 5000, corners=[(0, 0)])
    row, result = whatif(step, NETWORK)
    table = reasons(result).set_index(["what", "where"])["ms"].mul(1e6).round(6)
    assert row["ideal_ms"] * 1e6 == pytest.approx(3 * 5000 + 2 * (100 + 1000 + 100 + 100))
    work = {("computation", f"rank {rank}"): 5000 for rank in range(3)}
    assert table.to_dict() == work | {("messages", f"{r} → {r + 1}"): 1300 for r in (0, 1)}


@pytest.mark.parametrize("noise", ["none", "1000 Hz × 100 us"])
def test_the_parts_of_the_path_are_the_whole_run(noise):
    program = patterns.loop(patterns.recursive_doubling_allreduce(8, 70_000), 5, 300_000)
    row, result = whatif(program, NETWORK, noise_named(noise), 5)
    table = reasons(result)
    assert table["share"].sum() == pytest.approx(1)
    assert ("noise" in set(table["what"])) == (noise != "none") == ("median" in row)
    if noise != "none":
        assert result.makespan_ns / 1e6 == pytest.approx(row["ideal_ms"] * row["median"])


def test_the_verb_and_its_file_for_perfetto(tmp_path, capsys):
    trace = write_goal(patterns.barrier(8), tmp_path / "barrier.goal")
    shown = tmp_path / "shown.json"
    words = ["whatif", str(trace), "--network", "alps", "--noise", "1000x25", "--json"]
    assert main([*words, "--perfetto", str(shown)]) == DONE
    (found,) = json.loads(capsys.readouterr().out)
    assert found["network"] == "alps" and found["low"] <= found["median"] <= found["high"]
    events = pd.DataFrame(json.loads(shown.read_text())["traceEvents"])
    slices = events[events["ph"] == "X"].sort_values("ts")
    assert set(slices["pid"]) == set(range(1, 10))
    ends = slices["ts"] + slices["dur"]
    before = ends.groupby([slices["pid"], slices["tid"]]).shift()
    assert not (slices["ts"] < before - 1e-6).any()  # none begins within another


@pytest.mark.parametrize(
    "words, said",
    [
        (["--times", "2"], "which of its messages are a collective's"),
        (["--noise", "often"], "here, none, the file"),
        (["--network", "nowhere"], "no network 'nowhere'"),
    ],
)
def test_what_cannot_be_asked(words, said, tmp_path, capsys):
    trace = write_goal(patterns.barrier(2), tmp_path / "barrier.goal")
    assert main(["whatif", str(trace), *words]) == REFUSED
    assert said in capsys.readouterr().err
