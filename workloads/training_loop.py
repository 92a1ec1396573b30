"""A small training loop whose every step is timed: two layers, squared error, gradient descent.

    python training_loop.py [--steps 400] [--width 256] [--batch 256] [--device cpu] [--cpu 0]
                            [--realtime]

On a CPU it is NumPy with one thread. With --device cuda the same loop runs in PyTorch, and each
step ends when the GPU is done. The answer is checked: the loss must fall to a half. The region is
begun and ended by noisebook_begin() and noisebook_end(), where the preload library provides them.
With --realtime no ordinary program disturbs the loop, where its user may ask for that.
"""

import argparse
import ctypes
import os
import time

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
for name in THREADS:
    os.environ[name] = "1"  # before NumPy is loaded

import numpy as np  # noqa: E402

WARM_UP = 20
PER_LINE = 1000


def mark(name: str) -> None:
    """Call noisebook_begin() or noisebook_end(), where they are."""
    function = getattr(ctypes.CDLL(None), f"noisebook_{name}", None)
    if function is not None:
        function()


class CpuModel:
    """The network in NumPy."""

    def __init__(self, width: int, batch: int):
        rng = np.random.default_rng(0)
        self.inputs = rng.standard_normal((batch, width)).astype(np.float32)
        self.targets = np.tanh(self.inputs @ rng.standard_normal((width, 8)).astype(np.float32))
        self.first = (rng.standard_normal((width, width)) / width**0.5).astype(np.float32)
        self.second = (rng.standard_normal((width, 8)) / width**0.5).astype(np.float32)
        self.rate = np.float32(0.5)

    def step(self) -> float:
        """One step of gradient descent; the loss before it."""
        hidden = np.maximum(self.inputs @ self.first, 0)
        error = hidden @ self.second - self.targets
        scale = self.rate / np.float32(error.size)
        to_hidden = (error @ self.second.T) * (hidden > 0)
        self.second -= scale * (hidden.T @ error)
        self.first -= scale * (self.inputs.T @ to_hidden)
        return float(np.mean(error**2))


class GpuModel:
    """The same network in PyTorch, on a GPU."""

    def __init__(self, width: int, batch: int):
        import torch

        self.torch, cpu = torch, CpuModel(width, batch)
        for key in ("inputs", "targets", "first", "second"):
            setattr(self, key, torch.from_numpy(getattr(cpu, key)).cuda())
        self.rate = float(cpu.rate)

    def step(self) -> float:
        """One step of gradient descent; the loss before it. Returns when the GPU is done."""
        hidden = (self.inputs @ self.first).clamp(min=0)
        error = hidden @ self.second - self.targets
        scale = self.rate / error.numel()
        to_hidden = (error @ self.second.T) * (hidden > 0)
        self.second -= scale * (hidden.T @ error)
        self.first -= scale * (self.inputs.T @ to_hidden)
        loss = float((error**2).mean())
        self.torch.cuda.synchronize()
        return loss


def timed_steps(model: CpuModel | GpuModel, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Begin of each step and end of the last, ns; losses."""
    stamps, losses = np.zeros(steps + 1, np.int64), np.zeros(steps)
    for number in range(steps):
        stamps[number] = time.monotonic_ns()
        losses[number] = model.step()
    stamps[steps] = time.monotonic_ns()
    return stamps, losses


def realtime() -> str:
    """Take the least real-time priority, so that no ordinary program disturbs; the policy then."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return "SCHED_OTHER"
    return "SCHED_FIFO"


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=400)
    options.add_argument("--width", type=int, default=256)
    options.add_argument("--batch", type=int, default=256)
    options.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options.add_argument("--cpu", type=int, default=-1)
    options.add_argument("--realtime", action="store_true")
    chosen = options.parse_args()
    if chosen.cpu >= 0:
        os.sched_setaffinity(0, {chosen.cpu})
    policy = realtime() if chosen.realtime else "SCHED_OTHER"
    model = (GpuModel if chosen.device == "cuda" else CpuModel)(chosen.width, chosen.batch)
    before = [model.step() for _ in range(WARM_UP)]
    mark("begin")
    stamps, losses = timed_steps(model, chosen.steps)
    mark("end")
    verified = "yes" if losses[-1] < 0.5 * before[0] and np.isfinite(losses).all() else "no"
    seconds = np.diff(stamps) / 1e9
    for begin in range(0, len(seconds), PER_LINE):
        values = " ".join(f"{value:.9g}" for value in seconds[begin : begin + PER_LINE])
        print(f"noisebook-series: step s {values}")
    print(
        f"noisebook: training_loop seconds={(stamps[-1] - stamps[0]) / 1e9:.9f}"
        f" start_ns={stamps[0]} end_ns={stamps[-1]} threads=1 steps={chosen.steps} policy={policy}"
        f" loss={losses[-1]:.6g} series_values={len(seconds)} verified={verified}"
    )


if __name__ == "__main__":
    main()
