"""Twelve kinds of trouble planted in public training jobs: who is named?

    python benchmarks/straggler_kinds.py [CASES]

Each case takes one of three jobs in turn (AR without the replica of its slow worker), exchanges the
replicas within each stage and step, so that nobody stays slow, and plants one kind at a place drawn
at random. The job is played: what waits for what decides when an operation begins. Only begins and
durations are handed to the rule, `noisebook_training.named`. CASES of each kind (30).

Printed for each kind: how much longer the job takes than without (median); in how many cases the
names are exactly the right ones, something else was named, nothing was named, and nothing where it
costs less than the 2 % from which on a part is named. A stage that is known to have more work in
the published job counts as nothing. Last, what was named wrongly.
"""

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np
from noisebook_training import WhatIf, named, played, published_job, what_if
from noisebook_training.dependencies import GATHER, SCATTER
from noisebook_training.naming import LEAST, exchanged, links
from noisebook_training.trace import COMPUTING

FACTORS = (1.5, 2.0, 3.0)  # times as long, of computations
FAR = (0.2, 0.4, 0.8)  # of a step's time: how much longer, of messages, collectives and hosts
SOME = 6 / 32  # of the steps


@dataclass
class Case:
    """A job's durations and its hosts' delays, to be spoiled; `right` are the names to come."""

    quiet: WhatIf
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.job, self.net_s = self.quiet.job, np.clip(self.quiet.net_s, 0, None)
        self.late_s = np.zeros_like(self.net_s)
        self.step_s = self.quiet.ideal_step_s
        self.replica, self.stage = map(int, self.rng.integers((self.job.replicas, self.job.stages)))
        self.right: set[str] = set()

    def computing(self, steps: slice | np.ndarray = slice(None), factor: object = None) -> None:
        """The worker computes longer, in these steps."""
        rows = np.isin(self.job.kind, COMPUTING) & (self.job.stage == self.stage)
        factor = self.rng.choice(FACTORS) if factor is None else factor
        which = np.flatnonzero(rows)[:, None], np.arange(self.net_s.shape[1])[steps], self.replica
        self.net_s[which] *= factor
        self.right.add(f"worker {self.replica}/{self.stage}")

    def messages(self, rows: np.ndarray) -> None:
        """Messages of the replica take longer, so that each step has that much more of them."""
        more = self.rng.choice(FAR) * self.step_s
        took = self.net_s[rows, :, self.replica].sum(0).mean()
        self.net_s[rows, :, self.replica] *= 1 + 2 * more / took  # each has two ends

    def play(self) -> WhatIf:
        return what_if(played(self.quiet, self.net_s, self.late_s))


def everywhere(case: Case) -> None:
    case.computing()


def in_some_steps(case: Case) -> None:
    steps = len(case.job.steps)
    case.computing(case.rng.permutation(steps)[: round(SOME * steps)])


def in_the_first_steps(case: Case) -> None:
    case.computing(slice(round(SOME * len(case.job.steps))))


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
    long = case.rng.choice(FAR) * case.step_s * case.rng.uniform(0.5, 1.5, len(case.job.steps))
    case.late_s[first, :, case.replica] = long
    case.right.add(f"host {case.replica}/0")


def late_start(case: Case) -> None:
    """The worker comes late to the first step."""
    begins = np.concatenate([m for n, m, _ in case.quiet.graph.groups() if not len(n)])
    begins = begins[case.job.stage[begins] == case.stage]
    case.late_s[begins, 0, case.replica] = 20 * case.rng.choice(FAR) * case.step_s
    case.right.add(f"host {case.replica}/{case.stage}")


def one_collective(case: Case) -> None:
    joint = np.flatnonzero(np.isin(case.job.kind, (GATHER, SCATTER)))
    step = int(case.rng.integers(len(case.job.steps)))
    case.net_s[case.rng.choice(joint), step] += 40 * case.rng.choice(FAR) * case.step_s
    case.right.add(f"step {case.job.steps[step]}")


def whole_stage(case: Case) -> None:
    computes = np.isin(case.job.kind, COMPUTING) & (case.job.stage == case.stage)
    case.net_s[computes] *= case.rng.choice(FACTORS)
    case.right.add(f"stage {case.stage}")


def nothing(case: Case) -> None:
    pass


KINDS = {
    "slow in all steps": everywhere,
    "slow in 6 of 32 steps": in_some_steps,
    "slow in the first 6 of 32": in_the_first_steps,
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
OWN = {"ST": "stage 3", "SE": "stage 1"}  # published: the work of these stages is more


def main(cases: int = 30) -> None:
    jobs = [published_job("ST"), published_job("AR").of_replicas([1, 2, 3]), published_job("SE")]
    print(f"{'planted':<27}{'job':>6}{'right':>8}{'wrong':>7}{'nothing':>9}{'cheap':>7}")
    for number, (kind, plant) in enumerate(KINDS.items()):
        longer, counts, wrong = [], Counter(), Counter()
        for case in range(cases):
            rng = np.random.default_rng([number, case])
            job = jobs[case % len(jobs)]
            spoiled = Case(what_if(exchanged(job, rng)), rng)
            before = spoiled.play().job.step_s.mean()
            plant(spoiled)
            result = spoiled.play()
            longer.append(result.job.step_s.mean() / before)
            names = set(named(result)["name"]) - ({OWN.get(job.name)} - spoiled.right)
            nothing = "nothing" if longer[-1] > 1 / (1 - LEAST) else "cheap"
            word = "right" if names == spoiled.right else "wrong" if names else nothing
            counts[word] += 1
            if word == "wrong":
                wrong[f"{job.name}: {', '.join(sorted(names))}"] += 1
        said = "; ".join(name for name, _ in wrong.most_common(2))
        print(
            f"{kind:<27}{np.median(longer):>6.2f}{counts['right']:>8}{counts['wrong']:>7}"
            f"{counts['nothing']:>9}{counts['cheap']:>7}  {said}",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
