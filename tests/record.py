"""Make what `make paper PROFILE=record` measured the recorded campaign, data/recorded:
`python -m tests.record`.
"""

import shutil
from pathlib import Path

from nbhelpers.errors import InputError
from nbhelpers.files import pack, write_atomically
from nbhelpers.places import results, shipped
from nbhelpers.records import SEAL


def record() -> Path:
    """The measured data, packed; programs of Noisebook itself are named as if it lay in
    /noisebook.
    """
    source, target = results() / "record" / "data", shipped() / "data" / "recorded"
    if not source.exists():
        fix = "make paper PROFILE=record"
        raise InputError("nothing was measured in this profile yet", where=source, fix=fix)
    left_out = shutil.ignore_patterns("*.lock", ".*", "aside", SEAL)
    for stage in sorted(path for path in source.iterdir() if path.is_dir()):
        shutil.rmtree(target / stage.name, ignore_errors=True)
        shutil.copytree(stage, target / stage.name, ignore=left_out, copy_function=pack)
        for campaign in (target / stage.name).rglob("campaign.json"):
            text = campaign.read_text()
            write_atomically(campaign, text.replace(f'"{shipped()}/', '"/noisebook/'))
    return target


if __name__ == "__main__":
    print(f"recorded: {record()}")
