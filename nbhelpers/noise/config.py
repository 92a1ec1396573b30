"""The noise config: what the injector replays, on which CPU, when, for how long and with which
policy.

Owns `NoiseConfig`: made of events, read from and written to files, summarised for a person. What a
file may look like is in `_reading.py` and `noise_config.schema.json`, how overlapping events are
combined in `_merge.py`.
"""

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from .. import files
from ..errors import InputError
from . import _merge, _writing
from ._reading import read_config
from ._table import INTENSITY, config_table, plain_provenance, without_needless
from ._vocabulary import LARGEST_CPU, LARGEST_NS

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
    ) -> "NoiseConfig":
        """Turn the noise events of one run into lists that can be replayed.

        Parameters
        ----------
        events
            Noise events of one run (`delta_noise`, `signature_noise`, or a trace as it is).
            Interrupts are injected with SCHED_FIFO (nmi and hardware 51, irq 50, softirq 49).
            Threads are injected with the policy and priority that the trace states, else with
            SCHED_OTHER. Events of no length are left out.
        merge
            What becomes of events of a CPU that overlap. Durations are net, so they always add up.
            A merged event has the kind and source of its longest part, and the policy of its most
            urgent one.

            - "improved" (section 5.2 of the paper): interrupt noise is never merged with thread
              noise. Interrupts that overlap become one. A thread event is cut where an interrupt
              falls into it and goes on after it, until its pieces add up to its duration. A thread
              event that begins before the last one is over waits for it.
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
        _refuse_several_runs(events)
        columns, sources = _merge.from_table(events)
        if not len(columns):
            raise InputError(
                "nothing to inject: no event is left",
                where=f"{len(events)} events, none of any length",
                fix=(
                    "take another run, delta_noise(…, run=NUMBER), or artificial noise,"
                    " signature_noise(…)"
                ),
            )
        lists = _merge.combine(columns, merge)
        window_ns = _window(
            window_ns, events.attrs.get("region_seconds", events.attrs.get("seconds")), lists
        )
        inside = lists.take(lists.start_ns < window_ns)
        if not len(inside):
            raise InputError(
                "nothing to inject: all noise begins after the window",
                where=f"window of {window_ns} ns",
            )
        whole = {name: events.attrs[name] for name in PROVENANCE_ATTRS if name in events.attrs}
        beyond_ns = int(lists.duration_ns.sum() - inside.duration_ns.sum())
        whole |= {"merge": merge, "beyond_window_ns": beyond_ns, **(provenance or {})}
        cpus = tuple(int(cpu) for cpu in np.unique(_merge.whole_numbers(events, "cpu", "events")))
        return cls(cpus, window_ns, plain_provenance(whole), config_table(inside, sources))

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
        return cls(*read_config(Path(path)))

    def write(self, path: str | Path) -> Path:
        """Write Noisebook's format, an event a line; the same config gives the same bytes.

        A file whose name ends in .gz is compressed.
        """
        return files.write_text(path, _writing.noisebook_text(self))

    def write_published(self, path: str | Path) -> Path:
        """Write the published injector's format: `[start, duration, priority]`, and at the end of
        each CPU `[window, 0, 0]`.

        Policies other than SCHED_FIFO and SCHED_RR become 0 (SCHED_OTHER); nice values, kinds and
        sources are lost.
        """
        return files.write_text(path, _writing.published_text(self))

    def events(self) -> pd.DataFrame:
        """All events by CPU and start.

        Returns
        -------
        `cpu`, `event` (place on the CPU), `start_ns`, `duration_ns`, `policy`, `priority`, `kind`,
        `source`; and `intensity` (NaN for events that occupy a CPU), if the config has other kinds
        of noise, too: see `stressor_table`.
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
        new = table["start_ns"] != end.shift(fill_value=-1)
        for key in keys:
            values = (
                table[key].cat.codes
                if isinstance(table[key].dtype, pd.CategoricalDtype)
                else table[key]
            )
            new = new | (values != values.shift(fill_value=-1))
        block = new.cumsum()
        return table.groupby(block).agg({**dict.fromkeys(keys, "first"), "duration_ns": "sum"})

    def for_machine(self, cpus_available: int | Iterable[int]) -> "NoiseConfig":
        """This config, if the machine has its CPUs.

        Parameters
        ----------
        cpus_available
            The CPU numbers that may be used, or how many there are (then 0, 1, …).

        Raises
        ------
        InputError
            The config has other CPUs; the message shows how to map them.
        """
        if isinstance(cpus_available, int | np.integer):
            available = list(range(int(cpus_available)))
        else:
            available = sorted({int(cpu) for cpu in cpus_available})
        missing = [cpu for cpu in self.cpus if cpu not in set(available)]
        if not missing:
            return self
        example = ", ".join(f"{old}: {new}" for old, new in zip(self._busiest(), available))
        raise InputError(
            f"the noise config is for {len(self.cpus)} CPUs ({_ranges(self.cpus)}), "
            f"here are {len(available)} ({_ranges(available)})",
            where=f"CPU {missing[0]} of the config",
            why="noise of several CPUs on one would add up to something that never happened",
            fix=(
                f"keep the busiest CPUs only: config.mapped({{{example}}}), or take a larger"
                " machine"
            ),
        )

    def _busiest(self) -> list[int]:
        total = self._table.groupby("cpu")["duration_ns"].sum().reindex(self.cpus, fill_value=0)
        return [int(cpu) for cpu in total.sort_values(ascending=False, kind="stable").index]

    def mapped(self, cpus: Mapping[int, int]) -> "NoiseConfig":
        """Move the noise of the named CPUs: `{old: new}`; noise of other CPUs is left out.

        Raises
        ------
        InputError
            A CPU that the config does not have, or two that go to the same.
        """
        unknown = [old for old in cpus if old not in self.cpus]
        if unknown or not cpus:
            raise InputError(
                f"the config has no CPU {unknown[0]}" if unknown else "no CPU would be left",
                where="argument cpus",
                fix=f"its CPUs are {_ranges(self.cpus)}",
            )
        if len(set(cpus.values())) < len(cpus) or any(
            not 0 <= int(new) <= LARGEST_CPU for new in cpus.values()
        ):
            raise InputError(
                "two CPUs would become one, or a number is none of a CPU",
                where=f"mapping {dict(cpus)}",
                fix=f"name a different CPU (0 … {LARGEST_CPU}) for each",
            )
        new_cpus = {old: int(new) for old, new in cpus.items()}
        table = self._table[self._table["cpu"].isin(list(cpus))]
        table = table.assign(cpu=table["cpu"].map(new_cpus).astype(np.int64))
        table = table.sort_values(["cpu", "start_ns"], kind="stable", ignore_index=True)
        left_out = sorted(set(self.cpus) - set(cpus))
        provenance = {
            **self.provenance,
            "mapped": {str(old): new for old, new in new_cpus.items()},
            "left_out_cpus": left_out,
        }
        table = without_needless(table)
        table["source"] = table["source"].cat.remove_unused_categories()
        return NoiseConfig(tuple(sorted(new_cpus.values())), self.window_ns, provenance, table)

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


def _refuse_several_runs(events: pd.DataFrame) -> None:
    if "run" in events.columns and events["run"].nunique() > 1:
        raise InputError(
            f"events of {events['run'].nunique()} runs",
            where="events table, column run",
            why="one replay is one run",
            fix="choose one: delta_noise(events, average, runs, run=NUMBER)",
        )


def _window(window_ns: int | None, seconds: float | None, lists: _merge.Columns) -> int:
    length: object = window_ns
    if window_ns is None and seconds is None:
        length = int((lists.start_ns + lists.duration_ns).max())
    elif window_ns is None and seconds is not None:
        length = round(seconds * 1e9) if np.isfinite(seconds) else seconds
    if not isinstance(length, int | np.integer) or not 1 <= length <= LARGEST_NS:
        raise InputError(
            f"the window is {length!r}",
            where="window_ns",
            fix="pass a whole number of ns, 1 or more",
        )
    return int(length)


def _ranges(cpus: Iterable[int]) -> str:
    """Numbers as Linux writes them: 0-3,8."""
    numbers = np.array(sorted(cpus), dtype=np.int64)
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1) if len(numbers) else []
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
