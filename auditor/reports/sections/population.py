"""The section on agreement with the population that was surveyed, and on the relations among topics."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.metrics.confidence import PAGE_ONE_LEVEL
from auditor.reports.data.agreement.population import MIN_SHOWN_CHANGE, PopulationAgreementRow
from auditor.reports.data.measurement_schema import StructureRow
from auditor.reports.data.report_schema import Report
from auditor.reports.document import Block, List, ListItem, Paragraph, Section, Status, Table
from auditor.reports.number_format import format_number
from auditor.reports.sections.phrasing import SeriesLabels, group_findings, join_first
from auditor.reports.sections.tables import tabulate

RECALL_PROBE = "memory"
"""Name of the probe that tests whether a model recites published figures."""
_POPULATION_CAPTION = (
    "Agreement with all people of each country, of whom the survey asked a sample: its sampling error, which makes MAE "
    "and RMSE larger, r and the concordance smaller, is taken out. The intervals hold if the standard errors of "
    "people’s scores are right. The floor is the MAE to expect of a model that knows the population exactly."
)
_STRUCTURE_CAPTION = (
    "Root mean square difference of the correlations among topics over countries, model against people (after "
    "Libovický 2026), with 95% CIs for other countries like these; “without country means” takes out how permissive "
    "each country is. Found: both are smaller than in 95% of 999 permutations of the model’s scores over countries "
    "(Holm)."
)


def build_population_section(report: Report) -> Section | None:
    """Build the section on people's sampling error and on structure; None where neither can be computed."""
    labels = SeriesLabels.of(report)
    corrected = [row for row in report.population if row.mae.value is not None]
    related = [row for row in report.structure if row.structure.raw.value is not None]
    blocks: list[Block] = []
    if corrected:
        blocks += [Paragraph(_describe_errors(corrected), "note"), _tabulate_population(corrected, labels)]
    if related:
        blocks += [List(list_structure_findings(report), is_findings=True), _tabulate_structure(related, labels)]
    if not blocks:
        return None
    return Section("population", "What is beyond the scores of this survey?", blocks, "Population and structure")


def list_structure_findings(report: Report) -> list[ListItem]:
    """Whether each series relates topics as people do."""
    labels = SeriesLabels.of(report)
    return group_findings(
        (labels.label(row), *_describe_structure(row))
        for row in report.structure
        if row.structure.raw.value is not None
    )


def summarize_structure(report: Report) -> str | None:
    """Name the models that relate topics as people do at the level of page one, in a sentence; None without any."""
    labels = SeriesLabels.of(report)
    names = [
        labels.label(row)
        for row in report.structure
        if row.adjusted_p_value is not None and row.adjusted_p_value <= PAGE_ONE_LEVEL
    ]
    return (
        f"Topics go together over countries as they do for people in the scores of {join_first(names)}."
        if names
        else None
    )


def list_recall_cautions(report: Report) -> Iterator[str]:
    """Yield a caution about models that are closer to this survey than knowing the population allows."""
    labels = SeriesLabels.of(report)
    test = (
        f"The section on the probe {RECALL_PROBE} tests this."
        if RECALL_PROBE in report.probes
        else f"The probe {RECALL_PROBE} tests this."
    )
    below = [row for row in report.population if row.is_below_floor]
    if below:
        names, floor = join_first([labels.label(row) for row in below]), format_number(below[0].mae_floor)
        yield (
            f"{names} {'is' if len(below) == 1 else 'are'} closer to this survey’s sample than knowing the population "
            f"exactly allows (mean absolute error of {floor}). The scores may repeat a published table. {test}"
        )
    above = [row for row in report.population if row.is_above_ceiling and not row.is_below_floor]
    if above:
        yield (
            f"r of {join_first([labels.label(row) for row in above])} is higher than people’s sampling error allows a "
            f"perfect model. The scores may repeat a published table. {test}"
        )


def list_corrections(report: Report) -> dict[tuple[str, str], PopulationAgreementRow]:
    """By method and model, the corrected figures that differ from the raw MAE by more than 5%."""
    raw = {(row.method, row.model): row.mae.value for row in report.alignment}
    return {
        (row.method, row.model): row
        for row in report.population
        if (mae := raw.get((row.method, row.model))) and row.mae.value is not None
        if abs(row.mae.value - mae) > MIN_SHOWN_CHANGE * mae
    }


def _describe_structure(row: StructureRow) -> tuple[str, Status]:
    """Whether one series relates topics as people do, with the distance; and the status."""
    if row.is_found:
        return "relates topics to each other as people do, beyond chance", "positive"
    return "is not shown to relate topics to each other as people do", "unclear"


def _describe_errors(rows: list[PopulationAgreementRow]) -> str:
    """Say where the standard errors come from."""
    factor = rows[0].design_effect
    if factor == 1:
        return "The standard errors of people’s scores are those of the survey’s file."
    return (
        f"The standard errors of people’s scores are those of the survey’s file times the root of its design effect, "
        f"{format_number(factor)}."
    )


def _tabulate_population(rows: list[PopulationAgreementRow], labels: SeriesLabels) -> Table:
    """The table of figures without people's sampling error."""
    return tabulate(
        "population",
        "Agreement without people’s sampling error",
        _POPULATION_CAPTION,
        rows,
        PopulationAgreementRow,
        {"model": labels.label},
    )


def _tabulate_structure(rows: list[StructureRow], labels: SeriesLabels) -> Table:
    """The table of distances of the correlations among topics."""
    return tabulate(
        "structure",
        "Relations among topics",
        _STRUCTURE_CAPTION,
        rows,
        StructureRow,
        {"model": labels.label, "found": lambda row: "yes" if row.is_found else "no"},
    )
