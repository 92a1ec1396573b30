"""Do corrected run times decide more than raw ones, and nothing wrong?

Three cells in turn: N-body (A), the same again (A), and with one body in a hundred more (B, about
2 % more work). Of A against A and A against B the change of the mean is printed with its 95 %
interval, by raw times and by those that the account corrects; then how wide the intervals are. The
account of each cell is its own, the probe's full speed that of all cells.
"""

import argparse
import tempfile
from pathlib import Path

import pandas as pd

from nbhelpers import compare
from nbhelpers.account import Account, measure_edges
from nbhelpers.measurement import Campaign, Cell, calibrate, finished
from nbhelpers.speed import SpeedProbe, read_speed, read_waits
from nbhelpers.tracing import Tracer, read_traces, stolen_times
from nbhelpers.workloads import nbody

MORE = 0.01  # bodies; the work grows by their square


def measured(folder: Path, rounds: int, seconds: float) -> pd.DataFrame:
    """Finished runs of the three cells."""
    workload = calibrate(nbody, target_seconds=seconds)
    bodies = int(workload.command[workload.command.index("--bodies") + 1])
    recorders = (Tracer(folder / "traces"), SpeedProbe(folder / "speed"))
    programs = {"A": workload, "A again": workload, "B": nbody(round(bodies * (1 + MORE)))}
    cells = [Cell(name, program, attachments=recorders) for name, program in programs.items()]
    return finished(Campaign(folder, cells, runs=rounds, seed=1).run())


def with_corrected(folder: Path, runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that have samples, with `corrected_seconds`."""
    speed, waits = read_speed(folder / "speed", runs), read_waits(folder / "speed", runs)
    runs = runs[runs["run"].isin(speed["run"])]
    traces, edges = folder / "traces", measure_edges(folder / "edges")
    parts = []
    for _, own in runs.groupby("cell"):
        own = own.reset_index(drop=True)
        events, stolen = read_traces(traces, own), stolen_times(traces, own)
        of_cell = [table[table["run"].isin(own["run"])] for table in (speed, waits)]
        corrected = Account.of_events(own, events, stolen, edges, *of_cell).corrected()
        parts.append(own.assign(corrected_seconds=own["run"].map(corrected)))
    return pd.concat(parts, ignore_index=True)


def report(runs: pd.DataFrame) -> None:
    for after, truth in (("A again", "no change"), ("B", f"about {2 * MORE:+.0%}")):
        widths = {}
        for name, column in (("raw", "seconds"), ("corrected", "corrected_seconds")):
            judged = runs.assign(seconds=runs[column])
            cells = (judged[judged["cell"] == cell] for cell in ("A", after))
            found = compare(*cells).table.loc["mean"]
            widths[name] = found["high"] - found["low"]
            print(
                f"A against {after} ({truth}), {name}: {found['ratio'] - 1:+.2%}"
                f" [{found['low'] - 1:+.2%}, {found['high'] - 1:+.2%}]"
            )
        print(f"  interval, corrected / raw: {widths['corrected'] / widths['raw']:.2f}")
    spread = runs.groupby("cell")[["seconds", "corrected_seconds"]].agg(
        lambda x: x.std() / x.mean()
    )
    print(f"coefficients of variation, n = {len(runs)} runs:\n{spread.round(4).to_string()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.25)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report(with_corrected(folder, measured(folder, arguments.rounds, arguments.seconds)))


if __name__ == "__main__":
    main()
