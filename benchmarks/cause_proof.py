"""Does the autopilot find the factor of a planted cause, confirm what helps against it, and prove
that it is the cause?

    python benchmarks/cause_proof.py [CAUSE ...] [--budget 40] [--proof 12] [--dose NAME] [--seed 1]

Of each cause of the bench a program is disturbed in half of its runs, at random and without a word
of it; the other half has the sham. The autopilot gets the program and nothing else. A line a cause:
the factor that is suspected, whether it is one of the cause's own, what is confirmed, and the
verdict of the proof; then how many of those with a remedy were right. About budget + proof seconds
a cause.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from noisebook_known_causes.campaigns import _dose, _place, _plant
from noisebook_known_causes.catalogue import known_cause
from noisebook_known_causes.planting import Truth
from noisebook_known_causes.victims import victim_files

from nbhelpers.errors import NoisebookError
from nbhelpers.measurement import Attachment
from nbhelpers.mitigation import autopilot, explain_factor, mitigations
from nbhelpers.statistics import stopping
from nbhelpers.studies.cause_proof import CAUSE, prove_cause
from nbhelpers.workloads import Workload

CAUSES = (
    "nice-competitor",
    "tmpfs-storm",
    "profiler",
    "memory-limit",
    "two-compilers",
    "slow-path",
    "cpu-hog",
    "returned-memory",
    "small-pages",
    "dropped-cache",
    "hash-collisions",
    "timer-storm",
)
SHARE = 0.5  # of the runs that are disturbed


class Sometimes(Attachment):
    """One of two attachments, by a draw for each run."""

    follows_region = True

    def __init__(self, disturbed: Sequence[Attachment], sham: Sequence[Attachment], seed: int):
        self._either = Truth("", disturbed), Truth("", sham)
        self._draw, self._now = random.Random(seed), self._either[1]
        self.identity = f"sometimes {self._either[0].identity}"

    def before(self, workload: Workload) -> None:
        self._now = self._either[self._draw.random() >= SHARE]
        self._now.before(workload)

    def armed(self, pid: int) -> None:
        self._now.armed(pid)

    def released(self, t0_ns: int) -> None:
        self._now.released(t0_ns)

    def ended(self, pid: int) -> None:
        self._now.ended(pid)

    def after(self, run: dict) -> dict:
        """Nothing of the truth, only a failure."""
        found = self._now.after(run)
        return {name: found[name] for name in ("status", "message") if name in found}

    def close(self) -> None:
        for one in self._either:
            one.close()


def either(one: Workload, other: Workload) -> Workload:
    """A program that is one of two, by a draw of its own; the same, where they differ in nothing
    that a command says.
    """
    if one == other:
        return one
    words = [" ".join(f"'{word}'" for word in work.command) for work in (one, other)]
    variables = [
        " ".join(f"{name}='{value}'" for name, value in work.env if (name, value) not in one.env)
        for work in (one, other)
    ]
    draw = 'if [ "$(od -An -N1 -tu1 /dev/urandom)" -lt 128 ]; then'
    script = f"{draw} exec env {variables[1]} {words[1]}; else exec env {words[0]}; fi"
    return replace(one, command=("/bin/sh", "-c", script))


def study(name: str, options: argparse.Namespace, folder: Path) -> tuple[bool, bool, bool]:
    """Whether the factor is right, is confirmed, and has a remedy that can be tried here."""
    cause = known_cause(name)
    dose = _dose(cause, options.dose if options.dose in cause.doses else None)
    at = _place(dose)
    planted = _plant(cause, at)
    treated = at.workload
    for part in planted:
        treated = part.treat(treated)
    attachments = (
        *victim_files(dose.victim),
        Sometimes(
            [one for part in planted for one in part.attachments],
            [one for part in planted for one in part.sham],
            options.seed,
        ),
    )
    workload = either(at.workload, treated)
    began = time.monotonic()
    report = autopilot(
        workload,
        options.budget,
        folder=folder / "autopilot",
        rule=stopping.Count(options.runs),
        seed=options.seed,
        attachments=attachments,
    )
    proof = prove_cause(
        report, workload, folder, options.proof, options.seed, attachments=attachments
    )
    named = proof.factor or "nothing"
    right = named in cause.factors
    confirmed = right and proof.verdict == CAUSE
    remedy = any(
        mitigations()[one].automated and mitigations()[one].possible(workload)
        for factor in cause.factors
        for one in explain_factor(factor).mitigations
    )
    print(
        f"{name} ({dose.name}): {named}{'' if right else ' (not its own)'}, found:"
        f" {', '.join(report.factors.index[:4])}; confirmed: {', '.join(report.helped) or 'none'};"
        f" tried: {', '.join(f'{k} {v}' for k, v in report.tried['verdict'].items()) or 'none'};"
        f" {time.monotonic() - began:.0f} s\n    {proof.sentence}",
        flush=True,
    )
    return right, confirmed, remedy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--budget", type=float, default=40.0, help="seconds of the autopilot")
    parser.add_argument("--proof", type=float, default=12.0, help="seconds of the injection")
    parser.add_argument("--runs", type=int, default=80, help="of the first measurement")
    parser.add_argument("--dose", default="strong")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    results = {}
    for wanted in chosen.names or CAUSES:
        with tempfile.TemporaryDirectory() as place:
            try:
                results[wanted] = study(wanted, chosen, Path(place))
            except NoisebookError as error:
                print(f"{wanted}: {error.what} ({error.why or error.fix})", flush=True)
    with_remedy = [one for one in results.values() if one[2]]
    print(
        f"factor right {sum(one[0] for one in results.values())} of {len(results)}; of those with"
        f" a remedy here, right and proven {sum(one[1] for one in with_remedy)} of"
        f" {len(with_remedy)}"
    )
