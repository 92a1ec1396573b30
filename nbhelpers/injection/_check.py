"""Asks the C core whether a plan keeps the limits of its rules, before anything is started.

Owns the way of the limits into the C core, and what a user reads about one that is exceeded.
"""

import errno
from typing import Any

import numpy as np

from ..errors import InputError
from ..machine import online_cpus
from ..noise._vocabulary import STRESSORS
from ._native import check, ffi, lib
from .rules import KIND_CODES, Plan, Rules, codes_of

NAMES = {code: name for name, code in KIND_CODES.items()}


def fill_limits(target: Any, rules: Rules) -> None:
    """The limits of `struct nb_rules`; 0 is none."""
    target.cpus = 0 if rules.allow_full_stop else len(online_cpus())
    # at least 1 ns: 0 would be no limit
    target.full_stop_ns = max(1, round(rules.full_stop_ms * 1e6))
    target.full_stop_second_ns = max(1, round(rules.full_stop_second_ms * 1e6))
    target.full_stop_ten_seconds_ns = max(1, round(rules.full_stop_ten_seconds_s * 1e9))
    target.any_intensity = rules.any_intensity


def fill_lanes(run: Any, plan: Plan) -> None:
    """`run.lanes` must have room for the plan's."""
    run.lane_count = len(plan.lanes)
    for number, lane in enumerate(plan.lanes.itertuples(index=False)):
        target = run.lanes[number]
        target.cpu, target.first, target.count = map(int, (lane.cpu, lane.first, lane.count))
    for cpu in plan.roam:
        run.roam[cpu // 64] |= 1 << cpu % 64


def check_plan(plan: Plan) -> None:
    """Refuse a plan that takes too much of the machine.

    Raises
    ------
    InputError
        Which limit, by how much, and the rule that lifts it.
    """
    events = plan.events
    columns = {
        "start_ns": ("int64_t[]", events["start_ns"].to_numpy(np.int64)),
        "duration_ns": ("int64_t[]", events["duration_ns"].to_numpy(np.int64)),
        "intensity": ("double[]", events["intensity"].to_numpy(np.float64)),
        "policy": ("int8_t[]", codes_of(events["policy"])),
        "kind": ("int8_t[]", codes_of(events["kind"])),
    }
    run = ffi.new("struct nb_injection *")
    lanes = ffi.new("struct nb_lane[]", max(1, len(plan.lanes)))
    run.lanes, run.event_count = lanes, len(events)
    views = {
        name: ffi.from_buffer(kind, np.ascontiguousarray(column))
        for name, (kind, column) in columns.items()
    }
    for name, view in views.items():
        setattr(run.plan, name, view)
    fill_lanes(run, plan)
    fill_limits(run.rules, plan.rules)
    raise_excess(run)


def raise_excess(run: Any) -> None:
    """Raise the error of the limit that an injection exceeds, if there is one."""
    excess = ffi.new("struct nb_excess *")
    code = lib.nb_check_limits(run, excess)
    if code != -errno.EDQUOT:
        check(code, "to check its plan")
    elif excess.limit == lib.NB_LIMIT_INTENSITY:
        raise _too_intense(run, excess)
    else:
        raise _too_full(excess)


def _too_intense(run: Any, excess: Any) -> InputError:
    kind = NAMES[run.plan.kind[excess.event]]
    return InputError(
        f"{kind} noise of intensity {excess.value:g}",
        where=f"plan, event {excess.event} of lane {excess.lane}",
        why=f"at most {excess.most:g} {STRESSORS[kind].unit} are allowed",
        fix="if it is meant, pass rules=Rules(any_intensity=True)",
    )


def _too_full(excess: Any) -> InputError:
    how, name = {
        lib.NB_LIMIT_STRETCH: ("at a stretch", "full_stop_ms"),
        lib.NB_LIMIT_SECOND: ("of a second", "full_stop_second_ms"),
        lib.NB_LIMIT_TEN_SECONDS: ("of ten seconds", "full_stop_ten_seconds_s"),
    }[excess.limit]
    return InputError(
        f"the plan takes every CPU of this machine with real-time priority for"
        f" {excess.value / 1e6:.6f} ms {how}",
        where=f"plan, from {excess.start_ns / 1e6:.3f} ms on",
        why=f"at most {excess.most / 1e6:g} ms are allowed: other processes must be able to answer",
        fix=f"if it is meant, pass rules=Rules({name}=...) or Rules(allow_full_stop=True)",
    )
