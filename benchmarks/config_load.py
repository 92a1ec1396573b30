"""Loading a noise config of a million events: ours beside reading the bytes (the bound) and
json.load, interleaved.

json.load only builds the lists; ours checks every event and makes the table. A config of a real run
has some hundred events. Also: making such a config from events, and writing it.
"""

import gc
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from nbhelpers.noise import NoiseConfig

EVENTS, CPUS, ROUNDS = 1_000_000, 8, 5


def make_events(seed: int = 0) -> pd.DataFrame:
    """Events as a trace of a busy minute has them: mostly short interrupts, two hundred sources."""
    random = np.random.default_rng(seed)
    kind = random.choice(["irq", "softirq", "thread", "nmi"], EVENTS, p=[0.5, 0.3, 0.19, 0.01])
    source = np.array(["local_timer", "RCU", "SCHED", *(f"kworker/{at}:1" for at in range(200))])[
        random.integers(0, 203, EVENTS)
    ]
    return pd.DataFrame(
        {
            "run": 0,
            "cpu": random.integers(0, CPUS, EVENTS),
            "kind": kind,
            "source": source,
            "start_ns": random.integers(0, 10**12, EVENTS),
            "duration_ns": random.integers(500, 60_000, EVENTS),
        }
    )


WAYS = {
    "reading the bytes": Path.read_bytes,
    "ours": NoiseConfig.read,
    "json.load": lambda path: json.loads(path.read_bytes()),
}


def seconds(way, argument) -> float:
    gc.collect()
    begin = time.perf_counter()
    result = way(argument)
    took = time.perf_counter() - begin
    del result
    return took


def main() -> None:
    events = make_events()
    with tempfile.TemporaryDirectory() as folder:
        config = NoiseConfig.from_events(events)
        files = {
            "own format": config.write(Path(folder) / "own.json"),
            "published format": config.write_published(Path(folder) / "published.json"),
        }
        made = {
            "from_events": [seconds(NoiseConfig.from_events, events) for _ in range(ROUNDS)],
            "write": [seconds(config.write, Path(folder) / "again.json") for _ in range(ROUNDS)],
        }
        rows = [
            (form, name, seconds(way, path))
            for _ in range(ROUNDS)
            for form, path in files.items()
            for name, way in WAYS.items()
        ]
        assert NoiseConfig.read(files["own format"]) == config
        sizes = {form: path.stat().st_size for form, path in files.items()}
    report(
        pd.DataFrame(rows, columns=["file", "way", "seconds"]), sizes, made, len(config.events())
    )


def report(table: pd.DataFrame, sizes: dict, made: dict, count: int) -> None:
    for form, own in table.groupby("file", sort=False):
        best = own.groupby("way", sort=False)["seconds"].agg(["median", "min", "max"])
        best["of ours"] = best["median"] / best.loc["ours", "median"]
        print(
            f"{form}: {count} events, {sizes[form] / 1e6:.0f} MB; s, {ROUNDS} rounds"
            f" interleaved\n{best.round(3).to_string()}\n"
        )
    for name, times in made.items():
        print(f"{name}: median {np.median(times):.3f} s ({min(times):.3f} to {max(times):.3f})")


if __name__ == "__main__":
    main()
