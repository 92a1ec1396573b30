"""What a program loses to an injected event: our injector beside the published method, interleaved on the same plans.

A SCHED_FIFO 10 loop on one CPU notes every gap; events of 50, 100, 200 and 1000 us are injected at SCHED_FIFO 50 above it. The error is what
the loop lost between an event's planned start and end (whole gaps) less the event's length. The BASELINE (sleep for a relative time, then spin on
the wall clock for the whole duration) is written for this comparison in injector_rival.c from its description.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from nbhelpers.inject import Rules, make_plan
from nbhelpers.inject.injector import may_realtime
from nbhelpers.inject.log import DONE, make_log
from nbhelpers.inject.plan import online_cpus
from nbhelpers.inject.replay import Replay
from nbhelpers.noise import NoiseConfig

LENGTHS_US = (50, 100, 200, 1000)
EVENTS, SPACING_US, ROUNDS = 60, 4000, 5
LEAD_NS = 300_000_000  # time to fork and to get ready


def build(folder: Path) -> Path:
    program = folder / "injector_rival"
    source = Path(__file__).with_name("injector_rival.c")
    subprocess.run([shutil.which("cc") or "gcc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, source], check=True)
    return program


def make_config(cpu: int, length_us: int, seed: int) -> NoiseConfig:
    """Events at random places of a grid, so that they keep no step with the timer tick."""
    random = np.random.default_rng(seed)
    starts = (np.arange(EVENTS) * SPACING_US + 1000 + random.uniform(0, SPACING_US - 1500 - length_us, EVENTS)) * 1000
    return NoiseConfig.from_events(pd.DataFrame({"run": 0, "cpu": cpu, "kind": "irq", "source": "benchmark",
                                                 "start_ns": starts.astype(np.int64), "duration_ns": length_us * 1000}))


def felt(program: Path, cpu: int, config: NoiseConfig, noise) -> tuple[np.ndarray, pd.DataFrame | None]:
    """Gaps (before, after) in ns from t0 that the loop felt, and the log of our injector."""
    t0_ns = time.monotonic_ns() + LEAD_NS
    length_ns = (EVENTS + 1) * SPACING_US * 1000
    loop = subprocess.Popen([program, "feel", str(cpu), str(t0_ns), str(length_ns)], stdout=subprocess.PIPE, text=True)
    try:
        log = noise(config, t0_ns, loop.pid)
        printed, _ = loop.communicate(timeout=10)
    finally:
        loop.kill()
        loop.wait()
    return np.array(printed.split(), dtype=np.int64).reshape(-1, 2), log


def published(program: Path, cpu: int):
    def noise(config, t0_ns, pid):
        numbers = config.events()[["start_ns", "duration_ns"]].to_numpy().ravel()
        subprocess.run([program, "baseline", str(cpu), str(t0_ns), *map(str, numbers)], check=True)
    return noise


def ours(exit_cost_us: float):
    def noise(config, t0_ns, pid):
        replay = Replay(make_plan(config, "origin", rules=Rules(exit_cost_us=exit_cost_us)))
        try:
            replay.start(pid)
            replay.release(t0_ns)
            replay.wait(10)
        finally:
            replay.close()
        return make_log(replay)
    return noise


def losses(config: NoiseConfig, gaps: np.ndarray) -> pd.DataFrame:
    """For each event: error of its length, and start of its first gap less its planned start, in us."""
    rows = []
    for event in config.events().itertuples():
        own = gaps[(gaps[:, 1] > event.start_ns) & (gaps[:, 0] < event.start_ns + event.duration_ns)]
        if len(own):
            rows.append((((own[:, 1] - own[:, 0]).sum() - event.duration_ns) / 1e3, (own[0, 0] - event.start_ns) / 1e3))
    return pd.DataFrame(rows, columns=["error_us", "gap_start_us"])


def run_round(program, cpu, length_us, seed, noise):
    config = make_config(cpu, length_us, seed)
    gaps, log = felt(program, cpu, config, noise)
    table = losses(config, gaps).assign(length_us=length_us)
    wake_us = None
    if log is not None:
        done = log[log["outcome"].isin(DONE)]
        wake_us = (done["start_ns"] - done["planned_start_ns"]) / 1e3
    time.sleep(0.1)  # the other programs of the machine have this CPU for a while
    return table, wake_us


def calibrate(program: Path, cpu: int) -> float:
    """Exit cost: the median of what is lost beyond the planned end without any correction."""
    return float(run_round(program, cpu, 200, 999, ours(0.0))[0]["error_us"].median())


def main() -> None:
    if not may_realtime(50):
        sys.exit("skipped: SCHED_FIFO is not permitted here")
    with tempfile.TemporaryDirectory() as folder:
        program, cpu = build(Path(folder)), online_cpus()[-1]
        cost_us = calibrate(program, cpu)
        methods = {"published (BASELINE)": published(program, cpu), "ours, no calibration": ours(0.0), "ours, calibrated": ours(cost_us)}
        tables, wakes = [], []
        for seed in range(ROUNDS):
            for length_us in LENGTHS_US:
                for name in np.random.default_rng(seed).permutation(list(methods)):
                    table, wake_us = run_round(program, cpu, length_us, seed, methods[name])
                    tables.append(table.assign(method=name))
                    wakes += [] if wake_us is None else [wake_us]
    report(pd.concat(tables), pd.concat(wakes), cost_us, cpu)


def report(table: pd.DataFrame, wake_us: pd.Series, cost_us: float, cpu: int) -> None:
    print(f"CPU {cpu}; exit cost {cost_us:.1f} us; lost beyond the planned length, us ({ROUNDS} rounds of {EVENTS} events, interleaved):")
    groups = table.groupby(["length_us", "method"])["error_us"]
    print(pd.DataFrame({"events": groups.size(), "median": groups.median(), "p90 of |error|": groups.agg(lambda x: x.abs().quantile(0.9))})
          .unstack("length_us").swaplevel(axis=1).sort_index(axis=1, level=0, sort_remaining=False).round(1).T.to_string())
    starts = table.groupby("method")["gap_start_us"].quantile([0.1, 0.5, 0.9]).unstack()
    print(f"\nfirst gap less planned start, us:\n{starts.round(1).to_string()}")
    print(f"\nwake-up less planned start (ours, {len(wake_us)} events), us: "
          + ", ".join(f"p{100 * q:g} {wake_us.quantile(q):.1f}" for q in (0.1, 0.5, 0.9, 0.99)))
    medians = table.groupby("method")["error_us"].apply(lambda x: x.abs().median())
    ratio = medians["published (BASELINE)"] / medians["ours, calibrated"]
    print(f"\nmedian |error|: published {medians['published (BASELINE)']:.1f} us, ours {medians['ours, calibrated']:.1f} us, ratio {ratio:.1f}")


if __name__ == "__main__":
    main()
