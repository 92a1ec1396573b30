"""Where a notebook's data come from and where its results go, and what stands at the top of its
page.

A study is a profile (smoke, quick, full, paper, recorded) seen from one stage. A notebook that is
run by itself measures here, into the study `here`, with the values of its own cell. Measured data:
build/PROFILE/data/STAGE, only ever appended to. The profile `recorded` reads data/recorded instead
and never measures (`record` is how it was measured); a shared study (`make paper DATA=…`) has
data in build/shared-NAME and never measures either. Computed: build/PROFILE/results/STAGE. An
installed package has no build folder: `nbhelpers.places.results` says what takes its place.
"""

import json
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .answers import Answer, write_answer
from .errors import InputError
from .extras import stages
from .files import to_json, write_json
from .palette import use_style
from .places import how_to, is_installed, results, shipped
from .reading import read_json
from .stage_records import record_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing
    from pandas import DataFrame

    from .report import Shown, Text

NOTEBOOKS = shipped() / "notebooks"
# A paragraph of a notebook's text such as: **Table `runs`.** Runs by configuration and status.
_CAPTION = re.compile(r"^\*\*(?:Table|Figure) `([\w-]+)`\.\*\* (.+?)(?=\n\s*\n|\Z)", re.M | re.S)
_MOST_BYTES = 2**20  # of a file that may hold notes
PAPER = "90-paper"
STARTER = "01-your-program"  # for one's own program
MACHINES = "95-machines"  # side by side
NO_STAGES = (STARTER, "02-workbench", "contents")  # notebooks that are no stage of the paper
PROFILES = ("here", "smoke", "quick", "full", "paper", "record", "recorded")
_SAME_VALUES = {"here": "quick", "record": "recorded"}  # profiles that differ in their data only
_TIMED = {"here": "quick", "record": "full"}  # that nobody timed, and one that is alike


def notebook_files() -> dict[str, Path]:
    """The file of each notebook by its name, in order: the library's, and those of the extras."""
    ours = {path.stem: path for path in NOTEBOOKS.glob("*.ipynb")}
    return dict(sorted((stages() | ours).items()))


def profile_file(profile: str) -> Path:
    """The YAML file of a profile: in notebooks/parameters, or the user's, in build/NAME.

    `record` measures what `recorded` later shows, so they share one; so do `quick` and `here`,
    which are what the notebooks' own cells say.
    """
    copy = adopted_profile_file(profile)
    if profile not in PROFILES and copy.exists():
        return copy
    return NOTEBOOKS / "parameters" / f"{_SAME_VALUES.get(profile, profile)}.yml"


def adopted_profile_file(profile: str) -> Path:
    """Where the copy of a user's profile lies, once it was checked."""
    return results() / profile / "profile.yml"


def shared_file(profile: str) -> Path:
    """The file that says that a profile's data were measured elsewhere (`make paper DATA=…`)."""
    return results() / profile / "shared.json"


@dataclass(frozen=True)
class Study:
    """One stage of one profile.

    Parameters
    ----------
    stage
        Name of the notebook, such as ``"10-trace-collection"``.
    profile
        One of `PROFILES`, or NAME that `make paper PROFILE=path/to/NAME.yml` has checked.
    folder
        Where data and results lie, such as those of a user's program; None: as the profile says.
    """

    stage: str
    profile: str = "here"
    folder: Path | None = None

    def __post_init__(self):
        away = self.profile == "recorded" and is_installed()
        if away or (self.profile not in PROFILES and not profile_file(self.profile).is_file()):
            why = "the recorded campaign is not part of the installed package: it is 13 MB"
            raise InputError(
                f"there is no profile '{self.profile}'",
                why=f"{why}, to be had in a checkout of the repository" if away else None,
                fix=f"{how_to('paper PROFILE=quick')}; there are {', '.join(PROFILES[1:])}; one of"
                " your own by its file: PROFILE=path/to/mine.yml",
            )

    @property
    def recorded_only(self) -> bool:
        """Whether this profile reads recorded data and measures nothing."""
        return self.profile == "recorded" or bool(self.shared)

    @cached_property
    def shared(self) -> dict:
        """Whose the data are, where they were shared: `profile`, `noisebook`, …"""
        path = shared_file(self.profile)
        return read_json(path) if self.profile not in PROFILES and path.is_file() else {}

    @property
    def source(self) -> str:
        """Whose data its tables and figures show, unless they say otherwise."""
        measured = "recorded campaign" if self.recorded_only else "this machine"
        return record_of(self.stage).get("data", "{}").format(measured)

    @property
    def build(self) -> Path:
        """Everything that this profile makes."""
        return self.folder or results() / self.profile

    @property
    def data(self) -> Path:
        """Measured data of this stage."""
        recorded = self.profile == "recorded"
        data = shipped() / "data" / "recorded" if recorded else self.build / "data"
        return self.folder or data / self.stage

    @property
    def results(self) -> Path:
        """Computed results of this stage: configs, tables, figures; the folder exists."""
        folder = self.build / "results" / ("" if self.folder else self.stage)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def expected_s(self) -> float | None:
        """How long this stage took here the last time, or else on two virtual cores; None: nobody
        knows, as of a shared study or of one's own profile.
        """
        took = self.build / "provenance" / f"{self.stage}.json"
        if took.exists():
            return read_json(took).get("took_s")
        name = "recorded" if self.recorded_only else _TIMED.get(self.profile, self.profile)
        minutes = record_of(self.stage).get("minutes", {}).get(name)
        return None if minutes is None else 60.0 * minutes

    def of(self, stage: str) -> "Study":
        """The same profile seen from another stage."""
        return Study(stage, self.profile)

    def handed_on(self, name: str) -> Path:
        """A result of this stage that others start from, as this profile made it.

        Where the recorded profile has not made it yet, the shipped copy in data/recorded.
        """
        made = self.build / "results" / self.stage / name
        copy = self.data / "handed-on" / name
        return copy if self.recorded_only and not made.exists() and copy.exists() else made

    @cached_property
    def machine(self) -> dict:
        """The machine that the data are from, as ``{"machine": …, "replaced": […]}``; a stage that
        was recorded on another one has its own.
        """
        if self.recorded_only:
            own = self.data / "machine.json"
            return read_json(own if own.exists() else self.of("00-machine").data / own.name)
        from .machine import describe, doctor

        measured = {"machine": describe().to_dict(), "replaced": doctor().replaced()}
        return json.loads(to_json(measured))  # in the order in which others will read it

    def save_machine(self) -> Path:
        """Write the machine beside the data, so that a recorded campaign carries it."""
        folder = self.results if self.recorded_only else self.data
        return write_json(folder / "machine.json", self.machine)

    def cached(
        self, name: str, function: "Callable[..., DataFrame]", *arguments: Any, **options: Any
    ) -> "DataFrame":
        """The table ``function(*arguments, **options)``, kept with the data of this stage.

        A recorded campaign reads the shipped table if it is of the same arguments
        (`nbhelpers.slow_tables`).
        """
        from .slow_tables import cached_table

        more = {"recorded_only": self.recorded_only, **options}
        return cached_table(self.data / f"{name}.csv", function, *arguments, **more)

    def table(
        self,
        frame: "DataFrame",
        name: str,
        *,
        note: str = "",
        key: bool | Sequence[str] = False,
        **options: Any,
    ) -> "Shown":
        """Save a table with the results of this stage and show it; the paper repeats it.

        Its caption stands in the text of the notebook: see `captions`.

        Parameters
        ----------
        frame, name
            The arguments of `nbhelpers.report.save_table`.
        note
            What the caption cannot know before the data are there, such as how many runs there
            are; shown beneath the table, and after the caption in the paper.
        key
            The table that the page is about, one of them: all others are folded. Of a long one
            the first rows are shown; of a wide one the columns that are named here.
        options
            `published`, `formats` and `why` of `nbhelpers.report.save_table`.
        """
        from .report import Shown, first_html, save_table

        caption = self.caption(name)
        whole = f"{caption} {note}".strip()
        record = save_table(frame, name, whole, self.results, source=self.source, **options)
        note = record.caption.removeprefix(caption).strip()
        columns = () if isinstance(key, bool) else key
        first = first_html(record.frame, columns, options.get("formats")) if key else ""
        return Shown(record, note, bool(key), first)

    def figure(
        self,
        drawing: "Drawing",
        name: str,
        data: "DataFrame",
        note: str = "",
    ) -> "Shown":
        """Save a figure with the results of this stage and show it; the paper repeats it.

        Its caption stands in the text of the notebook: see `captions`.

        Parameters
        ----------
        drawing, name, data
            The arguments of `nbhelpers.report.save_figure`.
        note
            What the caption cannot know, as in `table`. Without data the figure is the note.
        """
        from .empty import because, why_empty
        from .report import Shown, save_figure

        caption = f"{self.caption(name)} {note}".strip()
        data = because(data, why_empty(data) or note)
        record = save_figure(drawing, name, caption, data, self.results, self.source)
        return Shown(record, note)

    def caption(self, name: str) -> str:
        """The caption of a table or figure; its name, where the notebook's text has none."""
        return captions(self.stage).get(name, f"{name[0].upper()}{name[1:]}.".replace("-", " "))

    def text(self, *sentences: str) -> "Text":
        """Sentences that were computed from the data, to stand beneath what they read."""
        from .report import Text

        return Text(sentences)

    def history(self) -> list[str]:
        """How the data came about, where they were not measured in one go: what was added later,
        what was put aside and why.
        """
        notes = []
        for path in sorted(self.data.rglob("*.json")):
            inside = "aside" not in path.relative_to(self.data).parts
            record = read_json(path) if inside and path.stat().st_size < _MOST_BYTES else None
            name = path.parent.name if path.name == "campaign.json" else path.stem
            if isinstance(record, dict):
                notes += [f"{name}, {note}" for note in record.get("notes", [])]
        return notes

    def header(self) -> "Findings":
        """Show the top of the page: the place of the answer, then machine, profile and limits.

        From here on figures have the style of `nbhelpers.palette`.

        Returns
        -------
        The place for what was found, filled in at the end, when it is known.

        Raises
        ------
        InputError
            A parameter that the notebook does not have, or with a value that makes no sense.
        """
        from IPython import get_ipython
        from IPython.display import display

        from .profiles import check_cells

        if shell := get_ipython():
            check_cells(self.stage, shell.user_ns.get("In", []))
        use_style()
        # With a handful of runs much cannot be computed: tables have no number there, and say why.
        for text in ("divide by zero", "invalid value", "Mean of empty", "Degrees of freedom"):
            warnings.filterwarnings("ignore", text, RuntimeWarning)
        found = Findings(self)
        display(Header(self))
        return found


def captions(stage: str) -> dict[str, str]:
    """Captions of a notebook's tables and figures, by name, as its text has them.

    Each is a paragraph that begins with ``**Table `NAME`.**`` or ``**Figure `NAME`.**``. A copy of
    the notebook in the current folder, where its kernel runs, comes before the shipped one.
    """
    return {
        name: " ".join(caption.split())
        for text in _texts(stage)
        for name, caption in _CAPTION.findall(text)
    }


def question(stage: str) -> str:
    """The question that a notebook answers: its title."""
    titles = [text.splitlines()[0] for text in _texts(stage) if text.startswith("# ")]
    return titles[0].removeprefix("# ").strip() if titles else stage


def _texts(stage: str) -> list[str]:
    """The text cells of a notebook."""
    files = (Path.cwd() / f"{stage}.ipynb", notebook_files().get(stage))
    path = next((file for file in files if file and file.exists()), None)
    cells = read_json(path)["cells"] if path else []
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


class Findings:
    """What a notebook found, in one to three sentences, shown above the work that found it."""

    def __init__(self, study: Study):
        from IPython.display import HTML, display

        from .page import top_html

        self.path, self._study = study.results / "found.json", study
        self._place = display(
            HTML(top_html("<em>What was found stands here when the notebook has run.</em>")),
            display_id=True,
        )

    def show(self, answer: Answer, *sentences: str) -> None:
        """Show the answer to the title at the top of the page, and write it down for the paper.

        Parameters
        ----------
        answer
            To the question in the title.
        sentences
            What else was found.
        """
        from IPython.display import HTML

        from .page import top_html
        from .report import folded_html, found_html

        stage = self._study.stage
        write_answer(self.path, stage, question(stage), answer, sentences)
        if self._place is not None:
            summary = "These data were not measured in one go"
            more = found_html(sentences) + folded_html(summary, self._study.history())
            self._place.update(HTML(top_html(answer._repr_html_() + more)))


@dataclass(frozen=True)
class Header:
    """The lines at the top of a page; shows itself in a notebook."""

    study: Study

    def _repr_html_(self) -> str:
        from .page import limits_html, top_html

        return top_html(limits_html(self._provenance(), self._limits()))

    def __repr__(self) -> str:
        return f"Study {self.study.stage}, profile {self.study.profile}"

    def _limits(self) -> list[str]:
        """What the machine of a recorded campaign replaced, or what this stage replaces here, as
        the doctor promised; and what cannot be told from the data.
        """
        study, shared, notes = self.study, self.study.shared, []
        if "smoke" in (study.profile, shared.get("profile")):
            notes.append(
                "Profile smoke: a handful of runs to see that everything works. No conclusion can"
                " be drawn from them."
            )
        if not study.recorded_only:
            from .promise import replaced_or_left_out

            return [*notes, *replaced_or_left_out(study.profile, study.stage)]
        source = "the recorded campaign in data/recorded"
        if shared:
            about = f"profile {shared['profile']}, Noisebook {shared['noisebook']}"
            source = f"a shared study ({about})"
        here = "Nothing on this page was measured on this machine: it was regenerated from"
        return [*notes, f"{here} {source}.", *study.machine["replaced"]]

    def _provenance(self) -> str:
        from .machine.description import in_words

        study = self.study
        of = "several machines, compared on" if study.stage == MACHINES else "your program"
        whose = of if study.folder else f"profile {study.profile}"
        source = "regenerated from the recorded campaign" if study.recorded_only else ""
        return " · ".join(filter(None, [whose, source, in_words(study.machine["machine"])]))
