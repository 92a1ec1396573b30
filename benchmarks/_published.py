"""The published injector beside a run, and what it costs a run when it has nothing to do."""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd

from nbhelpers.files import digest
from nbhelpers.injection.hog import Hog
from nbhelpers.machine import online_cpus
from nbhelpers.measurement import Campaign, Cell, finished
from nbhelpers.statistics import bootstrap_interval
from nbhelpers.tracing import DetourTracer, detour_workload, read_detours_run
from nbhelpers.workloads import binary_folder, program_path

IDLE_SECONDS = 0.05  # short: of the machine's own noise there is less
METHODS = {
    "replayed": "ours",
    "published": "published (BASELINE)",
    "authors": "published (authors' injector)",
    "again": "the hog again (chance)",
}


class Published(Hog):
    """The BASELINE injector beside a run: started, told t0 and ended as a hog is.

    Parameters
    ----------
    program
        injector_rival, built.
    config
        A file in the published format.
    authors
        The published injector itself (cpuoccupy), which then replays; None: our own code of the
        published method does.
    """

    def __init__(self, program: Path, config: Path, authors: Path | None = None):
        super().__init__({0: [(0, 1)]})  # one process; its schedule is in the file
        mode = ["drive", config, authors] if authors else ["replay", config]
        self._words = [str(word) for word in (program, *mode)]
        self.identity = f"published {digest(config.read_text(), str(authors))}"

    def _command(self, cpu, blocks):
        launcher = str(program_path(binary_folder() / "nbstart"))
        return [launcher, "--parent", str(os.getpid()), "--", *self._words]

    def after(self, run):
        columns = super().after(run)
        return {name: columns[name] for name in ("status", "message") if name in columns}


def rival_methods(arguments: argparse.Namespace) -> dict[str, Path | None]:
    """The published method's cells, and who replays in them (None: our own code of it)."""
    authors = {"authors": arguments.rival.resolve()} if arguments.rival else {}
    return {"published": None} | authors


def idle_table(folder: Path, arguments: argparse.Namespace, program: Path) -> pd.DataFrame:
    """What a loop loses beside a rival that has nothing to do, and alone, in ms on all CPUs
    together: a row a round. How fast the CPUs are does not matter to a loop that counts its gaps.
    """
    config = folder / "idle.json"
    config.write_text(json.dumps({str(cpu): [[1_000_000, 0, 0]] for cpu in online_cpus()}))
    folder = folder / "idle"
    loop, tracer = detour_workload(IDLE_SECONDS, folder), DetourTracer(folder)
    cells = [Cell("alone", loop, attachments=[tracer])] + [
        Cell(name, loop, attachments=[Published(program, config, authors), tracer])
        for name, authors in rival_methods(arguments).items()
    ]
    runs = finished(Campaign(folder, cells, runs=arguments.idle, seed=arguments.seed).run())
    gaps = [read_detours_run(folder / f"run-{run:06d}.detours.gz") for run in runs["run"]]
    return runs.assign(lost_ms=[gap["duration_ns"].sum() / 1e6 for gap in gaps]).pivot(
        index="round", columns="cell", values="lost_ms"
    )


def report_idle(lost_ms: pd.DataFrame) -> None:
    for method in (name for name in METHODS if name in lost_ms.columns):
        more_ms = (lost_ms[method] - lost_ms["alone"]).dropna().to_numpy()
        low, high = bootstrap_interval(more_ms, "median")
        print(
            f"a loop on each CPU beside an idle rival, {METHODS[method]}, loses"
            f" {np.median(more_ms):+.2f} ms [{low:.2f}, {high:.2f}] (median of {len(more_ms)}"
            f" pairs; alone it loses {lost_ms['alone'].median():.2f} ms)"
        )
