"""The simulator's engine: events a second and bytes a message, beside the reference simulator's
figures.

Each row is a process of its own (peak memory); figures are user CPU time on one core. --all adds a
million ranks with noise, --huge goes on to 10^8 messages. --fan-in: many messages to one rank with
two CPUs and NICs, `exact` beside `compat`.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from nbhelpers.simulation import Noise, Schedule

# LogGOPSim at -O3 on a machine of this kind, measured for this project: events a second and peak
# memory a message, preparing (schedule, binary) not counted.
REFERENCE = {
    "dissemination 65536": (0.61e6, 456e6 / 1_048_576),
    "dissemination 262144": (0.677e6, 1.874e9 / 4_718_592),
    "dissemination 1048576": (0.458e6, 7.73e9 / 20_971_520),
    "binomial 1048576": (0.628e6, 674e6 / 1_048_575),
}


def noise_called(name: str, ranks: int) -> "Noise | None":
    """The noise of a row."""
    from nbhelpers.noise import Signature
    from nbhelpers.simulation import signature_on_ranks

    signatures = {
        "1000 Hz x 100 us": Signature(1000, 100),
        "poisson 250 Hz x 3 us": Signature(250, 3, distribution="poisson"),
    }
    return signature_on_ranks(signatures[name], ranks) if name in signatures else None


def measure(pattern: str, ranks: int, noise_name: str) -> dict:
    """One simulation in this process."""
    from nbhelpers.simulation import LogGOPS, patterns, simulate

    build = {"dissemination": patterns.dissemination, "binomial": patterns.binomial_bcast}[pattern]
    noise = noise_called(noise_name, ranks)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    built = time.process_time()
    schedule = build(ranks, 1)
    built = time.process_time() - built
    seconds = []
    for _ in range(3 if ranks < 2**20 else 1):
        start = time.process_time()
        simulate(schedule, LogGOPS(), noise)
        seconds.append(time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "messages": schedule.messages,
        "events": schedule.events,
        "seconds": min(seconds),
        "built": built,
        "bytes": (peak - before) * 1024 / schedule.messages,
        "schedule": sum(each.nbytes for each in vars(schedule).values() if hasattr(each, "nbytes"))
        / schedule.messages,
    }


def fan_in(kind: str, n: int) -> "Schedule":
    """n messages to rank 0, whose receives take turns on two CPUs and NICs."""
    from nbhelpers.simulation import Schedule

    one_source = kind in ("one source", "one source, tags")
    source = np.ones(n, int) if one_source else np.arange(1, n + 1)
    turns = np.concatenate([np.arange(n) % 2, np.zeros(n, int)])
    tag = np.arange(n) if kind == "one source, tags" else np.zeros(n, int)
    return Schedule.from_arrays(
        [n, n] if one_source else [n] + [1] * n,
        np.repeat([2, 1], n),
        np.concatenate([np.full(n, -1) if kind == "anybody" else source, np.zeros(n, int)]),
        8,
        tag=np.concatenate([tag, tag]),
        cpu=turns,
        nic=turns,
        requires=(np.arange(1, n), np.arange(n - 1)) if kind == "one by one" else None,
    )


def print_fan_in() -> None:
    """How the time grows with n: `compat`, which never tries a message twice, is the bound."""
    from nbhelpers.simulation import LogGOPS, simulate

    print(f"{'fan-in':18} {'n':>8} {'exact s':>9} {'ns/message':>11} {'compat s':>9} {'ratio':>6}")
    for kind in ("each its receive", "anybody", "one by one", "one source", "one source, tags"):
        for n in (2000, 20_000, 200_000):
            schedule, best = fan_in(kind, n), {"exact": 9e9, "compat": 9e9}
            for _ in range(5):
                for mode in best:
                    start = time.process_time()
                    simulate(schedule, LogGOPS(), mode=mode)
                    best[mode] = min(best[mode], time.process_time() - start)
            exact, compat = best.values()
            print(
                f"{kind:18} {n:8} {exact:9.4f} {exact / n * 1e9:11.0f} {compat:9.4f}"
                f" {exact / compat:6.1f}",
                flush=True,
            )
    print("Best of 5, the two modes in turn.")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--one", nargs=3, metavar=("PATTERN", "RANKS", "NOISE"), help=argparse.SUPPRESS
    )
    parser.add_argument("--all", action="store_true", help="a million ranks with noise, too")
    parser.add_argument("--fan-in", action="store_true", help="many messages to one rank, only")
    parser.add_argument("--huge", action="store_true", help="up to 1.09e8 messages (about 6 GB)")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]), options.one[2])))
        return
    if options.fan_in:
        print_fan_in()
        return
    rows = [
        ("dissemination", 2**16, "-"),
        ("dissemination", 2**18, "-"),
        ("dissemination", 2**20, "-"),
        ("binomial", 2**20, "-"),
        ("dissemination", 2**16, "poisson 250 Hz x 3 us"),
        ("dissemination", 2**16, "1000 Hz x 100 us"),
    ]
    rows += (
        [
            ("dissemination", 2**20, "poisson 250 Hz x 3 us"),
            ("dissemination", 2**20, "1000 Hz x 100 us"),
        ]
        if options.all
        else []
    )
    rows += (
        [("dissemination", 2**bits, "-") for bits in (21, 22)] + [("dissemination", 4_750_000, "-")]
        if options.huge
        else []
    )
    print(
        f"{'pattern':14} {'ranks':>8} {'noise':>22} {'messages':>11} {'built s':>8} {'CPU s':>8}"
        f" {'M events/s':>11} {'ref.':>6} {'ratio':>6} {'B/message':>10} {'ref.':>6}"
    )
    for pattern, ranks, noise in rows:
        answer = subprocess.run(
            [sys.executable, __file__, "--one", pattern, str(ranks), noise],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        row = json.loads(answer)
        speed = row["events"] / row["seconds"]
        reference = REFERENCE.get(f"{pattern} {ranks}") if noise == "-" else None
        beside = (
            (f"{reference[0] / 1e6:6.2f} {speed / reference[0]:6.0f}", f"{reference[1]:6.0f}")
            if reference
            else (f"{'':13}", "")
        )
        print(
            f"{pattern:14} {ranks:8} {noise:>22} {row['messages']:11} {row['built']:8.2f}"
            f" {row['seconds']:8.3f} {speed / 1e6:11.2f} {beside[0]} {row['bytes']:10.1f}"
            f" {beside[1]}",
            flush=True,
        )
    print(
        "ref.: LogGOPSim at -O3 on a machine of this kind (median events a second and peak memory"
        " as recorded for this project, not run again here).\nB/message: growth of the process's"
        " peak memory while building and simulating, over the messages; a binomial tree has one"
        " message a rank."
    )


if __name__ == "__main__":
    main()
