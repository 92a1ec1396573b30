"""Small cases to look at: the delayed barrier, the detours on the path, and the file for Perfetto,
read back by json alone.
"""

import gzip
import json

import numpy as np
import pytest

from nbhelpers.errors import InputError
from nbhelpers.simulation import Noise, patterns, periodic, simulate
from nbhelpers.simulation.perfetto import NOISE_THREAD, PATH_THREAD, read_perfetto, write_perfetto
from nbhelpers.simulation.timeline import delayed, delayed_barrier, noisy_loop, on_path


class TestDelayedBarrier:
    def test_nobody_leaves_before_the_late_one_has_come(self):
        result = delayed_barrier(8, 3, 20)
        others = np.delete(result.finish_ns, 3)
        assert (
            others >= 20_000 + 1500 + 2500 + 1500
        ).all()  # its first message: o, L, o after the delay
        assert result.ideal.finish_ns.tolist() == [3 * 5500] * 8

    def test_only_the_late_one_is_to_blame(self):
        result = delayed_barrier(16, 5, 50)
        blame = result.culprits(by=("rank", "source"))
        assert blame[["rank", "source"]].to_numpy().tolist() == [[5, "delay"]] and blame[
            "path_ns"
        ].tolist() == [50_000]

    def test_a_delay_beside_the_path_is_absorbed(self):
        tree = delayed(patterns.binomial_bcast(8, 1), 4, 2.0, at_us=0.0)  # a leaf that waits anyway
        assert tree.makespan_ns == tree.ideal.makespan_ns and on_path(tree)["path_ns"].tolist() == [
            0
        ]

    @pytest.mark.parametrize("late, delay_us", [(8, 20), (-1, 20), (0, 0)])
    def test_of_nobody_or_of_no_length_is_refused(self, late, delay_us):
        with pytest.raises(InputError):
            delayed_barrier(8, late, delay_us)


def test_detours_on_the_path_add_up_to_the_paths_noise():
    result = noisy_loop(8, 4, seed=1)
    hits = on_path(result)
    assert hits["path_ns"].sum() == pytest.approx(result.path()["noise_ns"].sum())
    assert len(hits) == (result.timeline()["what"] == "detour").sum()
    assert 0 < (hits["path_ns"] > 0).sum() < len(hits)


@pytest.fixture(scope="module")
def result():
    return noisy_loop(6, 3, seed=2)


class TestPerfetto:
    def test_holds_the_time_line_and_the_critical_path(self, result, tmp_path):
        table = read_perfetto(write_perfetto(result, tmp_path / "loop.json"))
        timeline = result.timeline()
        for what in ("calc", "send", "reception", "detour"):
            own, theirs = (
                frame[frame["what"] == what].sort_values(["rank", "start_ns"])
                for frame in (table, timeline)
            )
            assert own["rank"].tolist() == theirs["rank"].tolist() and len(own), what
            assert np.allclose(
                own[["start_ns", "end_ns"]], theirs[["start_ns", "end_ns"]], rtol=0, atol=1e-3
            )
        arrows = table[table["what"] == "message"]
        assert (
            len(arrows) == result.schedule.messages
            and (arrows["end_ns"] > arrows["start_ns"]).all()
        )
        path = table[table["what"] == "critical path"]
        assert (path["end_ns"] - path["start_ns"]).sum() == pytest.approx(result.makespan_ns)
        assert set(table.loc[table["what"] == "detour", "thread"]) >= {
            NOISE_THREAD,
            NOISE_THREAD + 1,
        } and set(path["thread"]) == {PATH_THREAD}

    def test_is_what_viewers_ask_for(self, result, tmp_path):
        """Every event has its fields; each end of an arrow lies in a slice of its track, without
        which a viewer drops it.
        """
        content = json.loads(write_perfetto(result, tmp_path / "loop.json").read_text())
        events = content["traceEvents"]
        assert {event["ph"] for event in events} == {"M", "X", "s", "f"}
        slices = [event for event in events if event["ph"] == "X"]
        assert all(
            event["dur"] >= 0 and event["ts"] >= 0 and isinstance(event["name"], str)
            for event in slices
        )
        for event in events:
            assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
            if event["ph"] in "sf":
                assert any(
                    s["pid"] == event["pid"]
                    and s["tid"] == event["tid"]
                    and s["ts"] - 1e-9 <= event["ts"] <= s["ts"] + s["dur"]
                    for s in slices
                ), event
        named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
        assert {(s["pid"], s["tid"]) for s in slices} == named

    def test_is_the_same_bytes_again_and_may_be_compressed(self, result, tmp_path):
        plain, again, packed = (
            write_perfetto(result, tmp_path / name) for name in ("a.json", "b.json", "c.json.gz")
        )
        assert plain.read_bytes() == again.read_bytes() == gzip.decompress(packed.read_bytes())
        assert read_perfetto(packed).equals(read_perfetto(plain))

    def test_of_some_ranks_has_only_these_and_no_arrow_without_an_end(self, result, tmp_path):
        table = read_perfetto(
            write_perfetto(result, tmp_path / "some.json", ranks=np.array([0, 1]))
        )
        assert set(table["rank"]) == {0, 1} and set(
            table.loc[table["what"] == "message", "peer"]
        ) <= {0, 1}

    def test_needs_what_happened(self, tmp_path):
        with pytest.raises(InputError, match="not recorded"):
            write_perfetto(
                simulate(patterns.barrier(4), noise=Noise.on_ranks(periodic(10, 5), 4)),
                tmp_path / "x.json",
            )

    def test_damage_is_seen(self, result, tmp_path):
        path = write_perfetto(result, tmp_path / "loop.json")
        content = json.loads(path.read_text())
        path.write_text(path.read_text()[:-50])
        with pytest.raises(InputError, match="not JSON"):
            read_perfetto(path)
        path.write_text("{}")
        with pytest.raises(InputError, match="not a Chrome trace"):
            read_perfetto(path)
        lone = {
            **content,
            "traceEvents": [event for event in content["traceEvents"] if event["ph"] != "f"],
        }
        path.write_text(json.dumps(lone))
        with pytest.raises(InputError, match="without its other end"):
            read_perfetto(path)
        first = next(
            event for event in content["traceEvents"] if event["ph"] == "X" and event["dur"] > 0
        )
        path.write_text(
            json.dumps(
                {
                    **content,
                    "traceEvents": [
                        *content["traceEvents"],
                        {**first, "ts": first["ts"] + first["dur"] / 2},
                    ],
                }
            )
        )
        with pytest.raises(InputError, match="overlap"):
            read_perfetto(path)
