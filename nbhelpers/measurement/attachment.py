"""What accompanies a run: the interface that tracers, counters and the injector implement."""

from collections.abc import Mapping
from types import MappingProxyType

from ..workloads import Workload


class Attachment:
    """Something that is switched on for each run; the methods do nothing unless overridden.

    Called in this order: before, armed, released, ended, printed, after; `ended` and `after` in the
    reverse order of the attachments, so that the one armed last is read first. A run that ends
    before it comes to the barrier is never armed, and then `after` is not called for it; the next
    call is `before` of another run, or `close`. An exception from any of them kills the run, closes
    all and ends the campaign.

    Attributes
    ----------
    notes
        What a reader of the runs should know of this attachment, such as counters that do not exist
        here.
    variables
        Environment variables that the run gets besides the workload's; read after `before`.
    libraries
        Preload libraries of ours (names in the folder of the programs) that the run gets.
    wrapper
        Tools that are started in the place of our launcher and execute it, with their options, such
        as ``("nice", "-n", "5")``.
    follows_region
        Its `released` is called with the begin of the timed region: the common start where the
        program waits there or is timed from there; else (regions of kind "lines") that begin, as
        soon as it was seen.
    identity
        What two runs that it accompanies must share to be runs of the same thing, such as the
        digest of a schedule; empty: nothing. A campaign puts the runs of a cell aside when this
        changes.
    """

    notes: tuple[str, ...] = ()
    variables: Mapping[str, str] = MappingProxyType({})
    libraries: tuple[str, ...] = ()
    wrapper: tuple[str, ...] = ()
    follows_region = False
    identity: str = ""

    def before(self, workload: Workload) -> None:
        """Nothing has started yet: read the counters of the whole machine."""

    def armed(self, pid: int) -> None:
        """The process waits at the barrier, for as long as this takes."""

    def released(self, t0_ns: int) -> None:
        """The start time has been written; at least 3 ms are left until it.

        If an attachment follows the region, the start time may have passed by some 100 µs.
        """

    def ended(self, pid: int) -> None:
        """The process has ended by itself and waits to be reaped: /proc can still be read for
        it.
        """

    def printed(self, output: str, errors: str) -> None:
        """What the process had printed, the middle of very long outputs left out."""

    def after(self, run: dict) -> dict:
        """The process has ended and was reaped; returns further columns for the runs table.

        Columns that a run has already may not be replaced, but for `status` and `message`: a tracer
        that lost events fails its run.
        """
        return {}

    def close(self) -> None:
        """The campaign is over, or failed; must be safe to call at any time, repeatedly."""
