"""Several tables of noise events on one time line."""

import pandas as pd

from nbhelpers.noise import Signature


def combined(*parts: pd.DataFrame) -> pd.DataFrame:
    """All events by CPU and start; the window is the longest one of the parts."""
    tables = [part.assign(kind=part["kind"].astype(str)) for part in parts]
    events = pd.concat(tables, ignore_index=True)
    events = events.sort_values(["cpu", "start_ns"], kind="stable", ignore_index=True)
    events.attrs = {"seconds": max(part.attrs["seconds"] for part in parts)}
    return events


def made_noise(frequency_hz, duration_us, seconds, cpus, kind="thread", policy=None, **signature):
    """Events of a signature, of threads and aligned unless it is said otherwise."""
    priority = signature.pop("priority", None)
    made = Signature(frequency_hz, duration_us, **{"phase": "aligned", **signature})
    return made.events(seconds, cpus, kind, policy, priority)
