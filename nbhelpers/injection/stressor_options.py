"""What noise of memory, files and the network may use on this machine, and what must be refused.

Owns `StressorOptions` and its way into the C core. The kinds are made in injector_c/kinds*.c; their
names and units are in `nbhelpers.noise.stressor_table`.
"""

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import InputError
from ..machine import online_cpus
from ..noise._vocabulary import STRESSOR_KINDS, STRESSORS
from ._interrupts import may_count_cpus
from ._memory import MIB, cache_bytes, lane_memory
from ._scratch import lane_file_bytes, make_scratch, scratch_base

LARGEST_SHARE = 0.5  # of the memory that is available
_DIRECT = {"io_read", "io_write"}  # past the page cache


@dataclass(frozen=True)
class StressorOptions:
    """What noise of memory, files and the network may use.

    The limits hold for all processes of an injection together.

    Parameters
    ----------
    folder
        Where file noise makes its files, in a new folder that is always removed at the end. None: a
        folder for temporary files on a real disk.
    address
        An IPv4 or IPv6 address that network noise is sent to. None: each process sends to itself,
        over the loopback device.
    port
        Of that address; 9 is the one whose traffic is thrown away by whoever listens.
    memory_share
        Of the memory that is available, at most 0.5.
    file_mib
        Size of a process's file; all of them take at most a tenth of what is free on the disk.

    Raises
    ------
    InputError
        A limit beyond these, or something that is not an IP address.
    """

    folder: str | Path | None = None
    address: str | None = None
    port: int = 9
    memory_share: float = 0.25
    file_mib: float = 32.0

    def __post_init__(self) -> None:
        if not 0 < self.memory_share <= LARGEST_SHARE:
            raise InputError(
                f"memory_share is {self.memory_share}",
                fix=f"more than 0, at most {LARGEST_SHARE}",
                why="a machine without memory ends processes, and the workload may be the one",
            )
        if not 1 <= self.file_mib <= 1024:
            raise InputError(f"file_mib is {self.file_mib}", fix="1 to 1024")
        if not 1 <= self.port <= 65535:
            raise InputError(f"port {self.port}", fix="1 to 65535")
        _checked_address(self.address)


def _checked_address(address: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if address is None:
        return None
    try:
        target = ipaddress.ip_address(address)
    except ValueError:
        raise InputError(
            f"not an IP address: {address!r}", fix="such as 192.0.2.7; None is this machine itself"
        ) from None
    if target.is_multicast or target.is_unspecified or str(target) == "255.255.255.255":
        raise InputError(
            f"noise cannot be sent to {address}",
            why="it would reach everybody on the network",
            fix="choose one host",
        )
    return target


def check_stressors(events: pd.DataFrame, options: StressorOptions) -> None:
    """Refuse noise that this machine cannot make, or should not be given.

    Parameters
    ----------
    events
        Columns cpu, kind, intensity.

    Raises
    ------
    InputError
        More memory than the limit, a cache or a second CPU that isn't there, a folder in memory for
        noise of the disk, a share beyond 1.
    """
    events = events[events["kind"].isin(STRESSOR_KINDS)]
    requested = events.groupby(events["kind"].astype(str))["intensity"].max()
    for kind, intensity in requested.items():
        _check_stressor(kind, float(intensity), options)
    limit = lane_memory(events, options.memory_share)
    if requested.get("memory_hold", 0) > limit:
        raise InputError(
            f"memory_hold of {requested['memory_hold'] / MIB:.0f} MiB",
            why=(
                f"a process may hold {limit / MIB:.0f} MiB: {options.memory_share:.0%} of what is"
                " available, divided by the processes that need memory"
            ),
            fix=f"request less, or pass StressorOptions(memory_share=…), at most {LARGEST_SHARE}",
        )


def _check_stressor(kind: str, intensity: float, options: StressorOptions) -> None:
    if kind == "duty" and intensity > 1:
        raise InputError(f"a duty of {intensity:g}", fix="a share of the CPU's time, 0 to 1")
    if kind.startswith("cache_") and not cache_bytes(online_cpus()[0])[int(kind[-1]) - 1]:
        raise InputError(
            f"this machine states no {kind[-2:].upper()} cache",
            where="/sys/devices/system/cpu/cpu0/cache",
        )
    if STRESSORS[kind].needs == "cpus" and len(online_cpus()) < 2:
        raise InputError(
            f"{kind} noise needs a second CPU", why="interrupts of this kind come from another one"
        )
    if STRESSORS[kind].needs == "folder":
        scratch_base(options.folder, direct=kind in _DIRECT)


def stressor_notes(events: pd.DataFrame) -> list[str]:
    """What the user may not do here, and what is done in its place, in sentences."""
    if "ipi" in set(events["kind"].unique()) and not may_count_cpus():
        return [
            "reading another CPU's counters is not permitted here: ipi noise comes from a helper"
            " thread that must have the CPU itself, so it also occupies it; run as root, or set"
            " kernel.perf_event_paranoid to 0"
        ]
    return []


def fill_options(run: Any, events: pd.DataFrame, options: StressorOptions) -> Path | None:
    """Write the options of an injection into its C structure; make its scratch folder if it needs
    one.

    Returns
    -------
    The scratch folder; to be given to `remove_scratch` when the injection has ended. (The
    supervisor removes it, too.)
    """
    used = set(events["kind"].unique()) & set(STRESSOR_KINDS)
    if not used:
        return None
    target = run.options
    target.memory_bytes = lane_memory(events, options.memory_share)
    for level, size in enumerate(cache_bytes(online_cpus()[0])):
        target.cache_bytes[level] = size
    _fill_address(target, options.address, options.port)
    if not any(STRESSORS[kind].needs == "folder" for kind in used):
        return None
    folder = make_scratch(scratch_base(options.folder, direct=bool(used & _DIRECT)))
    target.folder = os.fsencode(folder)
    target.file_bytes = lane_file_bytes(events, options.file_mib, folder)
    return folder


def _fill_address(target: Any, address: str | None, port: int) -> None:
    host = _checked_address(address)
    target.family = host.version if host else 0
    target.port = port
    for place, byte in enumerate(host.packed if host else b""):
        target.address[place] = byte
