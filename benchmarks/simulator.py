"""The simulator's engine: events a second and bytes a message, beside the reference simulator's
figures.

Each row is a process of its own (peak memory); figures are user CPU time on one core. --all adds a
million ranks with noise, --huge goes on to 10^8 messages.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

# LogGOPSim at -O3 on a machine of this kind, measured for this project: events a second and peak
# memory a message, preparing (schedule, binary) not counted.
REFERENCE = {
    "dissemination 65536": (0.61e6, 456e6 / 1_048_576),
    "dissemination 262144": (0.677e6, 1.874e9 / 4_718_592),
    "dissemination 1048576": (0.458e6, 7.73e9 / 20_971_520),
    "binomial 1048576": (0.628e6, 674e6 / 1_048_575),
}


def measure(pattern: str, ranks: int, noise_name: str) -> dict:
    """One simulation in this process."""
    from nbhelpers.simulation import LogGOPS, patterns, periodic, poisson, simulate

    build = {"dissemination": patterns.dissemination, "binomial": patterns.binomial_bcast}[pattern]
    noise = {
        "-": None,
        "1000 Hz x 100 us": periodic(1000, 100),
        "poisson 250 Hz x 3 us": poisson(250, 3, 100),
    }[noise_name]
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
        "schedule": schedule.nbytes / schedule.messages,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--one", nargs=3, metavar=("PATTERN", "RANKS", "NOISE"), help=argparse.SUPPRESS
    )
    parser.add_argument("--all", action="store_true", help="a million ranks with noise, too")
    parser.add_argument("--huge", action="store_true", help="up to 1.09e8 messages (about 6 GB)")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]), options.one[2])))
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
