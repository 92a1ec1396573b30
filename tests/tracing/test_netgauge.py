"""Netgauge's files, the loop's clocks, and the summary of systems: against independent arithmetic
and real recordings.
"""

import subprocess

import numpy as np
import pandas as pd
import pytest

from nbhelpers.errors import InputError
from nbhelpers.tracing import record_detours
from nbhelpers.tracing.netgauge import detour_summary, read_netgauge
from nbhelpers.workloads import binary_folder

pytestmark = pytest.mark.flaky(reruns=2)

built = pytest.mark.skipif(
    not (binary_folder() / "detours").exists(), reason="workloads are not built: make env"
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

    @pytest.mark.parametrize(
        "text, message",
        [
            ("# nothing\n", "no detour in"),
            ("1 2 3\n", "detour 1"),
            ("0 10\nx y\n", "no detour trace"),
            ("5 1\n4 1\n", "before the one above"),
            ("-1 5\n", "make sense"),
            ("nan 1\n", "make sense"),
            ("1e300 1\n", "make sense"),
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
