"""The machine's record: against the recorded trees it was read from, and against what Python's own
modules say.
"""

import getpass
import json
import os
import platform
import socket
from dataclasses import replace

import pytest

from nbhelpers.machine import describe
from nbhelpers.machine.description import virtualisation

from ..trees import write_tree


def test_the_server_is_read_whole(server):
    found = describe(server)
    assert found.cpu_model == "Intel(R) Xeon(R) Gold 6134 CPU @ 3.20GHz"
    assert (found.cpus, found.cores, found.packages, found.numa_nodes, found.smt) == (
        tuple(range(32)),
        16,
        2,
        2,
        "on",
    )
    assert found.memory_bytes == 196608000 * 1024
    assert (found.kernel, found.preemption, found.hz) == (
        "6.8.0-45-generic",
        "dynamic (voluntary)",
        250,
    )
    assert (found.virtualisation, found.clocksource, found.governor) == (
        "none",
        "tsc",
        "performance",
    )
    assert (found.frequency_driver, found.boost, found.transparent_huge_pages) == (
        "intel_cpufreq",
        "on",
        "madvise",
    )


def test_only_the_boot_parameters_that_matter_are_kept(server):
    assert describe(server).boot_parameters == {
        "isolcpus": "domain,1-7",
        "mitigations": "off",
        "nohz_full": "1-7",
    }


def test_an_empty_tree_is_described_without_an_error(tmp_path):
    found = describe(tmp_path)
    assert (found.cpu_model, found.kernel, found.memory_bytes, found.boot_parameters) == (
        "unknown",
        "unknown",
        0,
        {},
    )


def test_this_machine_agrees_with_python():
    found = describe()
    assert found.kernel == platform.release()
    assert len(found.cpus) == os.sysconf("SC_NPROCESSORS_ONLN")
    assert found.memory_bytes == pytest.approx(
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), rel=0.01
    )
    assert found.python == f"CPython {platform.python_version()}"


def test_no_host_user_or_path_is_in_the_record():
    text = (
        json.dumps(describe().to_dict())
        + repr(describe())
        + describe()._repr_html_().replace("</", "<")
    )
    assert "/" not in text
    words = set(text.replace('"', " ").split())
    assert not words & {socket.gethostname(), getpass.getuser()}


def test_the_digest_knows_settings_but_not_the_memory(server):
    one = describe(server)
    assert one.digest == describe(server).digest == replace(one, memory_bytes=1).digest
    assert one.digest != replace(one, governor="powersave").digest
    assert one == describe(server)


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"/proc/cpuinfo": "flags : fpu", "/sys/class/dmi/id/sys_vendor": "Amazon EC2"}, "none"),
        (
            {
                "/proc/cpuinfo": "flags : fpu hypervisor",
                "/sys/class/dmi/id/sys_vendor": "Amazon EC2",
            },
            "kvm",
        ),
        (
            {
                "/proc/cpuinfo": "flags : fpu hypervisor",
                "/sys/class/dmi/id/sys_vendor": "VMware, Inc.",
            },
            "vmware",
        ),
        ({"/proc/cpuinfo": "flags : fpu hypervisor", "/sys/hypervisor/type": "xen"}, "xen"),
        ({"/proc/cpuinfo": "flags : fpu hypervisor"}, "unknown"),
        ({"/proc/cpuinfo": "Features : fp asimd", "/sys/class/dmi/id/sys_vendor": "QEMU"}, "kvm"),
        ({"/proc/cpuinfo": "Features : fp asimd"}, "none"),
        (
            {
                "/proc/cpuinfo": "flags : fpu hypervisor",
                "/sys/devices/system/clocksource/clocksource0/available_clocksource": (
                    "tsc kvm-clock"
                ),
            },
            "kvm",
        ),
    ],
)
def test_hypervisors_are_told_from_bare_metal(tmp_path, files, kind):
    assert virtualisation(write_tree(tmp_path, files)) == kind
