"""What the card and the metadata of the recorded campaigns must say, counted from the files.

`python -m nbhelpers.artifact card` writes these numbers into data/recorded.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from .. import __version__
from ..files import write_atomically, write_json
from ..places import shipped
from ..reading import read_json, read_yaml
from ..records import read_records

_RUNS = "runs.jsonl"
_SCHEMA = "http://datacite.org/schema/kernel-4"


def recorded_counts(folder: Path) -> dict[str, tuple[int, int]]:
    """Campaigns and runs of each stage of recorded data."""
    stages = sorted(path for path in folder.iterdir() if path.is_dir())
    counts = {}
    for stage in stages:
        tables = [read_records(path) for path in _tables(stage)]
        counts[stage.name] = (len(tables), sum(map(len, tables)))
    return counts


def _tables(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob(f"{_RUNS}*")):
        yield path.with_name(_RUNS)


def write_card(folder: Path) -> Path:
    """Bring CARD.md and datacite.json of recorded data up to date with the files beside them."""
    counts = recorded_counts(folder)
    card = folder / "CARD.md"
    text = _filled(card.read_text(encoding="utf-8"), "SIZE", _size_lines(counts))
    text = _filled(text, "MACHINE", [f"* Machine: {machine_text(folder)}.", _dates_line(folder)])
    write_atomically(card, text)
    write_json(folder / "datacite.json", datacite(folder, counts))
    return card


def _filled(text: str, name: str, lines: list[str]) -> str:
    body = "\n".join(lines)
    return re.sub(
        rf"(<!-- {name} -->\n).*?(<!-- end -->)",
        lambda found: f"{found[1]}{body}\n{found[2]}",
        text,
        flags=re.S,
    )


def _size_lines(counts: dict[str, tuple[int, int]]) -> list[str]:
    rows = [f"| {stage} | {campaigns} | {runs} |" for stage, (campaigns, runs) in counts.items()]
    campaigns, runs = map(sum, zip(*counts.values()))
    return [
        "| stage | campaigns | runs |",
        "| --- | --- | --- |",
        *rows,
        f"| all | {campaigns} | {runs} |",
    ]


def machine_text(folder: Path) -> str:
    """The machine that the data are from, in one line."""
    machine = read_json(folder / "00-machine" / "machine.json")["machine"]
    memory = machine["memory_bytes"] / 2**30
    return (
        f"{len(machine['cpus'])} CPUs ({machine['cpu_model']}; {machine['virtualisation']}),"
        f" {memory:.0f} GiB, Linux {machine['kernel']}, {machine['compiler']}"
    )


def _dates_line(folder: Path) -> str:
    return f"* Measured: {'/'.join(measured_dates(folder))}."


def measured_dates(folder: Path) -> list[str]:
    """The first and the last day on which a run began (UTC); one, if they are the same."""
    times = [
        run["began_unix_s"]
        for path in _tables(folder)
        for run in read_records(path)
        if run.get("began_unix_s")
    ]
    days = [datetime.fromtimestamp(one, UTC).date().isoformat() for one in (min(times), max(times))]
    return list(dict.fromkeys(days))


def datacite(folder: Path, counts: dict[str, tuple[int, int]]) -> dict:
    """Metadata of DataCite 4.5 for the recorded campaigns; a DOI is all that is missing.

    Parameters
    ----------
    folder
        data/recorded.
    counts
        See `recorded_counts`.
    """
    citation = read_yaml(shipped() / "CITATION.cff", "citation")
    dates = measured_dates(folder)
    runs = sum(number for _, number in counts.values())
    return {
        "schemaVersion": _SCHEMA,
        "types": {"resourceTypeGeneral": "Dataset", "resourceType": "Performance measurements"},
        "titles": [{"title": "The recorded campaigns of Noisebook: run times under noise"}],
        "creators": [
            {"name": author["name"], "nameType": "Organizational"} for author in citation["authors"]
        ],
        "publisher": {"name": citation["authors"][0]["name"]},
        "publicationYear": dates[-1][:4],
        "version": __version__,
        "language": "en",
        "dates": [{"date": "/".join(dates), "dateType": "Collected"}],
        "sizes": [f"{len(counts)} stages", f"{runs} runs"],
        "formats": ["application/json", "text/csv", "application/vnd.apache.parquet"],
        "rightsList": [
            {
                "rights": "Apache License 2.0",
                "rightsIdentifier": citation["license"],
                "rightsIdentifierScheme": "SPDX",
                "rightsUri": f"https://spdx.org/licenses/{citation['license']}",
            }
        ],
        "subjects": [
            {"subject": subject}
            for subject in ("operating system noise", "performance variability", "OpenMP", "MPI")
        ],
        "descriptions": [
            {
                "description": (
                    f"{runs} runs in {len(counts)} stages of Noisebook, with traces, noise configs"
                    f" and injection logs. Measured on {machine_text(folder)}."
                ),
                "descriptionType": "Abstract",
                "lang": "en",
            }
        ],
        "relatedIdentifiers": [
            {
                "relatedIdentifier": reference["doi"],
                "relatedIdentifierType": "DOI",
                "relationType": "References",
            }
            for reference in citation["references"]
            if "doi" in reference
        ],
    }
