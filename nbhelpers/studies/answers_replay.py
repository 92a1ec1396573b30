"""Answers of the pages on replays: whether a replay costs what the recorded run did.

Owns the rule: within 5 % of the recorded run, and slower than the undisturbed program, judged
together.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..answers import CANNOT_TELL, NO, YES, Answer
from ..statistics import same_epochs
from ..statistics.claims import (
    NOT_MEASURABLE,
    REPRODUCED,
    REVERSED,
    Claim,
    Evidence,
    Judgement,
    judge,
)
from ..statistics.contrast import interval_evidence, mean_contrast, over_number
from ..statistics.intervals import Interval
from ..statistics.robust import FEWEST_TO_TRIM, trimmed_interval, trimmed_ratio
from .answers_words import open_answer, place_of, ratios_of, some_groups
from .findings import MARGIN

if TYPE_CHECKING:
    from collections.abc import Sequence

_AUTHORS = "Persson et al. 2025"
_WITHIN = f"{100 * MARGIN:.0f} %"


def replay_answer(
    anomaly_seconds: float,
    injected: pd.DataFrame,
    baseline: pd.DataFrame,
    published: pd.DataFrame,
) -> Answer:
    """Whether the replays are as slow as the anomaly.

    They are where replayed / anomaly is shown to be within 5 % of 1, and the replays to be slower
    than the undisturbed program; both are judged together.

    Parameters
    ----------
    anomaly_seconds
        Run time of the run that is replayed.
    injected, baseline
        Finished runs with and without the replay.
    published
        The published table `persson2025-table7`.
    """
    known: dict[str, Any] = {
        "figure": "injected",
        "groups": some_groups(
            {"undisturbed": baseline["seconds"], "replayed": injected["seconds"]}
        ),
        "axis": "run time (s)",
        "line": ("recorded run", float(anomaly_seconds)),
        "published": published_error(published),
    }
    if min(len(injected), len(baseline)) < 2:
        return open_answer("Too few replays have finished.", **known)
    near, slower = _mean_evidence(anomaly_seconds, injected, baseline)
    word, found = _as_slow(near, slower)
    return Answer(
        word,
        f"The replay took {1 + found.effect:.2f} of the recorded {anomaly_seconds:.3f} s;"
        f" undisturbed runs took {baseline['seconds'].mean() / anomaly_seconds:.2f} of it.",
        **ratios_of(found, "replayed over recorded run time"),
        **known,
    )


def published_error(published: pd.DataFrame) -> str:
    """How far the published replays were off, on average."""
    errors = published["accuracy_percent"]
    place = place_of(published, _AUTHORS)
    return f"{errors.mean():.2f} % mean error ({place})"


def trimmed_replay_sentences(
    anomaly_seconds: float, injected: pd.DataFrame, baseline: pd.DataFrame
) -> list[str]:
    """What trimmed means say of the replays, where that is another answer; else nothing.

    Parameters
    ----------
    anomaly_seconds, injected, baseline
        As of `replay_answer`.
    """
    if min(len(injected), len(baseline)) < FEWEST_TO_TRIM:
        return []
    word, _ = _as_slow(*_mean_evidence(anomaly_seconds, injected, baseline))
    other, found = _as_slow(*_trimmed_evidence(anomaly_seconds, injected, baseline))
    if other == word:
        return []
    return [
        f"By the trimmed mean the answer is {other}: {1 + found.effect:.3f} ({1 + found.low:.3f} to"
        f" {1 + found.high:.3f}, n = {found.units} {found.unit})."
    ]


def _as_slow(near: Evidence, slower: Evidence) -> tuple[str, Judgement]:
    """Whether replays are as slow as what they replay, and not the undisturbed program as well."""
    as_slow = Claim("the replays take as long as the recorded run", "none", MARGIN)
    more = Claim("the replays are slower than undisturbed runs", "above")
    found, than = judge([(as_slow, near), (more, slower)])
    if found.verdict == REPRODUCED and than.verdict == REPRODUCED:
        return YES, found
    return (NO if found.verdict == REVERSED else CANNOT_TELL), found


def _mean_evidence(
    anomaly_seconds: float, injected: pd.DataFrame, baseline: pd.DataFrame
) -> tuple[Evidence, Evidence]:
    """Means: of the replays over the anomaly, and over the undisturbed runs."""
    replays, undisturbed = (runs["seconds"].to_numpy(float) for runs in (injected, baseline))
    slower = mean_contrast(undisturbed, replays, *_shared_rounds(baseline, injected))
    return over_number(replays, anomaly_seconds, "replays"), slower


def _trimmed_evidence(
    anomaly_seconds: float, injected: pd.DataFrame, baseline: pd.DataFrame
) -> tuple[Evidence, Evidence]:
    """The same of trimmed means."""
    found = trimmed_interval(injected["seconds"])
    value, low, high = (bound / anomaly_seconds for bound in found[:3])
    near = interval_evidence(Interval(value, low, high, found.size), found.size, "replays")
    slower = trimmed_ratio([(injected, baseline)])
    return near, interval_evidence(slower, slower.size, "runs")


def _shared_rounds(
    baseline: pd.DataFrame, injected: pd.DataFrame
) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
    """The rounds of both, where each round holds a run of either."""
    if "round" not in baseline or "round" not in injected:
        return None, None
    rounds = baseline["round"].to_numpy(), injected["round"].to_numpy()
    return rounds if set(rounds[0]) == set(rounds[1]) else (None, None)


def planted_answer(runs: pd.DataFrame, published: pd.DataFrame) -> Answer:
    """Whether replays of planted disturbances cost what the disturbances did.

    They do where replayed / disturbed, over all cases, is shown to be within 5 % of 1, no case is
    shown to be outside, and the disturbed runs to be slower than undisturbed ones. They do not
    where one is shown to be outside. All are judged together.

    Parameters
    ----------
    runs
        Finished runs of `planted_campaign`.
    published
        The published table `persson2025-table7`.
    """
    pairs = planted_pairs(runs)
    known: dict[str, Any] = {"figure": "planted", "published": published_error(published)}
    if pairs.empty:
        return open_answer("No replay has finished.", **known)
    cases = [pairs[pairs["case"] == case] for case in pairs["case"].unique()]
    as_long = Claim("the replay takes as long as what it replays", "none", MARGIN)
    slower = Claim("disturbed runs are slower than undisturbed ones", "above")
    claims = [(as_long, _paired(pairs, "replayed"))]
    claims += [(slower, _paired(pairs, "baseline"))]
    claims += [(as_long, _paired(case, "replayed")) for case in cases]
    whole, planted, *each = judge(claims)
    errors = [abs(one.effect) for one in each]
    known |= _farthest(cases, errors)
    if not np.isfinite(errors).all():
        return open_answer("Too few rounds have finished.", **known)
    return Answer(
        _planted_word(whole, planted, each),
        f"Over {len(cases)} planted disturbances the replay's mean time was off by"
        f" {100 * np.mean(errors):.1f} % on average and {100 * np.max(errors):.1f} % at most.",
        **ratios_of(whole, "replayed over disturbed run time"),
        **known,
    )


def _planted_word(whole: Judgement, planted: Judgement, each: "Sequence[Judgement]") -> str:
    if REVERSED in {one.verdict for one in (whole, *each)}:
        return NO
    shown = whole.verdict == REPRODUCED and planted.verdict == REPRODUCED
    measured = NOT_MEASURABLE not in {one.verdict for one in each}
    return YES if shown and measured else CANNOT_TELL


def planted_pairs(runs: pd.DataFrame) -> pd.DataFrame:
    """The three runs of each case and round: `case`, `round`, `disturbed`, `replayed`,
    `baseline` (seconds); only rounds that hold all three.
    """
    numbers = [cell.split()[1] for cell in runs["cell"].unique() if cell.startswith("disturbed")]
    parts = []
    for case in sorted(map(int, numbers)):
        cells = (f"disturbed {case}", f"replayed {case}", "undisturbed")
        tables = same_epochs(*(runs[runs["cell"] == cell] for cell in cells))
        columns = [table.groupby("round")["seconds"].mean() for table in tables]
        names = ("disturbed", "replayed", "baseline")
        both = pd.concat(dict(zip(names, columns, strict=True)), axis=1, join="inner")
        parts.append(both.reset_index().assign(case=case))
    columns_ = ["case", "round", "disturbed", "replayed", "baseline"]
    return pd.concat(parts)[columns_] if parts else pd.DataFrame(columns=columns_)


def _paired(pairs: pd.DataFrame, name: str) -> Evidence:
    """The ratio of means of each case: replayed / disturbed, or disturbed / baseline."""
    after, before = ("disturbed", name) if name == "baseline" else (name, "disturbed")
    means = pairs.groupby("case")[[after, before]].transform("mean")
    moves = pairs[after] / means[after] - pairs[before] / means[before]
    effects = np.log((means[after] / means[before]).astype(float)) + moves
    return Evidence(effects.to_numpy(float), pairs["round"].to_numpy(), pairs["case"].to_numpy())


def _farthest(cases: list[pd.DataFrame], errors: list[float]) -> dict[str, Any]:
    """The case whose replay is farthest off, for the small figure."""
    case = cases[int(np.argmax(np.nan_to_num(errors)))]
    names = {"baseline": "undisturbed", "disturbed": "disturbed", "replayed": "replayed"}
    groups = {name: case[column] for column, name in names.items()}
    return {"groups": some_groups(groups), "axis": "run time (s), farthest case"}
