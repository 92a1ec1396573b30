"""Which counters move only because an injector is there: each culprit beside a program that sleeps,
so that there is nobody who could suffer.

    python benchmarks/known_causes/giveaways.py [--rounds 10] [--folder FOLDER] [--write]

Three kinds of runs of `sleep 0.04`, in random order: without anything, with the sham of a cause,
with its strongest dose. A column is listed where its values with and without differ (Mann-Whitney
over all columns and causes, false discoveries held at 1 % by Benjamini and Hochberg) and where it
is a sign of no cause of the catalogue. About two minutes; --write stores the list in
extras/known_causes.
"""

import argparse
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import noisebook_known_causes
import pandas as pd
from noisebook_known_causes.campaigns import _dose, _place, _plant
from noisebook_known_causes.catalogue import Cause, causes
from noisebook_known_causes.planting import Truth
from noisebook_known_causes.scores import shows
from noisebook_known_causes.victims import victim_files
from scipy.stats import false_discovery_control, mannwhitneyu

from nbhelpers.errors import NoisebookError
from nbhelpers.measurement import Campaign, Cell, finished, metrics, recorded_runs
from nbhelpers.workloads import Workload

LEVEL = 0.01
SLEEP_S = "0.04"
PLAIN, SHAM, DOSE = "plain", "sham", "dose"
OWN = {"run", "round", "epoch", "t0_ns", "start_ns", "end_ns", "began_unix_s", "elapsed_seconds"}
COLUMNS = ["column", "moved_by", "when", "reason"]
# of the sleeping program itself: what happens to it is no trace of somebody else
VICTIMS_OWN = ("process_*", "task_clock_ns", "cpu_ns", "user_s", "system_s")
OUTCOMES = {"seconds", "region_seconds", "wall_seconds"}
# why a column moves though nobody suffers: the first pattern that fits
REASONS = (
    ("machine_forks", "the culprit's processes are started"),
    ("anon_huge_machine_kb", "the culprit's memory, in huge pages"),
    ("memory_*", "the culprit's memory, or the pages of its files"),
    ("numastat_*", "pages that the culprit takes"),
    ("vm_*", "pages that the culprit takes, maps and gives back"),
    ("load_1min", "the culprit counts as a running task, over a minute"),
    ("machine_running", "the culprit is a running task when the counters are read"),
    ("machine_context_switches", "the culprit is switched to and from, on any CPU"),
    ("idle_state_*", "the culprit's CPU is not idle"),
    ("softirq_*", "what the kernel does for the culprit, on any CPU"),
    ("irq_*", "interrupts for the culprit, on any CPU"),
    ("io_*", "what the start of a run does, when a culprit is started in between"),
)


def outside(cause: Cause) -> bool:
    """Whether it is planted by somebody beside the program."""
    at = _place(_dose(cause, None))
    return len(cause.parts) == 1 and any(part.attachments for part in _plant(cause, at))


def sleeper_campaign(folder: Path, cause: Cause, rounds: int) -> Campaign:
    """Runs of a program that sleeps where the victim would run."""
    dose = _dose(cause, None)
    at = _place(dose)
    sleeper = Workload("sleep", "external", ("/usr/bin/sleep", SLEEP_S), start="main")
    at = replace(at, workload=replace(sleeper, cpus=at.workload.cpus))
    [part] = _plant(cause, at)
    cells = [
        Cell(PLAIN, at.workload, attachments=(Truth(PLAIN),)),
        Cell(SHAM, at.workload, attachments=(Truth(SHAM, part.sham),)),
        Cell(DOSE, at.workload, attachments=(Truth(DOSE, part.attachments),)),
    ]
    attached = (*victim_files(dose.victim), *metrics("all"))
    return Campaign(folder / cause.id, cells, rounds, 3, attachments=attached)


def moved(runs: pd.DataFrame, cause: str) -> list[dict]:
    """The columns that differ: between plain and sham, between sham and dose."""
    runs = finished(runs)
    numbers = runs.select_dtypes("number").drop(columns=[*OWN, *OUTCOMES], errors="ignore")
    rows = []
    for when, other in ((SHAM, PLAIN), (DOSE, SHAM)):
        for name in numbers:
            on, off = (numbers.loc[runs["truth"] == one, name] for one in (when, other))
            if pd.concat([on, off]).nunique() > 1:
                p = float(mannwhitneyu(on, off).pvalue)
                rows.append(
                    {
                        "column": name,
                        "cause": cause,
                        "when": when,
                        "p": p,
                        "off": off.median(),
                        "on": on.median(),
                    }
                )
    return rows


def giveaway_list(tests: pd.DataFrame) -> pd.DataFrame:
    """The columns that move and are a sign of no cause, with whom they give away."""
    signs = [one for cause in causes().values() for one in (*cause.on_victim, *cause.trail)]
    signs += VICTIMS_OWN
    found = tests[(tests["q"] < LEVEL) & ~tests["column"].map(lambda name: shows(name, signs))]
    rows = []
    for column, group in found.groupby("column"):
        reasons = [reason for pattern, reason in REASONS if shows(column, [pattern])]
        rows.append(
            {
                "column": column,
                "moved_by": " ".join(sorted(set(group["cause"]))),
                "when": " ".join(sorted(set(group["when"]))),
                "reason": reasons[0] if reasons else "it moves though nobody suffers",
            }
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        folder, tests = options.folder or Path(temporary), []
        for cause in causes().values():
            try:
                if not outside(cause):
                    continue
                sleeper_campaign(folder, cause, options.rounds).run()
            except NoisebookError as error:
                print(f"left out: {cause.id}: {error.what}")
                continue
            tests += moved(recorded_runs(folder / cause.id), cause.id)
    table = pd.DataFrame(tests)
    table["q"] = false_discovery_control(table["p"])
    listed = giveaway_list(table)
    print(listed.to_string(index=False))
    signs = table[(table["q"] < LEVEL) & (table["when"] == SHAM)]
    balanced = sorted(set(signs["column"]) - set(listed["column"]))
    print(f"{len(table)} tests; moved by a sham too, but signs of a cause: {', '.join(balanced)}")
    if options.write:
        listed.to_csv(Path(noisebook_known_causes.__file__).with_name("giveaways.csv"), index=False)


if __name__ == "__main__":
    main()
