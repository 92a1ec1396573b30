"""Accumulated slow-down of real ranks: slow-down less the net injected noise (Ferreira et al. 2008,
section 5.2). Amplification when it is positive, absorption when it is negative.

Owns the evidence, the table, what the paper claims, and the sentences.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd

from ...empty import because, why_empty
from ...statistics.claims import (
    INCONCLUSIVE,
    NOT_MEASURABLE,
    REPRODUCED,
    REVERSED,
    Claim,
    Evidence,
    Judgement,
    judge,
)
from ...statistics.claims import NONE as NO_EFFECT
from ...statistics.robust import FEWEST_TO_TRIM, trimmed_interval
from .ranks_at_work import NONE

# Which application a program stands for, and what the paper says of it on up to ten thousand nodes
# (sections 5.2, 5.3.1 and 8.1). On a few ranks most of it is not to be expected; the verdict says
# what is there all the same.
_ABOVE, _NOT_ABOVE = "above", "not above"
CLAIMS: Mapping[tuple[str, str], tuple[str, str]] = MappingProxyType(
    {
        ("halo2d", "timer"): (_ABOVE, "POP amplifies: nearly 30 % at scale"),
        ("halo2d", "between"): (_ABOVE, "POP is sensitive to a broad range of patterns"),
        ("halo2d", "daemon"): (_ABOVE, "POP amplifies: 1900 % at 2500 nodes"),
        ("adaptive", "timer"): (_NOT_ABOVE, "SAGE: no impact above 25 Hz"),
        ("adaptive", "between"): (_NOT_ABOVE, "SAGE: no impact above 25 Hz"),
        ("adaptive", "daemon"): (_ABOVE, "SAGE amplifies: over 50 %"),
        ("halo3d", "timer"): (_NOT_ABOVE, "CTH: no impact above 25 Hz"),
        ("halo3d", "between"): (_NOT_ABOVE, "CTH: no impact above 25 Hz"),
        ("halo3d", "daemon"): (_ABOVE, "CTH amplifies infrequent noise: 15 %"),
    }
)
_AMPLIFIED = Claim("the ranks take longer than the noise of their own CPU explains", _ABOVE)
_EFFECTS = {
    REPRODUCED: "amplified",
    REVERSED: "absorbed",
    NO_EFFECT: "neither",
    INCONCLUSIVE: "open",
    NOT_MEASURABLE: "open",
}
_TRIMMED = ("accumulated_trimmed", "accumulated_trimmed_low", "accumulated_trimmed_high")
COLUMNS = (
    *("program", "ranks", "noise", "rounds", "slowdown", "injected_share"),
    *("accumulated", "accumulated_low", "accumulated_high"),
    *_TRIMMED,
    *("most_possible", "effect"),
)


def paired(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs under noise, each beside the undisturbed run of its program in the same round.

    Parameters
    ----------
    runs
        Of `rank_runs`.

    Returns
    -------
    DataFrame
        `program`, `ranks`, `noise`, `round`, `seconds`, `quiet_seconds`, `injected_s` (net noise
        that each CPU was given within the region, by the injector's log), `cpus` with noise, and
        `log_ratio` of (seconds − injected) to quiet seconds.
    """
    keys = ["program", "ranks", "round"]
    quiet = runs[runs["noise"] == NONE].groupby(keys)["seconds"].mean().rename("quiet_seconds")
    noisy = runs[runs["noise"] != NONE].merge(quiet.reset_index(), on=keys)
    if noisy.empty:
        return noisy.assign(injected_s=[], cpus=[], log_ratio=[])
    injected_s = noisy["net_noise_ns"] * 1e-9
    left = (noisy["seconds"] - injected_s) / noisy["quiet_seconds"]
    return noisy[[*keys, "noise", "seconds", "quiet_seconds"]].assign(
        injected_s=injected_s, cpus=noisy["noisy_cpus"], log_ratio=np.log(left)
    )


def evidence_of(pairs: pd.DataFrame) -> Evidence:
    """Of pairs of one program, number of ranks and noise; the round is what was randomised."""
    return Evidence(pairs["log_ratio"].to_numpy(float), pairs["round"].to_numpy())


def effects_of(claim: Claim, evidence: Sequence[Evidence]) -> list[str]:
    """Amplified (the claim holds), absorbed (its reverse does), neither or open; of rows that are
    judged together.
    """
    return [_EFFECTS[one.verdict] for one in judge([(claim, one) for one in evidence])]


def accumulated_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Accumulated slow-down of each program under each signature.

    Returns
    -------
    DataFrame
        `slowdown` and `injected_share` (of the undisturbed time; means of logarithms and of
        shares), `accumulated` with its 95 % interval over rounds (Student, pairs within a round),
        the same as a trimmed mean (`accumulated_trimmed`), `most_possible` (if every rank lost the
        noise of all the other CPUs, too) and `effect`: amplified, absorbed, neither (within 1 %)
        or open, all rows judged together, by the mean.
    """
    pairs, rows, evidence = paired(runs), [], []
    for (program, ranks, noise), group in pairs.groupby(["program", "ranks", "noise"]):
        evidence.append(evidence_of(group))
        estimate = evidence[-1].estimate
        low, high = np.expm1(estimate.interval())
        share = float((group["injected_s"] / group["quiet_seconds"]).mean())
        others = int(group["cpus"].max()) - 1
        rows.append(
            {
                "program": program,
                "ranks": ranks,
                "noise": noise,
                "rounds": estimate.units,
                "slowdown": np.exp(np.log(group["seconds"] / group["quiet_seconds"]).mean()) - 1,
                "injected_share": share,
                "accumulated": np.expm1(estimate.mean),
                "accumulated_low": low,
                "accumulated_high": high,
                **_trimmed(group),
                "most_possible": 0.0 if "co-scheduled" in noise else share * others,
            }
        )
    effects = effects_of(_AMPLIFIED, evidence)
    table = pd.DataFrame(rows, columns=list(COLUMNS[:-1])).assign(effect=effects)
    return because(table, why_empty(runs) or "no run under noise has finished")


def _trimmed(pairs: pd.DataFrame) -> dict[str, float]:
    """The trimmed mean over rounds with its interval; NaN of fewer rounds than can be trimmed."""
    ratios, found = pairs.groupby("round")["log_ratio"].mean(), [np.nan] * 3
    if len(ratios) >= FEWEST_TO_TRIM:
        found = list(np.expm1(trimmed_interval(ratios.to_numpy())[:3]))
    return dict(zip(_TRIMMED, found, strict=True))


def judged(runs: pd.DataFrame) -> list[tuple[str, int, str, Judgement]]:
    """What the paper claims of each program and signature that was run, judged together.

    Returns
    -------
    list
        (program, ranks, noise, judgement).
    """
    pairs = paired(runs)
    groups = [
        (key, group)
        for key, group in pairs.groupby(["program", "ranks", "noise"])
        if (key[0], key[2]) in CLAIMS
    ]
    claims = [(_claim(program, noise), evidence_of(group)) for (program, _, noise), group in groups]
    return [(*key, one) for (key, _), one in zip(groups, judge(claims), strict=True)]


def _claim(program: str, noise: str) -> Claim:
    direction, text = CLAIMS[program, noise]
    return Claim(text, direction, source="Ferreira et al. 2008, sections 5.2 and 5.3.1")


def verdicts_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a claim: `program`, `ranks`, `noise`, `claim`, `verdict`, `accumulated` with its
    interval (`accumulated_low`, `accumulated_high`), `rounds`, `why`.
    """
    rows = [
        {
            "program": program,
            "ranks": ranks,
            "noise": noise,
            "claim": one.claim.text,
            "verdict": one.verdict,
            "accumulated": one.effect,
            "accumulated_low": one.low,
            "accumulated_high": one.high,
            "rounds": one.units,
            "why": one.why,
        }
        for program, ranks, noise, one in judged(runs)
    ]
    columns = ("program", "ranks", "noise", "claim", "verdict")
    values = ["accumulated", "accumulated_low", "accumulated_high"]
    table = pd.DataFrame(rows, columns=[*columns, *values, "rounds", "why"])
    return because(table, why_empty(runs) or "no run of which the paper claims something")


def case_sentences(table: pd.DataFrame) -> Sequence[str]:
    """How many cases amplify the noise, and the largest accumulated slow-down.

    Parameters
    ----------
    table
        Of `accumulated_table`.
    """
    if table.empty:
        return [f"{why_empty(table).capitalize()}."]
    counts = table["effect"].value_counts()
    amplified = int(counts.get("amplified", 0))
    top = table.loc[table["accumulated"].idxmax()]
    low, high = top["accumulated_low"], top["accumulated_high"]
    return [
        f"**{amplified} of {len(table)}** cases amplify the noise, "
        f"{counts.get('absorbed', 0)} absorb it, {counts.get('neither', 0)} do neither and "
        f"{counts.get('open', 0)} are open (all judged together). The largest accumulated slow-down"
        f" is {top['accumulated']:+.1%} ({low:+.1%} to {high:+.1%}, n = {top['rounds']} rounds):"
        f" {top['program']} on {top['ranks']} ranks, {top['noise']}.{_few_decide(table)}"
    ]


def _few_decide(table: pd.DataFrame) -> str:
    """In how many cases the mean lies outside the trimmed mean's interval."""
    mean, low, high = (
        table[name]
        for name in ("accumulated", "accumulated_trimmed_low", "accumulated_trimmed_high")
    )
    decided = int(((mean < low) | (mean > high)).sum())
    return (
        f" In {decided} of {len(table)} cases the mean lies outside the interval of the trimmed"
        " mean: few rounds decide it."
        if decided
        else ""
    )
