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
    expected = {"cpu_model": "Intel(R) Xeon(R) Gold 6134 CPU @ 3.20GHz", "cpus": [*range(32)]}
    expected |= {"cores": 16, "packages": 2, "numa_nodes": 2, "smt": "on"}
    expected |= {"kernel": "6.8.0-45-generic", "preemption": "dynamic (voluntary)", "hz": 250}
    expected |= {"virtualisation": "none", "clocksource": "tsc", "governor": "performance"}
    expected |= {"frequency_driver": "intel_cpufreq", "boost": "on"}
    expected |= {"transparent_huge_pages": "madvise", "memory_bytes": 196608000 * 1024}
    # only those that matter, and none of init's
    boot = {"isolcpus": "domain,1-7", "mitigations": "off", "nohz_full": "1-7"}
    expected |= {"boot_parameters": boot}
    assert describe(server).to_dict().items() >= expected.items()


def test_an_empty_tree_is_described_without_an_error(tmp_path):
    expected = {"cpu_model": "unknown", "kernel": "unknown", "memory_bytes": 0}
    assert describe(tmp_path).to_dict().items() >= expected.items()


def test_this_machine_agrees_with_python():
    found = describe()
    assert found.kernel == platform.release()
    assert len(found.cpus) == os.sysconf("SC_NPROCESSORS_ONLN")
    assert found.memory_bytes == pytest.approx(
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), rel=0.01
    )
    assert found.python == f"CPython {platform.python_version()}"


def test_no_host_user_or_path_is_in_the_record():
    found = describe()
    text = json.dumps(found.to_dict()) + repr(found)
    assert "/" not in text
    words = set(text.replace('"', " ").split())
    assert not words & {socket.gethostname(), getpass.getuser()}


def test_the_digest_knows_settings_but_not_the_memory(server):
    one = describe(server)
    assert one.digest == describe(server).digest == replace(one, memory_bytes=1).digest
    assert one.digest != replace(one, governor="powersave").digest
    assert one == describe(server)


X86, ARM = {"/proc/cpuinfo": "flags : fpu hypervisor"}, {"/proc/cpuinfo": "Features : fp asimd"}
BARE = {"/proc/cpuinfo": "flags : fpu"}
MAKER = "/sys/class/dmi/id/sys_vendor"
CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        (BARE | {MAKER: "Amazon EC2"}, "none"),
        (X86 | {MAKER: "Amazon EC2"}, "kvm"),
        (X86 | {MAKER: "VMware, Inc."}, "vmware"),
        (X86 | {"/sys/hypervisor/type": "xen"}, "xen"),
        (X86, "unknown"),
        (ARM | {MAKER: "QEMU"}, "kvm"),
        (ARM, "none"),
        (X86 | {CLOCKS: "tsc kvm-clock"}, "kvm"),
    ],
)
def test_hypervisors_are_told_from_bare_metal(tmp_path, files, kind):
    assert virtualisation(write_tree(tmp_path, files)) == kind
