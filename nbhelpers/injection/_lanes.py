"""Where events are injected, and by which process: placements, and lanes.

Owns which CPU here stands for a recorded one, and which events share a process; pure but for the
list of online CPUs.
"""

import re
from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from ..errors import InputError
from ..noise._vocabulary import INTERRUPT_KINDS, ON_ONE_CPU, REAL_TIME

PLACEMENTS = ("roam", "origin", "faithful")
ROAM = -1
Placement = str | Mapping[int, int]
_OWN_CPU = re.compile(
    r"[^/]+/(\d+)(?!\d)"
)  # kworker/0:1H, ksoftirqd/1, migration/3, ...; not kworker/u4:1, which may run anywhere


def places(
    events: pd.DataFrame,
    placement: Placement,
    online: Collection[int],
    excluded: Collection[int] = (),
) -> np.ndarray:
    """CPU here of each event; −1: anywhere.

    Raises
    ------
    InputError
        An unknown placement, or a CPU that is missing, excluded, or needed twice.
    """
    cpu = events["cpu"].to_numpy()
    if isinstance(placement, str) and placement not in PLACEMENTS:
        raise InputError(
            f"unknown placement {placement!r}",
            fix=f"use one of {', '.join(PLACEMENTS)}, or a mapping {{recorded CPU: CPU here}}",
        )
    here = _mapped(cpu, placement) if not isinstance(placement, str) else cpu
    pinned = {"roam": np.zeros(len(cpu), bool), "faithful": _stays(events)}.get(
        placement if isinstance(placement, str) else "", np.ones(len(cpu), bool)
    )
    usable = set(online) - set(excluded)
    _check_count(np.unique(cpu), usable)
    _check_pinned(np.unique(here[pinned]).tolist(), set(online), usable)
    return np.where(pinned, here, ROAM)


def _mapped(cpu: np.ndarray, mapping: Mapping[int, int]) -> np.ndarray:
    recorded = np.unique(cpu).tolist()
    missing = [old for old in recorded if old not in mapping]
    if missing:
        raise InputError(
            f"the placement does not say where the noise of CPU {missing[0]} goes",
            where=f"placement {dict(mapping)}",
            fix="name it, or make the config of the events of the other CPUs",
        )
    targets = [int(mapping[old]) for old in recorded]
    if len(set(targets)) < len(targets):
        raise InputError(
            "the placement puts the noise of two CPUs on one",
            where=f"placement {dict(mapping)}",
            why="they would add up to something that never happened",
            fix="name a different CPU for each",
        )
    return np.array(targets, dtype=np.int64)[np.searchsorted(recorded, cpu)]


def _check_count(recorded: np.ndarray, usable: set[int]) -> None:
    if len(recorded) > len(usable):
        raise InputError(
            f"the config has noise for {len(recorded)} CPUs, this machine has {len(usable)} for it",
            why="CPUs would share what each of them suffered alone",
            fix="choose a config recorded on at most as many CPUs, or exclude fewer",
        )


def _check_pinned(wanted: list[int], online: set[int], usable: set[int]) -> None:
    missing = [cpu for cpu in wanted if cpu not in usable]
    if missing and missing[0] in online:
        raise InputError(
            f"there is noise for CPU {missing[0]}, which is excluded",
            why="it would be left out without a word",
            fix="say where it goes, such as placement={recorded CPU: CPU here}",
        )
    if missing:
        raise InputError(
            f"the config has noise for CPU {missing[0]}, which is not online here",
            where=f"online: {sorted(online)}",
            fix="use placement='roam', or say where it goes: placement={recorded CPU: CPU here}",
        )


def _stays(events: pd.DataFrame) -> np.ndarray:
    """Interrupts, the hypervisor, noise of one CPU, and threads that the kernel keeps on theirs:
    those have its number in their name.
    """
    source = events["source"].astype("category")
    found = [_OWN_CPU.match(str(name)) for name in source.cat.categories]
    named_cpu = np.array(
        [int(match[1]) if match else -1 for match in found] + [-1], dtype=np.int64
    )[source.cat.codes]
    stays = events["kind"].isin(INTERRUPT_KINDS + ON_ONE_CPU)
    return (stays | (named_cpu == events["cpu"])).to_numpy()


def parts(events: pd.DataFrame, codes: np.ndarray) -> np.ndarray:
    """Which of a CPU's processes injects an event: 0 real-time ones; 2 ordinary ones.

    Noise that does more than occupy a CPU (`codes` above 0) may run at the same time as all other
    noise: each kind of it has a separate process.
    """
    part = np.where(events["policy"].isin(REAL_TIME), 0, 2)
    return np.where(codes > 0, codes + 2, part).astype(np.int16)


def ranks(*keys: np.ndarray) -> np.ndarray:
    """One small number a combination of keys, in the order of the keys; the first counts most."""
    table = pd.DataFrame(dict(enumerate(keys)))
    return table.groupby(list(table), observed=True).ngroup().to_numpy()


def slices(rank: np.ndarray) -> list[np.ndarray]:
    """The places of each rank, in their order; `rank` is dense."""
    order = np.argsort(rank, kind="stable")
    return np.split(order, np.cumsum(np.bincount(rank))[:-1]) if len(rank) else []
