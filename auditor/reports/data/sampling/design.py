"""The design of the experiment `robustness`: what is planned and recorded, and the scores of its runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from auditor.domain import Outcome, Survey
from auditor.domain.design_records import DesignAnswer, PlannedRun
from auditor.metrics.robustness import DesignRun, DesignScore
from auditor.reports.data.report_model import ReportModel
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.sampling.robustness import DesignAverageRow, RobustnessReport, average_models, make_table
from auditor.storage.database import Database
from auditor.storage.records import load_records
from auditor.storage.results import load_design_answers

WITHOUT_JUDGE = "without "
"""Before the name of the judge whose verdicts a panel lacks."""


class DesignAverages(ReportModel):
    """Figures over several designs in which the audit was asked. `alignment` has those of the audit's design alone."""

    runs: int
    """Combinations of choices in which models were asked, the audit's included."""
    choices: dict[str, list[str]]
    """What was varied, with its levels; the first one is the audit's."""
    averages: list[DesignAverageRow]


class ConfoundingRow(ReportModel):
    """Two effects that the design does not separate completely."""

    effect: str
    other: list[str]
    """Another factor, or the two factors of an interaction."""
    share: float
    """Largest squared correlation of their contrasts; 1 if they cannot be told apart."""


class PanelVariantRow(ReportModel):
    """The conflicts that one way to count the recorded verdicts settles."""

    panel: str
    """`as audited`, a rule, or the judge that is left out."""
    settled: int
    """Conflicts with a winner."""
    changed: int
    """Conflicts whose state or winner differs from the audit's."""


class DesignReport(ReportModel):
    """The design, and what its runs show."""

    audit: str
    factors: dict[str, list[str]]
    """Levels by factor; the first is the audit's."""
    omitted: dict[str, str]
    """Factors and levels that the design leaves out, with the reason."""
    runs: int
    runs_per_cell: int
    cells: int
    samples: int
    """Answers of each model on each cell in a run."""
    planned: int
    """Calls of all runs; equal calls count once."""
    recorded: int
    """Those with a recorded answer."""
    forecast: str
    """Calls and cost of the others."""
    confounding: list[ConfoundingRow]
    conflicts: int
    panels: list[PanelVariantRow]
    figures: RobustnessReport | None
    """None before a run was asked."""


def load_design_scores(db: Database, audit_id: int, survey: Survey) -> tuple[list[DesignRun], list[DesignScore]]:
    """Load the runs of an audit's design and the scores in them; both are empty if none was asked."""
    runs = load_records(db, audit_id, PlannedRun)
    scores = average_samples(load_design_answers(db, audit_id), survey)
    return ([DesignRun(run.number, run.levels) for run in runs], scores) if scores else ([], [])


def build_design_averages(source: ReportSource) -> DesignAverages | None:
    """The figures over designs that the audit's report has beside its own; None without answers in two runs."""
    if len({answer.run for answer in source.design_answers}) < 2:
        return None
    runs = [DesignRun(run.number, run.levels) for run in source.design_runs]
    table = make_table(runs, average_samples(source.design_answers, source.survey), source.zone_by_country)
    return DesignAverages(
        runs=len(table.runs),
        choices={name: list(levels) for name, levels in table.level_contrasts.factors.items()},
        averages=average_models(table),
    )


def average_samples(answers: Sequence[DesignAnswer], survey: Survey) -> list[DesignScore]:
    """Average the usable samples of each model, run and cell; without any, the most common outcome says why."""
    samples = defaultdict(list)
    for answer in answers:
        if answer.cell in survey.scores:
            samples[answer.run, answer.model, answer.cell].append(answer)
    rows = []
    for (run, model, cell), group in samples.items():
        usable = [answer.score for answer in group if answer.outcome is Outcome.OK and answer.score is not None]
        score = sum(usable) / len(usable) if usable else None
        outcome = Outcome.OK if usable else Counter(answer.outcome for answer in group).most_common(1)[0][0]
        rows.append(DesignScore(model, run, cell.country, cell.topic, score, survey.scores[cell], outcome.value))
    return rows
