"""Pure parsers of the formats in which the kernel writes its counters: text in, rows of words or
numbers out.
"""

import re
from functools import lru_cache


def parse_rows(text: str) -> dict[str, list[str]]:
    """Lines that begin with a name, with or without a colon: /proc/stat, vmstat, meminfo, io,
    net/dev, pressure, cpu.stat, …
    """
    rows: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.split()
        if words and ":" in words[0]:  # net/dev may leave no space behind its colon
            name, _, first = words[0].partition(":")
            words[:1] = [name, first] if first else [name]
        if words:
            rows[words[0]] = words[1:]
    return rows


def parse_line(text: str) -> dict[str, list[str]]:
    """A line of numbers without a name: schedstat, loadavg, a value of sysfs. A name in brackets
    that may hold spaces (/proc/PID/stat) is passed over.
    """
    return {"": text.rpartition(")")[2].split()}


def parse_hex_rows(text: str) -> dict[str, list[int]]:
    """Rows of hexadecimal numbers, one a CPU, as in /proc/net/softnet_stat; summed over CPUs."""
    rows = [[int(word, 16) for word in line.split()] for line in text.splitlines()]
    return {"": [sum(column) for column in zip(*rows)]}


def parse_interrupts(text: str) -> dict[str, list[int]]:
    """/proc/interrupts, summed over CPUs: by the label of the named lines, by the device of the
    numbered ones.
    """
    header, _, body = text.partition("\n")
    cpus = len(header.split())
    totals: dict[str, list[int]] = {}
    for line in body.splitlines():
        label, _, rest = line.partition(":")
        words = rest.split(None, cpus)
        counts = [
            int(word) for word in words[:cpus] if word.isdigit()
        ]  # ERR and MIS have a single count
        name = _interrupt_name(label.strip(), words[cpus] if len(words) > cpus else "")
        totals[name] = [totals.get(name, [0])[0] + sum(counts)]
    return totals


@lru_cache(maxsize=4096)
def _interrupt_name(label: str, description: str) -> str:
    """Numbers are given out anew at each boot, so a numbered interrupt is known by its device, the
    last field.
    """
    device = re.split(r"\s{2,}", description.strip())[-1] if label.isdigit() else ""
    return re.sub(r"[\s,]+", "_", device or label)


def parse_softirqs(text: str) -> dict[str, list[int]]:
    """/proc/softirqs, summed over CPUs: TIMER and so on."""
    lines = (line.partition(":") for line in text.splitlines()[1:])
    return {name.strip(): [sum(map(int, counts.split()))] for name, _, counts in lines}
