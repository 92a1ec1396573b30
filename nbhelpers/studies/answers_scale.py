"""Answers of the pages on many ranks: real ones, simulated ones, this machine's noise, workers.

Owns their rules; the effects and intervals are those of the pages' tables.
"""

import math
from typing import Any

import pandas as pd

from ..answers import CANNOT_TELL, LONGEST, NO, YES, Answer
from ..empty import why_empty
from ..statistics.claims import MARGIN
from .answers_words import open_answer, some_groups
from .ferreira.accumulated import CLAIMS
from .stragglers.jobs import NOBODY

_FERREIRA = "Ferreira et al. 2008, sections 5.2 and 5.3.1"
MANY = 10_000  # ranks of which the page says a number


def real_ranks_answer(table: pd.DataFrame) -> Answer:
    """Whether real ranks lose more than the noise that each CPU is given.

    Yes where one case is shown to amplify, all being judged together; no where all are shown not
    to.

    Parameters
    ----------
    table
        Of `accumulated_table`.
    """
    if table.empty:
        return open_answer(f"{why_empty(table).capitalize()}.", figure="real-ranks")
    amplified = table[table["effect"] == "amplified"]
    settled = table["effect"].isin(["neither", "absorbed"]).all()
    word = YES if len(amplified) else NO if settled else CANNOT_TELL
    top = (amplified if len(amplified) else table).sort_values("accumulated").iloc[-1]
    value, low, high = (100 * float(top[f"accumulated{end}"]) for end in ("", "_low", "_high"))
    noises = table.assign(percent=100 * table["accumulated"]).groupby("noise", sort=False)
    groups = {str(noise): part["percent"] for noise, part in noises if "," not in str(noise)}
    return Answer(
        word,
        f"{len(amplified)} of {len(table)} cases amplify the noise,"
        f" {int((table['effect'] == 'open').sum())} are open; {top['program']} on {top['ranks']}"
        f" ranks under {top['noise']} loses {value:+.1f} % beyond it.",
        "time lost beyond the injected noise",
        value,
        low,
        high,
        unit="%",
        n=int(top["rounds"]),
        n_of="rounds",
        published=_claimed(top["program"], top["noise"]),
        figure="real-ranks",
        groups=some_groups(groups),
        axis="lost beyond it (%)",
        line=("the noise alone", 0.0),
    )


def _claimed(program: str, noise: str) -> str:
    """What is published of the application that a program stands for."""
    claim = CLAIMS.get((program, noise))
    return f"{claim[1]} ({_FERREIRA})" if claim else ""


def spread_noise_answer(codes: pd.DataFrame, results: pd.DataFrame) -> Answer:
    """Whether noise slows programs on very many simulated ranks by more than its share.

    Parameters
    ----------
    codes
        `Simulations.codes`.
    results
        Of `nbhelpers.report.published_results`.
    """
    known: dict[str, Any] = {"figure": "codes", "axis": "slow-down (times)"}
    if codes.empty or codes["low"].isna().all():
        return open_answer("Nothing was simulated often enough.", **known)
    most, least = (
        codes.loc[place] for place in (codes["median"].idxmax(), codes["median"].idxmin())
    )
    share = float(most["overhead_share"])
    limit = (1 + MARGIN) / (1 - share)
    word = YES if most["low"] > limit else NO if (codes["high"] <= limit).all() else CANNOT_TELL
    groups = {str(noise): part["median"] for noise, part in codes.groupby("noise", sort=False)}
    return Answer(
        word,
        f"{100 * share:.3g} % of noise slows programs on {most['ranks']:,} simulated ranks"
        f" {least['median']:.2f} to {most['median']:.3g} times, by its shape.",
        f"slow-down of {most['application']} under {most['noise']}",
        float(most["median"]),
        float(most["low"]),
        float(most["high"]),
        n=int(most["seeds"]),
        n_of="seeds",
        published=_published_slowdown(results, f"{most['application']} {most['noise']}"),
        groups=some_groups(groups),
        line=("its share", 1 / (1 - share)),
        **known,
    )


def _published_slowdown(results: pd.DataFrame, name: str) -> str:
    """The published slow-down of a program under a noise, with its place."""
    rows = results[results["result"] == name]
    if rows.empty or not str(rows["published"].iloc[0]):
        return ""
    return f"{rows['published'].iloc[0]} times ({rows['source'].iloc[0]})"


def machine_noise_answer(spreads: pd.DataFrame) -> Answer:
    """What this machine's noise costs a collective on very many CPUs like its own.

    Parameters
    ----------
    spreads
        `MachineSimulations.spreads`: a row a recording, with the interval over recordings.
    """
    known: dict[str, Any] = {"figure": "this-machine", "axis": "all-reduce (times)"}
    if spreads.empty:
        return open_answer("A single unit of noise was recorded.", **known)
    ordered = spreads.sort_values("median")
    first, last = ordered.iloc[0], ordered.iloc[-1]
    ranks = int(first["ranks"])
    ends = [float(first[name]) for name in ("median", "recording_low", "recording_high")]
    known |= {"value": ends[0], "low": ends[1], "high": ends[2], "unit": "times"}
    known |= {"quantity": f"all-reduce on {ranks:,} CPUs, {first['recording']}"}
    known |= {"n": int(first["units"]), "n_of": "recorded pieces"}
    columns = ["recording_low", "median", "recording_high"]
    known |= {
        "groups": some_groups(
            {str(row["recording"]): row[columns].tolist() for _, row in ordered.iterrows()}
        )
    }
    times = " and ".join(
        f"{_times(row['median'])} times ({row['recording']})" for _, row in ordered.iterrows()
    )
    sentence = f"An all-reduce on {ranks:,} simulated CPUs like these takes {times} as long."
    if not (ordered["recording_low"] > 1 + MARGIN).all():
        return open_answer(sentence, **known)
    both = dict.fromkeys(_times(row["median"]) for row in (first, last))
    short = f"{' to '.join(both)} times as long"
    named = f"all-reduce: {short}"  # the sentence names it in any case
    return Answer(named if len(named) <= LONGEST else short, sentence, **known)


def ten_thousand_sentence(here: pd.DataFrame) -> str:
    """What an all-reduce costs on the simulated number of CPUs that is nearest to 10,000.

    Parameters
    ----------
    here
        Of `this_machine_at_scale`.
    """
    distance = here["ranks"].map(lambda ranks: abs(math.log(ranks / MANY)))
    rows = here[distance == distance.min()]
    said = " and ".join(
        f"**{_times(row['median'])}** times by {row['recording']} ({_times(row['low'])} to"
        f" {_times(row['high'])}, n = {row['seeds']} seeds)"
        for _, row in rows.iterrows()
    )
    ranks = int(rows["ranks"].iloc[0])
    return f"On {ranks:,} CPUs an all-reduce takes {said}; only phases are drawn anew."


def _times(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def workers_answer(jobs: pd.DataFrame, workers: pd.DataFrame) -> Answer:
    """Which worker, or which stage of all replicas, makes each job slow.

    Parameters
    ----------
    jobs
        Of `jobs_table`.
    workers
        Of `workers_table`.
    """
    named = [_named(row) for row in jobs.to_dict("records")]
    known: dict[str, Any] = {"figure": "workers"}
    if not any(named):
        return open_answer("No worker and no stage stands out in these jobs.", **known)
    top = jobs.loc[jobs["slowdown"].idxmax()]
    listed = ", ".join(
        f"{job}: {name}" for job, name in zip(jobs["job"], named, strict=True) if name
    )
    if len(listed) > LONGEST:
        listed = f"named in {sum(map(bool, named))} of {len(jobs)} jobs"
    groups = {str(job): part["only"] for job, part in workers.groupby("job", sort=False)}
    return Answer(
        listed,
        f"Job {top['job']} takes {top['slowdown']:.2f} times as long as with equal workers;"
        f" {_share(top)} of the excess is gone without {_named(dict(top)) or 'anybody'}.",
        f"slow-down of job {top['job']}",
        float(top["slowdown"]),
        unit="times",
        n=int(top["steps"]),
        n_of="steps",
        published=f"{top['published']:.3f} (Lin et al. 2025, artefact)",
        groups=some_groups(groups),
        axis="slow-down by this worker alone (times)",
        **known,
    )


def _named(row: dict[str, Any]) -> str:
    if row["worker"] != NOBODY:
        return f"worker {row['worker']}"
    return f"stage {row['stage']}" if row["stage"] != NOBODY else ""


def _share(row: pd.Series) -> str:
    return f"{row['share']:.0%}" if row["share"] == row["share"] else "none"
