"""Recorded steps of a training job: which worker did what, when, and for how long.

Owns the reading of StragglerAnalysis' traces and the check that all steps have the same operations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbhelpers.errors import InputError
from nbhelpers.places import shipped
from nbhelpers.reading import read_csv, read_parquet

from .step_graph import StepGraph

COLUMNS = ["dp_rank", "stage", "step", "optype", "start_ts", "duration", "seq_id", "mc"]
COMPUTE = "compute"  # forward and backward, as far as a trace does not tell them apart
COMPUTING = ("forward-compute", "backward-compute", COMPUTE)
_FOLDER = "data/published/stragglers"


@dataclass(frozen=True, eq=False, repr=False)
class TrainingJob:
    """S steps of R replicas of a pipeline with P stages; a replica has O operations a step.

    A worker is a stage of a replica: one GPU, or several that share its tensors.

    Parameters
    ----------
    name
        What the job is called.
    stage, kind, number
        [O]; of each operation, alike in all replicas and steps: its stage, what it is
        (forward-compute, …), the how manieth of its kind on its stage.
    steps
        int [S]; the numbers of the recorded steps.
    start_s, duration_s
        float64 [O, S, R]; from the begin of the step. Of communication the duration has the
        waiting in it.
    graph
        What waits for what in a step, where the trace says it; then operations are alike by their
        place in the step, and not by their kind. None: `dependencies` has the rules.
    ranks
        int [R, P]; which rank of the program each worker is, where the trace says it.

    Examples
    --------
    >>> published_job("ST")
    TrainingJob(ST: 32 steps, 2 replicas × 4 stages, 106 operations a replica)
    """

    name: str
    stage: np.ndarray
    kind: np.ndarray
    number: np.ndarray
    steps: np.ndarray
    start_s: np.ndarray
    duration_s: np.ndarray
    graph: StepGraph | None = None
    ranks: np.ndarray | None = None

    @property
    def replicas(self) -> int:
        """R: how many replicas of the model learn (data parallelism)."""
        return self.start_s.shape[2]

    @property
    def stages(self) -> int:
        """P: into how many parts the model is cut (pipeline parallelism)."""
        return int(self.stage.max()) + 1

    @property
    def step_s(self) -> np.ndarray:
        """How long each step took as measured, float64 [S]."""
        return (self.start_s + self.duration_s).max((0, 2))

    def slowed(self, factor: float, replica: int, stage: int) -> "TrainingJob":
        """The same job with one worker whose computing takes `factor` times as long.

        Start times stay: only durations of computations are changed, and replays need no others.
        """
        rows = np.isin(self.kind, COMPUTING) & (self.stage == stage)
        duration = self.duration_s.copy()
        duration[rows, :, replica] *= factor
        return replace(self, duration_s=duration)

    def of_replicas(self, replicas: Sequence[int]) -> "TrainingJob":
        """The job of some replicas only."""
        chosen = list(replicas)
        return replace(
            self,
            name=f"{self.name} of replicas {', '.join(map(str, chosen))}",
            start_s=self.start_s[:, :, chosen],
            duration_s=self.duration_s[:, :, chosen],
            ranks=None if self.ranks is None else self.ranks[chosen],
        )

    def __repr__(self) -> str:
        return (
            f"TrainingJob({self.name}: {len(self.steps)} steps, {self.replicas} replicas ×"
            f" {self.stages} stages, {len(self.kind)} operations a replica)"
        )


def published_job(name: str) -> TrainingJob:
    """One of the three public jobs, "AR", "SE" or "ST", of Lin et al., OSDI 2025.

    AR: one worker slowed on purpose; SE: sequences of unequal length; ST: an overloaded last stage.
    """
    return read_job(shipped() / _FOLDER / f"trace-{name}.parquet", name)


def read_job(path: str | Path, name: str = "") -> TrainingJob:
    """Read a trace in the layout of StragglerAnalysis (Parquet, or CSV with the same columns).

    Parameters
    ----------
    path
        One row an operation: `dp_rank`, `stage`, `step`, `optype`, `start_ts` and `duration` in
        seconds, `seq_id`, `mc`.
    name
        Name of the job; empty: the file's name.

    Raises
    ------
    InputError
        Missing columns, steps with other operations than the first.
    """
    path = Path(path)
    try:
        columns = _columns(path)
        _require_numbers(columns)
    except (
        InputError,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        NotImplementedError,
    ) as problem:
        raise InputError(
            "a trace of a training job cannot be read",
            where=str(path),
            why=str(getattr(problem, "what", problem)),
            fix=f"one row an operation, with the columns {', '.join(COLUMNS)}",
        ) from problem
    return _job(columns, name or path.stem)


def _require_numbers(columns: dict[str, Any]) -> None:
    for name, values in columns.items():
        if name != "optype" and not (values.dtype.kind in "iuf" and np.isfinite(values).all()):
            raise ValueError(f"the column {name} has something else than finite numbers")
        if name in ("dp_rank", "stage", "step") and (values < 0).any():
            raise ValueError(f"the column {name} has numbers below 0")


def _columns(path: Path) -> dict[str, Any]:
    """The columns as arrays; `optype` as (number of its name, names)."""
    what = "trace of a training job"
    parquet = path.suffix == ".parquet"
    table = read_parquet(path, what, COLUMNS) if parquet else read_csv(path, what, usecols=COLUMNS)
    numbers, names = pd.factorize(table["optype"])
    columns = {name: table[name].to_numpy() for name in COLUMNS if name != "optype"}
    return {**columns, "optype": (numbers, list(names))}


def _job(columns: dict[str, Any], name: str) -> TrainingJob:
    """Rows as [operation, step, replica]; every step must have the same operations as the first."""
    number_of, names = columns["optype"]
    kind = np.argsort(np.argsort(names))[number_of]  # by name, whatever the file's order
    step = columns["step"]
    begins = np.flatnonzero(np.diff(step, prepend=step[:1] - 1))
    steps = step[begins]
    if not len(steps) or len(set(steps.tolist())) < len(steps) or len(step) % len(steps):
        raise _uneven(name, len(step), len(steps))
    length = len(step) // len(steps)
    keys = [columns["seq_id"], kind, columns["stage"], columns["dp_rank"]]
    if (begins != np.arange(len(steps)) * length).any() or any(
        (key.reshape(-1, length) != key[:length]).any() for key in keys
    ):
        raise _uneven(name, len(step), len(steps))
    replicas = int(columns["dp_rank"].max()) + 1
    if length % replicas:
        raise _uneven(name, len(step), len(steps))
    order = np.lexsort([key[:length] for key in keys]).reshape(replicas, -1)
    for key in keys[:-1]:
        if (key[order] != key[order[0]]).any():
            raise _uneven(name, len(step), len(steps))
    if (columns["mc"][:length] > 0).any():
        raise InputError(
            "a pipeline whose stages have several chunks of the model each",
            where=name,
            why="its order of messages is not known here; only one chunk a stage is",
        )
    one = order[0]
    start, duration = (
        columns[key].astype(float).reshape(len(steps), length).T[order.T].transpose(0, 2, 1)
        for key in ("start_ts", "duration")
    )
    start = start - start.min((0, 2))[:, None]
    stage, number = (columns[key][one].astype(int) for key in ("stage", "seq_id"))
    kinds = np.sort(names)[kind[one]]
    return TrainingJob(name, stage, kinds, number, steps, start, np.ascontiguousarray(duration))


def _uneven(name: str, rows: int, steps: int) -> InputError:
    return InputError(
        "the steps of a training job do not have the same operations",
        where=f"{name}: {rows} rows, {steps} steps",
        why="a step is replayed by what waits for what in the first one",
        fix="leave out the steps that were recorded in part",
    )
