"""Counters of the whole machine, from /proc: pure parsers of kernel text, and one reader that keeps its files open."""

import os
import re
from collections.abc import Callable

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_STAT_SECONDS = {"user": 0, "nice": 1, "system": 2, "irq": 5, "softirq": 6}
VMSTAT = {"pgfault", "pgmajfault", "pgpgin", "pgpgout", "pswpin", "pswpout", "pgmigrate_success", "numa_pte_updates",
          "numa_hint_faults", "numa_pages_migrated", "thp_fault_alloc", "thp_split_page", "compact_stall", "allocstall_normal",
          "pgscan_kswapd", "pgscan_direct"}


def parse_interrupts(text: str) -> dict[str, int]:
    """/proc/interrupts, summed over CPUs: `irq_LOC` for the named lines, `irq_<device>` for the numbered ones."""
    header, _, body = text.partition("\n")
    cpus = len(header.split())
    totals: dict[str, int] = {}
    for line in body.splitlines():
        label, _, rest = line.partition(":")
        words = rest.split(None, cpus)
        counts = [int(word) for word in words[:cpus] if word.isdigit()]  # ERR and MIS have a single count
        name = _interrupt_name(label.strip(), words[cpus] if len(words) > cpus else "")
        totals[name] = totals.get(name, 0) + sum(counts)
    return totals


def _interrupt_name(label: str, description: str) -> str:
    """Numbers are given out anew at each boot, so a numbered interrupt is known by its device, the last field."""
    device = re.split(r"\s{2,}", description.strip())[-1] if label.isdigit() else ""
    return "irq_" + re.sub(r"[\s,]+", "_", device or label)


def parse_softirqs(text: str) -> dict[str, int]:
    """/proc/softirqs, summed over CPUs: `softirq_TIMER` and so on."""
    lines = (line.partition(":") for line in text.splitlines()[1:])
    return {f"softirq_{name.strip()}": sum(map(int, counts.split())) for name, _, counts in lines}


def parse_stat(text: str) -> dict[str, float]:
    """/proc/stat: stolen and busy CPU seconds of all CPUs (ticks, so in steps of 10 ms), context switches, forks."""
    lines = {key: rest for key, _, rest in (line.partition(" ") for line in text.splitlines())}
    ticks = [int(value) for value in lines["cpu"].split()]
    busy = sum(ticks[at] for at in _STAT_SECONDS.values())
    return {"steal_s": ticks[7] / _TICKS_PER_S, "machine_busy_s": busy / _TICKS_PER_S,
            "machine_context_switches": int(lines["ctxt"]), "machine_forks": int(lines["processes"])}


def parse_vmstat(text: str) -> dict[str, int]:
    """/proc/vmstat: the counters of faults, swapping, migration, huge pages and reclaim, as `vm_<name>`."""
    pairs = (line.split() for line in text.splitlines())
    return {f"vm_{name}": int(value) for name, value in pairs if name in VMSTAT}


def parse_pressure(text: str, resource: str) -> dict[str, int]:
    """/proc/pressure/<resource>: time in which some, or all, tasks waited for it, in us."""
    lines = (line.split() for line in text.splitlines())
    return {f"pressure_{resource}_{words[0]}_us": int(words[-1].removeprefix("total=")) for words in lines}


class Reader:
    """Reads counters from files of /proc that it keeps open; files that do not exist here are passed over.

    Parameters
    ----------
    parsers : for each path a function from its text to counters.
    """

    def __init__(self, parsers: dict[str, Callable[[str], dict[str, float]]]):
        self._parsers, self._fds = parsers, {}
        self.missing = tuple(path for path in parsers if not os.access(path, os.R_OK))

    def read(self) -> dict[str, float]:
        """All counters, as they are now."""
        counters: dict[str, float] = {}
        for path, parse in self._parsers.items():
            if path not in self.missing:
                counters.update(parse(self._text(path)))
        return counters

    def _text(self, path: str) -> str:
        if path not in self._fds:
            self._fds[path] = os.open(path, os.O_RDONLY)
        fd, parts, at = self._fds[path], [], 0
        while data := os.pread(fd, 1 << 16, at):
            parts.append(data)
            at += len(data)
        return b"".join(parts).decode()

    def close(self) -> None:
        """Close the files; the next read opens them again."""
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()
