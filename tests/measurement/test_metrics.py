"""Metric layers as data: every file is sound, and readers for machines that have more than this one
against recorded trees and a small library.
"""

import os
from pathlib import Path

import pytest
import yaml

from nbhelpers.errors import InputError
from nbhelpers.measurement import available_layers, describe_columns, measure, metrics, rates
from nbhelpers.measurement._knowledge import FOLDER, find_layer, layers, metric_of
from nbhelpers.measurement._perf import totals
from nbhelpers.measurement.layers import MetricLayer

from ..trees import write_tree

pytestmark = pytest.mark.usefixtures("binaries", "nothing_left")


# The files
# --------------------------------------------------------------------------------------------------


def test_every_layer_file_is_read_and_no_two_share_a_column():
    assert len(layers()) == len(list(FOLDER.glob("*.yml"))) >= 20
    assert all(FOLDER / f"{name}.yml" in FOLDER.iterdir() for name in layers())
    ids = [metric.id for layer in layers().values() for metric in layer.metrics]
    assert len(ids) == len(set(ids)) > 150


def test_the_factor_of_every_metric_exists():
    known = {
        factor["id"]
        for path in (FOLDER.parent / "factors").glob("*.yml")
        for factor in yaml.safe_load(path.read_text())
    }
    assert {metric.factor for layer in layers().values() for metric in layer.metrics} - {
        ""
    } <= known


def test_every_column_that_a_layer_makes_here_has_an_entry():
    runs = measure("/bin/true", runs=1, metrics=list(layers()))
    made = set(runs.columns[list(runs.columns).index("user_s") :]) - {"elapsed_seconds"}
    assert len(made) > 60 and not [name for name in made if not metric_of(name)]
    described = describe_columns(rates(runs))
    assert not set(described.index[described.kind == "program"])


def mine(folder: Path, *metrics_: str) -> Path:
    path = folder / "mine.yml"
    source = f"{{reader: file, path: /proc/stat, format: rows, metrics: [{', '.join(metrics_)}]}}"
    path.write_text(f"layer: mine\ntitle: my layer\nsources: [{source}]")
    return path


def test_a_column_that_two_layers_have_is_refused(tmp_path):
    path = mine(tmp_path, "{id: steal_s, key: cpu, title: again}")
    with pytest.raises(InputError, match="'steal_s'.*\n.*mine"):
        metrics("kernel", path)
    with pytest.raises(InputError, match="cannot read the metric layer"):
        metrics(tmp_path / "no.yml")
    path.write_text("layer: [")
    with pytest.raises(InputError, match="not YAML"):
        metrics(path)


def test_a_key_without_a_row_is_named(tmp_path):
    (layer,) = metrics(
        mine(
            tmp_path,
            "{id: mine_a, key: ctxt, title: the one}",
            "{id: mine_b, key: ctxd, title: the other}",
        )
    )
    assert layer.notes == ("mine: /proc/stat has no ctxd",)


# Recorded trees
# --------------------------------------------------------------------------------------------------


def of_tree(name: str, root: Path, before: dict[str, str], later: dict[str, str]) -> dict:
    """Columns of a layer when the files change from `before` to `later` during the run."""
    layer = MetricLayer(find_layer(name), write_tree(root, before))
    layer.armed(os.getpid())
    write_tree(root, later)
    layer.ended(os.getpid())
    columns = layer.after({"user_s": 0.0, "system_s": 0.0})
    layer.close()
    return columns


CPUS = "/sys/devices/system/cpu"


def test_clock_of_each_cpu(tmp_path):
    def files(*mhz):
        clocks = zip((0, 1, 10), mhz, strict=True)
        return {f"{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq": f"{one}000" for cpu, one in clocks}

    assert of_tree("frequency", tmp_path, files(1000, 2000, 3000), files(3000, 2400, 3000)) == {
        "cpu_mhz_mean": 2400,
        "cpu_mhz_least": 2400,
        "cpu_mhz_most": 3000,
        "cpu_mhz_start": 2000,
        "cpu_mhz_cpu0": 2000,
        "cpu_mhz_cpu1": 2200,
        "cpu_mhz_cpu10": 3000,
    }


def test_temperatures_fans_throttling_and_energy(tmp_path):
    before = {
        "/sys/class/hwmon/hwmon3/name": "coretemp",
        "/sys/class/hwmon/hwmon3/temp1_label": "Package id 0",
        "/sys/class/hwmon/hwmon3/temp1_input": "41000",
        "/sys/class/hwmon/hwmon3/temp2_input": "39000",
        "/sys/class/hwmon/hwmon4/name": "nct6775",
        "/sys/class/hwmon/hwmon4/fan1_input": "900",
        "/sys/class/hwmon/hwmon4/fan2_input": "1200",
        "/sys/class/thermal/thermal_zone0/type": "x86_pkg_temp",
        "/sys/class/thermal/thermal_zone0/temp": "41500",
        f"{CPUS}/cpu0/thermal_throttle/core_throttle_count": "5",
        f"{CPUS}/cpu1/thermal_throttle/core_throttle_count": "7",
        f"{CPUS}/cpu0/thermal_throttle/package_throttle_count": "9",
        f"{CPUS}/cpu1/thermal_throttle/package_throttle_count": "9",
        "/sys/class/powercap/intel-rapl:0/energy_uj": "1000000",
        "/sys/class/powercap/intel-rapl:0:0/energy_uj": "5",
    }
    later = {
        "/sys/class/hwmon/hwmon3/temp1_input": "58000",
        f"{CPUS}/cpu1/thermal_throttle/core_throttle_count": "17",
        f"{CPUS}/cpu0/thermal_throttle/package_throttle_count": "12",
        f"{CPUS}/cpu1/thermal_throttle/package_throttle_count": "12",
        "/sys/class/powercap/intel-rapl:0/energy_uj": "26000000",
    }
    columns = of_tree("thermal", tmp_path, before, later)
    expected = {
        "temperature_start_c": 41,
        "temperature_end_c": 58,
        "temperature_rise_c": 17,
        "temperature_c_coretemp_Package_id_0_3_1": 41,
        "temperature_c_coretemp_3_2": 39,
        "fan_rpm_least": 900,
        "thermal_zone_c_x86_pkg_temp_0": 41.5,
        "core_throttle_count": 10,
        "package_throttle_count": 3,
        "energy_j": 25,
    }
    assert columns == pytest.approx(expected)


def test_a_sensor_that_goes_away_leaves_a_gap_and_no_error(tmp_path):
    sensor = "/sys/class/hwmon/hwmon0/temp1_input"
    layer = MetricLayer(find_layer("thermal"), write_tree(tmp_path, {sensor: "40000"}))
    layer.armed(os.getpid())
    layer.close()
    (tmp_path / sensor[1:]).unlink()
    layer.ended(os.getpid())
    assert layer.after({}) == {}
    layer.close()


def test_a_file_that_is_not_in_its_format_leaves_a_gap_and_no_error(tmp_path):
    network = {"/proc/net/softnet_stat": "no hexadecimal numbers", "/proc/net/dev": "eth0: x y"}
    assert of_tree("network", tmp_path, network, {}) == {}
    assert of_tree("softirqs", tmp_path, {"/proc/softirqs": "CPU0\nHI: many"}, {}) == {}


V1 = (
    "4:cpu,cpuacct:/box/run\n0::/",
    "33 25 0:29 /box /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "34 25 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
    "cpu,cpuacct/run",
    "throttled_time",
    "cgroup_throttled_ns",
)
V2 = (
    "0::/box/run",
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate",
    "box/run",
    "throttled_usec",
    "cgroup_throttled_us",
)
V2_OF_A_RUN = ("0::/box/run/noisebook-12-345-678-run-9", *V2[1:])


@pytest.mark.parametrize("version", [V1, V2, V2_OF_A_RUN], ids=["1", "2", "2, group of a run"])
def test_quota_of_the_processs_own_control_group(tmp_path, version):
    group, mounts, place, throttled, column = version
    proc, counts = f"/proc/{os.getpid()}", f"/sys/fs/cgroup/{place}/cpu.stat"
    text = f"usage_usec 1\nnr_periods {{}}\nnr_throttled {{}}\n{throttled} {{}}"
    before = {f"{proc}/cgroup": group, f"{proc}/mountinfo": mounts, counts: text.format(10, 1, 100)}
    columns = of_tree("throttling", tmp_path, before, {counts: text.format(30, 6, 900)})
    assert columns == {"cgroup_periods": 20, "cgroup_nr_throttled": 5, column: 800}


# Hardware events
# --------------------------------------------------------------------------------------------------


def test_counts_of_counters_that_took_turns_are_scaled_and_their_share_is_said():
    """As recorded from counters on two threads: enabled 100 and 50 ms, those of the cache on for
    half of it.
    """

    def of(name):
        return layers()["hardware"].metric_of(name)

    ms = 1_000_000
    readings = [
        (of("cycles"), 300 * ms, 100 * ms, 100 * ms),
        (of("cycles"), 100 * ms, 50 * ms, 50 * ms),
        (of("cache_misses"), 4000, 100 * ms, 50 * ms),
        (of("cache_misses"), 500, 50 * ms, 20 * ms),
    ]
    shares = {
        "hardware_running_share": "",
        "hardware_core_running_share": "core",
        "hardware_cache_running_share": "cache",
        "hardware_stall_running_share": "stall",
    }
    columns = totals(readings, shares)
    assert columns == {
        "cycles": 400 * ms,
        "cycles@enabled_ns": 150 * ms,
        "cache_misses": 9250,
        "cache_misses@enabled_ns": 150 * ms,
        "hardware_running_share": 0.4,
        "hardware_core_running_share": 1.0,
        "hardware_cache_running_share": 0.4,
    }
    assert "cycles@enabled_ns" not in totals(readings, shares, user_only=True), (
        "cycles of user mode alone give no clock"
    )
    assert totals([(of("cycles"), 0, 5, 0)], {})["cycles"] == 0, (
        "a counter that never had its turn is no division by zero"
    )


# What is here
# --------------------------------------------------------------------------------------------------


def test_layers_here_reads_each_of_them():
    table = available_layers()
    assert list(table.index) == list(layers())
    assert table.loc[["kernel", "interrupts", "softirqs", "state"], "available"].all()
    assert table.loc["kernel", "columns"] >= 15
    assert (table["reason"][~table["available"]].str.len() > 5).all(), "what is not here says why"


def test_on_an_empty_machine_every_file_is_missed_and_nothing_fails(tmp_path):
    table = available_layers(tmp_path)
    assert not table.loc[["kernel", "thermal", "numa", "io"], "available"].any()
    assert "/proc/stat" in table.loc["kernel", "reason"]
