"""Questions of the experiment `robustness`: how a run of a design puts them, asks models, and reads their answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self, cast

from auditor.agents.answer_parsing import find_unread_outcome, parse_score, parse_trace, read_free_texts
from auditor.agents.call_builders import build_direct_call, build_question_call
from auditor.agents.call_runner import run_calls
from auditor.agents.localization import localized_question, question_prompt_fields, wording_of_sample
from auditor.agents.refusals import are_all_refusals
from auditor.agents.run_context import RunContext
from auditor.config import AuditConfig, Probes
from auditor.config.base import Structure
from auditor.domain import SCORE_MAX, SCORE_MIN, Answer, Call, Cell, Message, Outcome, Survey
from auditor.domain.audit_records import DesignAnswer, PlannedRun
from auditor.models.answer_schemas import DESIGN_SCHEMAS, Reasoning, Scale, design_schema_name
from auditor.models.reasoning import strip_thinking
from auditor.models.structured_reading import parse_structured_answer
from auditor.prompts import fill_placeholders, load_prompt
from auditor.prompts.survey_translations import load_design_texts, load_further_wordings
from auditor.storage import ledger, results
from auditor.storage.database import Database
from auditor.storage.records import load_records, save_experiment
from auditor.surveys.countries import native_languages

STAGE = "design"
LOW_FIRST, HIGH_FIRST = "low first", "high first"
NO_ROLE, RESIDENT = "none", "resident"
AS_CONFIGURED = "as configured"
"""Level of a temperature that differs between models."""
NUMBER_RANGES: Mapping[Scale, tuple[float, float]] = {"-1 to 1": (SCORE_MIN, SCORE_MAX), "1 to 10": (1.0, 10.0)}
_PRINTED_ENDS: Mapping[Scale, tuple[str, str]] = {"-1 to 1": ("-1.0", "1.0"), "1 to 10": ("1", "10")}
WORD_SCORES = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""Scores of the five answers of a scale in words, from the low end to the high one."""
_WORD_LINE = re.compile(r"^[\s>*_#`]*SCORE[\s*_`]*[=:][\s*_`]*(?P<answer>[^\n]+)$", re.IGNORECASE | re.MULTILINE)
_NOT_WORDS = re.compile(r"[^\w\s]+")


@dataclass(frozen=True, slots=True)
class Presentation:
    """How a question is put to a model.

    Attributes:
        wording: 0 for the survey's, from 1 for a built-in one.
        is_high_first: whether the scale is stated from its high end to its low one.
        scale: form of the scale.
        reasoning: when the model gives its reasons.
        mode: `structured` or `text`.
        temperature: of all models; None as the audit configures it.
        language: as in the configuration.
        has_role: whether the model is addressed as somebody who has always lived in the country.
    """

    wording: int = 0
    is_high_first: bool = False
    scale: Scale = "-1 to 1"
    reasoning: Reasoning = "before"
    mode: str | None = None
    temperature: float | None = None
    language: str | None = None
    has_role: bool = False

    @classmethod
    def from_levels(cls, levels: Mapping[str, str]) -> Self:
        """Build the presentation of a run; a factor that the design does not vary is as in the audit."""
        temperature = levels.get("temperature", AS_CONFIGURED)
        return cls(
            int(levels.get("wording", "1")) - 1,
            levels.get("direction") == HIGH_FIRST,
            cast(Scale, levels.get("scale", "-1 to 1")),
            cast(Reasoning, levels.get("reasoning", "before")),
            levels.get("answer"),
            None if temperature == AS_CONFIGURED else float(temperature),
            levels.get("language"),
            levels.get("role") == RESIDENT,
        )

    @property
    def has_standard_prompt(self) -> bool:
        """Whether the prompt is the audit's, apart from its wording and language."""
        return not self.is_high_first and not self.has_role and (self.scale, self.reasoning) == ("-1 to 1", "before")


@dataclass(frozen=True)
class RunSetup:
    """Builds the calls of one run, and reads the answers.

    Attributes:
        config, survey: as the run needs them; see `prepare_run`.
        presentation: of all questions.
    """

    config: AuditConfig
    survey: Survey
    presentation: Presentation

    def find_language(self, country: str) -> str:
        """Language of the questions about a country, by ISO 639-1 code."""
        return self.config.languages_in(native_languages(country))[0]

    def build_call(self, model_name: str, cell: Cell, sample: int) -> Call:
        """Build the call that asks a model about a cell; the audit's own if the run changes nothing."""
        presentation, model = self.presentation, self.config.models_by_name[model_name]
        if presentation.has_standard_prompt and not presentation.wording:
            return build_direct_call(self.config, self.survey, model, cell, sample)
        probe, language = self.config.direct, self.find_language(cell.country)
        wording = presentation.wording or wording_of_sample(self.config, self.survey, sample)
        fields = question_prompt_fields(self.survey, cell, language, wording)
        if presentation.has_standard_prompt:
            prompt = load_prompt(probe.prompt_name, language)
            messages = prompt.render(preamble=model.system, **fields, max_words=str(probe.max_words))
            return build_question_call(self.config, model, cell, sample, messages, language)
        if presentation.is_high_first:
            fields["question"] = _exchange(fields["question"], fields["never"], fields["always"])
        system = self._write_instructions(fields, cell, language)
        if model.system:
            system = f"{model.system}\n\n{system}"
        user = fill_placeholders(load_prompt(f"direct.{probe.mode}", language).user, fields)
        messages = (Message("system", system), Message("user", user))
        schema = design_schema_name(presentation.reasoning, presentation.scale)
        return build_question_call(self.config, model, cell, sample, messages, language, schema=schema)

    def _write_instructions(self, fields: Mapping[str, str], cell: Cell, language: str) -> str:
        """Write the system message."""
        presentation, probe, texts = self.presentation, self.config.direct, load_design_texts(language)
        if presentation.scale == "words":
            answers = self.list_word_answers(cell, language)
            scale = fill_placeholders(
                texts.words, {"answers": "; ".join(reversed(answers) if presentation.is_high_first else answers)}
            )
        else:
            low, high = _PRINTED_ENDS[presentation.scale]
            ends = [f"{low} ({fields['never']})", f"{high} ({fields['always']})"]
            first, last = reversed(ends) if presentation.is_high_first else ends
            scale = fill_placeholders(texts.numbers, {"first": first, "last": last})
        instruction = getattr(texts.structured if probe.mode == "structured" else texts.text, presentation.reasoning)
        values = {"scale": scale, "max_words": str(probe.max_words), "country": fields["country"]}
        parts = [texts.role] if presentation.has_role else []
        return " ".join(fill_placeholders(part, values) for part in [*parts, texts.expert, instruction])

    def list_word_answers(self, cell: Cell, language: str) -> list[str]:
        """The five answers of a scale in words, from the low end to the high one."""
        low, high = localized_question(self.survey, language, cell.topic).scale
        between = [
            fill_placeholders(text, {"never": low, "always": high}) for text in load_design_texts(language).between
        ]
        return [low, *between, high]

    def read_answer(self, answer: Answer, call: Call, model: str, cell: Cell, sample: int) -> DesignAnswer:
        """Read the score of an answer; one that cannot be read has an outcome, and no score.

        `run` of the result is 0.
        """
        presentation, mode, language = self.presentation, self.config.direct.mode, self.find_language(cell.country)
        if presentation.has_standard_prompt:
            trace = parse_trace(answer, model, cell, sample, mode, language, call.request_text)
            return DesignAnswer(0, model, cell, sample, trace.outcome, trace.score, answer.key)
        score, outcome = None, answer.outcome
        if answer.text is not None and outcome in (Outcome.OK, Outcome.TRUNCATED):
            visible_text, is_complete = strip_thinking(answer.text), outcome is Outcome.OK
            if mode == "text":
                score = self._read_text(
                    visible_text if is_complete else visible_text[: visible_text.rfind("\n") + 1], cell, language
                )
            if score is None and is_complete and "{" in answer.text:
                score = self._read_structure(answer.text, call, cell, language)
            if score is not None:
                outcome = Outcome.OK
            elif is_complete:
                outcome = find_unread_outcome(
                    visible_text, read_free_texts(self._schema, answer.text, call.request_text), language
                )
        return DesignAnswer(0, model, cell, sample, outcome, score, answer.key)

    def _read_text(self, text: str, cell: Cell, language: str) -> float | None:
        """Read the line "SCORE = x"; None if there is none, or if lines differ."""
        if self.presentation.scale in NUMBER_RANGES:
            low, high = NUMBER_RANGES[self.presentation.scale]
            number = parse_score(text, low, high)
            return None if number is None else self._rescale(number)
        scores = {self._read_words(match["answer"], cell, language) for match in _WORD_LINE.finditer(text)}
        return scores.pop() if len(scores) == 1 else None

    def _read_structure(self, text: str, call: Call, cell: Cell, language: str) -> float | None:
        """Read the score of a structured answer; None if it is invalid, or if all its texts refuse."""
        schema = self._schema
        judgement = parse_structured_answer(schema, text, call.request_text)
        if isinstance(judgement, str):
            return None
        if are_all_refusals(read_free_texts(schema, text, call.request_text), language):
            return None
        value = judgement.model_dump()["score"]
        return self._read_words(value, cell, language) if isinstance(value, str) else self._rescale(value)

    @cached_property
    def _schema(self) -> type[Structure]:
        return DESIGN_SCHEMAS[design_schema_name(self.presentation.reasoning, self.presentation.scale)]

    def _rescale(self, number: float) -> float:
        """Map a number of the run's scale to [-1, 1]."""
        low, high = NUMBER_RANGES[self.presentation.scale]
        return SCORE_MIN + (SCORE_MAX - SCORE_MIN) * (number - low) / (high - low) + 0.0

    def _read_words(self, text: str, cell: Cell, language: str) -> float | None:
        """Score of one of the five answers, whatever its case and punctuation; None for another text."""
        answers = map(_normalize, self.list_word_answers(cell, language))
        return dict(zip(answers, WORD_SCORES, strict=True)).get(_normalize(text))


def _normalize(text: str) -> str:
    return " ".join(_NOT_WORDS.sub(" ", text.casefold()).split())


def _exchange(text: str, first: str, second: str) -> str:
    """Exchange two labels in a text."""
    pattern = re.compile(f"{re.escape(first)}|{re.escape(second)}")
    return pattern.sub(lambda match: second if match.group() == first else first, text)


def prepare_run(config: AuditConfig, survey: Survey, levels: Mapping[str, str], samples: int = 1) -> RunSetup:
    """Adapt an audit's configuration and survey to the levels of a run, and to its number of samples.

    Raises:
        ConfigError: a language lacks a text.
    """
    presentation = Presentation.from_levels(levels)
    direct: dict[str, object] = {"samples": max(samples, config.direct.samples)}
    if presentation.mode:
        direct["mode"] = presentation.mode
    models = config.models
    changes: dict[str, object] = {}
    if presentation.temperature is not None:
        direct["temperature"] = presentation.temperature
        models = [model.model_copy(update={"temperature": None}) for model in models]
    if presentation.language is not None:
        changes["language"] = presentation.language
    probes = Probes(direct=config.direct.model_copy(update=direct), review=config.probes.review)
    config = config.model_copy(update={**changes, "probes": probes, "models": models})
    if presentation.wording:
        languages = {config.languages_in(native_languages(country))[0] for country in survey.countries}
        survey = replace(
            survey, wordings={language: load_further_wordings(language).questions for language in languages}
        )
    return RunSetup(config, survey, presentation)


class DesignRequest(NamedTuple):
    """One call of a design, and what it is about."""

    call: Call
    setup: RunSetup
    run: int
    model: str
    cell: Cell
    sample: int


def list_requests(config: AuditConfig, survey: Survey, runs: Sequence[PlannedRun]) -> Iterator[DesignRequest]:
    """Yield the calls of all runs to all models of an audit."""
    for run in runs:
        setup = prepare_run(config, survey, run.levels, run.samples)
        for cell in run.cells:
            for model in config.models:
                for sample in range(run.samples):
                    call = setup.build_call(model.name, cell, sample)
                    yield DesignRequest(call, setup, run.number, model.name, cell, sample)


async def ask_design(context: RunContext, runs: Sequence[PlannedRun]) -> None:
    """Ask all models in all runs of a design, and store the answers; recorded ones are not asked for again.

    Another design that the audit has is replaced.
    """
    if await asyncio.to_thread(load_records, context.db, context.audit_id, PlannedRun) != list(runs):
        replaced = (PlannedRun, DesignAnswer)
        await asyncio.to_thread(save_experiment, context.db, context.audit_id, list(runs), replaced=replaced)
    requests = await asyncio.to_thread(lambda: list(list_requests(context.config, context.survey, runs)))
    answers = await run_calls(context, STAGE, [request.call for request in requests])
    rows = [
        replace(
            request.setup.read_answer(
                answers[request.call.key], request.call, request.model, request.cell, request.sample
            ),
            run=request.run,
        )
        for request in requests
        if request.call.key in answers
    ]
    await asyncio.to_thread(save_experiment, context.db, context.audit_id, rows)
    context.raise_if_stopped()


def load_example_text(db: Database, audit_id: int, model: str, run: int, country: str, topic: str) -> str | None:
    """Load the text of a model's first usable answer on a cell in a run, without thinking; None if there is none."""
    rows = results.load_design_answers(db, audit_id, [Cell(country, topic)], model)
    keys = [row.key for row in rows if row.run == run and row.outcome is Outcome.OK and row.key]
    answers = ledger.load_answers(db, keys[:1])
    return next((strip_thinking(answer.text) for answer in answers.values() if answer.text), None)
