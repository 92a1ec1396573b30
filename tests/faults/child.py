"""The campaign that is disturbed: a process of its own, with a setting changed and noise injected.

    python child.py FOLDER WORKLOAD TOKEN RUNS

It prints a line for each run that is on disk. TOKEN is a number that stands in the command of every
process of the workload, so that they are found whatever became of their environment.
"""

import sys
from contextlib import ExitStack
from pathlib import Path

import pandas as pd

from nbhelpers.errors import NoisebookError
from nbhelpers.injection import Injector
from nbhelpers.machine import settings
from nbhelpers.measurement import Attachment, Campaign, Cell
from nbhelpers.noise import NoiseConfig
from nbhelpers.tracing import Tracer
from nbhelpers.workloads import program

SETTING, VALUE = "/proc/sys/vm/stat_interval", 7
WORKLOADS = {
    "plain": "sleep 0.1{0}",
    "traced": "sleep 0.1{0}",
    "crash": "sh -c 'kill -SEGV $$; : {0}'",
    "abort": "sh -c 'kill -ABRT $$; : {0}'",
    "exit": "sh -c 'exit 3; : {0}'",
    "hang": "sleep 300.0{0}",
    "forks": "sh -c 'sleep 300.0{0} & sleep 0.02'",
    "daemon": "sh -c 'env -i setsid sleep 300.0{0} & sleep 0.02'",
    "twice": "sh -c '(env -i setsid sh -c \"sleep 300.0{0} & sleep 300.0{0}\" &) ; sleep 0.02'",
    "stubborn": "sh -c 'trap \"\" TERM INT HUP QUIT; sleep 300.0{0}; sleep 300.0{0}'",
    "closes": "sh -c 'exec 0<&- 1>&- 2>&- 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; sleep 0.03{0}'",
    "prints": "sh -c 'head -c 400000000 /dev/zero; : {0}'",
    "binary": 'sh -c \'printf "\\377\\000\\n"; printf "\\376" >&2; sleep 0.02{0}\'',
    "nowhere": "sh -c 'd=$(mktemp -d); cd $d; rmdir $d; sleep 0.02{0}'",
    "many": "sh -c 'for i in $(seq 150); do sleep 300.0{0} & done; sleep 0.02'",
}
TIMED, CALM = ("hang", "stubborn"), ("plain", "traced")


class Holds(Attachment):
    """A setting of the machine that is changed for the campaign."""

    def __init__(self) -> None:
        self.change: settings.Change | None = None

    def before(self, workload) -> None:
        if self.change is None:
            self.change = settings.apply({SETTING: VALUE})

    def close(self) -> None:
        if self.change is not None:
            self.change.restore()
            self.change = None


def noise() -> Injector:
    events = pd.DataFrame(
        {
            "run": 0,
            "cpu": 0,
            "kind": "irq",
            "source": "test",
            "start_ns": [5_000_000, 12_000_000],
            "duration_ns": [200_000, 300_000],
        }
    )
    return Injector(NoiseConfig.from_events(events))


def main(folder: str, workload: str, token: str, runs: str) -> None:
    command = program(
        WORKLOADS[workload].format(token),
        timeout_s=0.4 if workload in TIMED else 30,
    )
    with ExitStack() as stack:
        holds = Holds()
        stack.callback(holds.close)
        # the same identity whatever the workload: it is the same campaign that goes on
        attachments: list[Attachment] = [holds, noise()]
        if workload == "traced":
            attachments.append(Tracer(Path(folder) / "traces", "tracepoints"))
        cell = Cell("a", command, attachments=attachments)
        campaign = Campaign(Path(folder), [cell], int(runs))
        print("begins", flush=True)
        campaign.run(lambda done, total, left: print("done", done, flush=True))
    print("complete", flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except NoisebookError as error:
        sys.exit(f"refused: {error}")
