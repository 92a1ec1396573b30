"""python -m nbhelpers.measurement [LAYER …]: the metric layers of this machine, with a reading of
each on this process.
"""

import argparse
import sys

from ..errors import NoisebookError
from ._knowledge import find_layer, layers
from .layers import available_layers, reading


def _table() -> str:
    lines = [f"{'layer':15s} {'here':5s} {'columns':>7s} {'µs here':>8s}  what"]
    for name, row in available_layers().iterrows():
        here = "part" if row["reason"] else "yes"
        if not row["available"]:
            here = "no"
        lines.append(
            f"{name:15s} {here:5s} {row['columns']:7d} {row['here_us']:8.0f}  {row['title']}"
            + (f"\n{'':39s}{row['reason']}" if row["reason"] else "")
        )
    return "\n".join(lines)


def _readings(name: str) -> str:
    layer = find_layer(name)
    columns, took_us, attachment = reading(layer)
    lines = [
        f"{layer.name}: {layer.title} ({took_us:.0f} µs)",
        *(f"  {note}" for note in attachment.notes),
    ]
    for column, value in columns.items():
        metric = layer.metric_of(column)
        meaning = f"{metric.unit:5s} {metric.title}" if metric else ""
        lines.append(f"  {column:32s} {value:>18.10g} {meaning}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Print the table of layers, and the readings of those that are named ("all": of all)."""
    parser = argparse.ArgumentParser(
        prog="python -m nbhelpers.measurement", description=__doc__.partition(": ")[2]
    )
    parser.add_argument("layer", nargs="*", help="name of a layer, path of a .yml file, or all")
    chosen = parser.parse_args(arguments).layer
    try:
        for name in layers() if "all" in chosen else chosen:
            sys.stdout.write(_readings(name) + "\n\n")
        sys.stdout.write(_table() + "\n")
    except NoisebookError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
