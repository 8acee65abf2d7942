"""Data sets of questions: TruthfulQA and HellaSwag as multiple-choice items, and the Moral Integrity Corpus."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from auditor.domain import OPTION_LETTERS, derive_seed
from auditor.errors import ImportFileError, pluralize
from auditor.imports.published import (
    ConversionOptions,
    DatasetFormat,
    PublishedDataset,
    PublishedKnownAnswer,
    PublishedQuestion,
    PublishedRule,
    PublishedTaskItem,
    read_records,
    select_split,
    unknown_split_error,
)
from auditor.input_files import read_text
from auditor.probes.semantic.records import FOUNDATIONS
from auditor.surveys.row_reader import TextRow, read_rows
from auditor.tasks.answers import parse_number
from auditor.text_safety import truncate_text

OPTION_SEPARATOR = "|"
NO_AGREEMENT = -1
MAX_TABLE_BYTES = 100_000_000
HELLASWAG_QUESTION = "Which of these continues the text best?"


class _BestAnswer(NamedTuple):
    """A question of TruthfulQA, its best answer and its wrong ones."""

    question: str
    best: str
    wrong: Sequence[str]


def read_truthful_qa(source: Path, options: ConversionOptions) -> PublishedDataset:
    """Read TruthfulQA: per question, the best answer among the wrong ones (MC1), in random order.

    `source` is `TruthfulQA.csv`, `mc_task.json` or a copy of the latter with lists of choices and labels. The order is
    random since `mc_task.json` always has the best answer first. Wrong answers with the same text count once.
    """
    answers = _read_answer_table(source) if source.suffix.lower() == ".csv" else _read_answer_targets(source)
    items, questions = [], []
    n_changed = 0
    left_out: Counter[str] = Counter()
    for number, answer in enumerate(answers, start=1):
        question_id = f"truthful-qa-{number}"
        choices = list(dict.fromkeys([answer.best, *answer.wrong]))
        if flaw := _find_flaw(choices):
            left_out[flaw] += 1
            continue
        rng = np.random.default_rng(derive_seed(options.seed, "published", question_id))
        shuffled = [choices[index] for index in rng.permutation(len(choices))]
        n_changed += any(OPTION_SEPARATOR in choice for choice in choices)
        items.append(_build_task_item(question_id, answer.question, shuffled, answer.best))
        questions.append(PublishedQuestion(question_id, answer.question))
    notes = [f"Questions: {len(items)}.", *_describe_left_out(left_out), *_describe_separators(n_changed)]
    known_answers = [_build_known_answer(item) for item in items]
    return PublishedDataset({"items": items, "questions": questions, "known-answers": known_answers}, notes)


def _read_answer_table(source: Path) -> Iterator[_BestAnswer]:
    """Yield the questions of `TruthfulQA.csv`, whose answers are separated by semicolons."""
    for row in read_rows(source, ("Question", "Best Answer", "Incorrect Answers")):
        wrong = [answer.strip() for answer in row.required_text("Incorrect Answers").split(";") if answer.strip()]
        yield _BestAnswer(row.required_text("Question"), row.required_text("Best Answer"), wrong)


def _read_answer_targets(source: Path) -> Iterator[_BestAnswer]:
    """Yield the questions of `mc_task.json`: `mc1_targets` has 1 for the best answer, and 0 for the others."""
    for record in read_records(source):
        targets = record.child("mc1_targets")
        if "choices" in targets.fields:
            choices, labels = targets.texts("choices"), targets.numbers("labels")
            if len(choices) != len(labels):
                raise targets.make_error(
                    "labels", f"has {pluralize(len(labels), 'label')} for {pluralize(len(choices), 'choice')}"
                )
        else:
            choices, labels = list(targets.fields), [targets.number(choice) for choice in targets.fields]
        best, wrong = (
            list(
                dict.fromkeys(
                    text.strip() for text, label in zip(choices, labels, strict=True) if (label == 1) == right
                )
            )
            for right in (True, False)
        )
        if len(best) != 1:
            raise record.make_error("mc1_targets", f"has {len(best)} right answers, not one")
        if best[0] in wrong:
            raise record.make_error("mc1_targets", f"says of '{truncate_text(best[0])}' that it is right and wrong")
        question = record.text("question").strip()
        if not question:
            raise record.make_error("question", "is empty")
        yield _BestAnswer(question, best[0], wrong)


def read_hellaswag(source: Path, options: ConversionOptions) -> PublishedDataset:
    """Read HellaSwag: per context, its four endings in the published order. Endings of the test split have no truth.

    Items with an empty or a repeated ending are left out, since a model could not choose among them.
    """
    items = []
    n_changed = 0
    left_out: Counter[str] = Counter()
    for number, record in enumerate(select_split(read_records(source), options.split), start=1):
        endings = [ending.strip() for ending in record.texts("endings")]
        label = record.fields.get("label")
        truth = "" if label in (None, "") else endings[record.position("label", len(endings))]
        context = record.text("ctx").strip()
        if flaw := "no context" if not context else _find_flaw(endings):
            left_out[flaw] += 1
            continue
        n_changed += any(OPTION_SEPARATOR in ending for ending in endings)
        items.append(_build_task_item(f"hellaswag-{number}", HELLASWAG_QUESTION, endings, truth, context))
    known_answers = [_build_known_answer(item) for item in items if item.truth]
    notes = [f"Items: {len(items)}.", *_describe_left_out(left_out), *_describe_separators(n_changed)]
    return PublishedDataset({"items": items, "known-answers": known_answers}, notes)


def _find_flaw(choices: Sequence[str]) -> str:
    """Why a model cannot choose among these choices, as they are written; empty if it can."""
    written = [choice.replace(OPTION_SEPARATOR, "/") for choice in choices]
    if "" in written:
        return "an empty choice"
    if len(set(written)) < len(written):
        return "two equal choices"
    return "fewer than two choices" if len(written) < 2 else ""


def _describe_left_out(left_out: Counter[str]) -> list[str]:
    """A sentence on the items that were left out, by reason; none if there are none."""
    return [f"Left out: {', '.join(f'{n} with {flaw}' for flaw, n in left_out.items())}."] if left_out else []


def _build_task_item(
    item_id: str, question: str, choices: Sequence[str], truth: str, context: str = ""
) -> PublishedTaskItem:
    """Join the choices of an item; a separator within a choice is written as a slash."""
    joined = OPTION_SEPARATOR.join(choice.replace(OPTION_SEPARATOR, "/") for choice in choices)
    return PublishedTaskItem(item_id, question, joined, truth.replace(OPTION_SEPARATOR, "/"), context)


def _build_known_answer(item: PublishedTaskItem) -> PublishedKnownAnswer:
    """An item as a question with a known answer, whose context is part of the question."""
    question = f"{item.question} {item.context}" if item.context else item.question
    return PublishedKnownAnswer(item.id, question, item.options, item.truth)


def _describe_separators(n_changed: int) -> list[str]:
    """A sentence on the items with a changed choice; none if there are none."""
    return [f"Items in which | within a choice was written as /: {n_changed}."] if n_changed else []


MMLU_COLUMNS = ("question", "A", "B", "C", "D", "answer")
GSM8K_ANSWER_MARK = "####"


def read_mmlu(source: Path, options: ConversionOptions) -> PublishedDataset:
    """Read MMLU: the authors' table of a subject without a header, or a copy with a list `choices`.

    A table has the columns question, A, B, C, D and answer, a letter; a file of records has `question`, `choices`,
    `answer` (the position of the right one, from 0, or its letter) and, where there are several, `subject`. Items with
    an empty or a repeated choice are left out.
    """
    items = []
    n_changed = 0
    left_out: Counter[str] = Counter()
    records = _read_mmlu_table(source) if source.suffix.lower() == ".csv" else _read_mmlu_records(source)
    for number, (subject, question, choices, truth) in enumerate(records, start=1):
        if flaw := "no question" if not question else _find_flaw(choices):
            left_out[flaw] += 1
            continue
        n_changed += any(OPTION_SEPARATOR in choice for choice in choices)
        item_id = "-".join(filter(None, ("mmlu", subject, str(number))))
        items.append(_build_task_item(item_id, question, choices, truth))
    notes = [f"Items: {len(items)}.", *_describe_left_out(left_out), *_describe_separators(n_changed)]
    return PublishedDataset({"items": items, "known-answers": [_build_known_answer(item) for item in items]}, notes)


def _read_mmlu_table(source: Path) -> Iterator[tuple[str, str, list[str], str]]:
    """Yield subject, question, choices and right choice of a table of a subject, which has the name of its file."""
    subject = re.sub(r"_(?:test|val|dev)$", "", source.stem)
    rows = csv.reader(io.StringIO(read_text(source, ImportFileError, max_bytes=MAX_TABLE_BYTES)))
    for number, row in enumerate(rows, start=1):
        if not row or [cell.strip() for cell in row] == list(MMLU_COLUMNS):
            continue
        question, *choices, letter = (cell.strip() for cell in row)
        letters = OPTION_LETTERS[: len(choices)]
        if len(row) != len(MMLU_COLUMNS) or letter not in letters or not letter:
            raise ImportFileError(
                f"{source}, row {number}: is not question, A, B, C, D and the letter of the right answer.",
                "Check that it is a file of MMLU, such as test/anatomy_test.csv.",
            )
        yield subject, question, choices, choices[letters.index(letter)]


def _read_mmlu_records(source: Path) -> Iterator[tuple[str, str, list[str], str]]:
    """Yield subject, question, choices and right choice of a file of records."""
    for record in read_records(source):
        choices = [choice.strip() for choice in record.texts("choices")]
        answer = record.fields.get("answer")
        if isinstance(answer, str) and answer.strip() in OPTION_LETTERS[: len(choices)] and answer.strip():
            position = OPTION_LETTERS.index(answer.strip())
        else:
            position = record.position("answer", len(choices))
        yield record.optional_text("subject").strip(), record.text("question").strip(), choices, choices[position]


def read_gsm8k(source: Path, options: ConversionOptions) -> PublishedDataset:
    """Read GSM8K: records with `question` and `answer`, whose last line is the right number after `####`."""
    items = []
    for number, record in enumerate(read_records(source), start=1):
        _, mark, truth = record.text("answer").rpartition(GSM8K_ANSWER_MARK)
        truth = truth.strip().replace(",", "")
        if not mark or parse_number(truth) is None:
            raise record.make_error("answer", f"has no number after {GSM8K_ANSWER_MARK}")
        items.append(PublishedTaskItem(f"gsm8k-{number}", record.text("question").strip(), "", truth))
    return PublishedDataset({"items": items}, [f"Items: {len(items)}."])


def read_mic(source: Path, options: ConversionOptions) -> PublishedDataset:
    """Read the Moral Integrity Corpus: its questions, and for each the rule of thumb that most people agree with.

    A row has a question, a chatbot's answer and an annotator's rule. A question's foundation is the one that its rows
    name most often; it has none in a tie. Of its rules, the first with the highest `rot-agree` (1 to 5) is taken.
    """
    foundations: dict[str, Counter[str]] = {}
    best_rules: dict[str, tuple[float, str]] = {}
    n_rules = 0
    splits: set[str] = set()
    for row in read_rows(source, ("Q", "rot"), ("moral", "rot-agree", "split")):
        splits.add(row.cells["split"])
        if options.split and row.cells["split"] != options.split:
            continue
        question, rule = row.required_text("Q"), row.cells["rot"]
        named = [name.strip().lower() for name in row.cells["moral"].split("|") if name.strip()]
        if unknown := [name for name in named if name not in FOUNDATIONS]:
            how_to_fix = f"Use {', '.join(FOUNDATIONS)}, separated by |."
            raise row.make_cell_error("moral", f"'{unknown[0]}' is not a moral foundation", how_to_fix)
        foundations.setdefault(question, Counter()).update(named)
        agreement = _read_agreement(row)
        if rule:
            n_rules += 1
            if question not in best_rules or agreement > best_rules[question][0]:
                best_rules[question] = (agreement, rule)
    if options.split and options.split not in splits:
        raise unknown_split_error(options.split, splits)
    if not foundations:
        raise ImportFileError(f"{source}: has no rows.", "Check that it is the right file.")
    return _build_moral_dataset(foundations, best_rules, n_rules)


def _read_agreement(row: TextRow) -> float:
    """How many people agree with a rule, from 1 to 5; -1, which the authors' program writes, where it was not said."""
    agreement = row.number("rot-agree")
    if agreement is None:
        return NO_AGREEMENT
    if agreement != NO_AGREEMENT and not 1 <= agreement <= 5:
        problem = f"{agreement:g} is not on the scale from 1 to 5"
        raise row.make_cell_error("rot-agree", problem, f"Write 1 to 5, or {NO_AGREEMENT} if nothing was said.")
    return agreement


def _build_moral_dataset(
    foundations: dict[str, Counter[str]], best_rules: dict[str, tuple[float, str]], n_rules: int
) -> PublishedDataset:
    """Number the questions by their first row, and describe what was counted."""
    questions, rules = [], []
    for number, (question, counts) in enumerate(foundations.items(), start=1):
        question_id = f"mic-{number}"
        topics = OPTION_SEPARATOR.join(name for name in FOUNDATIONS if counts[name])
        ranked = counts.most_common(2)
        questions.append(
            PublishedQuestion(
                question_id,
                question,
                ("" if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]) else ranked[0][0]),
                topics,
            )
        )
        if question in best_rules:
            rules.append(PublishedRule(question_id, best_rules[question][1]))
    n_without = sum(not question.foundation for question in questions)
    notes = [
        f"Questions: {len(questions)}, of them without one most frequent foundation: {n_without}.",
        f"Rules of thumb by people: {n_rules}, of them used, one for each question: {len(rules)}.",
    ]
    return PublishedDataset({"questions": questions, "rules": rules}, notes)


FORMATS: Mapping[str, DatasetFormat] = {
    "truthful-qa": DatasetFormat(read_truthful_qa, kinds=("items", "questions", "known-answers")),
    "hellaswag": DatasetFormat(
        read_hellaswag,
        kinds=("items", "known-answers"),
        used_options=frozenset({"split"}),
        layout_source="the authors' documentation",
    ),
    "mmlu": DatasetFormat(read_mmlu, kinds=("items", "known-answers"), layout_source="the authors' documentation"),
    "gsm8k": DatasetFormat(read_gsm8k, layout_source="the authors' documentation"),
    "mic": DatasetFormat(
        read_mic,
        kinds=("questions", "rules"),
        used_options=frozenset({"split"}),
        layout_source="the authors' program that writes the file",
    ),
}
"""The data sets by name."""
