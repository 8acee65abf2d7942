"""Plain text for screen readers: audits, conflicts and evidence as sentences, and the loop that reads commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, TextIO, TypeVar

from auditor.domain import Decision, Outcome, Ruling, Verdict
from auditor.errors import AuditorError, UsageError, did_you_mean
from auditor.reports.number_format import format_share, format_usd, pluralize
from auditor.review.item import JUDGE_ADDRESS_LABEL, ReviewItem, addresses_its_judge
from auditor.storage.conflict_status import UNSETTLED, QueueRow
from auditor.storage.overview import AuditOverview
from auditor.tui.formatting import (
    EFFECT_REASONS,
    STATUS_LABELS,
    describe_decision,
    format_cell,
    format_outcome,
    split_norms,
    to_multiline,
    to_single_line,
)


def describe_audit(number: int, overview: AuditOverview) -> str:
    """Describe an audit in one line."""
    n_waiting = sum(map(overview.conflicts.__getitem__, UNSETTLED))
    run_state = "stopped" if overview.runner is None else "running"
    state = "done" if overview.is_finished else f"{run_state} at stage {to_single_line(overview.audit.stage)}"
    progress = "" if overview.progress is None else f", {format_share(overview.progress)} of the samples done"
    progress += "".join(f", {answers}" for answers in overview.describe_probe_answers())
    usable = "" if overview.usable_share is None else f", {format_share(overview.usable_share)} of them usable"
    at_least = "at least " if overview.unpriced else ""
    amount = format_usd(overview.cost_usd)
    cost = f"cost {amount}" if overview.cost_usd is None else f"cost {at_least}{amount.removeprefix('$')} dollars"
    name = to_single_line(overview.audit.name)
    waiting = f"{n_waiting} of {pluralize(overview.n_conflicts, 'conflict')} not settled"
    return f"{number}. {name}: {state}{progress}{usable}, {cost}, {waiting}."


def describe_queue_row(position: int, row: QueueRow) -> str:
    """Describe a conflict of the queue in one line."""
    decision_text = (
        "undecided"
        if row.decision is None or not row.decision.resolves_conflict
        else describe_spoken_decision(row.decision, row.score)
    )
    flag_note = ", flagged" if row.flagged else ""
    left = _format_spoken_answer(row.score_left, row.answer_left)
    right = _format_spoken_answer(row.score_right, row.answer_right)
    scores = f"left {left}, right {right}"
    heading = f"{format_cell(row.key.country, row.key.topic)}: {row.kind.label}"
    return f"{position}. {heading}, {scores}, {STATUS_LABELS[row.status]}, yours: {decision_text}{flag_note}."


def describe_item(item: ReviewItem) -> Iterator[str]:
    """Yield lines that describe a conflict, as far as the rater may see it."""
    yield f"{format_cell(item.key.country, item.key.topic)}. {to_single_line(item.question)}"
    second_opinion_note = " A second opinion is needed." if item.needs_second_rater else ""
    yield f"Kind: {item.row.kind.label}. State: {STATUS_LABELS[item.row.status]}.{second_opinion_note}"
    if item.effect is not None:
        yield f"Why this conflict: {EFFECT_REASONS[item.effect]}"
    for name, side in (("Left", item.left), ("Right", item.right)):
        samples = [sample for sample in side.samples if sample.score is not None or sample.answer is not None]
        scores = ", ".join(_format_spoken_answer(sample.score, sample.answer) for sample in samples) or "none"
        verb = "scores" if side.answer is None else "answers"
        n_without = len(side.samples) - len(samples)
        without = f"; {n_without} without {'a score' if side.answer is None else 'an answer'}" if n_without else ""
        yield f"{name} {verb} {_format_spoken_answer(side.score, side.answer)}; its samples: {scores}{without}."
    yield from describe_samples(item, 0)
    if item.row.note:
        yield f"Your note: {to_single_line(item.row.note)}"
    if item.row.flagged:
        yield "You flagged it."
    if item.revealed:
        yield from describe_hidden_evidence(item)
    else:
        truth_name = "survey" if item.key.country else "the correct answer"
        if item.decision is not None and item.decision.resolves_conflict:
            yield f"Your decision: {describe_spoken_decision(item.decision, item.row.score)}."
            yield f"Authors, verdicts and {truth_name} are still hidden: 'reveal' shows them."
        else:
            *first, last = item.possible_decisions
            yield f"Authors, verdicts and {truth_name} are hidden until you decide: {', '.join(first)}, or {last}."
        if item.disclosed_elsewhere:
            yield "You have seen evidence on this cell in another conflict. Your decision counts, but not as blind."


def describe_samples(item: ReviewItem, sample_index: int) -> Iterator[str]:
    """Yield both sides' reasoning in one sample; after the last sample follows the first again."""
    for name, side in (("Left", item.left), ("Right", item.right)):
        if not side.samples:
            yield f"{name} has no sample."
            continue
        sample = side.samples[sample_index % len(side.samples)]
        is_usable = sample.score is not None or sample.answer is not None
        score = _format_spoken_answer(sample.score, sample.answer) if is_usable else format_outcome(sample.outcome)
        mark = f", {JUDGE_ADDRESS_LABEL}" if addresses_its_judge(sample) else ""
        yield f"{name}, sample {sample.number + 1} of {len(side.samples)}, {score}{mark}:"
        for label, part in split_norms(sample.text or "no text", has_norms=item.has_norms and is_usable):
            heading = f"{label}: " if label else ""
            yield f"  {heading}" + to_multiline(part).replace("\n", "\n  ")


def describe_hidden_evidence(item: ReviewItem) -> Iterator[str]:
    """Yield lines on the rater's decision, the authors, the survey or correct answer, and the verdicts."""
    if item.decision is not None and item.decision.resolves_conflict:
        yield f"Your decision: {describe_spoken_decision(item.decision, item.row.score)}."
    if item.first_decision is not None:
        yield f"Your first decision: {describe_decision(item.first_decision)}. Both decisions are kept."
    yield (
        f"Left is by {to_single_line(item.left.author or 'unknown')}, right by "
        f"{to_single_line(item.right.author or 'unknown')}."
    )
    if not item.key.country:
        yield (
            f"The correct answer is {to_single_line(item.correct_answer)}."
            if item.correct_answer is not None
            else "The correct answer is not known."
        )
    elif item.survey is None or item.survey.score is None:
        yield "The survey did not ask this in this country."
    else:
        survey_score = item.survey.score
        left_distance, right_distance = (abs((side.score or 0.0) - survey_score) for side in (item.left, item.right))
        distances = f"distance of left {left_distance:.2f}, of right {right_distance:.2f}"
        sample_size_note = "" if item.survey.n is None else f" ({pluralize(item.survey.n, 'respondent')})"
        yield f"The survey's score is {survey_score:+.2f}{sample_size_note}: {distances}."
    for name, side in (("left", item.left), ("right", item.right)):
        side_name = name
        n_valid = sum(verdict.ruling is Ruling.VALID for verdict in side.verdicts)
        n_verdicts = sum(verdict.ruling is not None for verdict in side.verdicts)
        yield (
            f"Judges on the {side_name}: {n_valid} of {n_verdicts} VALID."
            if n_verdicts
            else f"Judges on the {side_name}: no verdict."
        )
        for verdict in side.verdicts:
            yield f"  {to_single_line(verdict.judge)}, sample {verdict.sample + 1}: {_describe_verdict(verdict)}"


def describe_spoken_decision(decision: Decision, score: float | None) -> str:
    """Describe a decision, with an ASCII minus in its custom score."""
    return describe_decision(decision, score).replace("−", "-")


def _format_spoken_answer(score: float | None, answer: str | None) -> str:
    """Format an answer or score with an ASCII minus, which screen readers pronounce."""
    return to_single_line(answer) if answer is not None else "no score" if score is None else f"{score:+.2f}"


def _describe_verdict(verdict: Verdict) -> str:
    """Return a judge's ruling and justification; the outcome if there is no ruling."""
    if verdict.outcome is not Outcome.OK or verdict.ruling is None:
        return f"{verdict.outcome}."
    return f"{verdict.ruling}. {to_single_line(verdict.justification or '')}".rstrip()


COMMON_COMMANDS = {"help": "show this list.", "quit": "quit. Everything is saved."}
"""Help text by command of the loop itself."""
QUIT_COMMANDS = ("quit", "q", "exit")


class Printer(Protocol):
    """What commands act on: it prints lines."""

    @property
    def write_line(self) -> Callable[[str], None]:
        """Function that prints one line."""


P = TypeVar("P", bound=Printer)
Commands = Mapping[str, tuple[Callable[[P, str], None], str]]
"""Function and help text by command; the function gets what it acts on, and the rest of the line."""


def make_line_writer(stdout: TextIO) -> Callable[[str], None]:
    """Make a function that prints a line at once, with escapes for characters that the stream cannot encode."""

    def write_line(text: str) -> None:
        encoding = stdout.encoding or "utf-8"
        print(text.encode(encoding, "backslashreplace").decode(encoding), file=stdout, flush=True)

    return write_line


def require_alone(command: str, argument: str) -> None:
    """Raise UsageError if a word follows a command that saves or undoes something, and takes none."""
    if argument:
        raise UsageError(
            f"'{command}' was not done: it takes nothing after it, but got '{to_single_line(argument)}'.",
            f"Enter '{command}' alone.",
        )


def run_commands(target: P, stdin: TextIO, commands: Commands[P]) -> None:
    """Run the commands of a stream, one a line, until it ends or a command quits."""
    while (command_line := stdin.readline()) and _run_command(target, command_line, commands):
        pass


def _run_command(target: P, command_line: str, commands: Commands[P]) -> bool:
    """Run one command line; return False if it quits. Errors are printed, not raised."""
    command, _, argument = command_line.strip().partition(" ")
    if not command:
        return True
    typed, command = command, command.lower()
    if command in QUIT_COMMANDS:
        return False
    if command == "help":
        for name, text in ({name: text for name, (_, text) in commands.items()} | COMMON_COMMANDS).items():
            target.write_line(f"{name}: {text}")
    elif command not in commands:
        suggestion = did_you_mean(command, [*commands, *COMMON_COMMANDS], "'help' lists the commands.")
        target.write_line(f"Unknown command '{to_single_line(typed)}'. {suggestion}")
    else:
        try:
            commands[command][0](target, argument.strip())
        except AuditorError as error:
            target.write_line(to_single_line(str(error)))
    return True
