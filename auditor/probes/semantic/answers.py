"""Collecting and parsing answers to moral questions, with the rule of thumb behind each."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from auditor.agents.call_runner import repeat_calls, repeat_unusable, run_audit_calls
from auditor.agents.refusals import declines_request, find_outcome_without_structure, refuses_in_reasons
from auditor.agents.run_context import RunContext
from auditor.config import REPLAY, AuditConfig, ModelSection
from auditor.domain import Answer, Call, Outcome, Purpose
from auditor.errors import ImportFileError
from auditor.metrics.answers.semantic import normalize_text
from auditor.models.reasoning import strip_thinking
from auditor.models.structured_reading import parse_structured_answer
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.call_builders import (
    Choice,
    Contradiction,
    MoralAnswer,
    Paraphrases,
    RuleOfThumb,
    Support,
    asked_text,
    build_answer_call,
    build_rule_call,
    find_country_language,
    semantic_probe,
)
from auditor.probes.semantic.records import (
    CONSISTENCY_PURPOSE,
    MoralAnswerRecord,
    MoralQuestion,
    MoralWording,
    PairVerdict,
)
from auditor.probes.semantic.settings import TASK_QUESTIONS, SemanticProbe
from auditor.prompts import load_prompt
from auditor.storage import costs, results
from auditor.storage.records import save_records
from auditor.surveys.column_reader import is_missing_marker
from auditor.surveys.row_reader import read_rows

AnswerMode = Literal["structured", "text"]
_LABEL = re.compile(r"^\W*(?:rule of thumb|rot|rule|answer)\W*?:\W*?(?=\w)", re.IGNORECASE)
_CLAUSE = r"(?:it|this|that|these|those|the|they|there|i|we|he|she|both|because|since|as)\b"
_VERDICT = re.compile(rf"\W*(?:(yes|true)|no|false)\b(?![ \t]*/|[ \t]+(?!{_CLAUSE})\w)", re.IGNORECASE)
"""The word at the beginning of a verdict, alone or before a clause; "No context was sent" and "yes/no" are none. The
prompt is English and asks for yes or no; the published example has the verdicts True and False."""
_QUOTED = re.compile(r'^[“"«„](.*)[”"»“]$', re.DOTALL)


def parse_answer(answer: Answer, mode: AnswerMode) -> tuple[Outcome, str | None]:
    """Parse an answer to a moral question: the outcome, and the text if it is `ok`."""
    if answer.outcome is not Outcome.OK or answer.text is None:
        return answer.outcome, None
    if mode == "text":
        return check_statement(strip_thinking(answer.text).strip())
    moral_answer = parse_structured_answer(MoralAnswer, answer.text)
    if isinstance(moral_answer, str):
        return find_outcome_without_structure(answer.text), None
    return check_statement(moral_answer.answer)


def parse_rule(answer: Answer, mode: AnswerMode, prompt_text: str = "") -> tuple[Outcome, str | None]:
    """Parse a rule of thumb: the outcome, and the text if it is `ok`.

    Args:
        answer: the model's answer.
        mode: `structured` or `text`.
        prompt_text: text of the prompt; a rule that it contains is rejected, since small models repeat its example.
    """
    if answer.outcome is not Outcome.OK or answer.text is None:
        return answer.outcome, None
    if mode == "text":
        rule = strip_label_and_quotes(
            next((line for line in strip_thinking(answer.text).splitlines() if line.strip()), "")
        )
    else:
        rule_of_thumb = parse_structured_answer(RuleOfThumb, answer.text)
        if isinstance(rule_of_thumb, str):
            return find_outcome_without_structure(answer.text), None
        rule = strip_label_and_quotes(rule_of_thumb.rule)
    return (Outcome.UNPARSED, None) if normalize_text(rule) in normalize_text(prompt_text) else check_statement(rule)


def parse_choice(answer: Answer, n_choices: int, request: str = "") -> tuple[Outcome, int | None, str | None]:
    """Parse a choice: the outcome, and the number of the option, from 1, and the reason if it is `ok`."""
    if answer.outcome is not Outcome.OK or answer.text is None:
        return answer.outcome, None, None
    choice = parse_structured_answer(Choice, answer.text, request)
    if isinstance(choice, str):
        return find_outcome_without_structure(answer.text), None, None
    if not 1 <= choice.choice <= n_choices:
        return Outcome.UNPARSED, None, None
    return (Outcome.REFUSED, None, None) if refuses_in_reasons(choice) else (Outcome.OK, choice.choice, choice.reason)


def strip_label_and_quotes(text: str) -> str:
    """Remove a label before a sentence ("Rule of thumb:") and quotes around it."""
    text = _LABEL.sub("", text.strip()).strip()
    quoted = _QUOTED.match(text)
    return quoted[1].strip() if quoted else text


def parse_paraphrases(answer: Answer) -> list[str]:
    """Parse the paraphrases in an answer; empty if it is invalid."""
    if answer.outcome is not Outcome.OK or answer.text is None:
        return []
    paraphrases = parse_structured_answer(Paraphrases, answer.text)
    return (
        []
        if isinstance(paraphrases, str)
        else [text for paraphrase in paraphrases.paraphrases if (text := strip_label_and_quotes(paraphrase))]
    )


def parse_pair_verdict(
    answer: Answer, purpose: Purpose, *, is_paper_form: bool = False, request: str = ""
) -> tuple[Outcome, bool | None, str | None]:
    """Parse a verdict on a pair of answers: the outcome, whether the judge says yes, and the reason.

    The last two are None unless the outcome is `ok`.

    Args:
        is_paper_form: whether the verdict is the word yes or no (or true or false) at the beginning, without a reason.
    """
    if answer.outcome is not Outcome.OK or answer.text is None:
        return answer.outcome, None, None
    if is_paper_form:
        word = _VERDICT.match(strip_thinking(answer.text))
        if word is None:
            return find_outcome_without_structure(answer.text), None, None
        return Outcome.OK, word[1] is not None, None
    schema: type[Support | Contradiction] = Support if purpose is CONSISTENCY_PURPOSE else Contradiction
    verdict = parse_structured_answer(schema, answer.text, request)
    if isinstance(verdict, str):
        return find_outcome_without_structure(answer.text), None, None
    if refuses_in_reasons(verdict):
        return Outcome.REFUSED, None, None
    return Outcome.OK, verdict.supported if isinstance(verdict, Support) else verdict.contradict, verdict.reason


def check_statement(text: str) -> tuple[Outcome, str | None]:
    """Return `ok` and a text that states something; None for one without a letter or digit, and for a refusal."""
    if not any(char.isalnum() for char in text):
        return Outcome.UNPARSED, None
    return (Outcome.REFUSED, None) if declines_request(text) else (Outcome.OK, text)


def check_recorded_statement(text: str) -> tuple[Outcome, str | None]:
    """Do what `check_statement` does for a cell of a file; not measurable is one that is empty, or says so.

    Programs write "nan" or "None" for an answer that is missing: two of them would be perfectly consistent.
    """
    return (Outcome.NOT_MEASURABLE, None) if is_missing_marker(text or None) else check_statement(text)


RECORD_COLUMNS = ("question_id", "sample", "answer")
SUBJECT_PROMPTS = ("semantic.answer{}.structured", "semantic.answer{}.text", "semantic.consistency{}")


def load_task_answers(context: RunContext, model: str, item_ids: Iterable[str]) -> list[MoralAnswerRecord]:
    """Load a model's usable answers to some items of a task."""
    task = context.survey.task
    assert task is not None
    cells = [task.items[item_id].cell for item_id in item_ids]
    return [
        MoralAnswerRecord(
            model,
            trace.cell.topic,
            0,
            trace.sample,
            trace.outcome,
            "\n".join(filter(None, [trace.text, f"Answer: {trace.answer}"])),
        )
        for trace in results.load_traces(context.db, context.audit_id, cells, model)
        if trace.outcome is Outcome.OK
    ]


def read_recorded_answers(model: ModelSection) -> list[MoralAnswerRecord]:
    """Read the answers of a model `replay/NAME`: all rows of its file, or those of NAME if the file names models.

    Raises:
        ImportFileError: the file cannot be read, has no row of the model, or has a question and sample twice.
    """
    name, file = model.unprefixed_model, Path(model.answers or "")
    answers: dict[tuple[str, int], MoralAnswerRecord] = {}
    for row in read_rows(file, RECORD_COLUMNS, ["model"]):
        if row.cells["model"] not in ("", name):
            continue
        question, sample = row.required_text("question_id"), row.integer("sample")
        if (question, sample) in answers:
            raise ImportFileError(
                f"{row.location}: two rows of '{name}' have the same question_id and sample.",
                "Give each answer its own number in the column sample, or delete the duplicate row.",
            )
        outcome, text = check_recorded_statement(row.cells["answer"])
        answers[question, sample] = MoralAnswerRecord(model.name, question, 0, sample, outcome, text)
    if not answers:
        raise ImportFileError(
            f"{file} has no row for the model '{name}'.",
            f"{REPLAY.prefix}/NAME uses the rows with that name in the column model, or without one.",
        )
    return list(answers.values())


def check_recorded_answers(config: AuditConfig, known_ids: set[str]) -> None:
    """Check the files of recorded answers.

    Raises:
        ImportFileError: as `read_recorded_answers`, or an answer is to a question that is not in `known_ids`.
    """
    for model, answers in list_recorded_answers(config):
        unknown_ids = sorted({answer.question for answer in answers} - known_ids)
        if unknown_ids:
            raise ImportFileError(
                f"{model.answers}: there is no question '{unknown_ids[0]}' in {semantic_probe(config).questions}.",
                "Correct the column question_id, or name the file of these questions in probes.semantic.questions.",
            )


def group_recorded_answers(config: AuditConfig) -> dict[str, dict[str, list[MoralAnswerRecord]]]:
    """Read all recorded answers, and group them by model and question.

    Raises:
        ImportFileError: as `read_recorded_answers`.
    """
    answers_by_model: dict[str, dict[str, list[MoralAnswerRecord]]] = {}
    for model, answers in list_recorded_answers(config):
        answers_by_question = answers_by_model.setdefault(model.name, {})
        for answer in answers:
            answers_by_question.setdefault(answer.question, []).append(answer)
    return answers_by_model


def list_recorded_answers(config: AuditConfig) -> Iterator[tuple[ModelSection, list[MoralAnswerRecord]]]:
    """Yield the models with recorded answers to the questions of the probe, and these answers."""
    probe = config.probes.find(SemanticProbe)
    for model in config.models if probe is not None and probe.questions != TASK_QUESTIONS else ():
        if semantic_probe(config).has_given_answers(config, model):
            yield model, read_recorded_answers(model)


def list_fingerprint_inputs(config: AuditConfig, languages: Sequence[str]) -> list[object]:
    """List what determines the verdicts besides the configuration; empty with the standard prompts and no record.

    Args:
        languages: not used; the questions are asked as they are.
    """
    probe = semantic_probe(config)
    names = [name.format(probe.prompt_suffix) for name in SUBJECT_PROMPTS if probe.prompt_suffix]
    names += ["semantic.contradiction.any"] if probe.prompt_suffix and probe.contradiction else []
    names += ["semantic.consistency.paper"] if probe.consistency and probe.consistency.form == "paper" else []
    names += ["semantic.translate"] if probe.translator else []
    prompts = [load_prompt(name) for name in names]
    prompts += [load_prompt("semantic.country", language) for language in _languages_of_countries(probe)]
    inputs: list[object] = [[prompt.id, prompt.system, *(prompt.opening or ()), prompt.user] for prompt in prompts]
    for model, answers in list_recorded_answers(config):
        inputs.append([model.name, *([answer.question, answer.sample, answer.text] for answer in answers)])
    return inputs


def _languages_of_countries(probe: SemanticProbe) -> list[str]:
    """The languages in which requests name the countries that questions of the probe's file are about."""
    from auditor.probes.semantic.questions import load_questions  # imports this module

    has_file = probe.questions != TASK_QUESTIONS and Path(probe.questions).is_file()
    questions = load_questions(probe.questions) if has_file else []
    languages = {language for q in questions if q.country for language in (q.language, *q.languages)}
    return sorted({find_country_language(language) for language in languages})


R = TypeVar("R", MoralAnswerRecord, PairVerdict)


class _PlannedAnswer(NamedTuple):
    """An answer to collect, with its call."""

    call: Call
    model: str
    wording: MoralWording
    sample: int


async def collect_answers(
    context: RunContext,
    questions: Sequence[MoralQuestion],
    recorded_answers: Mapping[str, Mapping[str, Sequence[MoralAnswerRecord]]],
) -> None:
    """Ask every model all wordings of the questions and the rules of thumb, and store the answers.

    Models with given answers are not asked (see `SemanticProbe.has_given_answers`): theirs are to the items of a task,
    or recorded.

    Args:
        recorded_answers: by model and question.
    """
    ids = [question.id for question in questions]
    wordings = await asyncio.to_thread(answer_rows.load_wordings, context.db, context.audit_id, ids)
    probe = semantic_probe(context.config)
    countries = {question.id: question.country for question in questions}
    given_models = [model for model in context.config.models if probe.has_given_answers(context.config, model)]
    planned_answers = [
        planned
        for model in context.config.models
        if model not in given_models
        for question in ids
        for planned in _plan_answers(context, model, wordings[question], countries[question])
    ]
    answers = await run_audit_calls(context, "answer", [planned.call for planned in planned_answers])
    asked = [planned for planned in planned_answers if planned.call.key in answers]

    def read(position: int, answer: Answer) -> MoralAnswerRecord:
        """Parse an answer to the call at a position of `asked`."""
        planned = asked[position]
        outcome, text = parse_answer(answer, probe.mode)
        question, number = planned.wording.question, planned.wording.number or 0
        return MoralAnswerRecord(planned.model, question, number, planned.sample, outcome, text, answer.key)

    first_records = [(planned.call, read(i, answers[planned.call.key])) for i, planned in enumerate(asked)]
    answer_records = await repeat_audit_calls(context, "answer", first_records, read)
    texts = {
        (wording.question, wording.number): asked_text(wording.text, countries[wording.question], wording.language)
        for group in wordings.values()
        for wording in group
    }
    answer_records = await add_rules_of_thumb(context, answer_records, texts)
    for model in given_models:
        if probe.questions == TASK_QUESTIONS:
            answer_records += await asyncio.to_thread(load_task_answers, context, model.name, ids)
        else:
            answer_records += [answer for question in ids for answer in recorded_answers[model.name].get(question, ())]
    await asyncio.to_thread(save_records, context.db, context.audit_id, answer_records)


def _plan_answers(
    context: RunContext, model: ModelSection, wordings: Sequence[MoralWording], country: str
) -> list[_PlannedAnswer]:
    """Plan one answer of a model to each paraphrase and, for the consistency score, several to the original question.

    Args:
        wordings: all wordings of one question; number 0 is the question itself, None a rejected paraphrase.
        country: that the question is about; empty if none.
    """
    config = context.config
    consistency = semantic_probe(config).consistency
    planned_answers = [
        _PlannedAnswer(
            build_answer_call(config, model, asked_text(wording.text, country, wording.language)),
            model.name,
            wording,
            0,
        )
        for wording in wordings
        if wording.number is not None and wording.number
    ]
    if consistency is not None:
        original = next(wording for wording in wordings if wording.number == 0)
        planned_answers += [
            _PlannedAnswer(
                build_answer_call(
                    config,
                    model,
                    asked_text(original.text, country, original.language),
                    sample=sample,
                    temperature=consistency.temperature,
                ),
                model.name,
                original,
                sample,
            )
            for sample in range(consistency.samples)
        ]
    return planned_answers


async def add_rules_of_thumb(
    context: RunContext, answers: Sequence[MoralAnswerRecord], wording_texts: dict[tuple[str, int | None], str]
) -> list[MoralAnswerRecord]:
    """Ask for the rules of thumb behind answers to paraphrases, if configured, and return the answers with them.

    Args:
        wording_texts: text of each wording (`asked_text`), by question id and wording number.
    """
    probe = semantic_probe(context.config)
    calls: dict[int, Call] = {}  # by position of the answer
    for index, answer in enumerate(answers):
        if probe.rot and answer.text is not None and answer.wording:
            author = context.config.model(probe.rot_model or answer.model)
            calls[index] = build_rule_call(
                context.config, author, wording_texts[answer.question, answer.wording], answer.text
            )
    rule_answers = await run_audit_calls(context, "rule", list(calls.values()))
    updated_answers = list(answers)
    for index, call in calls.items():
        if call.key in rule_answers:
            rule_answer = rule_answers[call.key]
            outcome, rule = parse_rule(rule_answer, probe.mode, call.messages[0].content)
            updated_answers[index] = replace(answers[index], rot=rule, rot_outcome=outcome, rot_key=rule_answer.key)
    await _repeat_unusable_rules(context, calls, updated_answers)
    return updated_answers


async def _repeat_unusable_rules(
    context: RunContext, calls: Mapping[int, Call], answers: list[MoralAnswerRecord]
) -> None:
    """Ask again for unusable rules of thumb where the user wants that, and change the answers in place.

    Args:
        calls: for rules of thumb, by position of the answer.
    """
    outcomes = [(call, answers[index].rot_outcome) for index, call in calls.items()]
    second_answers = await repeat_calls(context, "rule", [(call, outcome) for call, outcome in outcomes if outcome])
    for index, call in calls.items():
        if call.key not in second_answers:
            continue
        answer, second = answers[index], second_answers[call.key]
        outcome, rule = parse_rule(second, semantic_probe(context.config).mode, call.messages[0].content)
        answers[index] = replace(
            answer,
            rot=rule if outcome is Outcome.OK else answer.rot,
            rot_outcome=outcome if outcome is Outcome.OK else answer.rot_outcome,
            rot_repeat_key=second.key,
            rot_first_outcome=answer.rot_outcome,
        )
    await _record_repeats(context, [(call, answers[index].rot_repeat_key) for index, call in calls.items()])


async def repeat_audit_calls(
    context: RunContext, stage: str, asked: Sequence[tuple[Call, R]], read: Callable[[int, Answer], R]
) -> list[R]:
    """Do what `repeat_unusable` does, and record the calls so that their cost is attributed to the audit."""
    records = await repeat_unusable(context, stage, asked, read)
    await _record_repeats(
        context, [(call, record.repeat_key) for (call, _), record in zip(asked, records, strict=True)]
    )
    return records


async def _record_repeats(context: RunContext, calls: Iterable[tuple[Call, str | None]]) -> None:
    """Record the calls that were repeated, each with the key of the repeat; None for those that were not."""
    identities = [(call.name, call.purpose.value, key) for call, key in calls if key is not None]
    if identities:
        await asyncio.to_thread(costs.record_calls, context.db, context.audit_id, identities)
