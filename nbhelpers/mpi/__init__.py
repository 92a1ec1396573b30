"""Real MPI: which one is here, traces of a program's MPI calls, and what they say about it."""

from ._calls import Calls as Calls
from ._calls import read_calls
from ._installation import installation
from ._messages import matched_messages
from ._shares import call_times as call_times
from ._shares import collective_sizes as collective_sizes
from ._shares import time_shares as time_shares
from ._spread import Spread
from ._spread import spread_here as spread_here
from ._trace import CallTrace, trace_calls

__all__ = ["CallTrace", "Spread", "installation", "matched_messages", "read_calls", "trace_calls"]
