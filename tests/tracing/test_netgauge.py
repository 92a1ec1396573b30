"""Netgauge's files, FTQ and FWQ, the summary of systems, and the naming of detours: against
independent arithmetic and real recordings.
"""

import os
import signal
import subprocess
import time

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError, RunError
from nbhelpers.machine import doctor
from nbhelpers.tracing import record_detours
from nbhelpers.tracing._table import noise_events
from nbhelpers.tracing.detour_causes import attribute_detours, record_explained_detours
from nbhelpers.tracing.ftq import read_quanta, record_ftq, record_fwq, write_quanta
from nbhelpers.tracing.netgauge import detour_summary, read_netgauge, write_netgauge
from nbhelpers.workloads import binary_folder

pytestmark = pytest.mark.flaky(reruns=2)

built = pytest.mark.skipif(
    not (binary_folder() / "ftq").exists(), reason="workloads are not built: make env"
)
# As Netgauge 2.4.7 lays its selfish output out: header, detours, trailer.
NETGAUGE = """# Netgauge noise, method selfish
# number of recorded samples: 3
# min. cycle length [ns]: 10.014891
# threshold [% min cycle]: 900
0\t233
3714771\t3217
3736821\t243.4
# CPU overhead due to noise: 0.08%
# Measurement period: 0.0046 s
"""


def table(starts, durations, cpu=0, **attrs):
    made = pd.DataFrame(
        {
            "cpu": cpu,
            "start_ns": np.array(starts, np.int64),
            "duration_ns": np.array(durations, np.int64),
        }
    )
    made["end_ns"] = made["start_ns"] + made["duration_ns"]
    made.attrs = attrs
    return made


class TestSelfishFormat:
    def test_a_file_of_netgauge_with_header_and_trailer(self, tmp_path):
        (tmp_path / "n").write_text(NETGAUGE)
        detours = read_netgauge(tmp_path / "n", cpu=3)
        assert detours[["cpu", "start_ns", "duration_ns"]].values.tolist() == [
            [3, 0, 233],
            [3, 3714771, 3217],
            [3, 3736821, 243],
        ]
        assert detours.attrs["resolution_ns"] == 10.014891 and detours.attrs["seconds"] == 0.0046
        assert detours.attrs["threshold_ns"] == pytest.approx(90.134) and detours.attrs[
            "overhead"
        ] == pytest.approx(3693e-9 / 0.0046)

    def test_what_was_written_is_read_again(self, tmp_path):
        own = table([100, 5000], [410, 1000], resolution_ns=10.015, threshold_ns=200, seconds=0.5)
        again = read_netgauge(write_netgauge(own, tmp_path / "d.txt"))
        assert again["start_ns"].tolist() == [100, 5000] and again["duration_ns"].tolist() == [
            400,
            990,
        ]  # beyond one reading, as Netgauge counts
        assert (
            again.attrs["resolution_ns"] == 10.015
            and again.attrs["seconds"] == 0.5
            and again.attrs["threshold_ns"] == pytest.approx(200, rel=1e-3)
        )
        third = read_netgauge(write_netgauge(again, tmp_path / "e.txt"))
        assert third["duration_ns"].tolist() == [400, 990]  # taken off only once

    def test_one_cpu_at_a_time(self, tmp_path):
        both = pd.concat([table([1], [300], cpu=0), table([2], [400], cpu=5)])
        assert read_netgauge(write_netgauge(both, tmp_path / "d", cpu=5))["start_ns"].tolist() == [
            2
        ]
        for cpu in (None, 3):
            with pytest.raises(InputError, match="cpu=0|choose of"):
                write_netgauge(both, tmp_path / "e", cpu=cpu)
        assert not (tmp_path / "e").exists()

    @pytest.mark.parametrize(
        "text, message",
        [
            ("# nothing\n", "no detour"),
            ("1 2 3\n", "line 1"),
            ("0 10\nx y\n", "line 2"),
            ("5 1\n4 1\n", "before the one above"),
            ("-1 5\n", "no sense"),
            ("nan 1\n", "no sense"),
            ("1e300 1\n", "no sense"),
        ],
    )
    def test_damaged_files(self, tmp_path, text, message):
        (tmp_path / "bad").write_text(text)
        with pytest.raises(InputError, match=message):
            read_netgauge(tmp_path / "bad")

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(InputError, match="no-such"):
            read_netgauge(tmp_path / "no-such")


def test_the_summary_counts_per_cpu():
    one = pd.concat([table([0, 10_000], [1000, 3000], cpu=0), table([0, 0], [1000, 5000], cpu=1)])
    one.attrs = {"seconds": 0.001, "resolution_ns": 10.0, "cpus": [0, 1]}
    row = detour_summary({"a": one, "b": table([0], [500])}).loc["a"]
    assert (
        row["overhead_percent"] == pytest.approx(0.5)
        and row["detours_per_s"] == pytest.approx(2000)
        and row["median_us"] == 2
        and row["max_us"] == 5
    )
    assert detour_summary(one).shape == (1, 9)


@built
class TestQuanta:
    def test_ftq_counts_what_a_stop_takes_away(self, tmp_path):
        """Stopped for 60 ms, the loop has as many quanta of 1 ms without work; the quanta stay on
        their grid.
        """
        program = subprocess.Popen(
            [
                binary_folder() / "ftq",
                "--seconds",
                "0.3",
                "--quantum",
                "1000",
                "--out",
                tmp_path / "q",
            ],
            stdout=subprocess.PIPE,
        )
        time.sleep(0.12)
        program.send_signal(signal.SIGSTOP)
        begin = time.monotonic_ns()
        time.sleep(0.06)
        stopped_ms = (
            time.monotonic_ns() - begin
        ) / 1e6  # before it goes on: it may take the CPU from us at once
        program.send_signal(signal.SIGCONT)
        assert program.wait() == 0
        from nbhelpers.tracing.ftq import _parse

        samples = _parse((tmp_path / "q").read_bytes())
        for _, own in samples.groupby("cpu"):
            assert (
                len(own) == 300
                and own["sample"].tolist() == list(range(300))
                and np.abs(np.diff(own["start_ns"]) - 1e6).max() < 2000
            )
            assert (own["count"] == 0).sum() >= stopped_ms - 4
        assert samples.attrs["overhead"] > 0.5 * stopped_ms / 300

    def test_ftq_of_this_machine(self):
        cpu = min(os.sched_getaffinity(0))
        samples = record_ftq(0.1, quantum_us=500, cpus=[cpu])
        assert (
            set(samples["cpu"]) == {cpu}
            and len(samples) == 200
            and 0 <= samples.attrs["overhead"] < 1
        )
        assert samples["count"].max() * samples.attrs["unit_ns"] == pytest.approx(
            500e3, rel=0.2
        )  # what fits in is what the unit's length says

    def test_fwq_of_this_machine(self):
        samples = record_fwq(0.1, quantum_us=500)
        for _, own in samples.groupby("cpu"):
            assert len(own) == 200 and own["duration_ns"].min() == pytest.approx(500e3, rel=0.2)
            assert (
                np.abs(np.diff(own["start_ns"]) - own["duration_ns"].to_numpy()[:-1]).max() <= 2
            )  # portions follow each other
        spent = samples.groupby("cpu")["duration_ns"]
        assert samples.attrs["overhead"] == pytest.approx(
            float((1 - spent.min() / spent.mean()).mean())
        )

    @pytest.mark.parametrize("kind", ["ftq", "fwq"])
    def test_files(self, tmp_path, kind):
        cpu = min(os.sched_getaffinity(0))
        samples = {"ftq": record_ftq, "fwq": record_fwq}[kind](0.02, cpus=[cpu])
        again = read_quanta(write_quanta(samples, tmp_path / "f"), kind, cpu=cpu)
        name = {"ftq": "count", "fwq": "duration_ns"}[kind]
        assert (again[name] - samples[name]).abs().max() <= (500 if kind == "fwq" else 0) and again[
            "sample"
        ].tolist() == samples["sample"].tolist()
        assert again.attrs["overhead"] == pytest.approx(samples.attrs["overhead"], abs=0.002)

    def test_bad_files(self, tmp_path):
        (tmp_path / "bad").write_text("0\t12\n1\t1.5\n")
        with pytest.raises(InputError, match="line 2"):
            read_quanta(tmp_path / "bad", "ftq")
        with pytest.raises(InputError, match="ftq"):
            read_quanta(tmp_path / "bad", "selfish")

    def test_bad_arguments(self):
        with pytest.raises(RunError, match="usage"):
            record_ftq(0.1, quantum_us=1)
        done = subprocess.run(
            [binary_folder() / "ftq", "--mode", "xyz"], capture_output=True, text=True
        )
        assert done.returncode == 2 and "usage" in done.stderr


@built
class TestLoop:
    def test_fixed_time_is_a_time(self):
        detours = record_detours(0.1, fixed="time")
        assert (
            detours.attrs["seconds"] == pytest.approx(0.1, abs=0.05)
            and detours.attrs["overhead"] < 1
        )  # the last detour may reach over the end
        with pytest.raises(InputError, match="fixed"):
            record_detours(0.1, fixed="count")

    def test_both_clocks_agree(self):
        """The resolution is no less than any clock can do, and the monotonic clock costs more than
        the ticks it is made of.
        """
        words = {}
        for clock in ("monotonic", "tsc"):
            done = subprocess.run(
                [binary_folder() / "detours", "--seconds", "0.02", "--clock", clock],
                capture_output=True,
                text=True,
            )
            if done.returncode == 2:
                pytest.skip("the kernel does not keep time by the TSC here")
            words[clock] = dict(word.split("=", 1) for word in done.stdout.split() if "=" in word)
        assert (
            1
            < float(words["tsc"]["resolution_ns"])
            <= float(words["monotonic"]["resolution_ns"])
            < 1000
        )
        assert all(
            each["verified"] == "yes" and int(each["end_ns"]) - int(each["start_ns"]) >= 20e6
            for each in words.values()
        )


def events(*rows):
    columns = list(zip(*rows))
    names = ("cpu", "kind", "source", "start_ns", "end_ns")
    made = dict(zip(names, columns))
    made["duration_ns"] = np.array(made["end_ns"]) - np.array(made["start_ns"])
    count = len(rows)
    return noise_events(
        made
        | {
            "policy": [""] * count,
            "priority": np.zeros(count),
            "pid": np.zeros(count),
            "interrupted": ["workload"] * count,
            "run": 0,
        }
    )


class TestFigures:
    def test_systems_say_their_resolution_and_what_was_lost(self):
        import matplotlib

        matplotlib.use("Agg")
        from nbhelpers.report import figure_systems

        quiet = table([0, 100], [500, 500], seconds=0.001, resolution_ns=10.015)
        loaded = table([0, 100], [500, 90_000], cpu=3, seconds=0.001)
        panels = figure_systems({"quiet": quiet, "loaded": loaded}).axes
        assert [axes.get_title(loc="left") for axes in panels] == [
            "quiet\nresolution 10 ns, overhead 0.10%",
            "loaded\noverhead 9.05%",
        ]
        assert panels[1].collections[0].get_offsets()[:, 1].tolist() == [0.5, 90]
        blank = figure_systems({"quiet": quiet, "loaded": loaded.iloc[:0]})
        assert not blank.axes and "no detour" in blank.texts[0].get_text()

    def test_quanta_are_drawn_relative_to_each_cpu(self):
        import matplotlib

        matplotlib.use("Agg")
        from nbhelpers.report.detours import figure_quanta

        samples = pd.DataFrame(
            {
                "cpu": [0] * 10 + [1] * 10,
                "start_ns": range(20),
                "count": [100] * 9 + [50] + [300] * 9 + [0],
            }
        )
        assert set(figure_quanta(samples).axes[0].collections[0].get_offsets()[:, 1]) == {1, 0.5, 0}
        assert "no sample" in figure_quanta(samples.iloc[:0]).texts[0].get_text()


class TestNaming:
    def test_a_detour_is_named_after_what_took_most_of_it(self):
        detours = pd.concat(
            [
                table([10_000, 50_000, 90_000], [5000, 8000, 700], cpu=0),
                table([10_000], [4000], cpu=1),
            ],
            ignore_index=True,
        )
        seen = events(
            (0, "irq", "local_timer", 10_500, 12_000),
            (0, "softirq", "SCHED", 12_000, 14_500),
            (0, "thread", "kworker", 49_000, 57_500),
            (1, "irq", "reschedule", 60_000, 61_000),
        )
        named = attribute_detours(detours, seen)
        assert named["source"].tolist() == [
            "SCHED",
            "kworker",
            "beyond the kernel",
            "beyond the kernel",
        ]
        assert named["kind"].tolist() == ["softirq", "thread", "hardware", "hardware"]
        assert named["explained_ns"].tolist() == [4000, 8000, 0, 0] and named[
            "events"
        ].tolist() == [2, 1, 0, 0]

    def test_without_events_or_detours(self):
        detours = table([5], [300])
        assert (
            attribute_detours(detours, events((1, "irq", "x", 0, 1))).loc[0, "source"]
            == "beyond the kernel"
        )
        assert attribute_detours(detours.iloc[:0], events((1, "irq", "x", 0, 1))).empty

    @built
    @pytest.mark.skipif(
        doctor().capabilities.tracer == "detours",
        reason="no kernel tracer for this user: run as root",
    )
    def test_the_timer_of_this_machine_is_recognised(self):
        named = record_explained_detours(0.3)
        timer = named[named["source"] == "local_timer"]
        assert (
            len(timer) > 5
            and (timer["explained_ns"] > 0).all()
            and (named["explained_ns"] <= named["duration_ns"]).all()
        )
        assert named.attrs["threshold_ns"] < named["duration_ns"].min()
