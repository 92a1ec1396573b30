"""Runs of something else than a campaign now measures: moved into its folder's `aside/DATE`, never
deleted.
"""

import os
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from ..files import new_aside, write_json
from ..reading import read_json
from ..records import read_records, write_records


def aside_folders(folder: Path) -> list[Path]:
    """The folders of runs that were put aside, in the order of their names."""
    return sorted(path.parent for path in folder.glob("aside/[!.]*/runs.jsonl"))


def put_runs_aside(
    folder: Path, rows: list[dict], series: list[dict], stale: Mapping[str, str], recorded: dict
) -> set[tuple]:
    """Put the runs of the cells `stale` aside with their series and files; `recorded` is the
    campaign. Returns the keys of the runs that the caller removes from its logs.

    First they are copied, then they vanish from the logs. A crash in between leaves them in both
    places: those that lie aside already leave the logs too, whatever is measured now, and are not
    copied again.
    """
    places = {
        run_key(row): place
        for place in aside_folders(folder)
        for row in read_records(place / "runs.jsonl")
    }
    leaving = [row for row in rows if row["cell"] in stale or run_key(row) in places]
    fresh = [row for row in leaving if run_key(row) not in places]
    if fresh:
        place = new_aside(folder)
        staging = place.with_name(".unfinished")
        shutil.rmtree(staging, ignore_errors=True)  # of a crash: copies only
        write_records(staging / "runs.jsonl", fresh)
        keys = {(row["run"], row.get("t0_ns")) for row in fresh}
        if leaving_series := [one for one in series if (one["run"], one["t0_ns"]) in keys]:
            write_records(staging / "series.jsonl", leaving_series)
        write_json(staging / "campaign.json", {**recorded, "aside": dict(stale)})
        os.replace(staging, place)
        places |= {run_key(row): place for row in fresh}
    # files that attachments wrote for single runs, such as traces/run-000012.osnoise.gz
    homes = {row["run"]: places[run_key(row)] for row in leaving}
    for name, number in list(files_of_runs(folder, caches=True)) if leaving else ():
        if number in homes:
            target = homes[number] / name
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(folder / name, target)
    return {run_key(row) for row in leaving}


def run_key(row: dict) -> tuple:
    """What distinguishes a run from every other."""
    return row["run"], row.get("t0_ns"), row.get("began_unix_s")


def files_of_runs(folder: Path, caches: bool = False) -> Iterator[tuple[str, int]]:
    """Files that attachments wrote for single runs, by their names below the folder, and the number
    of the run; perhaps with caches, in hidden folders. What lies aside and other campaigns below
    this one are left out.
    """
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name != "aside"
            and (caches or not name.startswith("."))
            and not Path(parent, name, "campaign.json").exists()
        )
        for name in sorted(names):
            if number := re.fullmatch(r"[a-z]+-(\d{6,})\..+", name):
                yield Path(parent, name).relative_to(folder).as_posix(), int(number[1])


def aside_notes(folder: Path, notes: Collection[str]) -> list[str]:
    """What lies aside and no note mentions, since a crash came between; a sentence for each
    reason.
    """
    mentioned, sentences = " ".join(notes), []
    for place in aside_folders(folder):
        if f"aside/{place.name})" in mentioned:
            continue
        counts = Counter(row["cell"] for row in read_records(place / "runs.jsonl"))
        why = read_json(place / "campaign.json")["aside"]
        for reason in dict.fromkeys(why[name] for name in counts):
            names = [name for name in counts if why[name] == reason]
            sentences.append(
                f"{sum(counts[name] for name in names)} runs of {listed(names)} were put aside"
                f" ({folder.name}/aside/{place.name}) and are measured anew: {reason}."
            )
    return sentences


def listed(names: list[str]) -> str:
    """Names of cells in quotes, shortened after the first few."""
    shown = ", ".join(f"'{name}'" for name in names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more cells"
