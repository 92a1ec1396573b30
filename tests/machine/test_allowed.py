"""The one list of settings: what is on it is allowed within its range, and nothing else is."""

import pytest

from nbhelpers.machine import allowed, online_cpus
from nbhelpers.places import shipped

SWAPPINESS = "/proc/sys/vm/swappiness"
GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy{}/scaling_governor"
IRQ = "/proc/irq/{}/smp_affinity_list"
WORKQUEUES = "/sys/devices/virtual/workqueue/cpumask"


@pytest.mark.parametrize(
    "path, value",
    [
        (SWAPPINESS, "0"),
        (SWAPPINESS, 200),
        ("/proc/sys/kernel/timer_migration", False),
        ("/proc/sys/kernel/sched_rt_runtime_us", "-1"),
        (GOVERNOR.format(12), "performance"),
        (IRQ.format(24), str(online_cpus()[0])),
        (WORKQUEUES, "1"),
        ("/sys/kernel/mm/transparent_hugepage/defrag", "defer+madvise"),
    ],
)
def test_what_is_on_the_list_is_allowed(path, value):
    assert allowed.refusal(path, value) is None


@pytest.mark.parametrize(
    "path",
    [
        *("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/1/mem", "/etc/passwd", ""),
        *("/proc/sys/kernel/../vm/swappiness", "/proc/sys/vm//swappiness"),
        *("/proc/sys/vm/./swappiness", "/proc/sys/vm/swappiness/", "/proc/sys/vm/swappiness\n"),
        *("/proc/sys/vm/swappiness\0", "/proc/self/cwd/proc/sys/vm/swappiness"),
        *("/tmp/proc/sys/vm/swappiness", "proc/sys/vm/swappiness", "/sys/power/state"),
        "/sys/kernel/debug/sched/fair_server/cpu0/../../features",
        *map(GOVERNOR.format, ("*", "", "0/../policy0", "-1", "٣", "0x1")),
        *map(IRQ.format, ("default", "1/../2")),
    ],
)
def test_any_other_path_is_refused(path):
    assert "not on the list" in allowed.refusal(path, "1")
    assert "\n" not in allowed.refusal(path, "1") and "\0" not in allowed.refusal(path, "1")


@pytest.mark.parametrize(
    "path, values",
    [
        (SWAPPINESS, ["201", "-1", "1\n", "1\0", " 1", "+1", "1e2", "0x10", "01", "", "1 2", "１"]),
        (GOVERNOR.format(0), ["userspace", "", "performance\n", "performance powersave", "*"]),
        (IRQ.format(24), ["", "0\n", "0-0:1/2", "all", "0 1", "١", "1" * 4001]),
        (WORKQUEUES, ["", "0x1", "g", "1-2", "1\n", "F", "f" * 4001]),
    ],
)
def test_a_value_out_of_range_is_refused_and_the_range_is_named(path, values):
    for value in values:
        refusal = allowed.refusal(path, value)
        assert refusal is not None and f"{path} may be" in refusal, value


def test_the_star_of_the_list_is_a_path_of_settings_and_not_of_a_file():
    assert allowed.refusal(GOVERNOR.format("*"), "performance", pattern=True) is None
    assert allowed.refusal("/proc/sys/*/swappiness", "1", pattern=True)
    folders = "/sys/devices/system/cpu/cpufreq/*/scaling_governor"
    assert allowed.refusal(folders, "1", pattern=True)


def test_every_line_of_the_list_is_read():
    lines = (shipped() / allowed.HEADER).read_text().split("\nALLOWED(")[1:]
    assert [one.path for one in allowed.entries()] == [line.split('"')[1] for line in lines]
    for one in allowed.entries():
        least, most = map(int, one.range.split()) if one.kind == "NUMBER" else (0, 1)
        assert one.path.startswith(("/proc/", "/sys/")) and ".." not in one.path and least <= most
        assert (one.kind in ("CPUS", "MASK")) == (not one.range)
