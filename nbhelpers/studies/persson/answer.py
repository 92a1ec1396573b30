"""The answer to the title of the study's page: which mitigation helps against noise, and its price.

Owns its words; the numbers are those of `findings_table`.
"""

import pandas as pd

# of each mitigation the configurations or models that are compared
_COMPARED = {
    "housekeeping": "RmHK / Rm",
    "pinning": "TP / Rm",
    "SYCL in place of OpenMP": "SYCL / OpenMP",
}
_SIGNIFICANT = 0.05


def mitigation_answer(judged: pd.DataFrame) -> str:
    """Which mitigation is shown to make the slowdown under heavy replayed noise smaller.

    It is shown where the whole interval lies below 0 and the corrected p below 0.05. Where the
    interval of the trimmed mean says otherwise, the answer says so.

    Parameters
    ----------
    judged
        Of `findings_table`, with the findings of `persson_findings`; p is corrected for all of
        them.

    Examples
    --------
    >>> names = ["effect_percent", "low_percent", "high_percent", "p_holm", "pairs", "why"]
    >>> judged = pd.DataFrame(
    ...     [
    ...         ("housekeeping helps (slowdown RmHK / Rm)", -15, -19, -11, 0.0, 96, ""),
    ...         ("pinning does not (slowdown TP / Rm)", 2, -3, 7, 1.0, 96, ""),
    ...         ("SYCL does (slowdown SYCL / OpenMP)", None, None, None, None, 0, "no SYCL"),
    ...         ("in average noise (N-body, RmHK / Rm)", 84, 68, 100, 0.0, 16, ""),
    ...     ],
    ...     columns=["finding", *names],
    ... )
    >>> judged["trimmed_percent"] = judged["effect_percent"]
    >>> judged["trimmed_low_percent"] = judged["low_percent"]
    >>> judged["trimmed_high_percent"] = judged["high_percent"]
    >>> print(mitigation_answer(judged))  # doctest: +NORMALIZE_WHITESPACE
    Under heavy replayed noise **housekeeping** helps (slowdown -15.0 %, 95 % interval -19.0 to
    -11.0, p < 0.001 by Holm, n = 96 pairs); not shown to help: pinning (slowdown +2.0 %, 95 %
    interval -3.0 to +7.0, p = 1.000 by Holm, n = 96 pairs), SYCL in place of OpenMP (no
    SYCL). In average noise housekeeping changes the run time of N-body by +84.0 % (n = 16 pairs).
    """
    rows = {
        name: judged[judged["finding"].str.endswith(f"(slowdown {pair})")].iloc[0]
        for name, pair in _COMPARED.items()
    }
    helping = [name for name, row in rows.items() if _helps(row)]
    others = ", ".join(f"{name} ({_change(rows[name])})" for name in rows if name not in helping)
    otherwise = _otherwise(rows)
    if not helping:
        is_measured = any(pd.notna(row["effect_percent"]) for row in rows.values())
        verdict = (
            "None is shown to help under heavy replayed noise"
            if is_measured
            else "Cannot tell here"
        )
        return f"{verdict}: {others}.{otherwise}"
    shown = " and ".join(f"**{name}** helps ({_change(rows[name])})" for name in helping)
    rest = f"; not shown to help: {others}" if others else ""
    prices = "".join(_price(judged, name) for name in helping)
    return f"Under heavy replayed noise {shown}{rest}.{otherwise}{prices}"


def _helps(row: pd.Series) -> bool:
    return row["high_percent"] < 0 and row["p_holm"] < _SIGNIFICANT


def _otherwise(rows: dict[str, pd.Series]) -> str:
    """Where of the intervals of mean and trimmed mean only one lies below 0."""
    others = [
        f"{name} is {'' if row['trimmed_high_percent'] < 0 else 'not '}shown to help"
        f" ({row['trimmed_percent']:+.1f} %, {row['trimmed_low_percent']:+.1f} to"
        f" {row['trimmed_high_percent']:+.1f})"
        for name, row in rows.items()
        if (row["trimmed_high_percent"] < 0) != (row["high_percent"] < 0)
    ]
    return f" By the interval of the trimmed mean {', '.join(others)}." if others else ""


def _change(row: pd.Series) -> str:
    """The change of the slowdown with its 95 % interval, corrected p and count; or why none."""
    if pd.isna(row["effect_percent"]):
        return str(row["why"])
    p_value = f"p = {row['p_holm']:.3f}" if row["p_holm"] >= 0.001 else "p < 0.001"
    return (
        f"slowdown {row['effect_percent']:+.1f} %, 95 % interval {row['low_percent']:+.1f} to"
        f" {row['high_percent']:+.1f}, {p_value} by Holm, n = {row['pairs']} pairs"
    )


def _price(judged: pd.DataFrame, name: str) -> str:
    """What a mitigation does to the run times of programs in average noise."""
    of_programs = judged["finding"].str.extract(rf"average noise \((\S+), {_COMPARED[name]}\)$")[0]
    measured = judged[of_programs.notna() & judged["effect_percent"].notna()]
    changes = ", ".join(
        f"{of_programs[row.Index]} by {row.effect_percent:+.1f} % (n = {row.pairs} pairs)"
        for row in measured.itertuples()
    )
    return f" In average noise {name} changes the run time of {changes}." if changes else ""
