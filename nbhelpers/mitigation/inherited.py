"""Actions that a program inherits from the thread that starts it: memory policy, layout of the
address space, no huge pages.

What numactl and setarch do, without a further program inside the run: the thread takes on the
attribute for the moment of the start only.
"""

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import SettingError
from ..machine import cpu_list, topology
from ..workloads import Workload
from . import _proc
from ._calls import CALLS, allowed_here, libc, system_call
from .action import YES, Action, Possible

_ADDR_NO_RANDOMIZE, _GET_PERSONALITY = 0x0040000, 0xFFFFFFFF
_SET_THP_DISABLE, _GET_THP_DISABLE = 41, 42
_MODES = {"preferred": 1, "bind": 2, "interleave": 3, "local": 4}  # linux/mempolicy.h
_MASK_BITS = 1024


@dataclass(frozen=True)
class MemoryPolicy(Action):
    """Where the program's memory comes from: bind, interleave, preferred or local
    (set_mempolicy(2)); nodes None: all, for bind the last CPU's.
    """

    policy: str
    nodes: tuple[int, ...] | None = None
    needs_program = True

    def possible(self, workload: Workload | None = None) -> Possible:
        if platform.machine() not in CALLS or self.policy not in _MODES:
            return Possible(False, f"the policy {self.policy} cannot be set here")
        if len(_memory_nodes()) < 2:
            return Possible(False, "there is one NUMA node only")
        return YES

    @contextmanager
    def inherited(self) -> Iterator[None]:
        before = _memory_policy()
        _set_memory_policy(
            _MODES[self.policy], 0 if self.policy == "local" else _mask(self._nodes())
        )
        try:
            yield
        finally:
            _set_memory_policy(*before)

    def check(self, pid: int) -> str | None:
        """numa_maps begins each line with the address and the policy of the mapping."""
        with suppress(OSError):
            policies = {
                line.split()[1].split(":")[0]
                for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines()
            }
            wanted = {
                "bind": "bind",
                "interleave": "interleave",
                "preferred": "prefer",
                "local": "local",
            }[self.policy]
            return (
                None
                if any(policy.startswith(wanted) for policy in policies)
                else f"the memory policy is {', '.join(policies)}, not {wanted}"
            )
        return "the kernel does not tell the memory policy of the process"

    def _nodes(self) -> tuple[int, ...]:
        if self.nodes is not None:
            return self.nodes
        last = max(os.sched_getaffinity(0))
        return (
            (next((cpu.numa for cpu in topology().cpus if cpu.cpu == last), 0),)
            if self.policy == "bind"
            else _memory_nodes()
        )


def _memory_nodes() -> tuple[int, ...]:
    with suppress(OSError):
        return cpu_list(Path("/sys/devices/system/node/has_memory").read_text())
    return ()


def _mask(nodes: tuple[int, ...]) -> int:
    return sum(1 << node for node in nodes)


def _memory_policy() -> tuple[int, int]:
    mode, mask = ctypes.c_int(0), (ctypes.c_ulong * (_MASK_BITS // 64))()
    system_call("get_mempolicy", ctypes.addressof(mode), ctypes.addressof(mask), _MASK_BITS, 0, 0)
    return mode.value, int.from_bytes(bytes(mask), "little")


def _set_memory_policy(mode: int, nodes: int) -> None:
    mask = (ctypes.c_ubyte * (_MASK_BITS // 8)).from_buffer_copy(
        nodes.to_bytes(_MASK_BITS // 8, "little")
    )
    system_call(
        "set_mempolicy", mode, ctypes.addressof(mask) if nodes else 0, _MASK_BITS if nodes else 0
    )


class NoRandomisation(Action):
    """The program lies at the same addresses in each run (personality(2), ADDR_NO_RANDOMIZE)."""

    needs_program = True

    def possible(self, workload: Workload | None = None) -> Possible:
        if (
            workload is not None
            and os.path.isfile(workload.command[0])
            and os.stat(workload.command[0]).st_mode & 0o6000
        ):
            return Possible(False, "a set-user-ID program resets it")
        allowed = allowed_here(
            lambda: _change_personality(_ADDR_NO_RANDOMIZE),
            "allow personality(2) in the container's seccomp profile",
        )
        return allowed

    @contextmanager
    def inherited(self) -> Iterator[None]:
        before = libc.personality(ctypes.c_ulong(_GET_PERSONALITY))
        _change_personality(before | _ADDR_NO_RANDOMIZE)
        try:
            yield
        finally:
            _change_personality(before)

    def check(self, pid: int) -> str | None:
        with suppress(OSError, ValueError):
            has = int(Path(f"/proc/{pid}/personality").read_text(), 16)
            return (
                None
                if has & _ADDR_NO_RANDOMIZE
                else "the address space of the process is randomised"
            )
        return "the kernel does not tell the personality of the process"


def _change_personality(value: int) -> None:
    if (
        libc.personality(ctypes.c_ulong(value)) < 0
        or libc.personality(ctypes.c_ulong(_GET_PERSONALITY)) != value
    ):
        raise SettingError(f"the personality cannot be set: {os.strerror(ctypes.get_errno())}")


class NoHugePages(Action):
    """The program gets no transparent huge pages (prctl(2), PR_SET_THP_DISABLE)."""

    needs_program = True

    def possible(self, workload: Workload | None = None) -> Possible:
        if _proc.status(os.getpid(), "THP_enabled") is None:
            return Possible(False, "this kernel does not tell whether a process gets huge pages")
        return (
            YES
            if os.path.exists("/sys/kernel/mm/transparent_hugepage")
            else Possible(False, "this kernel has no transparent huge pages")
        )

    @contextmanager
    def inherited(self) -> Iterator[None]:
        before = libc.prctl(_GET_THP_DISABLE, 0, 0, 0, 0)
        libc.prctl(_SET_THP_DISABLE, 1, 0, 0, 0)
        try:
            yield
        finally:
            libc.prctl(_SET_THP_DISABLE, before, 0, 0, 0)

    def check(self, pid: int) -> str | None:
        return (
            None
            if _proc.status(pid, "THP_enabled") == "0"
            else "the process may get transparent huge pages"
        )
