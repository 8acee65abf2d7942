"""Experiment `robustness`: would another design have said the same?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from auditor.agents.conflict_resolution import resolve_conflicts
from auditor.agents.design_calls import (
    AS_CONFIGURED,
    HIGH_FIRST,
    LOW_FIRST,
    NO_ROLE,
    RESIDENT,
    DesignRequest,
    ask_design,
    list_requests,
    load_example_text,
)
from auditor.agents.localization import localized_question, topic_wording
from auditor.config import AuditConfig
from auditor.config.sections import MAX_WORDINGS
from auditor.cost_estimation.audit_estimate import build_forecast_row
from auditor.cost_estimation.planned_calls import PlannedCalls, sample_evenly
from auditor.domain import (
    ENGLISH,
    LANGUAGES,
    NATIVE,
    AnswerForm,
    Capability,
    Cell,
    Purpose,
    Survey,
    Verdict,
    derive_seed,
)
from auditor.domain.audit_records import PlannedRun
from auditor.errors import ConfigError, UsageError, did_you_mean, pluralize
from auditor.experiments.stored_audit import (
    DIRECT_SAMPLES,
    EQUAL_SAMPLES,
    ONE_LANGUAGE,
    SURVEY,
    AskOption,
    AuditArgument,
    ExperimentContext,
    ExperimentResult,
    Requirement,
    ask_models,
    require_config,
)
from auditor.metrics.designs.design_matrix import RUNS_PER_CELL, assign_cells, list_confounding, plan_levels
from auditor.panel_assignment import TraceKey, assign_panels, select_reviewed
from auditor.reports.data.cost import CostForecast, ForecastRange, sum_ranges
from auditor.reports.data.robustness import (
    WITHOUT_JUDGE,
    ConfoundingRow,
    DesignReport,
    PanelVariantRow,
    build_robustness,
    load_design_scores,
)
from auditor.reports.sections.experiments.robustness import build_design_document
from auditor.reports.sections.forecast import describe_forecast
from auditor.storage import audits, costs, ledger, results
from auditor.storage.call_records import StoredCapability
from auditor.storage.capabilities import current_capabilities
from auditor.storage.database import Database
from auditor.storage.probe_results import apply_vote_weights
from auditor.storage.records import load_records
from auditor.surveys.countries import native_languages
from auditor.surveys.regions import get_grouping, get_zones

if TYPE_CHECKING:
    from auditor.reports.data.robustness import RobustnessReport
    from auditor.storage.audits import Audit


FACTORS = ("wording", "direction", "scale", "reasoning", "answer", "temperature", "language", "role")
OTHER_TEMPERATURES = ("0", "0.7")


@dataclass(frozen=True)
class FactorChoice:
    """What a design varies.

    Attributes:
        levels: by factor, the audit's level first.
        omitted: factors, or levels as `FACTOR=LEVEL`, that are left out, with the reason.
    """

    levels: dict[str, list[str]]
    omitted: dict[str, str] = field(default_factory=dict)


def choose_factors(
    config: AuditConfig,
    survey: Survey,
    capabilities: Mapping[str, Capability],
    without: Collection[str],
    level_texts: Sequence[str],
) -> FactorChoice:
    """Choose the factors that can be varied, with their levels.

    Args:
        capabilities: what each model was found to accept, by its name; models of which nothing is known are absent.
        without: factors that the user leaves out.
        level_texts: levels in place of the default ones, as `FACTOR=LEVEL,LEVEL`.

    Raises:
        UsageError: an unknown factor or level, or no factor is left.
    """
    levels = _list_default_levels(config)
    for text in level_texts:
        factor, separator, values = text.partition("=")
        if not separator:
            raise UsageError(f"--levels {text}: there is no '='.", 'Write it as in --levels "scale=-1 to 1,words".')
        _require_factor(factor.strip())
        levels[factor.strip()] = _read_levels(factor.strip(), values, levels[factor.strip()])
    for factor in without:
        _require_factor(factor)
    chosen, omitted = {}, {}
    for factor, names in levels.items():
        if factor in without:
            continue
        problems = dict(_find_problems(config, survey, capabilities, factor, names))
        usable = [name for name in names if name not in problems]
        if (reason := problems.get("")) is not None:
            omitted[factor] = reason
        else:
            omitted |= {f"{factor}={name}": reason for name, reason in problems.items()}
            if len(usable) < 2:
                omitted[factor] = f"it has one level: {usable[0]}"
            else:
                chosen[factor] = usable
    if not chosen:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in omitted.items()) or "all are left out"
        raise UsageError(f"no choice is left that the design could vary ({reasons}).", "Leave out fewer choices.")
    return FactorChoice(chosen, omitted)


def _list_default_levels(config: AuditConfig) -> dict[str, list[str]]:
    """The levels of each factor, the audit's first."""
    temperatures = {
        config.direct.temperature if model.temperature is None else model.temperature for model in config.models
    }
    temperature = f"{min(temperatures):g}" if len(temperatures) == 1 else AS_CONFIGURED
    mode, language = config.direct.mode, config.languages[0]
    return {
        "wording": [str(number) for number in range(1, MAX_WORDINGS + 1)],
        "direction": [LOW_FIRST, HIGH_FIRST],
        "scale": ["-1 to 1", "1 to 10", "words"],
        "reasoning": ["before", "after", "none"],
        "answer": [mode, "text" if mode == "structured" else "structured"],
        "temperature": [temperature, next(other for other in OTHER_TEMPERATURES if other != temperature)],
        "language": [language, ENGLISH if language == NATIVE else NATIVE],
        "role": [NO_ROLE, RESIDENT],
    }


def _require_factor(name: str) -> None:
    if name not in FACTORS:
        raise UsageError(f"there is no choice '{name}'.", did_you_mean(name, FACTORS, f"Known: {', '.join(FACTORS)}."))


def _read_levels(factor: str, text: str, defaults: Sequence[str]) -> list[str]:
    """The audit's level and those of a text; UsageError for one that the factor cannot have."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if factor == "temperature":
        names = [name if name in defaults else _read_temperature(name) for name in names]
    for name in names:
        if factor not in ("temperature", "language") and name not in defaults:
            hint = did_you_mean(name, defaults, f"Known: {', '.join(defaults)}.")
            raise UsageError(f"--levels: the choice '{factor}' has no level '{name}'.", hint)
    return list(dict.fromkeys([defaults[0], *names]))


def _read_temperature(text: str) -> str:
    """A temperature as the audit's is written: 1.0 and 1 are one level."""
    try:
        temperature = float(text)
    except ValueError:
        temperature = -1.0
    if not 0 <= temperature <= 2:
        raise UsageError(f"--levels: '{text}' is not a temperature.", "Write a number from 0 to 2.")
    return f"{temperature + 0.0:g}"


def _find_problems(
    config: AuditConfig, survey: Survey, capabilities: Mapping[str, Capability], factor: str, levels: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the levels that cannot be used, each with the reason; an empty text for the factor as such."""
    if factor == "wording" and survey.n_wordings > 1:
        yield "", f"the audit takes {survey.n_wordings} wordings in turn"
    elif factor == "wording" and survey.topic_questions:
        yield "", "the survey has topics with questions of their own"
    elif factor == "temperature":
        fixed = [model.name for model in config.models if "temperature" in model.params]
        refusing = [name for name, known in capabilities.items() if "temperature" in known.dropped_params]
        refusing += [
            model.name for model in config.models if model.capabilities and model.capabilities.temperature is False
        ]
        if fixed or refusing:
            verb = "sets its own temperature in params" if fixed else "takes no temperature"
            yield "", f"the model {(fixed or refusing)[0]} {verb}"
    elif factor == "answer":
        text_only = [name for name, known in capabilities.items() if known.form is AnswerForm.TEXT]
        text_only += [model.name for model in config.models if model.capabilities and model.capabilities.form == "text"]
        if text_only:
            yield "", f"the model {text_only[0]} takes no structured answers"
    elif factor == "language":
        yield from _find_language_problems(config, survey, levels)


def _find_language_problems(config: AuditConfig, survey: Survey, levels: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the languages without texts, and those that change no question."""
    codes_by_level = {
        level: [_find_code(config, level, country) for country in survey.countries]
        for level in levels
        if level in (*LANGUAGES, NATIVE)
    }
    for i, level in enumerate(levels[1:], 1):
        if level not in codes_by_level:
            yield level, f"there are no prompts in the language '{level}'"
            continue
        try:
            for language in dict.fromkeys(codes_by_level[level]):
                for topic in survey.topics:
                    localized_question(survey, language, topic)
                    topic_wording(survey, topic, language)
        except ConfigError as error:
            yield level, error.message.rstrip(".")
            continue
        same = [other for other in levels[:i] if codes_by_level.get(other) == codes_by_level[level]]
        if same:
            yield level, f"all questions are in the same language as with '{same[0]}'"


def _find_code(config: AuditConfig, level: str, country: str) -> str:
    return config.model_copy(update={"language": level}).languages_in(native_languages(country))[0]


def plan_design(config: AuditConfig, survey: Survey, choice: FactorChoice, samples: int) -> list[PlannedRun]:
    """Plan the runs of a design; the first has the audit's settings."""
    seed = derive_seed(config.seed, "design")
    table = plan_levels([len(levels) for levels in choice.levels.values()], seed)
    cells = _shuffle_topics(list(survey.asked_cells), seed)
    is_asked = assign_cells(table, len(cells), seed)
    return [
        PlannedRun(
            number,
            {factor: levels[i] for (factor, levels), i in zip(choice.levels.items(), row, strict=True)},
            tuple(cells[i] for i in np.flatnonzero(is_asked[number])),
            samples,
        )
        for number, row in enumerate(table)
    ]


def _shuffle_topics(cells: Sequence[Cell], seed: int) -> list[Cell]:
    """The cells country by country, with the topics of each in random order."""
    order = np.random.default_rng(seed).permutation(len(cells))
    countries = {country: i for i, country in enumerate(dict.fromkeys(cell.country for cell in cells))}
    return sorted((cells[i] for i in order), key=lambda cell: countries[cell.country])


def list_levels(runs: Sequence[PlannedRun]) -> dict[str, list[str]]:
    """The levels of each factor that runs have, the audit's first."""
    factors = runs[0].levels if runs else {}
    return {factor: list(dict.fromkeys(run.levels[factor] for run in runs)) for factor in factors}


def is_same_design(runs: Sequence[PlannedRun], other: Sequence[PlannedRun]) -> bool:
    """Whether two designs vary the same levels on the same cells, with as many samples."""

    def describe(design: Sequence[PlannedRun]) -> object:
        levels = {factor: set(names) for factor, names in list_levels(design).items()}
        return levels, {run.samples for run in design}, {cell for run in design for cell in run.cells}, len(design)

    return describe(runs) == describe(other)


@dataclass(frozen=True)
class DesignCost:
    """Calls of a design: all, those with a recorded answer, and the forecast of the others."""

    planned: int
    recorded: int
    forecast: CostForecast


def forecast_design(db: Database, config: AuditConfig, survey: Survey, runs: Sequence[PlannedRun]) -> DesignCost:
    """Count the calls of a design that are not recorded, and estimate their cost."""
    requests: dict[str, DesignRequest] = {request.call.key: request for request in list_requests(config, survey, runs)}
    recorded = ledger.find_answered_keys(db, requests)
    lengths = {(length.model, length.purpose): length for length in costs.load_mean_answer_lengths(db)}
    rows = []
    for model in config.models:
        calls = [
            request.call for key, request in requests.items() if request.model == model.name and key not in recorded
        ]
        planned = PlannedCalls(
            model, Purpose.DIRECT, ForecastRange.from_bounds(len(calls)), sample_evenly(calls), config.direct.max_words
        )
        rows.append(build_forecast_row(planned, lengths.get((model.model, Purpose.DIRECT.value)), config.batch))
    known = [row.usd for row in rows if row.usd is not None]
    forecast = CostForecast(
        audit=config.name,
        cells=len({cell for run in runs for cell in run.cells}),
        rows=rows,
        calls=sum_ranges([row.calls for row in rows]),
        usd=sum_ranges(known) if known else None,
        unknown_prices=[row.name for row in rows if row.usd is None],
        not_estimated=[],
        budget_usd=config.limits.budget_usd,
        recorded=len(recorded),
    )
    return DesignCost(len(requests), len(recorded), forecast)


def robustness(
    context: ExperimentContext,
    audit: AuditArgument,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            help="A choice that is not varied: wording, direction, scale, reasoning, answer, temperature, language or "
            "role; may be repeated.",
        ),
    ] = None,
    levels: Annotated[
        list[str] | None,
        typer.Option(
            "--levels", help='Levels of a choice besides the audit\'s own, as in "temperature=0,1"; may be repeated.'
        ),
    ] = None,
    samples: Annotated[
        int | None, typer.Option("--samples", min=1, help="Answers for each cell in a run; by default as in the audit.")
    ] = None,
    ask: AskOption = False,
) -> ExperimentResult:
    """Test if another design would have said the same.

    The design varies eight choices: the wording, the direction and the form of the scale, reasons before, after or
    without the score, structured answers or text, temperature, language, and a role of the respondent. Every model
    takes every run; each cell is asked in 8 runs, so it costs about 8 times the audit's direct questions. Without --ask
    the plan and its cost are shown. Recorded answers are reused.

    Example: auditor experiment robustness my-audit --without language --samples 1 --ask
    """
    with context.open_database() as db:
        stored_audit = audits.get_audit(db, audit)
        config = require_config(db, stored_audit, *_list_requirements())
        survey = audits.load_audit_survey(db, stored_audit)
        capabilities = _load_capabilities(db, stored_audit.id, config)
        choice = choose_factors(config, survey, capabilities, without or [], levels or [])
        is_default = not (without or levels or samples)
        runs, is_stored = _load_or_plan(db, stored_audit, config, survey, choice, samples, is_default=is_default)
        cost = forecast_design(db, config, survey, runs)
    if ask:
        for name, reason in choice.omitted.items():
            context.print_message(f"{name} is left out: {reason}.")
        context.print_message(f"{pluralize(len(runs), 'run')}: {describe_forecast(cost.forecast)}")
        ask_models(context, audit, _list_requirements(), lambda run: ask_design(run, runs), prints_cost=True)
    with context.open_database() as db:
        cost = forecast_design(db, config, survey, runs) if ask else cost
        figures = _measure(db, stored_audit, survey, config) if is_stored or ask else None
        report = _build_report(runs, choice, cost, figures, audit)
        conflicts, panels = compare_panels(db, stored_audit.id, config, survey)
    report = report.model_copy(update={"conflicts": conflicts, "panels": panels})
    return ExperimentResult(report, build_design_document(report))


def _list_requirements() -> tuple[Requirement, ...]:
    """What an audit needs so that its settings are one run of a design."""
    standard_form = Requirement(
        lambda _db, _audit, config: config.direct.form == "standard",
        "was asked in the form of the paper, which the design cannot vary",
        'Name one with form = "standard".',
    )
    asks_models = Requirement(
        lambda _db, _audit, config: not config.is_simulated and not any(model.answers for model in config.models),
        "has simulated models or recorded answers, which answer one form of the question only",
        "Name one whose models can be asked: `auditor init` writes the config of one with small models that need no "
        "key.",
    )
    return SURVEY, DIRECT_SAMPLES, EQUAL_SAMPLES, ONE_LANGUAGE, standard_form, asks_models


def _load_capabilities(db: Database, audit_id: int, config: AuditConfig) -> dict[str, Capability]:
    """What the servers of an audit's models were found to accept, by the model's name."""
    stored = current_capabilities(load_records(db, audit_id, StoredCapability))
    capabilities = {(key.model, key.server or ""): entry.capability for key, entry in stored.items()}
    return {
        model.name: capabilities[model.model, model.api_base or ""]
        for model in config.models
        if (model.model, model.api_base or "") in capabilities
    }


def _load_or_plan(
    db: Database,
    audit: Audit,
    config: AuditConfig,
    survey: Survey,
    choice: FactorChoice,
    samples: int | None,
    *,
    is_default: bool,
) -> tuple[Sequence[PlannedRun], bool]:
    """The stored design if it is the chosen one or nothing was chosen, else a new plan; and whether it is stored."""
    stored = load_records(db, audit.id, PlannedRun)
    if stored and is_default:
        return stored, True
    planned = plan_design(config, survey, choice, samples or config.direct.samples)
    is_stored = bool(stored) and is_same_design(planned, stored)
    return (stored if is_stored else planned), is_stored


def _measure(db: Database, audit: Audit, survey: Survey, config: AuditConfig) -> RobustnessReport | None:
    """The figures of the stored design; None if no run was asked."""
    runs, scores = load_design_scores(db, audit.id, survey)
    if not scores:
        return None
    return build_robustness(
        audit.name,
        runs,
        scores,
        regions=get_grouping(survey).region_by_country,
        zones=get_zones(survey),
        load_text=lambda model, run, country, topic: load_example_text(db, audit.id, model, run, country, topic),
    )


def _build_report(
    runs: Sequence[PlannedRun],
    choice: FactorChoice,
    cost: DesignCost,
    figures: RobustnessReport | None,
    audit_name: str,
) -> DesignReport:
    """The report without what judges say."""
    levels = {factor: [run.levels[factor] for run in runs] for factor in runs[0].levels}
    return DesignReport(
        audit=audit_name,
        factors=list_levels(runs),
        omitted=choice.omitted,
        runs=len(runs),
        runs_per_cell=min(RUNS_PER_CELL, len(runs)),
        cells=len({cell for run in runs for cell in run.cells}),
        samples=runs[0].samples,
        planned=cost.planned,
        recorded=cost.recorded,
        forecast=describe_forecast(cost.forecast),
        confounding=[
            ConfoundingRow(effect=row.effect, other=list(row.other), share=row.share)
            for row in list_confounding(levels)
        ],
        conflicts=0,
        panels=[],
        figures=figures,
    )


def compare_panels(
    db: Database, audit_id: int, config: AuditConfig, survey: Survey
) -> tuple[int, list[PanelVariantRow]]:
    """Count the conflicts, and those that the panel and other ones settle by the recorded verdicts.

    The other panels count all votes alike, or by Dawid and Skene's model, or lack one judge, whose verdicts and vote
    are then none. Without verdicts or conflicts there are no panels.
    """
    config = apply_vote_weights(db, audit_id, config)
    verdicts, conflicts = load_records(db, audit_id, Verdict), results.load_voted_conflicts(db, audit_id)
    if not verdicts or not conflicts:
        return 0, []
    keys = (TraceKey(*key) for key in results.load_scored_trace_keys(db, audit_id))
    assigned = assign_panels(config, survey).judges_by_cell(select_reviewed(config, keys))
    rules = {"majority": "by plain majority", "dawid_skene": "by Dawid and Skene’s model"}
    variants = {
        name: (_with_rule(config, vote), verdicts, assigned)
        for vote, name in rules.items()
        if vote != config.panel.vote
    }
    for judge in sorted({verdict.judge for verdict in verdicts}):
        others = {place: [name for name in judges if name != judge] for place, judges in assigned.items()}
        remaining = [verdict for verdict in verdicts if verdict.judge != judge]
        variants[f"{WITHOUT_JUDGE}{judge}"] = (config, remaining, others)
    n_settled = sum(conflict.winner is not None for conflict in conflicts)
    rows = [PanelVariantRow(panel="as audited", settled=n_settled, changed=0)]
    for name, variant in variants.items():
        changed_config, judge_verdicts, judges_by_cell = variant
        resolved = resolve_conflicts(changed_config, conflicts, judge_verdicts, judges_by_cell)
        rows.append(
            PanelVariantRow(
                panel=name,
                settled=sum(conflict.winner is not None for conflict in resolved),
                changed=sum(new.winner != old.winner for new, old in zip(resolved, conflicts, strict=True)),
            )
        )
    return len(conflicts), rows


def _with_rule(config: AuditConfig, vote: str) -> AuditConfig:
    """The config with another rule that counts votes; the judges of each answer stay the same."""
    changes: dict[str, object] = {"vote": vote, "weights": {}, "weights_from": None, "bench_below": 0.0}
    return config.model_copy(update={"panel": config.panel.model_copy(update=changes)})
