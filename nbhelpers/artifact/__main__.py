"""`python -m nbhelpers.artifact pack|unpack`: what `make artifact` and `make paper DATA=…` call;
`card` brings the card of data/recorded up to date.
"""

import argparse
import os
import sys
from pathlib import Path

from ..errors import NoisebookError
from ..places import shipped
from ..progress import for_command
from .card import write_card
from .crate import pack_study
from .names import KEEP, Names, names_here
from .unpack import adopt


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m nbhelpers.artifact", description=__doc__.splitlines()[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    pack = commands.add_parser("pack")
    pack.add_argument("--names", default="", help="keep, or further names to replace")
    unpack = commands.add_parser("unpack")
    unpack.add_argument("path")
    commands.add_parser("card")
    for command in (pack, unpack):
        command.add_argument("--profile", required=True)
    return parser.parse_args()


def _pack(profile: str, names: str) -> str:
    chosen = Names() if names == KEEP else names_here(names.replace(",", " ").split())
    path = pack_study(profile, chosen)
    note = f"{os.path.relpath(path)}  {path.stat().st_size / 1e6:.1f} MB"
    if chosen.ordinary:
        words = ", ".join(sorted(chosen.ordinary))
        note += (
            f"\nNames that are ordinary words too, replaced in paths and addresses only: {words}"
        )
    return note


def main() -> int:
    """The command line; an error that a user can fix is a message and status 2."""
    arguments = _arguments()
    try:
        with for_command():
            if arguments.command == "pack":
                message = _pack(arguments.profile, arguments.names)
            elif arguments.command == "card":
                message = os.path.relpath(write_card(shipped() / "data" / "recorded"))
            else:
                message = adopt(Path(arguments.path), arguments.profile)
        print(f"{message}\n" if message else "", end="", flush=True)
    except NoisebookError as error:
        print(f"\n{error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
