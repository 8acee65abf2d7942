"""Documents on sampling: accuracy and cost at several settings, smaller designs, and respondents without an answer."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.reports.charts.interval_plot import CORRELATION_AXIS
from auditor.reports.charts.tradeoff_plot import TradeoffPoint, tradeoff_plot
from auditor.reports.data.agreement.alignment import AlignmentRow
from auditor.reports.data.measurement_schema import NonresponseBoundsRow, NonresponseReport
from auditor.reports.data.sampling import MAX_SHIFT, EnoughSamplesRow, SamplingExperiment, SettingRow
from auditor.reports.data.savings_study import MAX_R_SHIFT, N_DRAWS, SamplingPlanRow, SavingsStudy
from auditor.reports.document import Block, Callout, Column, Document, Figure, List, Paragraph, Reason, Section, Table
from auditor.reports.number_format import (
    format_count,
    format_interval,
    format_number,
    format_percent,
    format_usd,
    pluralize,
)
from auditor.reports.sections.experiments import DOCUMENT_KIND, build_experiment_document
from auditor.reports.sections.phrasing import SeriesLabels, build_interval_figure, tabulate

MAX_LISTED_MODELS = 4
SETTING_LABELS = {"samples": "samples per cell", "temperature": "temperature"}
EXPLANATIONS = {
    "samples": "Fewer samples are random subsets of the recorded samples. The ranges of r and of the MAE are over "
    "these subsets, and are widened because the subsets overlap. They show the effect of chance in the answers only, "
    "not of the choice of countries and topics.",
    "temperature": "Each temperature was sampled separately. Intervals are 95% CIs over countries and topics.",
}


def build_sampling_document(experiment: SamplingExperiment) -> Document:
    """Build the document of an experiment on the number of samples, or on the temperature."""
    label = SETTING_LABELS[experiment.what]
    opening: list[Block] = [Paragraph(describe_changes(experiment), role="lead")]
    if experiment.missing:
        has_both = any("," in setting for setting in experiment.missing)
        missing = [
            f"{'temperature' if has_both else experiment.what} = {setting} is not available: "
            f"{f'missing {format_count(n)} calls' if n else 'no model was asked'}. How to fix: add --ask to ask for it."
            for setting, n in experiment.missing.items()
        ]
        missing += [f"--ask would run {name}: {forecast}" for name, forecast in experiment.forecasts.items()]
        opening.append(Callout("Reasons for caution", [List(missing)]))
    measured = [row for row in experiment.rows if row.r.value is not None]
    blocks: list[Block] = [
        Paragraph(EXPLANATIONS[experiment.what]),
        *([_plot_tradeoff(measured, label)] if measured else []),
        _tabulate_settings(experiment, label),
    ]
    sections = [Section("tradeoff", "Accuracy, stability and cost", blocks)] if experiment.rows else []
    if experiment.enough:
        sections.insert(0, _build_enough_section(experiment))
    subtitle = pluralize(experiment.cells, "cell")
    return Document(DOCUMENT_KIND, f"{experiment.audit}: {label}", subtitle, sections, opening)


def _build_enough_section(experiment: SamplingExperiment) -> Section:
    """Show from which number of samples on more of them stop helping."""
    enough_by_series = {(row.model, row.temperature): row for row in experiment.enough}
    measured = [row for row in experiment.rows if (row.model, row.temperature) in enough_by_series]
    points = [
        TradeoffPoint(
            "enough" if enough_by_series[row.model, row.temperature].samples == row.samples else "",
            row.samples,
            row.mae.value or 0.0,
            _name_series(row.model, row.temperature),
            row.mae.ci_low,
            row.mae.ci_high,
        )
        for row in measured
        if row.mae.value is not None
    ]
    figure = Figure(
        "enough-samples-plot",
        tradeoff_plot(points, cost_title="Samples per cell", accuracy_title="MAE (lower is better)"),
        "Where more samples stop helping",
        "; ".join(
            f"{_name_series(row.model, row.temperature)}, {pluralize(row.samples, 'sample')}: MAE "
            f"{format_number(row.mae.value, 3)}"
            for row in measured
        ),
        f"“enough”: the smallest number of samples from which MAE and r stay within {MAX_SHIFT:g} of those with the "
        "largest number. Lines: ranges of the MAE over the subsets.",
        "settings",
    )
    return Section(
        "enough", "Where more samples stop helping", [List(list(map(_describe_enough, experiment.enough))), figure]
    )


def _describe_enough(row: EnoughSamplesRow) -> str:
    """State from how many samples on more of them change little."""
    series, largest = _name_series(row.model, row.temperature), pluralize(row.largest, "sample")
    if row.samples is None:
        return f"{series}: more samples still help, up to {largest} at least."
    return (
        f"{series}: {pluralize(row.samples, 'sample')} per cell {'is' if row.samples == 1 else 'are'} enough; with "
        f"{largest}, neither MAE nor r differs by more than {MAX_SHIFT:g}."
    )


def _name_series(model: str, temperature: float | None) -> str:
    """The model, with its temperature where several are compared."""
    return model if temperature is None else f"{model}, temperature {temperature:g}"


def describe_changes(experiment: SamplingExperiment) -> str:
    """Describe the change of r and of the scatter from the smallest to the largest setting, by model."""
    changes = []
    for series in dict.fromkeys((row.model, row.temperature) for row in experiment.rows):
        model = _name_series(*series)
        model_rows = [row for row in experiment.rows if (row.model, row.temperature) == series]
        model_rows = [row for row in model_rows if row.r.value is not None]
        if len(model_rows) > 1:
            first, last = model_rows[0], model_rows[-1]
            first_phrase, last_phrase = (_describe_setting(experiment.what, row) for row in (first, last))
            changes.append(
                f"{model}: r is {format_number(first.r.value)} {first_phrase} and {format_number(last.r.value)} "
                f"{last_phrase}; the scatter of a cell’s score is {format_number(first.spread, 3)} and "
                f"{format_number(last.spread, 3)}."
            )
    return " ".join(changes[:MAX_LISTED_MODELS]) or "Fewer than two settings can be compared."


def _describe_setting(varied: str, row: SettingRow) -> str:
    """A setting as an adverbial phrase, such as "at temperature 0.7"."""
    if varied == "temperature":
        return f"at temperature {row.setting:g}"
    return f"with {pluralize(round(row.setting), 'sample')} per cell"


def _tabulate_settings(experiment: SamplingExperiment, label: str) -> Table:
    """Tabulate the figures, with one row for each model and setting."""
    return tabulate(
        "settings",
        f"Accuracy, stability and cost by {label}",
        "r with people: from −1 to +1, higher is better. MAE: from 0 to 2, lower is better. Scatter: standard "
        "deviation of a cell’s score over repeated measurements. Cost: US dollars."
        + " Sampling: settings as sent; the scatter of models with different settings is not comparable."
        * any(row.sampling for row in experiment.rows),
        experiment.rows,
        [
            Column("Model", "name"),
            *([Column("Temperature", "number")] if any(row.temperature is not None for row in experiment.rows) else []),
            Column(label.capitalize(), "number", "setting"),
            Column("r", "estimate", show_n=False, emphasis=True),
            Column("MAE", "estimate", show_n=False),
            Column("Scatter of a cell", "number", "spread", digits=3),
            Column("Cells scored", "number", "scored", digits=1, style="percent"),
            Column("Calls", "number"),
            Column("Cost", "number", "usd", style="usd"),
            *([Column("Sampling")] if any(row.sampling for row in experiment.rows) else []),
        ],
        {
            "setting": lambda row: int(row.setting) if experiment.what == "samples" else row.setting,
            "usd": lambda row: Reason("unknown") if row.usd is None else row.usd,
        },
    )


def _plot_tradeoff(rows: Sequence[SettingRow], label: str) -> Figure:
    """Plot r against cost, or against calls where a price is unknown or all are zero.

    Args:
        rows: those with an r.
    """
    has_prices = all(row.usd is not None for row in rows) and any(row.usd for row in rows)
    points = [
        TradeoffPoint(
            f"{row.setting:g}", (row.usd or 0.0) if has_prices else row.calls, row.r.value or 0.0,
            _name_series(row.model, row.temperature), row.r.ci_low, row.r.ci_high, row.spread,
        )
        for row in rows
    ]  # fmt: skip
    cost_title = "Cost (US dollars)" if has_prices else "Calls"
    return Figure(
        "tradeoff-plot",
        tradeoff_plot(points, cost_title=cost_title, accuracy_title="Pearson r with people (higher is better)"),
        "Accuracy, stability and cost",
        "; ".join(
            f"{_name_series(row.model, row.temperature)}, {label} {row.setting:g}: r {format_number(row.r.value)} "
            f"({format_interval(row.r.ci_low, row.r.ci_high)}), {pluralize(row.calls, 'call')}, "
            f"{'cost ' if row.usd is None else ''}{format_usd(row.usd)}"
            for row in rows
        ),
        f"Larger dots have a larger scatter of a cell’s score. Numbers beside dots: {label}. Lines: ranges of r.",
        "settings",
    )


def build_savings_document(study: SavingsStudy) -> Document:
    """Build the document of a study, headed by the cheapest plan that keeps every r within `MAX_R_SHIFT`."""
    explanation = (
        f"The full design has {pluralize(study.full, 'call')}. Each plan is replayed from its recorded answers, "
        f"without new calls; each row is the mean of {N_DRAWS} random draws. Calls of adaptive panels are upper limits."
    )
    table = tabulate(
        "plans",
        "Sampling plans",
        "Calls as a percentage of the full design, and differences from it. Corrected r: r without sampling noise. "
        "Same tier: share of models in their tier of the full design. Same conflict outcome: share of conflicts with "
        "the same winner, or still open.",
        study.rows,
        SamplingPlanRow,
    )
    sizes = ((study.models, "model"), (study.cells, "cell"), (study.samples, "sample"))
    return Document(
        "Savings study",
        study.audit,
        ", ".join(pluralize(n, noun) for n, noun in sizes),
        [Section("comparison", "Sampling plans compared with the full design", [Paragraph(explanation), table])],
        [Paragraph(describe_cheapest_plan(study.rows), role="lead")],
    )


def describe_cheapest_plan(rows: Sequence[SamplingPlanRow]) -> str:
    """Name the cheapest plan that keeps every r, and every corrected r, within `MAX_R_SHIFT`."""
    accurate_rows = [row for row in rows if max(row.largest, row.corrected_largest or 0.0) <= MAX_R_SHIFT]
    cheapest = min(accurate_rows, key=lambda row: row.calls, default=None)
    if cheapest is None:
        return f"No sampling plan keeps every model’s r within {MAX_R_SHIFT} of the full design."
    calls = format_percent(round(1000 * cheapest.calls), 1000)
    finding = f"With {cheapest.name}, every model’s r stays within {MAX_R_SHIFT} of the full design"
    return f"{finding}, for {calls} of the calls."


TREATMENTS_EXPLANATION = (
    "The first treatment is the audit’s own. The treatment “drop” excludes respondents without an answer. “neutral” "
    "counts them as 0, “low” as never acceptable (−1) and “high” as always acceptable (+1). “impute” imputes their "
    "answers within their country."
)
TREATMENT_COLUMNS = (
    Column("Treatment"), Column("Model", "name"), Column("r", "estimate", show_n=False, emphasis=True),
    Column("Spearman ρ", "number"), Column("MAE", "estimate", show_n=False), Column("RMSE", "number"),
    Column("Bias", "estimate", style="signed", show_n=False), Column("Cells", "number"),
)  # fmt: skip


def build_nonresponse_document(audit: str, nonresponse: NonresponseReport) -> Document:
    """Build the document on whether the alignment depends on the treatment of respondents without an answer."""
    rows = [(treatment.treatment, row) for treatment in nonresponse.treatments for row in treatment.alignment]
    labels = SeriesLabels(len({row.method for _, row in rows}) > 1)
    blocks: list[Block] = [Paragraph(TREATMENTS_EXPLANATION)]
    blocks += [Paragraph(sentence, "note") for sentence in list_missing_treatments(nonresponse)]
    if rows:
        blocks += [_plot_treatments(rows, labels), _tabulate_treatments(rows, labels)]
    if nonresponse.bounds:
        blocks.append(tabulate_bounds(nonresponse.bounds, labels))
    section = Section("treatments", "Agreement under each treatment", blocks)
    return build_experiment_document(
        audit, "respondents without an answer", [describe_nonresponse(nonresponse)], [section], ""
    )


def describe_nonresponse(nonresponse: NonresponseReport) -> str:
    """State whether the ranking of models depends on the treatment of respondents without an answer."""
    if nonresponse.ranking_holds is None:
        return f"The ranking of models cannot be compared between treatments: {nonresponse.reason}."
    audited, *others = nonresponse.treatments
    ranking = " > ".join(audited.ranking)
    if nonresponse.ranking_holds:
        treatments = ", ".join(row.treatment for row in others)
        return f"The ranking of models by MAE is the same under all treatments ({treatments}): {ranking}."
    changes = "; ".join(
        f"{' > '.join(row.ranking)} ({row.treatment})" for row in others if row.ranking != audited.ranking
    )
    return f"The ranking of models by MAE depends on the treatment. As audited: {ranking}. Others: {changes}."


def list_missing_treatments(nonresponse: NonresponseReport) -> list[str]:
    """One sentence for each reason for which treatments are not available."""
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in nonresponse.not_possible.items():
        names_by_reason.setdefault(reason, []).append(name)
    return [
        f"Not available: {', '.join(names)}. Reason: {reason.removesuffix('.')}."
        for reason, names in names_by_reason.items()
    ]


def _plot_treatments(rows: Sequence[tuple[str, AlignmentRow]], labels: SeriesLabels) -> Figure:
    """Plot r with its interval, grouped by model."""
    return build_interval_figure(
        "treatments-plot",
        "Pearson r under each treatment",
        [
            (f"{labels.label(row)}, {treatment}", row.pearson_r)
            for treatment, row in sorted(rows, key=lambda entry: entry[1].model)  # entry: treatment, row
        ],
        CORRELATION_AXIS,
        table_id="treatment-agreement",
        caption="Pearson r with its 95% CI over countries and topics.",
    )


def _tabulate_treatments(rows: Sequence[tuple[str, AlignmentRow]], labels: SeriesLabels) -> Table:
    """Tabulate the agreement with people, with one row for each treatment and model."""
    return Table(
        "treatment-agreement",
        "Agreement under each treatment",
        "Agreement with people under each treatment. r and Spearman’s ρ: from −1 to +1, higher is better. MAE and "
        "RMSE: from 0 to 2, lower is better. Bias: mean score of the model minus that of people; positive if the model "
        "is more permissive. Brackets: 95% CI over countries and topics.",
        TREATMENT_COLUMNS,
        [
            (
                treatment, labels.label(row), row.pearson_r, row.spearman_rho.value,
                row.mae, row.rmse.value, row.bias, row.n,
            )
            for treatment, row in rows
        ],
    )  # fmt: skip


def tabulate_bounds(rows: Sequence[NonresponseBoundsRow], labels: SeriesLabels) -> Table:
    """Tabulate the bounds of the MAE over all possible opinions of respondents without an answer."""
    return Table(
        "nonresponse-bounds",
        "Bounds of the MAE",
        "Lowest and highest MAE of each model, whatever the opinions of respondents without an answer. MAE: from 0 "
        "to 2, lower is better.",
        [
            Column("Model", "name"),
            *(Column(title, "number") for title in ("MAE at best", "MAE at worst", "Cells")),
        ],
        [
            (
                labels.label(row),
                *((Reason(row.reason, 2),) if row.reason else (row.mae_best, row.mae_worst)),
                row.n,
            )
            for row in rows
        ],
    )
