"""Plain-text interface for labelling a random sample: its commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from auditor.domain.decisions import REVIEW_ASPECTS
from auditor.errors import UsageError, did_you_mean, format_count
from auditor.review.conflict_list import format_progress
from auditor.review.labelling import LabelDraft, LabelQueue, OpenUnit
from auditor.storage.probe_results import list_label_kinds
from auditor.tui.formatting import (
    NOTHING_LEFT_TO_LABEL,
    describe_label,
    describe_missing,
    describe_open_next_unit,
    describe_own_agreement,
    to_multiline,
    to_single_line,
)
from auditor.tui.key_bindings import command_help
from auditor.tui.plain_text import Commands, require_alone
from auditor.tui.plain_text_review import parse_number
from auditor.tui.settings import ReviewSettings

ASPECT_ANSWERS = {"yes": True, "no": False, "none": None}


class PlainTextLabelling:
    """Labelling in plain text: one method per command.

    Args:
        write_line: prints one line.
    """

    def __init__(self, queue: LabelQueue, settings: ReviewSettings, write_line: Callable[[str], None]) -> None:
        self.queue = queue
        self.settings = settings
        self.write_line = write_line
        self._opened: OpenUnit | None = None
        self._printed_instructions = ""
        self._n_reported_missing = 0

    @property
    def opened(self) -> OpenUnit:
        """The open unit; UsageError if none is open."""
        if self._opened is None:
            raise UsageError("no text is open.", "Enter 'next', or 'open' and a number.")
        return self._opened

    def show_next(self, argument: str) -> None:
        """Open the next unit that is left, other than the open one."""
        opened = self.queue.load_next(after=self._opened.unit if self._opened else None)
        if len(self.queue.missing) > self._n_reported_missing:
            self._n_reported_missing = len(self.queue.missing)
            self.write_line(describe_missing(self.queue.missing))
        if opened is None:
            self.write_line(NOTHING_LEFT_TO_LABEL)
        else:
            self._show(opened)

    def open_number(self, argument: str) -> None:
        """Open the unit of a number in the sample."""
        number = parse_number(argument, self.queue.n_units)
        self._show(self.queue.load(self.queue.session.sample[number - 1].unit))

    def show_current(self, argument: str) -> None:
        self._printed_instructions = ""
        self._show(self.opened)

    def _show(self, opened: OpenUnit) -> None:
        """Print a unit as the judge is shown it; what the judge is told is printed if it differs from the last one."""
        self._opened, item = opened, opened.item
        place = (
            f"{format_count(opened.position)} of {format_count(self.queue.n_units)}"
            if opened.position
            else "that is not in the sample"
        )
        self.write_line(f"Text {place}.")
        if item.missing:
            self.write_line(f"It cannot be labelled. {item.missing}")
            return
        if item.instructions != self._printed_instructions:
            self._printed_instructions = item.instructions
            self.write_line("What the judge was told:")
            self._write_text(item.instructions)
        self.write_line("What the judge was shown:")
        self._write_text(item.material)
        choices = ", ".join(
            f"{number} {choice.label}" for number, choice in enumerate(opened.unit.kind.choices, start=1)
        )
        self.write_line(f"{item.question} {choices}.")
        if opened.label is not None or opened.draft.aspects:
            self.write_line(f"Your label: {describe_label(opened)}.")
        if opened.draft.note:
            self.write_line(f"Your note: {to_single_line(opened.draft.note)}")

    def _write_text(self, text: str) -> None:
        self.write_line("  " + to_multiline(text).replace("\n", "\n  "))

    def choose(self, number: int) -> None:
        """Save the answer of a number, from 1, and open the next unit."""
        opened = self.opened
        choices = opened.unit.kind.choices
        if number > len(choices):
            raise UsageError(f"there is no answer {number}.", f"Enter a number from 1 to {len(choices)}.")
        if opened.item.missing:
            raise UsageError("there is nothing to label.", opened.item.missing)
        self._opened = self.queue.save_value(opened, choices[number - 1].value)
        self.write_line(f"Saved: {describe_label(self._opened)}.")
        self.show_progress("")
        if self.settings.open_next:
            self.show_next("")

    def save_note(self, argument: str) -> None:
        """Write a note; it is saved with the label."""
        text, pending_text = (
            ("Note saved.", "The note will be saved with your label.") if argument else ("Note removed.",) * 2
        )
        self._save_draft(replace(self.opened.draft, note=argument), text, pending_text)

    def save_aspect(self, argument: str) -> None:
        """Answer the question about an aspect of the open unit with yes, no or none."""
        word, _, answer_text = argument.lower().partition(" ")
        questions = self.opened.item.aspects
        names = {aspect.label: aspect.name for aspect in REVIEW_ASPECTS if aspect.name in questions}
        if not names:
            raise UsageError("judges are not asked about aspects of this text.", "Enter a label instead.")
        if word not in names:
            raise UsageError(f"there is no aspect '{to_single_line(word)}'.", did_you_mean(word, names, _list(names)))
        answer_text = answer_text.strip()
        if answer_text not in ASPECT_ANSWERS:
            raise UsageError(f"'{to_single_line(answer_text)}' is no answer.", f"Enter: aspect {word} yes, no or none.")
        answers = {name: answer for name, answer in self.opened.draft.aspects.items() if name != names[word]}
        answer = ASPECT_ANSWERS[answer_text]
        if answer is not None:
            answers[names[word]] = answer
        text = f"{word} ({questions[names[word]]}): {answer_text}."
        pending_text = f"{text} It will be saved with your label."
        self._save_draft(replace(self.opened.draft, aspects=answers), text, pending_text)

    def _save_draft(self, draft: LabelDraft, text: str, pending_text: str) -> None:
        """Keep a draft, or save it with the label that the unit has; print which of the two was done."""
        self._opened = self.queue.save_draft(self.opened, draft)
        self.write_line(text if self._opened.label is not None else pending_text)

    def skip(self, argument: str) -> None:
        """Go to the next unit; this one comes again at the end."""
        self.queue.skip(self.opened.unit)
        self.show_next("")

    def undo(self, argument: str) -> None:
        """Undo the rater's last label, and print its unit."""
        require_alone("undo", argument)
        opened = self.queue.undo()
        if opened is None:
            self.write_line("There is nothing to undo.")
        else:
            self.write_line("Undone.")
            self._show(opened)

    def show_progress(self, argument: str) -> None:
        """Print what is left, the pace, the time to go, and the agreement with another rater."""
        self.write_line(f"{format_progress(self.queue.session.load_progress())}.")
        agreement = self.queue.load_own_agreement()
        if agreement is not None:
            text = describe_own_agreement(agreement, self.queue.session.rater)
            self.write_line(f"{text[:1].upper()}{text[1:]}.")

    def toggle_open_next(self, argument: str) -> None:
        """Turn automatic opening of the next unit on or off; `on` and `off` say which."""
        self.settings.toggle_open_next(argument)
        self.write_line(describe_open_next_unit(self.settings.open_next))


def _list(names: object) -> str:
    return f"Aspects: {', '.join(names)}."  # type: ignore[arg-type]


def _make_choose_command(number: int) -> tuple[Callable[[PlainTextLabelling, str], None], str]:
    """Build the command that saves the answer of a number, with its help text."""

    def choose(labelling: PlainTextLabelling, argument: str) -> None:
        require_alone(str(number), argument)
        labelling.choose(number)

    return choose, f"save answer number {number} of those listed."


def _make_word_command(word: str) -> tuple[Callable[[PlainTextLabelling, str], None], str]:
    """Build the command that saves an answer by its word, such as `valid`, with its help text."""

    def choose(labelling: PlainTextLabelling, argument: str) -> None:
        require_alone(word, argument)
        words = [choice.label.lower() for choice in labelling.opened.unit.kind.choices]
        if word not in words:
            raise UsageError(f"'{word}' is no answer to this question.", f"Enter one of: {', '.join(words)}.")
        labelling.choose(1 + words.index(word))

    return choose, f"save the answer '{word}', if it is listed."


LABEL_COMMANDS: Commands[PlainTextLabelling] = {
    **{
        str(number): _make_choose_command(number)
        for number in range(1, 1 + max(len(kind.choices) for kind in list_label_kinds()))
    },
    **{
        word: _make_word_command(word)
        for word in dict.fromkeys(choice.label.lower() for kind in list_label_kinds() for choice in kind.choices)
    },
    "aspect": (PlainTextLabelling.save_aspect, "answer on an aspect, as in: aspect culture yes; or no, or none."),
    "next": (PlainTextLabelling.show_next, command_help("next", "label")),
    "skip": (PlainTextLabelling.skip, command_help("skip", "label")),
    "open": (PlainTextLabelling.open_number, "open the text of a number in the sample, as in: open 12"),
    "show": (PlainTextLabelling.show_current, "show the open text again, and what the judge was told."),
    "note": (PlainTextLabelling.save_note, "write a note, which is saved with your label, as in: note too short"),
    "undo": (PlainTextLabelling.undo, command_help("undo", "label")),
    "todo": (PlainTextLabelling.show_progress, "show what is done and left, your pace and the time to go."),
    "open-next": (
        PlainTextLabelling.toggle_open_next,
        "turn automatic opening of the next text on or off, as in: open-next off",
    ),
}
"""Function and help text by command; `auditor.tui.key_bindings` names these commands as `plain_text_command`."""
