"""Twelve kinds of trouble planted in training jobs: who is named?

    python benchmarks/straggler_kinds.py [CASES] [held-out]

Each case takes one of three public jobs in turn (AR without the replica of its slow worker),
exchanges the replicas within each stage and step, so that nobody stays slow, and plants one kind at
a place drawn at random. The job is played: what waits for what decides when an operation begins.
Only begins and durations are handed to the rule, `noisebook_training.named`. CASES of each kind
(30).

The rule's thresholds were chosen on some of these cases. `held-out` asks it about others: in turn a
made job and a cut of a public one (some replicas, some steps), of sizes, noise and doses drawn at
random (`made_job`, `cut_job`, `Doses`), that no threshold was chosen on.

Printed for each kind: how much longer the job takes than without (median); in how many cases the
names are exactly the right ones, something else was named, nothing was named, and nothing where it
costs less than the 2 % from which on a part is named. A stage that is known to have more work
counts as nothing. Then what was named wrongly; last the shares of all, with 95 % intervals.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from noisebook_training import WhatIf, named, played, published_job, what_if
from noisebook_training.dependencies import CLIP, GATHER, MESSAGES, SCATTER
from noisebook_training.naming import LEAST, exchanged, links
from noisebook_training.scenarios import late_seconds
from noisebook_training.trace import COMPUTING, TrainingJob
from scipy.stats import binomtest

OWN = {"ST": "stage 3", "SE": "stage 1"}  # published: the work of these stages is more


class Doses:
    """How much is planted: one of three doses each."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng

    def factor(self) -> float:
        """Times as long, of computations."""
        return self.rng.choice((1.5, 2.0, 3.0))

    def far(self) -> float:
        """Share of a step's time: how much longer, of messages, collectives and hosts."""
        return self.rng.choice((0.2, 0.4, 0.8))

    def some(self) -> float:
        """Share of the steps."""
        return 6 / 32


class WideDoses(Doses):
    """Any dose between a small and a large one."""

    def factor(self) -> float:
        return self.rng.uniform(1.2, 4)

    def far(self) -> float:
        return self.rng.uniform(0.1, 1.2)

    def some(self) -> float:
        return self.rng.uniform(0.1, 0.4)


@dataclass
class Case:
    """A job's durations and its hosts' delays, to be spoiled; `right` are the names to come."""

    quiet: WhatIf
    rng: np.random.Generator
    doses: Doses
    late_s: np.ndarray | float = 0.0
    right: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.job, self.net_s = self.quiet.job, np.clip(self.quiet.net_s, 0, None)
        self.late_s = np.broadcast_to(self.late_s, self.net_s.shape).copy()
        self.step_s = self.quiet.ideal_step_s
        self.replica, self.stage = map(int, self.rng.integers((self.job.replicas, self.job.stages)))

    def computing(self, steps: slice | np.ndarray = slice(None), factor: object = None) -> None:
        """The worker computes longer, in these steps."""
        rows = np.isin(self.job.kind, COMPUTING) & (self.job.stage == self.stage)
        factor = self.doses.factor() if factor is None else factor
        which = np.flatnonzero(rows)[:, None], np.arange(self.net_s.shape[1])[steps], self.replica
        self.net_s[which] *= factor
        self.right.add(f"worker {self.replica}/{self.stage}")

    def some_steps(self) -> int:
        return max(1, round(self.doses.some() * len(self.job.steps)))

    def messages(self, rows: np.ndarray) -> None:
        """Messages of the replica take longer, so that each step has that much more of them."""
        more = self.doses.far() * self.step_s
        took = self.net_s[rows, :, self.replica].sum(0).mean()
        self.net_s[rows, :, self.replica] *= 1 + 2 * more / took  # each has two ends

    def play(self) -> WhatIf:
        return what_if(played(self.quiet, self.net_s, self.late_s))


def everywhere(case: Case) -> None:
    case.computing()


def in_some_steps(case: Case) -> None:
    case.computing(case.rng.permutation(len(case.job.steps))[: case.some_steps()])


def in_the_first_steps(case: Case) -> None:
    case.computing(slice(case.some_steps()))


def with_varying_kernels(case: Case) -> None:
    computes = np.isin(case.job.kind, COMPUTING) & (case.job.stage == case.stage)
    shape = computes.sum(), len(case.job.steps)
    case.computing(factor=1 + case.rng.exponential(0.5, shape))


def two_workers(case: Case) -> None:
    case.computing()
    case.stage = (case.stage + 1) % case.job.stages
    case.replica = int(case.rng.integers(case.job.replicas))
    case.computing()


def network_card(case: Case) -> None:
    """All that it sends and receives; in collectives the other replicas wait for it, unseen."""
    link, stage = links(case.job), case.stage
    inner = 0 < stage < case.job.stages - 1
    case.messages(np.isin(link, (stage, stage - 1)) & (link >= 0))
    joint = np.isin(case.job.kind, (GATHER, SCATTER)) & (case.job.stage == stage)
    case.net_s[joint] *= 3
    low = max(0, stage - 1)
    name = f"card {case.replica}/{stage}" if inner else f"link {case.replica}/{low}"
    case.right.add(name)


def link(case: Case) -> None:
    case.stage = int(case.rng.integers(case.job.stages - 1))
    case.messages(links(case.job) == case.stage)
    case.right.add(f"link {case.replica}/{case.stage}")


def data_loader(case: Case) -> None:
    """The first stage waits for its data at the begin of each step."""
    first = np.flatnonzero((case.job.kind == COMPUTING[0]) & (case.job.stage == 0))
    first = first[np.argmin(case.job.number[first])]
    far_s = case.doses.far() * case.step_s
    uneven = case.rng.uniform(0.5, 1.5, len(case.job.steps))
    case.late_s[first, :, case.replica] += far_s * uneven
    case.right.add(f"host {case.replica}/0")


def late_start(case: Case) -> None:
    """The worker comes late to the first step."""
    begins = np.concatenate([m for n, m, _ in case.quiet.graph.groups() if not len(n)])
    begins = begins[case.job.stage[begins] == case.stage]
    case.late_s[begins, 0, case.replica] += 20 * case.doses.far() * case.step_s
    case.right.add(f"host {case.replica}/{case.stage}")


def one_collective(case: Case) -> None:
    joint = np.flatnonzero(np.isin(case.job.kind, (GATHER, SCATTER)))
    step = int(case.rng.integers(len(case.job.steps)))
    case.net_s[case.rng.choice(joint), step] += 40 * case.doses.far() * case.step_s
    case.right.add(f"step {case.job.steps[step]}")


def whole_stage(case: Case) -> None:
    computes = np.isin(case.job.kind, COMPUTING) & (case.job.stage == case.stage)
    case.net_s[computes] *= case.doses.factor()
    case.right.add(f"stage {case.stage}")


def nothing(case: Case) -> None:
    pass


KINDS: dict[str, Callable[[Case], None]] = {
    "slow in all steps": everywhere,
    "slow in some steps": in_some_steps,
    "slow in the first steps": in_the_first_steps,
    "kernels vary": with_varying_kernels,
    "two workers": two_workers,
    "slow network card": network_card,
    "slow link": link,
    "slow data loader": data_loader,
    "late start": late_start,
    "one slow collective": one_collective,
    "slow stage": whole_stage,
    "nothing": nothing,
}


@cache
def public_jobs() -> list[TrainingJob]:
    return [published_job("ST"), published_job("AR").of_replicas([1, 2, 3]), published_job("SE")]


def known_case(number: int, case: int) -> Case:
    """One of those that thresholds were chosen on."""
    rng, jobs = np.random.default_rng([number, case]), public_jobs()
    return Case(what_if(exchanged(jobs[case % len(jobs)], rng)), rng, Doses(rng))


def held_out_case(number: int, case: int) -> Case:
    rng = np.random.default_rng([2027, number, case])
    quiet = made_job(rng) if case % 2 else what_if(exchanged(cut_job(rng), rng))
    late_s = late_seconds(quiet) if case % 2 else 0.0
    return Case(quiet, rng, WideDoses(rng), late_s)


def cut_job(rng: np.random.Generator) -> TrainingJob:
    """Two to twelve replicas and five or more consecutive steps of a public job."""
    job = public_jobs()[rng.integers(3)]
    count = int(rng.integers(2, min(12, job.replicas) + 1))
    first = int(rng.integers(len(job.steps) - 4))
    steps = slice(first, first + int(rng.integers(5, len(job.steps) - first + 1)))
    some = job.of_replicas(sorted(rng.permutation(job.replicas)[:count].tolist()))
    start_s, duration_s = some.start_s[:, steps], some.duration_s[:, steps]
    return TrainingJob(
        job.name, job.stage, job.kind, job.number, job.steps[steps], start_s, duration_s
    )


def made_job(rng: np.random.Generator) -> WhatIf:
    """A pipeline that never ran: sizes, spreads and delays are drawn; one in three has a last stage
    with 1.2 to 1.6 times the work.
    """
    stages, replicas, batches = (int(rng.integers(2, most + 1)) for most in (6, 8, 10))
    shape = int(rng.integers(5, 25)), replicas
    more = np.ones(stages)
    more[-1] = rng.uniform(1.2, 1.6) if rng.random() < 1 / 3 else 1
    operations = [row for stage in range(stages) for row in _one_stage(stage, stages, batches)]
    kinds, numbers, stage_of, order = map(np.array, zip(*operations))
    base = {"forward-compute": 1.0, "backward-compute": rng.uniform(1.4, 2.6), "optimizer": 0.3}
    base |= dict.fromkeys(MESSAGES, rng.uniform(0.002, 0.05))
    base |= dict.fromkeys((GATHER, SCATTER), rng.uniform(0.2, 2)) | {CLIP: 0.02}
    net_s = np.array([base[kind] for kind in kinds])[:, None, None] * np.ones(shape)
    computes = np.isin(kinds, COMPUTING)
    net_s[computes] *= more[stage_of[computes], None, None]
    net_s[computes] *= np.exp(rng.normal(0, rng.uniform(0, 0.3), shape))  # the step's sequences
    net_s[computes] *= np.exp(rng.normal(0, rng.uniform(0.005, 0.15), net_s[computes].shape))
    net_s[~computes] *= np.exp(rng.normal(0, rng.uniform(0.05, 0.5), net_s[~computes].shape))
    late_s = rng.exponential(rng.uniform(0, 0.02), net_s.shape)
    name = "made" if more[-1] == 1 else f"made, more in stage {stages - 1}"
    begins = np.broadcast_to(order[:, None, None], net_s.shape).astype(float)
    rough = TrainingJob(name, stage_of, kinds, numbers, np.arange(shape[0]), begins, net_s)
    return what_if(played(what_if(rough), net_s, late_s))


def _one_stage(stage: int, stages: int, batches: int) -> list[tuple[str, int, int, float]]:
    """Kind, number, stage and order of what a stage does in a step: one forward, one backward."""
    early = min(stages - 1 - stage, batches)
    turns = ["forward"] * early + ["forward", "backward"] * (batches - early) + ["backward"] * early
    rows, done = [(GATHER, 0, stage, -1.0)], Counter()
    for order, way in enumerate(turns):
        number, at = done[way], float(order)
        done[way] += 1
        rows.append((f"{way}-compute", number, stage, at))
        first, last = (0, stages - 1) if way == "forward" else (stages - 1, 0)
        if stage != first:
            rows.append((f"{way}-recv", number, stage, at - 0.5))
        if stage != last:
            rows.append((f"{way}-send", number, stage, at + 0.5))
    ends = ((SCATTER, 1.0), (CLIP, 2.0), ("optimizer", 3.0))
    return rows + [(kind, 0, stage, len(turns) + after) for kind, after in ends]


def outcome(spoiled: Case, plant: Callable[[Case], None]) -> tuple[str, float, set[str]]:
    """right, wrong, nothing or cheap; how much longer it takes; what was named."""
    before = spoiled.play().job.step_s.mean()
    plant(spoiled)
    result = spoiled.play()
    longer = result.job.step_s.mean() / before
    job = spoiled.job.name.partition(" of ")[0]
    own = f"stage {spoiled.job.stages - 1}" if "more in" in job else OWN.get(job)
    names = set(named(result)["name"]) - ({own} - spoiled.right)
    unnamed = "nothing" if longer > 1 / (1 - LEAST) else "cheap"
    return "right" if names == spoiled.right else "wrong" if names else unnamed, longer, names


def main(cases: int = 30, which: str = "known") -> None:
    made = held_out_case if which == "held-out" else known_case
    print(f"{'planted':<27}{'job':>6}{'right':>8}{'wrong':>7}{'nothing':>9}{'cheap':>7}")
    total: Counter = Counter()
    for number, (kind, plant) in enumerate(KINDS.items()):
        longer, counts, wrong = [], Counter(), Counter()
        for case in range(cases):
            spoiled = made(number, case)
            word, times, names = outcome(spoiled, plant)
            longer.append(times)
            counts[word] += 1
            total[word, spoiled.job.name.startswith("made")] += 1
            if word == "wrong":
                said = f"{', '.join(sorted(names))} for {', '.join(sorted(spoiled.right)) or '–'}"
                wrong[f"{spoiled.job.name}: {said}"] += 1
        said = "; ".join(name for name, _ in wrong.most_common(2))
        print(
            f"{kind:<27}{np.median(longer):>6.2f}{counts['right']:>8}{counts['wrong']:>7}"
            f"{counts['nothing']:>9}{counts['cheap']:>7}  {said}",
            flush=True,
        )
    for of_made, name in ((False, "public jobs"), (True, "made jobs")):
        jobs = sum(count for (_, made_one), count in total.items() if made_one == of_made)
        for word in ("right", "wrong", "nothing", "cheap") if jobs else ():
            share = binomtest(total[word, of_made], jobs)
            low, high = share.proportion_ci(method="exact")
            print(f"{name}: {word} {share.k} of {jobs}, {low:.1%} to {high:.1%}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
