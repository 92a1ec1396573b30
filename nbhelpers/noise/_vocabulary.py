"""The words of the noise tables: kinds of noise, scheduling policies, and how each kind is
injected.

Owns the ranges of priorities, the choice of policy for noise whose policy the trace does not state,
and the kinds of noise that do more than occupy a CPU, with the unit of their intensity.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

KINDS = ("nmi", "irq", "softirq", "thread", "hardware")
INTERRUPT_KINDS = ("nmi", "irq", "softirq", "hardware")


@dataclass(frozen=True)
class Stressor:
    """A kind of noise that does more than occupy a CPU.

    `code`: of the C core (injector_c/kinds.h). `unit`: of its intensity, and of what is logged as
    achieved. `hpas`: the generator of HPAS (Ates et al., ICPP 2019) that it covers; empty: HPAS has
    none. `needs`: what it needs of the machine, of `folder`, `memory`, `network`, `cpus` (a second
    CPU).
    """

    code: int
    unit: str
    does: str
    hpas: str = ""
    needs: str = ""


# What traces don't show, but machines suffer. HPAS's eight generators and what it lacks: the table
# is `stressor_table()`.
STRESSORS: Mapping[str, Stressor] = MappingProxyType(
    {
        "duty": Stressor(1, "share", "occupies the CPU for a share of each 10 ms", "cpuoccupy"),
        "memory_read": Stressor(2, "bytes/s", "reads memory in a row", "membw", "memory"),
        "memory_write": Stressor(
            3, "bytes/s", "writes memory in a row, through the caches", "membw", "memory"
        ),
        "memory_stream": Stressor(
            4, "bytes/s", "writes memory in a row, past the caches", "membw", "memory"
        ),
        **{
            f"cache_l{level}": Stressor(
                4 + level,
                "bytes/s",
                f"makes lines of a working set of the L{level} cache's size dirty",
                "cachecopy",
                "memory",
            )
            for level in (1, 2, 3)
        },
        "memory_hold": Stressor(
            8, "bytes", "takes memory at once, holds it, frees it at the end", "memeater", "memory"
        ),
        "memory_leak": Stressor(
            9, "bytes/s", "takes more and more memory, frees it at the end", "memleak", "memory"
        ),
        "io_read": Stressor(
            10, "bytes/s", "reads a file, past the page cache", "iobandwidth", "folder"
        ),
        "io_write": Stressor(
            11, "bytes/s", "writes a file, past the page cache", "iobandwidth", "folder"
        ),
        "io_sync": Stressor(
            12,
            "bytes/s",
            "writes a file through the page cache and forces it to the disk",
            "iobandwidth",
            "folder",
        ),
        "io_metadata": Stressor(
            13, "operations/s", "creates, looks up and removes files", "iometadata", "folder"
        ),
        "network": Stressor(
            14, "bytes/s", "sends UDP datagrams, to itself or to an address", "netoccupy", "network"
        ),
        "timer": Stressor(
            15,
            "interrupts/s",
            "lets timers expire, with nobody waiting (50 000 a second at most: closer ones share an"
            " interrupt)",
        ),
        "ipi": Stressor(
            16, "interrupts/s", "calls a function on the CPU from another one", needs="cpus"
        ),
        "tlb": Stressor(
            17,
            "interrupts/s",
            "makes the CPU forget a page's mapping, from another one",
            needs="cpus",
        ),
        "migrate": Stressor(
            18, "migrations/s", "forces a thread onto the CPU and off it again", needs="cpus"
        ),
    }
)
STRESSOR_KINDS = tuple(STRESSORS)
ON_ONE_CPU = (
    "duty",
    "cache_l1",
    "cache_l2",
    "timer",
    "ipi",
    "tlb",
    "migrate",
)  # the others disturb the CPUs around as well
STRESSOR_CODES: Mapping[str, int] = MappingProxyType(
    {name: stressor.code for name, stressor in STRESSORS.items()}
)
ALL_KINDS = KINDS + STRESSOR_KINDS

# name: (lowest, highest) priority; nice values for the policies of the fair class
POLICIES: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "SCHED_OTHER": (-20, 19),
        "SCHED_BATCH": (-20, 19),
        "SCHED_IDLE": (-20, 19),
        "SCHED_FIFO": (1, 99),
        "SCHED_RR": (1, 99),
    }
)
REAL_TIME = ("SCHED_FIFO", "SCHED_RR")

# An irq interrupts a softirq and never the other way round; 50 is where the kernel puts its own irq
# threads.
INJECTED_AS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "nmi": ("SCHED_FIFO", 51),
        "hardware": ("SCHED_FIFO", 51),
        "irq": ("SCHED_FIFO", 50),
        "softirq": ("SCHED_FIFO", 49),
        "thread": ("SCHED_OTHER", 0),
    }
)

# Policies that a replay cannot or must not take: a deadline needs a budget, the stop class is the
# kernel's own.
NEAREST: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "SCHED_DEADLINE": ("SCHED_FIFO", 99),
        "SCHED_STOP": ("SCHED_FIFO", 99),
        "SCHED_EXT": ("SCHED_OTHER", 0),
    }
)

# The kernel's largest time is 2^63 - 1 ns; half of it leaves room for start + duration.
LARGEST_NS = 2**62 - 1
LARGEST_CPU = 99_999
