"""The bench of known causes: a catalogue that holds together, tables that hide the truth, and a
score that knows right from wrong.
"""

import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import score as scoring
import sealed
from noisebook_known_causes import tables
from noisebook_known_causes.campaigns import (
    _dose,
    _place,
    _plant,
    cause_campaign,
    planting_error,
)
from noisebook_known_causes.catalogue import _read, causes
from noisebook_known_causes.kinds import KINDS
from noisebook_known_causes.outside import Confined, Profiler
from noisebook_known_causes.scores import shows
from record import write_table

from nbhelpers.errors import InputError, Unavailable
from nbhelpers.measurement import Attachment, finished
from nbhelpers.mitigation import explain_factor, factors, mitigations
from nbhelpers.promise import LEFT_OUT, promises
from nbhelpers.stage_records import record_of
from nbhelpers.studies.disturbances import Shootdowns
from tests.cells import run_cells
from tests.interrupts import interrupt_counts
from tests.shown import Shown

EXTRA = Path(tables.__file__).parent
REQUIRED = (
    "slow-path hash-collisions profiler memory-limit two-compilers nice-competitor tmpfs-storm"
)


def test_thirty_causes_several_programs_graded_and_some_of_them_together():
    known = causes()
    assert len(known) >= 30 and set(REQUIRED.split()) <= set(known)
    victims = {dose.victim.id for cause in known.values() for dose in cause.doses.values()}
    assert len(victims) >= 12
    assert sum(len(cause.parts) == 2 for cause in known.values()) >= 3
    assert sum(set(cause.doses) == {"weak", "medium", "strong"} for cause in known.values()) >= 20
    for cause in known.values():
        graded = set(cause.doses) == {"weak", "medium", "strong"}
        assert graded or cause.graded, f"{cause}: why a dose is missing is not said"


def test_every_cause_names_kinds_and_factors_that_exist():
    for cause in causes().values():
        assert {plant["kind"] for plant in cause.plants} <= set(KINDS), cause
        assert set(cause.factors) <= set(factors()), cause
        assert not [name for name in cause.shown_by if tables.is_giveaway(name)], cause


@pytest.mark.parametrize(
    "name",
    ["slow-path", "profiler", "memory-limit", "two-compilers", "nice-competitor", "tmpfs-storm"],
)
def test_each_real_cause_has_a_factor_and_something_to_do_about_it(name):
    for factor in causes()[name].factors:
        known = [mitigations()[one] for one in explain_factor(factor).mitigations]
        assert any(one.automated for one in known) or all(one.by_hand for one in known)


def test_names_in_the_limits_are_those_that_are_known():
    assert record_of("52-known-causes")["limits"]["names"]["enum"] == list(causes())


def test_the_doctor_says_which_causes_are_left_out(monkeypatch):
    monkeypatch.setattr("noisebook_known_causes.kinds.may_realtime", lambda priority: False)
    said = {one.part: one for one in promises("full", ["52-known-causes"])}
    assert "SCHED_FIFO" in said["fifo-bursts"].sentence and said["fifo-bursts"].state == LEFT_OUT


def test_a_catalogue_against_its_schema_is_refused_with_the_place(tmp_path):
    schema = "causes.schema.json"
    (tmp_path / schema).write_text((EXTRA / schema).read_text())
    text = (EXTRA / "causes.yml").read_text()
    (tmp_path / "causes.yml").write_text(
        text.replace("doses: {weak: {amount: 1.0}", "doses: {faint: {amount: 1.0}", 1)
    )
    with pytest.raises(InputError, match="faint"):
        _read(tmp_path)


@pytest.mark.parametrize("name", sorted(causes()))
def test_what_accompanies_a_disturbed_run_accompanies_the_others_too(name, binaries):
    """So that its presence says nothing; a change of the program itself has no company."""
    if error := planting_error(name):
        pytest.skip(f"{name} can't be planted here: {error.what}")
    from dataclasses import replace

    cause = causes()[name]
    for part in _plant(cause, replace(_place(_dose(cause, None)), trial=True)):
        company = [[type(one).__name__ for one in side] for side in (part.attachments, part.sham)]
        assert company[0] == company[1] or cause.plants[0]["kind"] == "small_pages"


def test_two_causes_at_once_are_each_alone_and_together_in_a_block(binaries, tmp_path):
    runs = finished(cause_campaign(tmp_path, "timers-and-slow-path", 8, layers=()).run())
    counts = runs["truth"].value_counts().to_dict()
    both = "timer-storm+slow-path"
    assert counts == {"none": 3, "timer-storm": 1, "slow-path": 1, both: 1}
    slow = runs.set_index("truth")["retries"]
    assert slow["slow-path"] == slow[both] == 7500 and slow["timer-storm"] == 0
    assert set(runs["dose"]) == {"", "strong"}


def test_the_other_compiler_is_the_disturbed_runs(binaries, tmp_path):
    if error := planting_error("two-compilers"):
        pytest.skip(error.what)
    runs = finished(cause_campaign(tmp_path, "two-compilers", 4, layers=()).run())
    built = runs.groupby("truth")["compiler"].agg(set)
    assert len(built["none"]) == len(built["two-compilers"]) == 1
    assert built["none"] != built["two-compilers"]


def test_a_harder_input_has_another_output(binaries, tmp_path):
    from noisebook_known_causes.victims import input_path

    runs = finished(cause_campaign(tmp_path, "harder-input", 4, layers=("io",)).run())
    written = runs.groupby("truth")["io_write_chars"].agg(set)
    assert len(written["none"]) == 1 and written["none"] != written["harder-input"]
    left = [path for path in input_path("text").parent.iterdir() if path.name.startswith("input-")]
    assert left == []


def test_a_dose_that_a_cause_does_not_have_is_refused():
    with pytest.raises(InputError, match="no dose 'strong'"):
        cause_campaign(None, "forced-migrations", 4, dose="strong")


def test_a_program_that_is_not_there_is_a_reason_and_no_failure(monkeypatch):
    from noisebook_known_causes import kinds, victims

    def nothing(name):
        raise Unavailable(f"no program '{name}' was found")

    monkeypatch.setattr(kinds, "program_path", nothing)
    error = planting_error("syscall-tracer")
    assert error and error.what == "there is no strace" and error.fix == "apt install strace"
    monkeypatch.setattr(victims, "program_path", nothing)
    victims._compiler_proper.cache_clear()
    assert planting_error("tmpfs-storm").fix == "apt install g++"


def test_a_profiler_that_is_not_allowed_says_so(monkeypatch):
    from noisebook_known_causes import outside

    def refused(pid, hertz):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(outside, "open_sampler", refused)
    with pytest.raises(Unavailable, match="no process can be sampled"):
        Profiler.check()


class InterruptsOfCpus(Attachment):
    """What the kernel counts on each CPU from the start of a run to its end."""

    def __init__(self, name: str):
        self.name = name

    def released(self, t0_ns: int) -> None:
        self._before = interrupt_counts()[self.name]

    def ended(self, pid: int) -> None:
        self._counted = interrupt_counts()[self.name] - self._before

    def after(self, run: dict) -> dict:
        return {f"on_cpu_{cpu}": int(count) for cpu, count in self._counted.items()}


@pytest.mark.parametrize(
    "name, kind", [("interrupt-storm", "CAL"), ("tlb-shootdowns", "TLB"), ("tlb-shootdowns", "CAL")]
)
def test_interrupts_come_to_the_cpu_of_the_victim(name, kind, binaries, tmp_path, monkeypatch):
    """They came to the other CPU, and what sent them competed with the victim."""
    from noisebook_known_causes import campaigns

    if error := planting_error(name):
        pytest.skip(f"{name} can't be planted here: {error.what}")
    if kind not in interrupt_counts():
        pytest.skip(f"this kernel does not count {kind}")
    monkeypatch.setattr(campaigns, "metrics", lambda *layers: (InterruptsOfCpus(kind),))
    at = _place(_dose(causes()[name], None))
    runs = finished(cause_campaign(tmp_path, name, 4).run()).set_index("truth")
    here, other = runs[f"on_cpu_{at.cpu}"], runs[f"on_cpu_{at.other_cpu}"]
    assert here[name] >= here["none"].max() + 200
    assert other[name] < here[name] / 4


def test_shootdowns_come_from_the_other_cpu_and_stop(monkeypatch):
    """They go on where the program gives its memory up, as at an exec."""
    if error := planting_error("tlb-shootdowns"):
        pytest.skip(error.what)
    cpus = sorted(os.sched_getaffinity(0))
    seen = []
    advise = Shootdowns._advise

    def watched(self, memory):
        seen.append(os.sched_getaffinity(0))
        advise(self, memory)

    monkeypatch.setattr(Shootdowns, "_advise", watched)
    sleeper = subprocess.Popen(["sh", "-c", "sleep 0.05; exec sleep 10"])
    for harmless in (False, True):
        shootdowns = Shootdowns(cpus[0], 1000, harmless)
        try:
            shootdowns.armed(sleeper.pid)
            shootdowns.released(time.monotonic_ns())
            limit = time.monotonic() + 10
            while len(seen) < 150 and time.monotonic() < limit:
                time.sleep(0.001)
        finally:
            shootdowns.close()
        assert len(seen) >= 150 and {frozenset(one) for one in seen} == {frozenset({cpus[0]})}
        seen.clear()
        assert sleeper.poll() is None and set(cpus) == os.sched_getaffinity(0)
    sleeper.kill()
    sleeper.wait()


@pytest.mark.parametrize(
    "name, change, said",
    [
        (
            "interrupt-storm",
            "injection.stressors.may_count_cpus",
            "no other CPU can be interrupted",
        ),
        (
            "tlb-shootdowns",
            "studies.disturbances._libc.syscall",
            "no program's memory can be advised on",
        ),
    ],
)
def test_interrupts_that_are_not_allowed_say_so(name, change, said, monkeypatch):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one CPU")
    monkeypatch.setattr(f"nbhelpers.{change}", lambda *arguments: -1 if arguments else False)
    error = planting_error(name)
    assert error and said in error.what and "root" in error.fix


def test_a_program_is_confined_for_a_time_only(tmp_path):
    import os
    import subprocess
    import time

    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("there is one CPU")
    sleeper = subprocess.Popen(["sleep", "10"])
    confined = Confined({cpus[0]}, set(cpus), 0.05)
    try:
        confined.armed(sleeper.pid)
        assert os.sched_getaffinity(sleeper.pid) == {cpus[0]}
        confined.released(time.monotonic_ns())
        confined._thread.join()
        assert os.sched_getaffinity(sleeper.pid) == set(cpus)
    finally:
        confined.close()
        sleeper.kill()
        sleeper.wait()


# ---- tables and score ----------------------------------------------------------------------------


def invented(sign: str, effect: float, seed: int, truths=("slow-path",), runs: int = 48):
    """Runs with one column that shows the cause, one that does not, and one of the injector."""
    random = np.random.default_rng(seed)
    blocks = [("none",) * 3 + (truths[at % len(truths)],) for at in range(runs // 4)]
    truth = np.array([random.permutation(block) for block in blocks]).ravel()
    on = truth != "none"
    table = pd.DataFrame(
        {"run": range(runs), "status": "ok", "cell": np.where(on, "disturbed", "undisturbed 1")}
    )
    table["truth"], table["dose"] = truth, np.where(on, "strong", "")
    table["seconds"] = 0.1 * (1 + (effect - 1) * on + 0.002 * random.standard_normal(runs))
    table["wall_seconds"] = table["seconds"] + 0.001
    table[sign] = random.poisson(50, runs) + 500 * on
    table["major_faults"] = random.poisson(50, runs)
    return table.assign(machine_forks=1 + on, constant=3)


@pytest.fixture
def bench(tmp_path):
    """A bench of two causes, one of them without an effect, and one that is held out."""
    rows = []
    made = {
        "slow-path": ("strong", invented("retries", 1.5, 1), "development", 1.4, 1.6),
        "cpu-quota": (
            "weak",
            invented("cgroup_nr_throttled", 1.0, 2, ("cpu-quota",)),
            "development",
            0.9,
            1.1,
        ),
        "profiler": ("strong", invented("irq_LOC", 1.5, 3, ("profiler",)), "held-out", 1.4, 1.6),
    }
    for number, (cause, (dose, runs, half, low, high)) in enumerate(made.items()):
        write_table(tmp_path, cause, {dose: runs})
        ids = {kind: f"T{number}{at}" for at, kind in enumerate(tables.KINDS_OF_TABLE)}
        rows.append(
            {
                "cause": cause,
                "dose": dose,
                "half": half,
                "runs": 48,
                "effect": 1.0,
                "low": low,
                "high": high,
            }
            | ids
        )
    pd.DataFrame(rows).to_csv(tmp_path / "tables.csv", index=False)
    return tmp_path


def test_tables_hide_the_truth_and_the_injector(bench):
    found = list(tables.bench_tables(folder=bench))
    assert [one.kind for one in found] == [*tables.KINDS_OF_TABLE] * 2
    planted, shuffled, alone = found[:3]
    assert {"truth", "retries", "major_faults"} <= set(planted.runs)
    assert not {"truth", "dose", "cell", "machine_forks", "constant", "table"} & set(planted.blind)
    assert sorted(shuffled.runs["seconds"]) == sorted(planted.runs["seconds"])
    assert list(shuffled.runs["seconds"]) != list(planted.runs["seconds"])
    assert len(alone.runs) == 36 and (alone.runs["seconds"] < 0.12).all()
    original = invented("retries", 1.5, 1)
    assert np.allclose(planted.runs["seconds"], original["seconds"])
    assert list(planted.runs["truth"]) == list(original["truth"])


def test_the_halves_are_apart(bench):
    assert [one.cause.id for one in tables.bench_tables("held-out", bench, ("planted",))] == [
        "profiler"
    ]
    with pytest.raises(InputError, match="no half 'other'"):
        next(tables.bench_tables("other", bench))
    with pytest.raises(InputError, match="no bench of known causes"):
        next(tables.bench_tables(folder=bench / "nowhere"))


def rows(table: pd.DataFrame) -> dict:
    return {
        (row.measure, row.tables): (row.count_, row.of)
        for row in table.rename(columns={"count": "count_"}).itertuples()
    }


@pytest.mark.parametrize(
    "leaders, factor, right",
    [
        ("retries", "program-paths", (1, 1)),
        ("retries_per_s major_faults", "program-paths", (1, 1)),
        ("major_faults retries", "major-faults", (0, 0)),
        ("machine_forks", "process-creation", (0, 0)),
        ("", "", (0, 0)),
    ],
)
def test_the_score_knows_right_from_wrong(bench, leaders, factor, right):
    answers = pd.DataFrame([{"table": "T00", "leaders": leaders, "factor": factor}])
    scored = rows(scoring.score(answers, folder=bench))
    assert scored["leader right", "all doses"] == (right[0], 1), (
        "the table without an effect is not asked"
    )
    assert scored["factor right", "strong"] == (right[1], 1)
    assert scored["false findings", "shuffled"] == (0, 2)


def test_whatever_is_named_where_there_is_nothing_is_false(bench):
    names = [("T01", "retries"), ("T11", ""), ("T02", "irq_LOC"), ("T12", "irq_LOC")]
    answers = pd.DataFrame(
        [{"table": name, "leaders": named, "factor": ""} for name, named in names]
    )
    scored = rows(scoring.score(answers, folder=bench))
    assert scored["false findings", "shuffled"] == (1, 2)
    assert scored["false findings", "undisturbed"] == (2, 2)


def test_answers_that_cannot_be_scored_are_refused(bench):
    good = pd.DataFrame([{"table": "T00", "leaders": "retries", "factor": ""}])
    with pytest.raises(InputError, match="no column 'factor'"):
        scoring.score(good.drop(columns="factor"), folder=bench)
    with pytest.raises(InputError, match="answered twice"):
        scoring.score(pd.concat([good, good]), folder=bench)
    with pytest.raises(InputError, match="no table 'T20' in the half 'development'"):
        scoring.score(good.assign(table="T20"), folder=bench)


def test_both_causes_are_asked_for_where_both_were_planted(tmp_path):
    truths = ("timer-storm", "slow-path", "timer-storm+slow-path")
    runs = invented("retries", 1.5, 4, truths).assign(irq_LOC=7)
    runs.loc[3, "irq_LOC"] = 9
    write_table(tmp_path, "timers-and-slow-path", {"strong": runs})
    row = {"cause": "timers-and-slow-path", "dose": "strong", "half": "development", "runs": 48}
    row |= {
        "effect": 1.5,
        "low": 1.4,
        "high": 1.6,
        "planted": "A",
        "shuffled": "B",
        "undisturbed": "C",
    }
    pd.DataFrame([row]).to_csv(tmp_path / "tables.csv", index=False)
    for leaders, both in (("retries irq_LOC_per_s", 1), ("retries major_faults irq_LOC", 0)):
        answers = pd.DataFrame([{"table": "A", "leaders": leaders, "factor": "program-paths"}])
        scored = rows(scoring.score(answers, folder=tmp_path))
        assert scored["both causes", "all doses"] == (both, 1)
        assert scored["leader right", "strong"] == (1, 1)


def test_our_own_attribution_answers_and_is_scored(bench):
    answers = scoring.answers_of(folder=bench)
    assert len(answers) == 6
    scored = rows(scoring.score(answers, folder=bench))
    assert scored["leader right", "strong"] == scored["factor right", "strong"] == (1, 1)


# ---- the recorded bench --------------------------------------------------------------------------


def test_the_recorded_bench_is_whole_and_small():
    listed = tables.split()
    assert listed.groupby("cause")["half"].nunique().eq(1).all()
    assert set(listed["half"]) == {"development", "held-out"}
    ids = listed[["planted", "shuffled", "undisturbed"]].to_numpy().ravel()
    assert len(set(ids)) == len(ids)
    files = list((tables.bench_folder() / "runs").iterdir())
    assert {path.name.removesuffix(".csv.gz") for path in files} == set(listed["cause"])
    assert sum(path.stat().st_size for path in files) < 1.5 * 2**20


def test_recorded_tables_have_the_truth_and_nothing_that_gives_the_injector_away():
    for one in tables.bench_tables(kinds=("planted",)):
        assert set(one.runs["truth"]) == {"none", *one.cause.truths}, one
        assert set(one.runs["dose"]) == {"", one.dose}, one
        assert not [name for name in one.runs if tables.is_giveaway(name)], one
        assert not {"truth", "dose", "cell"} & set(one.blind), one
        assert any(shows(name, (*one.cause.shown_by, *one.cause.trail)) for name in one.blind), one


def test_the_command_exports_blind_tables_and_scores_answers(tmp_path, capsys):
    assert scoring.main(["export", str(tmp_path)]) == 0
    files = sorted(tmp_path.glob("T*.csv"))
    assert len(files) == 3 * (tables.split()["half"] == "development").sum()
    assert "truth" not in pd.read_csv(files[0]) and "seconds" in pd.read_csv(files[0])
    path = tmp_path / "answers.csv"
    pd.DataFrame(columns=list(scoring.ANSWERS)).to_csv(path, index=False)
    assert scoring.main(["score", str(path)]) == 0
    assert "leader right, all doses: 0 of " in capsys.readouterr().out
    assert scoring.main(["score", str(tmp_path / "nothing.csv")]) == 1


@pytest.mark.parametrize("draw", tables.SEALED)
def test_the_sealed_tables_are_those_that_were_drawn(draw):
    """Nobody chose among them: cause, program and amount are the draw's, none twice."""
    wanted = sealed.drawn(draw).set_index("table")
    found = tables.split(tables.bench_folder(draw)).set_index("table")
    assert len(found) >= 200 and set(found["half"]) == {draw}
    columns = ["cause", "victim", "amount"]
    assert found[columns].equals(wanted.loc[found.index, columns])
    foreign = [name for name in found["victim"].unique() if name in sealed.FOREIGN]
    assert found["victim"].nunique() >= 30 and len(foreign) >= 15
    ids = found[[*tables.KINDS_OF_TABLE]].stack()
    assert ids.is_unique


def test_a_sealed_table_hides_its_truth_and_its_program():
    one = next(tables.bench_tables(tables.SEALED[-1], kinds=("planted",)))
    assert len(one.runs) <= sealed.RUNS and set(one.runs["truth"]) == {"none", one.cause.id}
    assert one.victim and not {"truth", "dose", "cell", "victim"} & set(one.blind)


def test_doses_read_a_slow_run_by_the_fingerprints_of_its_program(tmp_path, monkeypatch):
    """Two factors, a counter each: the answer is the one whose counter moved; without a counter
    that moved there is none.
    """
    monkeypatch.setattr(sealed, "bench_folder", lambda half: tmp_path)
    random = np.random.default_rng(1)
    dosed = pd.DataFrame({"factor": ["timer-interrupts", "page-faults"], "tried": True})
    design = run_cells("57-random-doses", "design", dosed=dosed, study=Shown())["design"]
    levels = pd.concat([design] * 6)
    seconds = 0.1 + 0.01 * levels["timer-interrupts"] + 0.02 * levels["page-faults"]
    runs = levels.add_prefix("dose ").assign(
        round=np.repeat(range(6), len(levels) // 6),
        seconds=seconds + random.normal(0, 0.0005, len(levels)),
        irq_LOC=(40 * levels["timer-interrupts"] + random.integers(8, 12, len(levels))),
        minor_faults=(900 * levels["page-faults"] + random.integers(90, 99, len(levels))),
    )
    (tmp_path / "doses").mkdir()
    runs["wall_seconds"] = runs["seconds"]
    runs.to_csv(tmp_path / "doses" / "gzip.csv.gz", index=False)
    slow = np.arange(32) % 4 == 0
    blind = pd.DataFrame({"run": range(32), "seconds": 0.1 + 0.01 * slow, "irq_LOC": 10})
    blind["minor_faults"] = 95 + random.integers(-3, 4, 32)
    blind["seconds"] += random.normal(0, 0.0005, 32)
    blind["wall_seconds"] = blind["seconds"]

    def read(changed: pd.DataFrame) -> str:
        return sealed.by_doses(
            tables.BenchTable("A", "planted", causes()["timer-storm"], "", "", changed, "gzip")
        )[0]

    assert read(blind.assign(irq_LOC=np.where(slow, 50, 10))) == "timer-interrupts"
    assert read(blind.assign(minor_faults=np.where(slow, 500, 95))) == "page-faults"
    assert read(blind) == ""
