"""What an attacker can write into files that a user is given: knowledge, metric layers, artifacts.

Each is a real file that the real reader is asked to use. Nothing of it may run, be loaded, or
change a file.
"""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nbhelpers import program
from nbhelpers.errors import InputError, SettingError
from nbhelpers.measurement import metrics
from nbhelpers.mitigation import available_mitigations, mitigations
from nbhelpers.mitigation.consent import ALLOW
from nbhelpers.mitigation.knowledge import folder
from nbhelpers.mitigation.preparation import Trigger
from nbhelpers.mitigation.settings import Setting

ENTRY = {
    "id": "free-speed",
    "name": "Free speed",
    "what": "Makes everything faster, says its author.",
    "by_hand": ["nothing"],
    "references": ["man-sched"],
}


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Knowledge from elsewhere with one more mitigation; returns a function that reads it."""
    place = tmp_path / "knowledge"
    shutil.copytree(folder(), place)
    monkeypatch.setenv("NOISEBOOK_KNOWLEDGE", str(place))
    monkeypatch.delenv(ALLOW, raising=False)

    def read(*actions: dict, **fields: object):
        entry = ENTRY | {"actions": list(actions)} | fields
        (place / "mitigations/zz.yml").write_text(yaml.safe_dump([entry]))
        from nbhelpers.mitigation import knowledge

        knowledge._read.cache_clear()
        return mitigations()["free-speed"]

    yield read
    from nbhelpers.mitigation import knowledge

    knowledge._read.cache_clear()


SETTINGS = [
    ("/proc/sys/kernel/core_pattern", "|/tmp/evil"),
    ("/proc/sys/kernel/modprobe", "/tmp/evil"),
    ("/proc/sys/kernel/hotplug", "/tmp/evil"),
    ("/proc/sysrq-trigger", "b"),
    ("/proc/sys/vm/../kernel/core_pattern", "|/tmp/evil"),
    ("/proc/self/root/proc/sys/kernel/core_pattern", "|/tmp/evil"),
    ("/proc/1/mem", "x"),
    ("/proc/sys/vm/swappiness\n/proc/sys/kernel/core_pattern", "1"),
    ("/sys/devices/system/cpu/*/online", "0"),
    ("/sys/**/scaling_governor", "performance"),
    ("/sys/kernel/debug/*", "1"),
    ("/etc/passwd", "root::0:0::/:/bin/sh"),
    ("/etc/cron.d/*", "* * * * * root /tmp/evil"),
    ("~/.bashrc", "evil"),
    ("relative", "1"),
    ("", "1"),
]
VALUES = [
    ("/proc/sys/vm/swappiness", "201"),
    ("/proc/sys/vm/swappiness", "1\n2"),
    ("/proc/sys/vm/swappiness", "1\x00"),
    ("/sys/devices/system/cpu/smt/control", "forceoff"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "always\n"),
    ("/proc/sys/vm/drop_caches", "4"),
]


@pytest.mark.parametrize(("path", "value"), [*SETTINGS, *VALUES])
def test_a_setting_that_is_not_on_the_list_is_refused_when_it_is_read(foreign, path, value):
    with pytest.raises(InputError, match="not on the list|out of the range"):
        foreign({"kind": "setting", "path": path, "value": value})


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/sysrq-trigger", "/proc/sys/vm/swappiness"])
def test_a_trigger_of_anything_else_is_refused(foreign, path):
    with pytest.raises(InputError, match="does not trigger"):
        foreign({"kind": "trigger", "path": path, "value": "1"})


def test_an_action_made_without_its_reader_overwrites_no_file(tmp_path):
    """The last line of defence: what acts writes only where a file is, and only settings."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    workload = program(["true"])
    with pytest.raises(SettingError), Setting("/proc/sys/kernel/core_pattern", "x").held(workload):
        pytest.fail("it was set")
    with pytest.raises(SettingError), Trigger(str(tmp_path / "new"), "1").held(workload):
        pytest.fail("it was made")
    assert victim.read_text() == "precious" and not (tmp_path / "new").exists()


@pytest.mark.parametrize("risk", ["none", "low"])
def test_risk_is_never_declared(foreign, risk):
    with pytest.raises(InputError, match="'risk' was unexpected"):
        foreign({"kind": "policy", "policy": "SCHED_FIFO", "priority": 99}, risk=risk)


def test_risk_follows_from_the_actions(foreign):
    assert foreign({"kind": "policy", "policy": "SCHED_FIFO", "priority": 99}).risk == "high"
    smt = {"kind": "setting", "path": "/sys/devices/system/cpu/smt/control", "value": "off"}
    assert foreign({"kind": "cool-down"}, smt).risk == "high"
    assert foreign({"kind": "latency"}).risk == "low"
    assert foreign({"kind": "cool-down"}).risk == "none"


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "LD_BIND_NOT", "GLIBC_TUNABLES"),
        *("PYTHONPATH", "PYTHONSTARTUP", "PATH", "BASH_ENV", "ENV", "IFS", "PERL5LIB", "NODE_PATH"),
        *("OMP_TOOL_LIBRARIES", "GCONV_PATH", "HOME", "NOISEBOOK_BIN", "JAVA_TOOL_OPTIONS"),
    ],
)
def test_variables_that_load_code_are_never_set_by_foreign_knowledge(foreign, name, monkeypatch):
    monkeypatch.setenv(ALLOW, "free-speed")
    with pytest.raises(InputError, match=f"may not set {name}"):
        foreign({"kind": "environment", "variables": {name: "/tmp/evil.so"}})


def test_other_variables_ask_first(foreign, monkeypatch):
    found = foreign({"kind": "environment", "variables": {"OMP_WAIT_POLICY": "PASSIVE", "A": "1"}})
    answer = found.possible(program(["true"]))
    assert not answer and "set A=1, OMP_WAIT_POLICY=PASSIVE, and asks first" in answer.reason
    assert "--allow free-speed" in answer.fix
    assert not available_mitigations().loc["free-speed", "possible"]
    monkeypatch.setenv(ALLOW, "other,free-speed")
    assert found.possible(program(["true"]))


def test_a_library_asks_first_and_is_refused_where_others_can_change_it(foreign, tmp_path):
    library = tmp_path / "libevil.so"
    library.write_bytes(b"\x7fELF")
    found = foreign({"kind": "preload", "library": str(library)})
    answer = found.possible(program(["true"]))
    assert not answer and f"load the library {library} into it" in answer.reason
    library.chmod(0o666)
    with pytest.raises(InputError, match="others can change this library"):
        foreign({"kind": "preload", "library": str(library)})
    library.chmod(0o644)
    if os.geteuid() == 0:
        os.chown(library, 65534, 65534)
        with pytest.raises(InputError, match="others can change this library"):
            foreign({"kind": "preload", "library": str(library)})
    assert stat.S_IMODE(library.stat().st_mode) == 0o644


def test_a_copy_of_our_own_knowledge_asks_for_nothing(foreign):
    foreign({"kind": "cool-down"})
    assert not any(one.asks for one in mitigations().values())


@pytest.mark.parametrize(
    "text",
    [
        "- !!python/object/apply:os.system [touch EVIL]",
        "- !!python/name:os.system ''",
        "- !!python/module:os",
        "- {id: x, actions: [{kind: __import__}]}",
        "- {id: x, actions: [{kind: setting, __class__: y}]}",
    ],
)
def test_yaml_makes_no_objects(foreign, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (Path(os.environ["NOISEBOOK_KNOWLEDGE"]) / "mitigations/yy.yml").write_text(text)
    with pytest.raises(InputError):
        foreign({"kind": "cool-down"})
    assert not (tmp_path / "EVIL").exists()


LAYER = "layer: evil\ntitle: of an attacker\nsources: [{reader: file, path: %s, format: rows,"
LAYER += " metrics: [{id: a, title: a number, unit: count, key: a}]}]\n"


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "path",
    [
        "/etc/shadow",
        "/proc/../etc/shadow",
        "/sys/../etc/ssh/key",
        "/etc/ssh/*",
        "/dev/sda",
        "FIFO",
    ],
)
def test_a_metric_layer_reads_files_of_the_kernel_only(tmp_path, path):
    if path == "FIFO":
        os.mkfifo(tmp_path / "fifo")
        path = str(tmp_path / "fifo")
    (tmp_path / "evil.yml").write_text(LAYER % path)
    with pytest.raises(InputError, match="not a metric layer"):
        metrics(str(tmp_path / "evil.yml"))


# ---- profiles and shared studies, by make --------------------------------------------------------


def make(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", f"PY={sys.executable}", *words],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )


@pytest.mark.parametrize(
    "name", ["$(touch EVIL).yml", "`touch EVIL`.yml", "a;touch EVIL.yml", "a'touch.yml", "a|b.yml"]
)
def test_the_name_of_a_profile_runs_nothing(tmp_path, name):
    place = tmp_path / name
    place.write_text("10-trace-collection: {runs: 2}\n")
    done = make("-n", "paper", f"PROFILE={place}")
    assert done.returncode != 0
    assert not list(tmp_path.glob("EVIL")) and not (Path(__file__).parents[2] / "EVIL").exists()


@pytest.mark.parametrize("name", ["$(touch EVIL).zip", "a`touch EVIL`.zip", "a';touch EVIL;'.zip"])
def test_the_name_of_a_shared_study_runs_nothing(tmp_path, name):
    (tmp_path / name).write_bytes(b"no zip")
    make("-n", "paper", f"DATA={tmp_path / name}")
    assert not list(tmp_path.glob("EVIL")) and not (Path(__file__).parents[2] / "EVIL").exists()
