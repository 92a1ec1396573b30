"""The words of `noisebook ab`: what is compared, until when, and what is written."""

import argparse

AB_EPILOG = """\
what is compared, in one of these ways:
  noisebook ab -- ./a 100 -- ./b 100                two commands, or two builds
  noisebook ab --old './a 100' --new './b 100'      the same
  noisebook ab --git main HEAD --build 'make -j' -- ./program 100
                                                    two git revisions, each built in a folder of its
                                                    own; {} in the command is that folder
  noisebook ab --new-env OMP_NUM_THREADS=1 -- ./program 100
  noisebook ab --new-mitigation aslr-off -- ./program 100
                                                    two settings of one program
  noisebook ab --curve -- ./program 100             a program with itself: how often the answer is
                                                    wrong or late on this machine
  noisebook ab --json -- ./a -- ./b > ab.json; noisebook ab --comment ab.json
                                                    Markdown for a pull request

The runs alternate, old new new old or new old old new, by a coin. Measuring ends as soon as the
answer is known: better, worse, or within the margin. With --folder the same command goes on where
an earlier one stopped.

exit status of ab: 0 the new one is better, or the change is within the margin; 4 it is worse; 5 it
can't be told yet. Of all verbs:
"""


def of_ab(verb: argparse.ArgumentParser) -> None:
    """Add the options of `ab`."""
    sides = verb.add_argument_group("the two sides (or: two programs, each behind --)")
    sides.add_argument("--old", default="", metavar="COMMAND", help="the old side, as one word")
    sides.add_argument("--new", default="", metavar="COMMAND", help="the new side, as one word")
    sides.add_argument(
        "--git", nargs=2, default=(), metavar=("REV1", "REV2"), help="two revisions: old and new"
    )
    sides.add_argument(
        "--build", default="", metavar="LINE", help="builds a revision, in its folder"
    )
    for side in ("old", "new"):
        sides.add_argument(
            f"--{side}-env",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help=f"a variable of the {side} side; may be repeated",
        )
        sides.add_argument(
            f"--{side}-mitigation",
            action="append",
            default=[],
            metavar="NAME",
            help=f"in force on the {side} side; may be repeated",
        )
    _of_verdict(verb.add_argument_group("until when"))
    _of_output(verb.add_argument_group("what is written"))


def _of_verdict(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--margin",
        type=float,
        default=1.0,
        metavar="PERCENT",
        help="a smaller change counts as none (default: 1)",
    )
    group.add_argument(
        "--level",
        type=float,
        default=0.01,
        metavar="SHARE",
        help="probability of a false answer, over all looks (default: 0.01)",
    )
    group.add_argument("--pairs", type=int, default=500, metavar="N", help="at most (default: 500)")
    group.add_argument(
        "--budget",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="time for measuring (default: 300)",
    )

    group.add_argument(
        "--correct",
        action="store_true",
        help="look at run times corrected by the account, where that is proven to help (needs"
        " tracing, and runs of 0.1 s or more)",
    )


def _of_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--no-page", action="store_true", help="leave the page out")
    group.add_argument(
        "--curve",
        action="store_true",
        help="print how often the answer is wrong or late here, by resampling these pairs",
    )
    group.add_argument(
        "--comment",
        default="",
        metavar="FILE.json",
        help="measure nothing: a Markdown comment of an earlier answer",
    )
