"""Experiment `robustness`: would another design have said the same?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from auditor.experiments.declaration import AskOption, AuditArgument, ExperimentContext, ExperimentResult

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from auditor.config import AuditConfig
    from auditor.domain import Capability, Cell, Survey
    from auditor.domain.design_records import PlannedRun
    from auditor.experiments.design_plan import DesignCost, FactorChoice
    from auditor.experiments.stored_audit import Requirement
    from auditor.reports.data.sampling.design import DesignReport, PanelVariantRow
    from auditor.reports.data.sampling.robustness import RobustnessReport
    from auditor.storage.audits import Audit
    from auditor.storage.database import Database


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
    from auditor.agents.design_calls import ask_design
    from auditor.experiments.design_plan import choose_factors, forecast_design
    from auditor.experiments.stored_audit import ask_models, require_config
    from auditor.reports.sections.experiments.design_remarks import build_design_document
    from auditor.reports.sections.forecast import describe_forecast
    from auditor.storage import audits

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
        context.print_message(f"{len(runs)} runs: {describe_forecast(cost.forecast)}")
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
    from auditor.experiments.stored_audit import DIRECT_SAMPLES, EQUAL_SAMPLES, ONE_LANGUAGE, SURVEY, Requirement

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
    from auditor.storage.call_records import StoredCapability
    from auditor.storage.capabilities import current_capabilities
    from auditor.storage.records import load_records

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
    from auditor.domain.design_records import PlannedRun
    from auditor.experiments.design_plan import is_same_design, plan_design
    from auditor.storage.records import load_records

    stored = load_records(db, audit.id, PlannedRun)
    if stored and is_default:
        return stored, True
    planned = plan_design(config, survey, choice, samples or config.direct.samples)
    is_stored = bool(stored) and is_same_design(planned, stored)
    return (stored if is_stored else planned), is_stored


def _measure(db: Database, audit: Audit, survey: Survey, config: AuditConfig) -> RobustnessReport | None:
    """The figures of the stored design; None if no run was asked."""
    from auditor.agents.design_calls import load_example_text
    from auditor.reports.data.sampling.design import load_design_scores
    from auditor.reports.data.sampling.robustness import build_robustness
    from auditor.surveys.regions import get_grouping, get_zones

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
    from auditor.experiments.design_plan import list_levels
    from auditor.metrics.design_matrix import RUNS_PER_CELL, list_confounding
    from auditor.reports.data.sampling.design import ConfoundingRow, DesignReport
    from auditor.reports.sections.forecast import describe_forecast

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
    from auditor.agents.conflict_resolution import resolve_conflicts
    from auditor.domain import Verdict
    from auditor.reports.data.sampling.design import WITHOUT_JUDGE, PanelVariantRow
    from auditor.storage import results
    from auditor.storage.probe_answers import apply_vote_weights
    from auditor.storage.records import load_records

    config = apply_vote_weights(db, audit_id, config)
    verdicts, conflicts = load_records(db, audit_id, Verdict), results.load_voted_conflicts(db, audit_id)
    if not verdicts or not conflicts:
        return 0, []
    assigned = _load_assigned_judges(db, audit_id, config, survey)
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


def _load_assigned_judges(
    db: Database, audit_id: int, config: AuditConfig, survey: Survey
) -> Mapping[tuple[str, Cell], Collection[str]]:
    """By model and cell, the judges that are assigned to at least one reviewed answer."""
    from auditor.panel_assignment import TraceKey, assign_panels, select_reviewed
    from auditor.storage import results

    keys = (TraceKey(*key) for key in results.load_scored_trace_keys(db, audit_id))
    return assign_panels(config, survey).judges_by_cell(select_reviewed(config, keys))
