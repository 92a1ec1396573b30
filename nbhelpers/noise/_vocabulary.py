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
    achieved. `needs`: what it needs of the machine: `folder`, `memory`, or `cpus` (a second CPU).
    """

    code: int
    unit: str
    does: str
    needs: str = ""


# What traces don't show, but machines suffer: the kinds that a factor (data/knowledge/factors) is
# injected as, or a known cause is planted as. stress-ng and HPAS make more, without a time line.
STRESSORS: Mapping[str, Stressor] = MappingProxyType(
    {
        "duty": Stressor(1, "share", "occupies the CPU for a share of each 10 ms"),
        "memory_stream": Stressor(
            4, "bytes/s", "writes memory in a row, past the caches", "memory"
        ),
        "cache_l3": Stressor(
            7, "bytes/s", "makes lines of a working set of the L3 cache's size dirty", "memory"
        ),
        "io_read": Stressor(10, "bytes/s", "reads a file, past the page cache", "folder"),
        "io_sync": Stressor(
            12, "bytes/s", "writes a file through the page cache, forces it to the disk", "folder"
        ),
        "io_metadata": Stressor(
            13, "operations/s", "creates, looks up and removes files", "folder"
        ),
        "network": Stressor(14, "bytes/s", "sends UDP datagrams to itself"),
        # 50 000 a second at most: closer ones share an interrupt
        "timer": Stressor(15, "interrupts/s", "lets timers expire, with nobody waiting"),
        "ipi": Stressor(16, "interrupts/s", "calls a function on the CPU from another one", "cpus"),
    }
)
STRESSOR_KINDS = tuple(STRESSORS)
ON_ONE_CPU = ("duty", "timer", "ipi")  # the others disturb the CPUs around as well
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
