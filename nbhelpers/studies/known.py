"""What is known of the slow runs of a study: who had their time, what of it came back in a replay,
and what helps.

Owns the rules by which that becomes a word and a sentence. Page 15 hands on who had the time; pages
15, 20, 30, 37 and 55, their cards and `noisebook why` all read their answers here, so that they
cannot disagree. A replay is judged by the share of the excess that comes back, with undisturbed
runs as the floor: 0.99 of the recorded run says nothing where undisturbed runs take 0.98 of it.
"""

import math
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from ..answers import CANNOT_TELL, LONGEST, NO, YES, Answer
from ..files import write_json
from ..reading import read_json
from ..statistics.claims import FEWEST_UNITS

NO_SLOW_RUN, NOTHING = "no slow run", "nothing to replay"
UNNAMED, UNSEEN, PART = "what was lost, by no one name", "nothing that was seen", " of it"
SLOW_SHARE = 0.05  # a run that took less longer than undisturbed ones is no anomaly
WHOLE = 0.8, 1.25  # share of the excess: an interval within is a whole replay
TOO_STRONG = 1.1  # a replay whose interval begins above it, and is no whole one
NOISE = ("taken", "runnable")  # parts that a trace records as noise
HALF = 0.5  # an interval below it: most did not come back
FILE = "known.json"  # among the results of page 15

Interval = tuple[float, float, float]  # value, low, high: 95 %


@dataclass(frozen=True)
class Replay:
    """What replays of slow runs brought back.

    Parameters
    ----------
    back
        Share of the excess that came back, with its interval; undisturbed runs have 0.
    ratio, floor
        Replayed and undisturbed runs over the recorded slow ones.
    rounds, runs
        Rounds that the interval rests on, and how many slow runs were replayed.
    """

    back: Interval
    ratio: float
    floor: float
    rounds: int
    runs: int = 1


NO_REPLAY = Replay((0.0, 0.0, 0.0), 1.0, 1.0, 0)


@dataclass(frozen=True)
class Known:
    """What is known of slow runs.

    Parameters
    ----------
    longer
        What the slowest run took longer than ordinary ones, as a share of these; None: not known.
    cause
        Who or what had most of what slow runs took longer; empty: nobody can be named.
    share
        Its share of that, with the interval.
    part
        Its part of the account, or of the owners.
    replay
        What came back in a replay.

    Examples
    --------
    >>> known = Known(0.3, "a slower CPU or memory", (0.95, 0.9, 0.97))
    >>> known.took, known.noise((0.07, 0.06, 0.08), 0.3)
    ('a slower CPU or memory', 'no')
    >>> Known(replay=Replay((0.5, -0.2, 1.2), 0.99, 0.98, 20)).replayed
    'nothing to replay'
    """

    longer: float | None = None
    cause: str = ""
    share: Interval = (0.0, 0.0, 0.0)
    part: str = ""
    replay: Replay = NO_REPLAY

    @classmethod
    def read(cls, path: Path) -> "Known":
        """What page 15 handed on; where it was not made, nothing is known."""
        content = read_json(path) if path.exists() else {}
        return cls(**content | {"share": tuple(content.get("share", cls.share))})

    def write(self, path: Path) -> Path:
        """Hand it on to other pages, without a replay; numbers to six digits."""
        content = asdict(self)
        del content["replay"]
        content["share"] = [float(f"{value:.6g}") for value in self.share]
        content["longer"] = self.longer and float(f"{self.longer:.6g}")
        return write_json(path, content)

    def is_slow(self, longer: float) -> bool:
        """Whether there is a slow run, by page 15 and by other undisturbed runs."""
        return longer > SLOW_SHARE and (self.longer is None or self.longer > SLOW_SHARE)

    @property
    def took(self) -> str:
        """Who or what took the time."""
        slow = self.longer is None or self.is_slow(self.longer)
        return (self.cause or CANNOT_TELL) if slow else NO_SLOW_RUN

    def noise(self, share: Interval, longer: float) -> str:
        """Whether noise made a run slow.

        Parameters
        ----------
        share
            Sum of its noise beyond ordinary runs, over what it took longer: the most that noise
            can explain. NaN ends: not known.
        longer
            What it took longer, as a share.
        """
        value, low, high = share
        if not self.is_slow(longer):
            return NOTHING
        if math.isnan(low):
            return CANNOT_TELL
        if self.part not in NOISE and (self.share[1] > HALF or high < HALF):
            return NO
        return YES if low >= WHOLE[0] else f"at most {100 * value:.0f} %{PART}"

    @property
    def replayed(self) -> str:
        """Whether the slow run came back: "nothing to replay", yes, no, "cannot tell here", or the
        part, where the whole interval is above 0 and reaches a half. Yes is what surely brings back
        nearly all, and not surely too much.
        """
        share, low, high = self.replay.back
        if not self.is_slow(1 / self.replay.floor - 1):
            return NOTHING
        if self.replay.rounds < FEWEST_UNITS:
            return CANNOT_TELL
        if low >= WHOLE[0] and (high <= WHOLE[1] or low <= TOO_STRONG):
            return YES
        if high < HALF:
            return NO
        return f"{100 * share:.0f} %{PART}" if low > 0 else CANNOT_TELL

    @property
    def explained(self) -> str:
        """What explains the slow runs: the name that page 15 has, as far as its replay shows it."""
        word, cause = self.replayed, self.cause or UNNAMED
        missed = f"{self.cause}, not replayed" if self.cause else UNSEEN
        if word.endswith(PART):
            word = f"{cause}: {word.removesuffix(PART)}"
        return {YES: cause, NO: missed}.get(word, word)[:LONGEST]

    @property
    def sentence(self) -> str:
        """What the replay showed, in a sentence."""
        one = self.replay
        if self.replayed == NOTHING:
            return f"No slow run: undisturbed runs take {one.floor:.3f} of the slowest."
        runs = "the slow run" if one.runs == 1 else f"{one.runs} slow runs"
        return (
            f"{100 * one.back[0]:.0f} % of what {runs} took longer came back: the replay takes"
            f" {one.ratio:.3f} of the recorded time, undisturbed runs {one.floor:.3f}."
        )


def is_shown(answer: str, low: float | None) -> bool:
    """Whether a replay shows a cause: surely most came back, and not surely too much.

    Parameters
    ----------
    answer
        `Known.replayed`.
    low
        Lower end of the share that came back.

    Examples
    --------
    >>> is_shown("60 % of it", 0.52), is_shown("60 % of it", 0.3), is_shown("150 % of it", 1.2)
    (True, False, False)
    """
    part = answer.endswith(PART) and low is not None and HALF <= low <= TOO_STRONG
    return answer == YES or part


def remedy_answer(tried: pd.DataFrame) -> Answer:
    """What is known of mitigations that were tried: the best, and what it changes.

    Parameters
    ----------
    tried
        A row a mitigation: `verdict`, `mean_ratio` with its ends `mean_low` and `mean_high`, `runs`
        (`nbhelpers.mitigation.report.tried_table`).

    Returns
    -------
    Answer : the best that was shown twice; else one whose interval lies beyond what counts as no
    change: an effect far from none is never "cannot tell here"; "none" where each is known not to
    help.

    Examples
    --------
    >>> row = {"verdict": "too few rounds", "mean_ratio": 0.84, "mean_low": 0.83, "mean_high": 0.85}
    >>> remedy_answer(pd.DataFrame([row | {"runs": 5}], index=["malloc-huge"])).answer
    'malloc-huge, −16 %'
    """
    # here: the pages that answer otherwise do not rest on mitigations
    from ..mitigation.trials import HARMS, HELPS, NO_EFFECT, NOT_AGAIN, TIME_MARGIN

    verdicts, far = tried["verdict"], tried["mean_high"] < 1 - TIME_MARGIN
    twice, settled = tried[verdicts == HELPS], verdicts.isin((NO_EFFECT, HARMS, NOT_AGAIN))
    shown = pd.concat([twice, tried[far & ~settled & (verdicts != HELPS)]])
    said = f"{len(twice)} of {len(tried)} mitigations tried help, shown twice"
    if tried.empty:
        return Answer(CANNOT_TELL, f"{said}.")
    first = pd.concat([shown, tried]).iloc[0]
    value, low, high = (100 * (float(first[f"mean_{end}"]) - 1) for end in ("ratio", "low", "high"))
    word = f"{first.name}, {value:+.0f} %" if len(shown) else CANNOT_TELL
    if len(shown) and twice.empty:
        interval = f"{value:+.1f} % ({low:+.1f} to {high:+.1f})"
        said += f"; {first.name} changes the mean by {interval}, but: {first['verdict']}"
    word = "none" if settled.all() else word.replace(" -", " −")
    what, rounds = f"run time with {first.name}", int(first["runs"])
    return Answer(word, f"{said}.", what, value, low, high, "%", rounds, "rounds")
