"""The answer to the title of the study's page: which mitigation helps against noise, and its price.

Owns its words; the verdicts and numbers are those of `findings_table`.
"""

import numpy as np
import pandas as pd

from ...statistics.claims import (
    INCONCLUSIVE,
    NONE,
    NOT_MEASURABLE,
    REPRODUCED,
    REVERSED,
    p_text,
)

# of each mitigation the configurations or models that are compared
_COMPARED = {
    "housekeeping": "RmHK / Rm",
    "pinning": "TP / Rm",
    "SYCL in place of OpenMP": "SYCL / OpenMP",
}
_HELPS, _NO_HELP = "helps", "does not help"
_OUTCOMES = {REPRODUCED: _HELPS, REVERSED: "makes it worse", NONE: _NO_HELP}
_NO_GAIN_CLAIMED = {REPRODUCED: _NO_HELP, REVERSED: _HELPS}  # the paper says that it does not help


def mitigation_answer(judged: pd.DataFrame) -> str:
    """Which mitigation makes the slowdown under heavy replayed noise smaller, by the verdicts.

    Parameters
    ----------
    judged
        Of `findings_table`, with the findings of `persson_findings`.

    Examples
    --------
    >>> names = ["effect_percent", "low_percent", "high_percent", "p_corrected", "rounds"]
    >>> judged = pd.DataFrame(
    ...     [
    ...         ("housekeeping helps (slowdown RmHK / Rm)", "reproduced", -15, -19, -11, 0.0, 8),
    ...         ("pinning does not (slowdown TP / Rm)", "inconclusive", 2, -3, 7, 1.0, 8),
    ...         ("SYCL does (slowdown SYCL / OpenMP)", "not measurable here", *4 * [None], 0),
    ...         ("in average noise (N-body, RmHK / Rm)", "reproduced", 84, 68, 100, 0.0, 8),
    ...     ],
    ...     columns=["finding", "verdict", *names],
    ... ).assign(why=["", "about 18 rounds would settle it", "no SYCL", ""])
    >>> judged["run_time_percent"] = [44.2, None, None, None]
    >>> judged["longer_cells"] = "6 of 6"
    >>> print(mitigation_answer(judged))  # doctest: +NORMALIZE_WHITESPACE
    Under heavy replayed noise **housekeeping** helps (slowdown -15.0 %, 95 % interval -19.0 to
    -11.0, p < 0.001 corrected, n = 8 rounds; the run time itself +44.2 %, longer in 6 of 6 cells);
    inconclusive: pinning (slowdown +2.0 %, 95 % interval -3.0 to +7.0, p = 1.000 corrected, n = 8
    rounds; about 18 rounds would settle it); not measurable here: SYCL in place of OpenMP (no
    SYCL). In average noise housekeeping changes the run time of N-body by +84.0 % (n = 8 rounds).
    """
    rows = {
        name: judged[judged["finding"].str.endswith(f"(slowdown {pair})")].iloc[0]
        for name, pair in _COMPARED.items()
    }
    outcomes = {name: _outcome(name, row) for name, row in rows.items()}
    helping = [name for name in rows if outcomes[name] == _HELPS]
    others = "; ".join(
        f"{outcome}: " + ", ".join(f"{name} ({_change(rows[name])})" for name in names)
        for outcome, names in _grouped(outcomes).items()
        if outcome != _HELPS
    )
    if not helping:
        is_open = set(outcomes.values()) <= {INCONCLUSIVE, NOT_MEASURABLE}
        begin = (
            "Cannot tell here" if is_open else "None is shown to help under heavy replayed noise"
        )
        return f"{begin}: {others}."
    shown = " and ".join(f"**{name}** helps ({_change(rows[name])})" for name in helping)
    rest = f"; {others}" if others else ""
    prices = "".join(_price(judged, name) for name in helping)
    return f"Under heavy replayed noise {shown}{rest}.{prices}"


def _outcome(name: str, row: pd.Series) -> str:
    words = _NO_GAIN_CLAIMED if name == "pinning" else _OUTCOMES
    return words.get(row["verdict"], row["verdict"])


def _grouped(outcomes: dict[str, str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, outcome in outcomes.items():
        groups.setdefault(outcome, []).append(name)
    return groups


def _change(row: pd.Series) -> str:
    """The change of the slowdown with its interval, p and count, and the reason of no verdict."""
    parts = []
    if pd.notna(row["low_percent"]):
        p_value = f", p {p_text(row['p_corrected'])} corrected" * pd.notna(row["p_corrected"])
        parts.append(
            f"slowdown {row['effect_percent']:+.1f} %, 95 % interval {row['low_percent']:+.1f} to"
            f" {row['high_percent']:+.1f}{p_value}, n = {row['rounds']} rounds"
        )
        if pd.notna(row["run_time_percent"]):
            longer = f", longer in {row['longer_cells']} cells"
            parts.append(f"the run time itself {row['run_time_percent']:+.1f} %{longer}")
    return "; ".join([*parts, row["why"]] if row["why"] else parts)


def _price(judged: pd.DataFrame, name: str) -> str:
    """What a mitigation does to the run times of programs in average noise."""
    of_programs = judged["finding"].str.extract(rf"average noise \((\S+), {_COMPARED[name]}\)$")[0]
    measured = judged[of_programs.notna() & np.isfinite(judged["effect_percent"].astype(float))]
    changes = ", ".join(
        f"{of_programs[row.Index]} by {row.effect_percent:+.1f} % (n = {row.rounds} rounds)"
        for row in measured.itertuples()
    )
    return f" In average noise {name} changes the run time of {changes}." if changes else ""
