"""One side of a conflict: the samples behind its score on the scale, and their reasoning."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from auditor.domain import Outcome
from auditor.review.item import Side
from auditor.review.word_comparison import only_here
from auditor.storage.evidence import Sample
from auditor.tui.formatting import axis, content, line, marked, position, signed

SAMPLE, MEAN, TRUTH = "●", "▲", "◆"


class Scale(Widget):
    """The scale from -1 to 1 with the samples on it, the mean below, and the survey's score once it may be seen."""

    def __init__(self) -> None:
        super().__init__(classes="scale")
        self.samples: tuple[float, ...] = ()
        self.mean = 0.0
        self.truth: float | None = None

    def show(self, samples: tuple[float, ...], mean: float, truth: float | None) -> None:
        """Plot other points."""
        self.samples, self.mean, self.truth = samples, mean, truth
        self.refresh()

    def render(self) -> Content:
        width = max(self.size.width - 6, 3)
        points = [(score, SAMPLE) for score in self.samples]
        upper = axis(width, points)
        marks = [(self.mean, MEAN)] + ([(self.truth, TRUTH)] if self.truth is not None else [])
        lower = axis(width, marks).replace("─", " ").replace("┼", " ")
        return Content.assemble(("−1 ", "$text-muted"), (upper, "$primary"), (" +1", "$text-muted"), "\n   ", lower)


class SidePanel(VerticalScroll):
    """What one side says."""

    can_focus = False

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._shown: object = None

    def compose(self) -> ComposeResult:
        yield Scale()
        yield Static(classes="summary")
        yield Static(classes="reasoning")

    def show(self, name: str, side: Side, other: Side, sample: int, *, truth: float | None, marks: bool) -> None:
        """Show a side; `marks` says whether the words that only it uses are marked."""
        number = "1" if name == "left" else "2"
        author = "" if side.author is None else f" · {side.author}"
        self.border_title = Content(line(f"{number} {name}{author} · {position(side.score, side.answer)}"))
        scores = tuple(s.score for s in side.samples if s.score is not None)
        scale = self.query_one(Scale)
        scale.display = side.score is not None
        if side.score is not None:
            scale.show(scores, side.score, truth)
        self.query_one(".summary", Static).update(_summary(side, truth), layout=False)
        own, others = ordered(side), ordered(other)
        n = len(own)
        place = f"text {sample % n + 1} of {n}" if n > 1 else ""
        self.border_subtitle = content(place)
        theirs = others[sample % len(others)] if others else None
        turned = own[sample % n :] + own[: sample % n] if n else []
        shown = (turned, theirs, marks)
        if shown != self._shown:
            self._shown = shown
            pieces = [_reasoning(mine, theirs, marks=marks) for mine in turned]
            nothing = Content.styled("No sample is stored for this side.", "$text-muted")
            self.query_one(".reasoning", Static).update(Content("\n\n").join(pieces) if pieces else nothing)


def _summary(side: Side, truth: float | None) -> Content:
    ok = sum(s.outcome is Outcome.OK for s in side.samples)
    failed = len(side.samples) - ok
    if side.score is None:
        same = sum(s.answer == side.answer for s in side.samples)
        parts = [f"{same} of {ok} samples say so"]
    else:
        parts = [f"{ok} {SAMPLE}", f"mean {MEAN} {signed(side.score)}"]
    if truth is not None:
        parts.append(f"people {TRUTH} {signed(truth)}")
    if failed:
        parts.append(f"{failed} failed")
    return content(" · ".join(parts), "$text-muted")


def ordered(side: Side) -> list[Sample]:
    """The samples, those with the side's answer, or nearest to its mean, first, and those without any last."""
    return sorted(side.samples, key=lambda s: (s.score is None and s.answer is None, _far(s, side), s.number))


def _far(sample: Sample, side: Side) -> float:
    return float(sample.answer != side.answer) if side.score is None else abs((sample.score or 0.0) - side.score)


def _reasoning(mine: Sample, theirs: Sample | None, *, marks: bool) -> Content:
    is_usable = mine.score is not None or mine.answer is not None
    said = position(mine.score, mine.answer) if is_usable else mine.outcome.value
    head = Content.assemble(
        content(f"{said} ", "bold $text-primary" if is_usable else "bold $text-error"),
        (f"sample #{mine.number + 1}", "$text-muted"),
        "\n",
    )
    if mine.text is None:
        return head + Content.styled("no text came back", "$text-muted")
    spans = only_here(mine.text, theirs.text) if marks and theirs and theirs.text else []
    return head + marked(mine.text, spans, "underline $text-accent")
