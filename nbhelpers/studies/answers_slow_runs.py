"""Answers of the pages on the slowest runs: where their time went, and what explains it.

Owns the rules: a part is named where its share is shown to be the largest; noise explains a run
where it sums to half of the time lost, or more.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..answers import CANNOT_TELL, NO, YES, Answer
from ..noise.losses import CAUSES, cause_name
from ..statistics import bootstrap_interval, same_epochs
from ..statistics.claims import REPRODUCED, REVERSED, Claim, Evidence, judge
from .account_study import WORDS
from .answers_words import open_answer, ratios_of, some_groups
from .findings import MARGIN
from .worst_losses import LOSSES
from .worst_runs import BOTH, KERNEL, UNDISTURBED

if TYPE_CHECKING:
    from .account_study import AccountStudy
    from .worst_runs import WorstCase

LEAST_SHARE = 0.5  # of the time that a run lost; noise that sums to less cannot be what took it


def lost_time_answer(accounts: "AccountStudy", count: int) -> Answer:
    """To what the slowest runs lost their time.

    Named is the part with the largest share, where its whole interval lies above those of all
    others.

    Parameters
    ----------
    accounts
        The accounts of the traced runs.
    count
        How many of the slowest runs.
    """
    if accounts.account is None:
        why = "The speed of the CPUs was not recorded in enough runs."
        return open_answer(why, figure="account")
    excess = accounts.excess(count).sort_values("share", ascending=False)
    lost_ms, runs = excess["ms"].sum(), len(excess.attrs["runs"])
    seconds = accounts.runs.set_index("run")["seconds"]
    corrected = accounts.account.corrected()
    groups = {"measured": seconds.loc[corrected.index], "at full speed": corrected}
    known: dict[str, Any] = {
        "figure": "account",
        "groups": some_groups(groups),
        "axis": "run time (s)",
        "line": ("slowest run", float(seconds.max())),
    }
    if not lost_ms > 0:
        return open_answer("The slowest runs took no longer than ordinary ones.", **known)
    first, others = excess.iloc[0], excess.iloc[1:]
    ends = [100 * float(first[name]) for name in ("share", "share_low", "share_high")]
    known |= {"value": ends[0], "low": ends[1], "high": ends[2], "unit": "%"}
    known |= {"quantity": f"of the time lost: {WORDS[first['part']]}"}
    known |= {"n": int(excess.attrs["n"]), "n_of": "runs"}
    sentence = (
        f"The {runs} slowest runs lost {lost_ms:,.0f} ms against ordinary ones:"
        f" {first['ms']:,.0f} ms to {WORDS[first['part']]}."
    )
    if not first["share_low"] > others["share_high"].max():
        return open_answer(sentence, **known)
    return Answer(WORDS[first["part"]], sentence, **known)


def noise_answer(delta: pd.DataFrame, traced: pd.DataFrame) -> Answer:
    """Whether the noise of the chosen run sums to half of the time that it lost, or more.

    An event takes no more of a run than it lasts, so that less cannot be what made it slow.

    Parameters
    ----------
    delta
        Of `delta_noise`.
    traced
        Runs table that it was made of.
    """
    seconds, run = float(delta.attrs["seconds"]), delta.attrs["run"]
    noise_ms = delta["duration_ns"].sum() / 1e6
    lost_ms = 1e3 * (seconds - traced["seconds"].mean())
    known: dict[str, Any] = {
        "figure": "timeline",
        "groups": some_groups({"traced runs": traced["seconds"]}),
        "axis": "run time (s)",
        "line": (f"run {run}", seconds),
    }
    if not lost_ms > 0:
        return open_answer(f"Run {run} took no longer than the mean run.", **known)
    low, high = (np.nan, np.nan)
    if len(traced) > 1:
        ends = bootstrap_interval(traced["seconds"], "mean")
        low, high = (noise_ms / max(1e3 * (seconds - end), 1e-9) for end in ends)
    known |= {"quantity": "noise above average over time lost", "unit": "%"}
    known |= {"value": 100 * noise_ms / lost_ms, "low": 100 * low, "high": 100 * high}
    known |= {"n": len(traced), "n_of": "runs"}
    word = YES if low >= LEAST_SHARE else NO if high < LEAST_SHARE else CANNOT_TELL
    return Answer(
        word,
        f"Run {run} took {lost_ms:.0f} ms longer than the mean run; its noise above average sums"
        f" to {noise_ms:.0f} ms.",
        **known,
    )


def worst_answer(runs: pd.DataFrame, cases: "Sequence[WorstCase]", table: pd.DataFrame) -> Answer:
    """What explains the slowest runs, by a replay that makes them as slow again.

    Where the replays are shown to take as long as the anomalies, to within 5 % over all cases, and
    longer than undisturbed runs, the cause that they hold most of is named. Where they are shown
    to take less or more, nothing that was seen explains the runs.

    Parameters
    ----------
    runs
        Finished runs of `worst_campaign`.
    cases
        As there.
    table
        Of `worst_table`.
    """
    replayed = replay_ratios(runs, cases)
    known: dict[str, Any] = {"figure": "excess", "axis": "run time over the slow run's"}
    known |= {"line": ("slow run", 1.0)}
    names = {UNDISTURBED: "undisturbed", KERNEL: "kernel events", LOSSES: "all that was lost"}
    if LOSSES not in set(replayed["what"]):
        names = {UNDISTURBED: "undisturbed", KERNEL: "kernel events", BOTH: "and hypervisor"}
    groups = {name: replayed.loc[replayed["what"] == what, "ratio"] for what, name in names.items()}
    known |= {"groups": some_groups(groups)}
    last = list(names)[-1]
    near, slower = _evidence(replayed, last), _slower(replayed, last)
    as_slow = Claim("the replays take as long as the slow runs", "none", MARGIN)
    more = Claim("the replays take longer than undisturbed runs", "above")
    found, than = judge([(as_slow, near), (more, slower)])
    cause, lost_ms = _largest_cause(table)
    sentence = (
        f"Replays of {names[last]} took {1 + found.effect:.2f} of the time of {len(cases)} slow"
        f" runs; most was lost to {cause} ({lost_ms:,.0f} ms)."
    )
    known |= ratios_of(found, "replayed over slow run")
    if found.verdict == REPRODUCED and than.verdict == REPRODUCED:
        return Answer(cause, sentence, **known)
    if found.verdict == REVERSED:
        return Answer("nothing that was seen", sentence, **known)
    return open_answer(sentence if np.isfinite(found.effect) else "No replay has run.", **known)


def replay_ratios(runs: pd.DataFrame, cases: "Sequence[WorstCase]") -> pd.DataFrame:
    """Each replay's run time, and each undisturbed one's, over the slow run's.

    Returns
    -------
    DataFrame
        `case`, `what` (undisturbed, kernel, kernel and hypervisor, losses), `round`, `ratio`.
    """
    parts = same_epochs(*(part for _, part in runs.groupby("cell")))
    rows = []
    for part in parts:
        what, _, number = part["cell"].iloc[0].rpartition(" ")
        for case in cases:
            if part["cell"].iloc[0] == UNDISTURBED or number == str(case.case):
                rows.append(
                    pd.DataFrame(
                        {
                            "case": case.case,
                            "what": what or UNDISTURBED,
                            "round": part["round"].to_numpy(),
                            "ratio": part["seconds"].to_numpy(float) / case.seconds,
                        }
                    )
                )
    columns = ["case", "what", "round", "ratio"]
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=columns)


def _evidence(replayed: pd.DataFrame, what: str) -> Evidence:
    """Replays over their slow runs; cases weigh the same, rounds were randomised."""
    chosen = replayed[replayed["what"] == what]
    return Evidence(_logs(chosen), chosen["round"].to_numpy(), chosen["case"].to_numpy())


def _slower(replayed: pd.DataFrame, what: str) -> Evidence:
    """Replays over the undisturbed run of their round."""
    chosen = replayed[replayed["what"] == what]
    calm = replayed[replayed["what"] == UNDISTURBED]
    both = chosen.merge(calm, on=["case", "round"], suffixes=("", "_calm"))
    logs = np.log(both["ratio"].to_numpy(float) / both["ratio_calm"].to_numpy(float))
    return Evidence(logs, both["round"].to_numpy(), both["case"].to_numpy())


def _logs(chosen: pd.DataFrame) -> np.ndarray:
    """The logarithm of each case's mean ratio, and what each run adds to that mean."""
    means = chosen.groupby("case")["ratio"].transform("mean")
    return (np.log(means.astype(float)) + chosen["ratio"] / means - 1).to_numpy(float)


def _largest_cause(table: pd.DataFrame) -> tuple[str, float]:
    """The cause to which the slow runs lost most, with its ms."""
    if "slow_core_lost_ms" in table.columns:
        parts = {cause_name(name): f"{name}_lost_ms" for name in (*CAUSES, "unexplained")}
    else:
        parts = {"kernel events": "kernel_ms", "the hypervisor": "hypervisor_ms"}
    lost_ms = {name: float(table[column].sum()) for name, column in parts.items()}
    cause = max(lost_ms, key=lost_ms.__getitem__)
    return cause, lost_ms[cause]
