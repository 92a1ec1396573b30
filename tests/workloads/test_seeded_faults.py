"""Wrong programs: each fault is planted in a copy of the sources, built as `make env` builds it and
run; the program itself must say verified=no.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ..planted_faults import SOURCES, Fault

ATTEMPTS = 5  # of two threads that never meet none is in the other's way


def sync(name: str, construct: str, right: str, wrong: str, source: str = "") -> Fault:
    inner = 200_000 if construct == "atomic" else 500
    words = f"syncbench --construct {construct} --inner {inner} --outer 50 --delay 200"
    return Fault(f"{construct}: {name}", words, right, wrong, source)


def sched(name: str, schedule: str, right: str, wrong: str) -> Fault:
    words = f"schedbench --schedule {schedule} --iterations-per-thread 99 --delay 10 --outer 2"
    return Fault(f"{schedule}: {name}", words, right, wrong)


def loop_of(schedule: str, wrong: str, name: str, options: str) -> Fault:
    return sched(name, f"{schedule} {options}", LOOPS[schedule, options], f'"omp for {wrong}"')


CHUNK = "--chunk 4"
LOOPS = {
    ("static", "--chunk 0"): '"omp for schedule(static)"',
    ("static", CHUNK): '"omp for schedule(static, chunk)"',
    ("dynamic", CHUNK): '"omp for schedule(dynamic, chunk)"',
    ("guided", CHUNK): '"omp for schedule(guided, chunk)"',
}
IN_CRITICAL = "#pragma omp critical\n        if"
ALONE = """if (looks(&look, done))
            delay_alone();
        else
            nb_delay(job.delay);
"""
CRITICAL = f"#pragma omp critical\n        {ALONE}    }}\n}}\n\nstatic void do_lock"
CRITICAL_IN_PASS = "if (look.mask) {" + ALONE + "} else\n" + CRITICAL
AT_BARRIER = "#pragma omp barrier\n"
TAKE, GIVE = "omp_set_lock(&job.lock);\n", "omp_unset_lock(&job.lock);\n"
NBODY = "nbody --bodies 200 --steps 5"
STREAM = "stream --elements 10000 --repeats 4"
MINIFE = "minife --nx 8"
SINGLE = " --precision single"
PULL = "double pull = 1 / (square * sqrt(square));"
PULL_SINGLE = "float pull = other.mass * inverse * inverse * inverse;"
SUM = "sum += a[i] * b[i];"
SOFT = "dz * dz + SOFTENING * SOFTENING;\n        double pull"
KICK = "accelerate(b);\n    kick(b, time / 2);"
FEWER = "done < repeats - 1; done++)\n        sums"
pytestmark = pytest.mark.long
REAL, ONE = "stream_real.h", "nbody_single.c"

PARALLEL = "#pragma omp parallel"
FAULTS = [
    sync("no critical section", "critical", IN_CRITICAL, "        if"),
    sync("no barrier", "barrier", AT_BARRIER, ""),
    loop_of("guided", "schedule(dynamic, chunk)", "another schedule", CHUNK),
    Fault("force x 1.001", NBODY, PULL, PULL.replace("1 /", "1.001 /")),
    Fault("dot x 1.001", STREAM, SUM, "sum += 1.001 * a[i] * b[i];", REAL),
    Fault("not assembled in time", MINIFE, "(&region);\n    assemble(&s);", "(&region);\n"),
    sync("no lock", "lock", TAKE, ""),
    sync(
        "none but where all is looked at",
        "barrier",
        AT_BARRIER,
        'if (!look.mask) {\n_Pragma("omp barrier")\n}\n',
    ),
    sync("none but where all is looked at", "critical", CRITICAL, CRITICAL_IN_PASS),
    sync("no order", "ordered", "#pragma omp ordered\n        if", "        if"),
    sync("by all", "single", "#pragma omp single\n        nb", "        nb"),
    sync("nobody waits", "single", "omp single\n        nb", "omp single nowait\nnb"),
    sync("nobody waits", "for", "omp for\n        for (int i", "omp for nowait\nfor (int i"),
    sync("by one thread", "parallel-for", f"{PARALLEL} for\n", f"{PARALLEL} for if (0)\n"),
    sync("by one", "parallel", f"{PARALLEL}\n        nb", f"{PARALLEL} num_threads(1)\n        nb"),
    sync("not atomic", "atomic", "#pragma omp atomic\n        job.total", "        job.total"),
    sync("a common sum", "reduction", "parallel reduction(+ : total)\n        {", "parallel\n{"),
    sync(
        "half a delay",
        "barrier",
        "i < steps; i++) {\n        state",
        "i < steps / 2; i++) {\n        state",
        "overhead.h",
    ),
    sync(
        "half a reference",
        "barrier",
        "static void alone(void)\n{\n    for (long done = 0; done < job.inner;",
        "static void alone(void)\n{\n    for (long done = 0; done < job.inner / 2;",
    ),
    sync("a repetition less", "barrier", "at < times->count", "at < times->count - (mask != 0)"),
    loop_of("dynamic", "schedule(guided, chunk)", "another schedule", CHUNK),
    loop_of("dynamic", "schedule(dynamic, chunk + 1)", "another chunk", CHUNK),
    loop_of("guided", "schedule(static)", "another schedule", CHUNK),
    loop_of("static", "schedule(dynamic)", "another schedule", "--chunk 0"),
    loop_of("static", "schedule(static)", "no chunks", CHUNK),
    sched(
        "no work in time",
        "dynamic",
        "nb_delay(job->delay);\n    if (job->chunks)",
        "if (job->chunks)\n        nb_delay(job->delay);\n    if (job->chunks)",
    ),
    Fault("softer", NBODY, SOFT, SOFT.replace("SOFTENING;", "0.051;")),
    Fault(
        "a body does not pull", NBODY, "az = 0;\n    for (long j = 0;", "az = 0; for (long j = 1;"
    ),
    Fault("a step less", NBODY, "done < steps; done++", "done < steps - 1; done++"),
    Fault("half a kick", NBODY, KICK, KICK.replace("time / 2", "time / 2.002")),
    Fault("a short way", NBODY, "drift(b, time);", "drift(b, 0.999 * time);"),
    Fault(
        "force x 1.001", NBODY + SINGLE, PULL_SINGLE, PULL_SINGLE.replace("=", "= 1.001f *"), ONE
    ),
    Fault("another scalar", STREAM, "b[i] + (REAL)SCALAR", "b[i] + (REAL)0.4001", REAL),
    Fault("minus", STREAM, "c[i] = a[i] + b[i]", "c[i] = a[i] - b[i]", REAL),
    Fault("no number", STREAM, "b[i] = (REAL)SCALAR * c[i]", "b[i] = (REAL)NAN * c[i]", REAL),
    Fault(
        "only the last dot",
        STREAM,
        "sums[done] = repeat(real, &s, times + done, repeats);",
        "sums[repeats - 1] = repeat(real, &s, times + done, repeats);",
    ),
    Fault("a repetition less", STREAM, "done < repeats; done++)\n        sums", FEWER),
    Fault("dot x 1.001", STREAM + SINGLE, SUM, "sum += 1.001f * a[i] * b[i];", REAL),
    Fault("a step too long", MINIFE, "double step = square", "double step = 1.001 * square"),
    Fault("no number", MINIFE, "double step = square", "double step = NAN * square"),
    Fault("another direction", MINIFE, "s->r, next / square", "s->r, 1.001 * next / square"),
    Fault("too early", MINIFE, "found.residual > tolerance", "found.residual > 10 * tolerance"),
    Fault("another load", MINIFE, "+= load[row];", "+= 1.001 * load[row];"),
    Fault("another solution", MINIFE, "+ 3 * z * z", "+ 4 * z * z", "element.h"),
]


def planted(folder: Path, fault: Fault) -> Path:
    """The program with the fault, built with the flags of our own."""
    for path in (*SOURCES.glob("*.[ch]"), SOURCES / "Makefile"):
        shutil.copy(path, folder)
    source = folder / (fault.source or f"{fault.program}.c")
    text = source.read_text()
    assert text.count(fault.right) == 1, f"{source.name} has changed: {fault.right!r}"
    source.write_text(text.replace(fault.right, fault.wrong))
    built = folder / "bin" / fault.program
    make = ["make", "-s", "-C", str(folder), f"BIN={folder}/bin", str(built)]
    done = subprocess.run(make, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return built


def is_found(program: Path, words: str) -> bool:
    command, env = [program, *words.split()[1:]], {"OMP_NUM_THREADS": "2"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    assert done.stdout.splitlines(), done.stderr
    said = done.stdout.splitlines()[-1].split()[-1]
    assert (said == "verified=no") == (done.returncode == 1) == ("not verified" in done.stderr)
    return said == "verified=no"


def cases(faults: list[Fault]):
    """Threads of constructs meet where nobody else wants the CPUs, and else wait long."""
    for fault in faults:
        alone = [pytest.mark.alone] if fault.program == "syncbench" else []
        yield pytest.param(fault, id=f"{fault.program}, {fault.name}", marks=alone)


@pytest.mark.parametrize("fault", list(cases(FAULTS)))
def test_a_planted_fault_is_found(tmp_path, fault):
    if not os.access(SOURCES / "Makefile", os.R_OK):
        pytest.skip("no sources here")
    program = planted(tmp_path, fault)
    assert any(is_found(program, fault.words) for _ in range(ATTEMPTS))


@pytest.mark.alone  # threads meet where nobody else wants the CPUs
@pytest.mark.parametrize("words", sorted({one.words for one in FAULTS}))
def test_without_a_fault_the_same_run_is_verified(binaries, words):
    assert not is_found(binaries / words.split()[0], words)
