"""The noise config: what the injector replays, on which CPU, when, for how long and with which
policy.

Owns `NoiseConfig`: made of events, read from and written to files, summarised for a person. What a
file may look like is in `_reading.py` and `noise_config.schema.json`, how overlapping events are
combined in `_merge.py`.
"""

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from .. import files
from ..errors import InputError
from . import _merge
from ._reading import COLUMNS, FORMAT, INTENSITY, read_config
from ._tables import require_one_run, whole_numbers
from ._vocabulary import ALL_KINDS, KINDS, LARGEST_NS, REAL_TIME

# Attributes of an events table that become part of the provenance of a config.
PROVENANCE_ATTRS = (
    "run",
    "seconds",
    "region_seconds",
    "method",
    "tracer",
    "clock",
    "removed_ns",
    "remaining_ns",
    "removed_events",
    "reduced_events",
)


@dataclass(frozen=True, eq=False, repr=False)
class NoiseConfig:
    """Noise to replay: for each CPU a sorted list of events that do not overlap.

    Only kinds that do more than occupy a CPU may overlap with others. A config is made by
    `NoiseConfig.from_events` and `NoiseConfig.read`, never by hand.

    Attributes
    ----------
    cpus
        The CPU numbers, ascending; a CPU without events occurs here only.
    window_ns
        Length of the replay. Every event begins inside; the last of a CPU may reach beyond.
    provenance
        Where the noise comes from (plain JSON).
    digest
        16 hexadecimal digits that name the noise: window, CPUs and events, not the provenance.

    Examples
    --------
    A timer interrupt falls into a thread of 100 µs after 30 µs. The thread is cut there and goes on
    after the interrupt:

    >>> import pandas as pd
    >>> from nbhelpers import NoiseConfig
    >>> events = pd.DataFrame(
    ...     {
    ...         "run": 0,
    ...         "cpu": 0,
    ...         "kind": ["thread", "irq"],
    ...         "source": ["kworker/0:1", "local_timer"],
    ...         "start_ns": [10_000, 40_000],
    ...         "duration_ns": [100_000, 5_000],
    ...     }
    ... )
    >>> config = NoiseConfig.from_events(events, window_ns=1_000_000)
    >>> config.events()[["start_ns", "duration_ns", "policy"]].values.tolist()
    [[10000, 30000, 'SCHED_OTHER'], [40000, 5000, 'SCHED_FIFO'], [45000, 70000, 'SCHED_OTHER']]
    >>> whole = NoiseConfig.from_events(events, merge="pessimistic", window_ns=1_000_000)
    >>> whole.events()[["duration_ns", "policy"]].values.tolist()
    [[105000, 'SCHED_FIFO']]
    """

    cpus: tuple[int, ...]
    window_ns: int
    provenance: dict
    _table: pd.DataFrame

    @classmethod
    def from_events(
        cls,
        events: pd.DataFrame,
        merge: str = "improved",
        window_ns: int | None = None,
        provenance: Mapping | None = None,
        threads: str = "recorded",
    ) -> "NoiseConfig":
        """Turn the noise events of one run into lists that can be replayed.

        Parameters
        ----------
        events
            Noise events of one run (`delta_noise`, `Signature.events`, or a trace as it is).
            Interrupts are injected with SCHED_FIFO (nmi and hardware 51, irq 50, softirq 49).
            Threads are injected with the policy and priority that the trace states, else with
            SCHED_OTHER. Events of no length are left out.
        merge
            What becomes of events of a CPU that overlap. Durations are net, so they always add up.
            A merged event has the kind and source of its longest part, and the policy of its most
            urgent one.

            - "improved" (ours, after section 5.2 of the paper, which also raises threads):
              interrupt noise is never merged with thread noise. Interrupts that overlap become one.
              A thread event is cut where an interrupt falls into it and goes on after it, until its
              pieces add up to its duration. A thread event that begins before the last one is over
              waits for it.
            - "pessimistic" (the published one): overlapping or touching events become one,
              real-time if one of them is.
            - "compat": the same by the published code: threads SCHED_OTHER 0, all else SCHED_FIFO
              1, whatever the trace states.
        window_ns
            Length of the replay. None = `events.attrs["region_seconds"]` or `["seconds"]`, or else
            the end of the last event. What begins later is left out;
            `provenance["beyond_window_ns"]` says how much that is.
        provenance
            Further facts for the provenance: anything that JSON can hold.
        threads
            How ordinary thread noise (SCHED_OTHER, BATCH, IDLE) gets the CPU.

            - "recorded": by policy and nice of the trace. Nice counts within a session and a
              control group only, so that the replay may get another share.
            - "raised": SCHED_OTHER at nice −20; with merge "improved" that is section 5.2 of the
              paper.
            - "slices": SCHED_FIFO 1, for as long as the trace says that it had the CPU.

            Mean replays of twelve natural anomalies of three programs, quiet machine, 15 rounds:
            the median error is 44 % by "recorded", 3.0 by "raised", 1.8 by "slices" (notebook 42).
            Of what four planted hogs cost they bring back 0.93 to 1.09, 0.98 to 1.23 and 0.91 to
            1.12 there; on a busy machine a median of 1.13, 2.07 and 1.47
            (benchmarks/replayed_causes.py).

        Raises
        ------
        InputError
            No events are left to inject, events of several runs, an unknown word or an unusable
            value.
        """
        if merge not in _merge.MERGES:
            raise InputError(
                f"unknown merge {merge!r}", fix=f"merge is one of {', '.join(_merge.MERGES)}"
            )
        if threads not in _merge.THREADS:
            raise InputError(
                f"unknown threads {threads!r}", fix=f"use one of {', '.join(_merge.THREADS)}"
            )
        require_one_run(events, "events", "delta_noise(events, average, runs, run=NUMBER)")
        separate = _merge.from_table(events, threads)
        if not len(separate):
            raise InputError(
                "nothing to inject: no event is left",
                where=f"{len(events)} events, none of any length",
                fix=(
                    "take another run, delta_noise(…, run=NUMBER), or artificial noise,"
                    " Signature(…).events(…)"
                ),
            )
        lists = _merge.combine(separate, merge)
        window_ns = _window(
            window_ns, events.attrs.get("region_seconds", events.attrs.get("seconds")), lists
        )
        inside = lists[lists["start_ns"] < window_ns]
        if not len(inside):
            raise InputError(
                "nothing to inject: all noise begins after the window",
                where=f"window of {window_ns} ns",
            )
        whole = {name: events.attrs[name] for name in PROVENANCE_ATTRS if name in events.attrs}
        beyond_ns = int(lists["duration_ns"].sum() - inside["duration_ns"].sum())
        whole |= {"merge": merge, "beyond_window_ns": beyond_ns}
        whole |= {"threads": threads} if threads != "recorded" else {}
        whole |= provenance or {}
        cpus = tuple(int(cpu) for cpu in np.unique(whole_numbers(events, "cpu", "events")))
        return cls(cpus, window_ns, plain_provenance(whole), _table(inside))

    @classmethod
    def read(cls, path: str | Path) -> "NoiseConfig":
        """Read a config: Noisebook's format or the published injector's, plain or compressed
        (.gz).

        Raises
        ------
        InputError
            Not a noise config, or something in it cannot be replayed; the error names CPU, event
            and field.
        """
        path = Path(path)
        cpus, window_ns, provenance, events = read_config(path)
        return cls(cpus, window_ns, plain_provenance(provenance, f"{path}, "), _table(events))

    def write(self, path: str | Path) -> Path:
        """Write Noisebook's format, an event a line; the same config gives the same bytes.

        A file whose name ends in .gz is compressed.
        """
        return files.write_text(path, _noisebook_text(self))

    def write_published(self, path: str | Path) -> Path:
        """Write the published injector's format: `[start, duration, priority]`, and at the end of
        each CPU `[window, 0, 0]`.

        Policies other than SCHED_FIFO and SCHED_RR become 0 (SCHED_OTHER); nice values, kinds and
        sources are lost.
        """
        return files.write_text(path, _published_text(self))

    def events(self) -> pd.DataFrame:
        """All events by CPU and start.

        Returns
        -------
        `cpu`, `event` (place on the CPU), `start_ns`, `duration_ns`, `policy`, `priority`, `kind`,
        `source`; and `intensity` (NaN for events that occupy a CPU), if the config has other kinds
        of noise, too: see `STRESSORS`.
        """
        return self._table.copy()

    def summary(self) -> pd.DataFrame:
        """What will be injected.

        Returns
        -------
        One row a CPU, kind and policy: `cpu`, `kind`, `policy`, `events`, `total_ms`, `share` (of
        the CPU's time in the window; noise beyond it is not counted) and `longest_block_ms`, the
        longest stretch of such events that follow each other without a gap.
        """
        keys = ["cpu", "kind", "policy"]
        inside_ns = np.minimum(self._table["duration_ns"], self.window_ns - self._table["start_ns"])
        groups = self._table.assign(inside_ns=inside_ns).groupby(keys, observed=True)
        blocks = self._blocks(keys).groupby(keys, observed=True)["duration_ns"].max()
        table = pd.DataFrame(
            {
                "events": groups.size(),
                "total_ms": groups["duration_ns"].sum() / 1e6,
                "share": groups["inside_ns"].sum() / self.window_ns,
                "longest_block_ms": blocks / 1e6,
            }
        )
        return table.reset_index().astype({"kind": str, "policy": str})

    def _blocks(self, keys: list[str]) -> pd.DataFrame:
        """Stretches of events that have the same keys and no gap between them."""
        table = self._table
        if INTENSITY in table.columns:  # kinds that may overlap, one after the other
            stressor = table["kind"].cat.codes.where(table[INTENSITY].notna(), -1)
            table = table.iloc[np.lexsort([table["start_ns"], stressor, table["cpu"]])]
        end = table["start_ns"] + table["duration_ns"]
        new = (table[keys] != table[keys].shift()).any(axis=1) | (table["start_ns"] != end.shift())
        return table.groupby(new.cumsum()).agg(
            {**dict.fromkeys(keys, "first"), "duration_ns": "sum"}
        )

    @cached_property
    def digest(self) -> str:
        """Names the noise: window, CPUs and events."""
        table = self._table
        numbers = [
            table[name].to_numpy().astype("<i8").tobytes()
            for name in ("cpu", "start_ns", "duration_ns", "priority")
        ]
        codes = [
            table[name].cat.codes.to_numpy().astype("<i8").tobytes()
            for name in ("policy", "kind", "source")
        ]
        if INTENSITY in table.columns:
            numbers.append(table[INTENSITY].to_numpy().astype("<f8").tobytes())
        categories = [table[column].cat.categories for column in ("policy", "kind", "source")]
        words = files.to_json([list(map(str, names)) for names in categories])
        return files.digest(
            str(self.window_ns),
            str(self.cpus),
            words.encode("utf-8", "backslashreplace"),
            *numbers,
            *codes,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NoiseConfig):
            return NotImplemented
        return (self.digest, self.provenance) == (
            other.digest,
            other.provenance,
        ) and self._table.equals(other._table)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        occupying = self._table
        if INTENSITY in self._table.columns:
            occupying = self._table[self._table[INTENSITY].isna()]
        total_ms = occupying["duration_ns"].to_numpy().sum(dtype=float) / 1e6
        share = total_ms / (len(self.cpus) * self.window_ns / 1e6)
        more = len(self._table) - len(occupying)
        others = f", {more} events of other kinds" if more else ""
        return (
            f"NoiseConfig({len(self.cpus)} CPUs, {len(occupying)} events, {total_ms:.3f} ms ="
            f" {share:.2%} of {len(self.cpus)} × {self.window_ns / 1e6:.3f} ms{others},"
            f" {self.digest})"
        )

    def _repr_html_(self) -> str:
        longest_ms = self._blocks(["cpu"])["duration_ns"].max() / 1e6
        table = self.summary().to_html(index=False, border=0, float_format="{:.4g}".format)
        return (
            f"<p>{html.escape(repr(self))}; longest stretch without a gap {longest_ms:.3f}"
            f" ms</p>{table}"
        )


def _window(window_ns: int | None, seconds: float | None, lists: pd.DataFrame) -> int:
    length: object = window_ns
    if window_ns is None and seconds is None:
        length = int((lists["start_ns"] + lists["duration_ns"]).max())
    elif window_ns is None and seconds is not None:
        length = round(seconds * 1e9) if np.isfinite(seconds) else seconds
    if not isinstance(length, int | np.integer) or not 1 <= length <= LARGEST_NS:
        raise InputError(
            f"the window is {length!r}",
            where="window_ns",
            fix="pass a whole number of ns, 1 or more",
        )
    return int(length)


def _table(events: pd.DataFrame) -> pd.DataFrame:
    """The table of a config, in one form, so that equal configs are equal bytes.

    A config in which every event occupies a CPU has no column `intensity`, and knows of no other
    kinds; sources that don't occur are dropped.
    """
    stressing = INTENSITY in events and events[INTENSITY].notna().any()
    kinds = pd.Index(ALL_KINDS if stressing else KINDS, dtype=str)
    columns = ["cpu", *COLUMNS, *([INTENSITY] if stressing else [])]
    table = events[columns].reset_index(drop=True)
    table.insert(1, "event", table.groupby("cpu").cumcount())
    return table.assign(
        priority=table["priority"].astype(np.int16),
        kind=table["kind"].cat.set_categories(kinds),
        source=table["source"].cat.remove_unused_categories(),
    )


def plain_provenance(provenance: Mapping, file: str = "argument ") -> dict:
    """The same as JSON can hold it: NumPy numbers and paths become plain, tuples lists, keys
    strings.

    Raises
    ------
    InputError
        Something that JSON can't hold.
    """
    try:
        return json.loads(json.dumps(dict(provenance), allow_nan=False, default=_plain))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"not a provenance that JSON can hold: {error}",
            where=f"{file}provenance",
            fix="use texts, finite numbers, lists and dictionaries",
        ) from None


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} {value!r}")


# The files
# --------------------------------------------------------------------------------------------------


def _noisebook_text(config: NoiseConfig) -> str:
    """Noisebook's format."""
    table = config.events()
    columns = [*COLUMNS, INTENSITY] if INTENSITY in table.columns else list(COLUMNS)
    head = {
        "format": FORMAT,
        "provenance": config.provenance,
        "window_ns": config.window_ns,
        "columns": columns,
    }
    lines = [f'"{name}": {json.dumps(value, sort_keys=True)},' for name, value in head.items()]
    rows = table[columns].astype(object)
    events = [json.dumps(row) for row in rows.where(rows.notna(), None).values.tolist()]
    return "{" + "\n ".join(lines) + '\n "cpus": {\n' + _by_cpu(config, table, events) + "\n }}\n"


def _published_text(config: NoiseConfig) -> str:
    """The published injector's format: 0 = SCHED_OTHER, −p = SCHED_FIFO p, a last entry of no
    length.
    """
    table = config.events()
    if INTENSITY in table.columns:
        raise InputError(
            "the published injector can only occupy CPUs",
            where="events with an intensity",
            fix="write(path) keeps them; or make a config without them",
        )
    priority = np.where(table["policy"].isin(REAL_TIME), -table["priority"].to_numpy(), 0)
    events = [
        f"[{start}, {duration}, {urgency}]"
        for start, duration, urgency in zip(
            table["start_ns"].tolist(), table["duration_ns"].tolist(), priority.tolist()
        )
    ]
    return "{\n" + _by_cpu(config, table, events, last=f"[{config.window_ns}, 0, 0]") + "\n}\n"


def _by_cpu(
    config: NoiseConfig, table: pd.DataFrame, events: list[str], last: str | None = None
) -> str:
    """`"cpu": [` and its events, a line each, for all CPUs."""
    cpus = np.array(config.cpus)
    begins, ends = np.searchsorted(table["cpu"].to_numpy(), np.stack([cpus, cpus + 1]))
    blocks = []
    for cpu, begin, end in zip(config.cpus, begins.tolist(), ends.tolist()):
        lines = events[begin:end] + ([last] if last else [])
        blocks.append(f'  "{cpu}": [' + ("\n   " + ",\n   ".join(lines) if lines else "") + "]")
    return ",\n".join(blocks)
