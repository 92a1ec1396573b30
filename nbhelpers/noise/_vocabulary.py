"""The words of the noise tables: kinds of noise, scheduling policies, and how each kind is injected.

Owns the ranges of priorities and the choice of policy for noise whose policy the trace does not tell.
"""

from collections.abc import Mapping
from types import MappingProxyType

KINDS = ("nmi", "irq", "softirq", "thread", "hardware")
INTERRUPT_KINDS = ("nmi", "irq", "softirq", "hardware")

# name: (lowest, highest) priority; nice values for the policies of the fair class
POLICIES: Mapping[str, tuple[int, int]] = MappingProxyType({
    "SCHED_OTHER": (-20, 19),
    "SCHED_BATCH": (-20, 19),
    "SCHED_IDLE": (-20, 19),
    "SCHED_FIFO": (1, 99),
    "SCHED_RR": (1, 99),
})
REAL_TIME = ("SCHED_FIFO", "SCHED_RR")

# An irq interrupts a softirq and never the other way round; 50 is where the kernel puts its own irq threads.
INJECTED_AS: Mapping[str, tuple[str, int]] = MappingProxyType({
    "nmi": ("SCHED_FIFO", 51),
    "hardware": ("SCHED_FIFO", 51),
    "irq": ("SCHED_FIFO", 50),
    "softirq": ("SCHED_FIFO", 49),
    "thread": ("SCHED_OTHER", 0),
})

# Policies that a replay cannot or must not take: a deadline needs a budget, the stop class is the kernel's own.
NEAREST: Mapping[str, tuple[str, int]] = MappingProxyType({
    "SCHED_DEADLINE": ("SCHED_FIFO", 99),
    "SCHED_STOP": ("SCHED_FIFO", 99),
    "SCHED_EXT": ("SCHED_OTHER", 0),
})

# The kernel's largest time is 2^63 - 1 ns; half of it leaves room for start + duration.
LARGEST_NS = 2**62 - 1
LARGEST_CPU = 99_999
