"""An attacker's knowledge: it can name what is on the list and nothing else; what it would load or
set is refused, and what it reads are counters.
"""

import shutil
from pathlib import Path

import pytest

from nbhelpers.errors import InputError
from nbhelpers.machine.parts import LIBRARIES
from nbhelpers.measurement._knowledge import layers, read_layer
from nbhelpers.mitigation import knowledge, mitigations, treat_workload
from nbhelpers.mitigation.program import Environment, Preload
from nbhelpers.workloads import program

HEAD = "- {id: evil, name: Some, what: Something long, by_hand: [x], references: [man-nice]"
OURS = {
    "MALLOC_MMAP_MAX_ MALLOC_TRIM_THRESHOLD_ MALLOC_TOP_PAD_ MALLOC_ARENA_MAX GLIBC_TUNABLES",
    "OMP_WAIT_POLICY",
}


RUN_BY_THE_KERNEL = (
    *("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/../kernel/core_pattern"),
    *("/proc/sys/vm/../kernel/core_pattern", "/proc/sys/kernel/core_patter*"),
    *("/proc/sys/kernel/modprobe", "/sys/fs/cgroup/release_agent", "/sys/kernel/uevent_helper"),
)


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """Knowledge of an attacker: ours, and one entry with this action."""
    place = tmp_path / "knowledge"
    shutil.copytree(knowledge.folder(), place)
    monkeypatch.setenv("NOISEBOOK_KNOWLEDGE", str(place))

    def read(action: str, more: str = ""):
        text = f"{HEAD}, actions: [{action}]{more}}}\n"
        (place / "mitigations" / "zz.yml").write_text(text)
        knowledge._read.cache_clear()
        return mitigations()["evil"]

    yield read
    knowledge._read.cache_clear()


@pytest.mark.parametrize(
    "path, value",
    [
        *((path, "|/tmp/evil") for path in RUN_BY_THE_KERNEL),
        ("/proc/sys/*/swappiness", "1"),
        ("/sys/devices/system/cpu/cpufreq/*/scaling_governor", "performance"),
        ("/proc/sysrq-trigger", "c"),
        ("/proc/self/mem", "x"),
        ("/proc/1/mem", "x"),
        ("/sys/kernel/debug/sched/features", "NO_HRTICK"),
        ("/proc/sys/fs/binfmt_misc/register", ":a:M::x::/tmp/evil:"),
        ("/etc/passwd", "root::0:0::/:/bin/sh"),
        ("/proc/sys/vm/swappiness", "201"),
        ("/proc/sys/vm/swappiness", "1\\n2"),
        ("/proc/sys/vm/swappiness", "1\\0"),
        ("/proc/irq/0/../../sys/kernel/core_pattern", "0"),
    ],
)
def test_a_setting_off_the_list_is_refused_when_it_is_read(evil, path, value):
    with pytest.raises(InputError, match="not on the list|may be") as error:
        evil(f'{{kind: setting, path: "{path}", value: "{value}"}}')
    text = str(error.value)
    assert "zz.yml, evil" in text and "allowed_settings.h" in text


def test_what_is_on_the_list_is_read_at_the_lists_risk(evil):
    assert evil('{kind: setting, path: /proc/sys/vm/swappiness, value: "7"}').risk == "low"
    path = "/proc/sys/kernel/sched_rt_runtime_us"
    assert evil(f'{{kind: setting, path: {path}, value: "-1"}}').risk == "high"
    assert evil("{kind: policy, policy: SCHED_RR, priority: 99}").risk == "high"


def test_a_declared_risk_is_refused(evil):
    with pytest.raises(InputError, match="not as its schema wants it"):
        evil("{kind: flush}", ", risk: none")


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "GLIBC_TUNABLES", "PATH", "PYTHONPATH"),
        *("BASH_ENV", "NODE_OPTIONS", "GCONV_PATH", "NOISEBOOK_KNOWLEDGE", "MINE", "A=B"),
        *("OMP_TOOL_LIBRARIES", "MALLOC_CONF", "MKL_VERBOSE_OUTPUT_FILE", "EVIL_NUM_THREADS"),
        *("HDF5_PLUGIN_PATH", "NCCL_NET_PLUGIN", "INTEL_LIBITTNOTIFY64", "HSA_TOOLS_LIB"),
        "HWLOC_PLUGINS_PATH",
    ],
)
def test_a_variable_that_could_load_or_run_something_is_refused(evil, name):
    with pytest.raises(InputError, match=f"may not set or preload {name}") as error:
        evil(f'{{kind: environment, variables: {{"{name}": /tmp/evil}}}}')
    text = str(error.value)
    assert "zz.yml, evil" in text and f"program(…, env={{'{name}': …}})" in text


@pytest.mark.parametrize("name", ["HDF5_PLUGIN_PATH", ""])
def test_a_factor_that_would_be_injected_by_such_a_variable_is_refused(evil, name):
    """What its sham sets is any text."""
    file = knowledge.folder() / "factors" / "memory.yml"
    text = file.read_text()
    file.write_text(text.replace("variable: MALLOC_MMAP_THRESHOLD_", f'variable: "{name}"'))
    knowledge._read.cache_clear()
    with pytest.raises(InputError, match=f"may not set or preload {name}") as error:
        knowledge.factors()
    assert "memory.yml, " in str(error.value)


def test_variables_of_openmp_and_malloc_are_taken(evil):
    item = evil("{kind: environment, variables: {KMP_BLOCKTIME: '0', MALLOC_ARENA_MAX: '4'}}")
    assert ("MALLOC_ARENA_MAX", "4") in treat_workload(item, program("true")).workload.env


@pytest.mark.parametrize("library", ["evil", "./evil.so", "/a/../b.so", "/a.so:/b.so", "/b.so"])
def test_a_library_that_is_not_on_the_list_is_refused(evil, library):
    with pytest.raises(InputError, match="may not set or preload"):
        evil(f'{{kind: preload, library: "{library}"}}')


def test_ours_name_known_libraries_and_a_fixed_list_of_variables():
    actions = [action for item in mitigations().values() for action in item.actions]
    loaded = {action.library for action in actions if isinstance(action, Preload)}
    names = {name for a in actions if isinstance(a, Environment) for name in a.variables}
    assert loaded == set(LIBRARIES) and names == set(" ".join(OURS).split())


@pytest.mark.parametrize(
    "action, complaint",
    [
        ("{kind: shell, command: id}", "no kind of action"),
        ("{kind: [setting]}", "not as its schema wants it"),
        ("{kind: flush, more: [/proc/kmsg]}", "does not take"),
        ("{kind: cool-down, seconds: 1000000}", "not as its schema wants it"),
        ("{kind: latency, us: -1}", "not as its schema wants it"),
        ("{kind: environment, variables: {A: 1}}", "not as its schema wants it"),
        ("{kind: environment, variables: x}", "not as its schema wants it"),
        ("{kind: nice, value: root}", "not as its schema wants it"),
        ('{kind: confine, cpus: ["../../x"]}', "not as its schema wants it"),
        ("!!python/object/apply:os.system [id]", "is not YAML"),
        ('{kind: flush, x: !!python/name:os.system ""}', "is not YAML"),
    ],
)
def test_unknown_kinds_arguments_and_tags_are_refused(evil, action, complaint):
    with pytest.raises(InputError, match=complaint):
        evil(action)


def test_a_name_with_slashes_is_no_choice_of_cpus(evil):
    item = evil('{kind: confine, cpus: "../../x"}')
    with pytest.raises(InputError, match="no choice of CPUs"):
        item.possible(program("true"))


@pytest.mark.parametrize(
    "path",
    [
        *("/etc/shadow", "/var/log/syslog", "/proc/../etc/shadow", "/sys/../etc/shadow"),
        *("/proc/self/root", "/proc/{pid}/root", "/proc/{pid}/cwd", "/proc/1/environ"),
        *("/proc/{pid}/environ", "/proc/{pid}/mem", "/proc/{pid}/cwd/x", "/proc/{pid}/fd/3"),
        *("/proc/*/environ", "/proc/[0-9]/environ", "/proc/kmsg", "/proc/kcore"),
        *("/sys/kernel/debug/x", "/sys/kernel/tracing/trace_pipe", "/dev/mem", "/sysevil/x"),
        *("{cgroup:cpu}/../../etc/shadow", "/{cgroup:cpu}/x", "//etc/shadow", "/proc"),
    ],
)
def test_a_metric_layer_reads_no_file_but_counters(tmp_path, path):
    with pytest.raises(InputError, match="may not read") as error:
        read_layer(_layer(tmp_path, f'path: "{path}"'))
    assert str(tmp_path) in str(error.value)


def test_nor_does_it_name_a_counter_by_another_file(tmp_path):
    for label in ("/etc/shadow", "../../../etc/shadow"):
        with pytest.raises(InputError, match="may not read"):
            read_layer(_layer(tmp_path, f'path: /sys/block/*/stat, label: ["{label}"]'))
    assert read_layer(_layer(tmp_path, "path: /sys/block/*/stat, label: [name]"))
    assert len(layers()) > 20, "ours read counters only"


def _layer(folder: Path, source: str) -> Path:
    file = folder / "layer.yml"
    metric = "{id: mine, title: what it is, key: root}"
    file.write_text(
        f"layer: mine\ntitle: my layer\nsources: [{{reader: file, {source}, format: rows, metrics:"
        f" [{metric}]}}]\n"
    )
    return file
