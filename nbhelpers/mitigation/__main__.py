"""The autopilot from the command line: python -m nbhelpers.mitigation [options] COMMAND ..., or
--here, or --explain FACTOR.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from ..errors import NoisebookError
from . import available_mitigations, explain_factor
from .loop import METRICS, autopilot


def main(words: list[str] | None = None) -> int:
    """Run the command line; 0, or 1 after a NoisebookError, or 130 after Ctrl-C."""
    options = _parser().parse_args(words)
    try:
        return _do(options)
    except NoisebookError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write(
            "\nStopped; the machine is as it was. The same command with --folder"
            f" {_folder(options)} goes on from here.\n"
        )
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m nbhelpers.mitigation",
        description="Why do the runs of a command differ, and what helps?",
    )
    _add_measuring(parser)
    _add_mitigating(parser)
    parser.add_argument(
        "--here",
        action="store_true",
        help="list the mitigations and which of them can be done on this machine",
    )
    parser.add_argument(
        "--explain", metavar="FACTOR", help="describe a factor, or a column that shows one"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run")
    return parser


def _add_measuring(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--budget",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="time for measuring (default: 300)",
    )
    parser.add_argument(
        "--folder", help="folder of measurements and report (default: mitigate-TIME)"
    )
    parser.add_argument(
        "--metrics",
        default=",".join(METRICS),
        help="metric layers, separated by commas (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        help="regular expression with a group seconds, for a time that the command prints",
    )
    parser.add_argument("--seed", type=int, default=1)


def _add_mitigating(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--try",
        dest="candidates",
        help="mitigations to try, separated by commas, whatever is found",
    )
    parser.add_argument(
        "--general", action="store_true", help="try the general mitigations if no factor is found"
    )
    parser.add_argument(
        "--risk",
        choices=("none", "low", "high"),
        default="low",
        help="the highest risk that is taken (default: low)",
    )


def _do(options: argparse.Namespace) -> int:
    if options.explain:
        sys.stdout.write(f"{explain_factor(options.explain)}\n")
        return 0
    if options.here:
        for name, row in available_mitigations().iterrows():
            sys.stdout.write(
                f"{'can be done' if row['possible'] else 'no':12} {name:24} {row['reason']}\n"
            )
        return 0
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        _parser().error("a command to run is missing")
    folder = options.folder = _folder(options)
    report = autopilot(
        command,
        options.budget,
        folder=folder,
        metrics=tuple(filter(None, options.metrics.split(","))),
        general=options.general,
        risk=options.risk,
        candidates=options.candidates.split(",") if options.candidates else None,
        seconds=options.seconds,
        seed=options.seed,
        progress=_say,
    )
    page = report.write(folder)
    sys.stdout.write(f"{report.summary}\n{os.path.relpath(page)}\n")
    return 0


def _folder(options: argparse.Namespace) -> Path:
    return Path(options.folder or f"mitigate-{time.strftime('%Y%m%d-%H%M%S')}")


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


if __name__ == "__main__":
    sys.exit(main())
