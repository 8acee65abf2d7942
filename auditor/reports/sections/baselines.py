"""The sections that compare models with simple guesses, the survey's reliability, and the population."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from auditor.errors import pluralize
from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.data.agreement.alignment import rank_by_error
from auditor.reports.data.agreement.baselines import BASELINES_BY_LEVEL
from auditor.reports.data.agreement.population import MIN_SHOWN_CHANGE, PopulationAgreementRow
from auditor.reports.data.measurement_schema import (
    BaselineRow,
    GainRow,
    GuessClaim,
    GuessLevel,
    NonresponseReport,
    StructureRow,
)
from auditor.reports.data.report_schema import Report
from auditor.reports.document import (
    Block,
    Column,
    Disclosure,
    Inline,
    List,
    ListItem,
    Paragraph,
    Section,
    Status,
    Table,
)
from auditor.reports.number_format import format_count, format_number
from auditor.reports.sections.experiments.sampling import (
    describe_nonresponse,
    list_missing_treatments,
    tabulate_bounds,
)
from auditor.reports.sections.phrasing import (
    SeriesLabels,
    compare_test,
    describe_interval,
    group_findings,
    join_first,
    join_names,
    tabulate,
    tabulate_matrix,
)
from auditor.surveys.baselines import MIN_DONOR_COUNTRIES

_INTRODUCTION = (
    "A guess predicts people’s scores without a model: by people’s mean of the topic, of the country, or of the topic "
    "in the region; or by similar countries, the one or the three of the survey’s file that answer at least five other "
    "topics most alike. The predicted cell is left out, but for the r of means, which is an upper limit. A claim needs "
    "every comparison of its level."
)
LEVEL_NAMES: Mapping[GuessLevel, str] = {
    "means": "people’s means of a topic, a country or a region",
    "similar countries": "an estimate from similar countries, which uses the country’s other answers",
}
MAX_NAMES = 4
"""Models that one sentence names."""
SHORT_LEVEL_NAMES: Mapping[GuessLevel, str] = {"means": "people’s means", "similar countries": "similar countries"}


def build_baselines_section(report: Report) -> Section | None:
    """Build the section on the ceiling of r, baselines and nonresponse; None where no scores are measured."""
    if not report.alignment:
        return None
    labels = SeriesLabels.of(report)
    gains = group_findings(
        (labels.label(row), describe_gain(row), compare_test(row.within_topics)) for row in report.gain or []
    )
    blocks: list[Block] = [
        Paragraph(summarize_guesses(report), "finding"),
        List(list_guess_findings(report), is_findings=True),
        Paragraph(_INTRODUCTION, "note"),
        *([List(gains, is_findings=True)] if gains else []),
        Paragraph(describe_ceiling(report)),
        *([_build_gain_table(report.gain, labels)] if report.gain else []),
        *([_build_baselines_table(report.baselines, labels)] if report.baselines else []),
        Disclosure("Each model minus each guess", [_build_differences_table(report, labels)]),
    ]
    if report.nonresponse is not None:
        blocks.append(_build_nonresponse_section(report.nonresponse, labels))
    return Section("worth", "Is it better than a guess without a model?", blocks, "Baselines")


def summarize_guesses(report: Report) -> list[Inline]:
    """State which series of scores are closer to people than all guesses of each level."""
    if not any(claim.p_value is not None for claim in report.guesses):
        return ["Whether a model is better than a guess without a model cannot be tested: there is no 95% CI."]
    labels = SeriesLabels.of(report)
    n_series = len(report.guesses) // len(LEVEL_NAMES)
    guesses_by_models: dict[tuple[str, ...] | None, list[str]] = {}
    for level, name in LEVEL_NAMES.items():
        claims = [claim for claim in report.guesses if claim.level == level]
        is_tested = any(claim.p_value is not None for claim in claims)
        closer = tuple(labels.label(claim) for claim in claims if claim.is_closer) if is_tested else None
        guesses_by_models.setdefault(closer, []).append(f"{name}{_format_best_guess(report, level)}")
    parts: list[Inline] = []
    for models, guesses in guesses_by_models.items():
        parts += ["; "] if parts else []
        if models is None:
            parts.append(f"none can be compared with {guesses[0]}")  # at least one level is tested
        else:
            guess = (" and than " if models else " or than ").join(guesses)
            parts += [*_name_models(models, n_series), f" shown to be closer to people than {guess}"]
    few = (
        f" Similar countries were looked for among {pluralize(report.donor_countries, 'other')} only."
        if report.donor_countries < MIN_DONOR_COUNTRIES
        else ""
    )
    first, *others = parts
    return [f"{str(first)[:1].upper()}{str(first)[1:]}", *others, f".{few}"]


def _format_best_guess(report: Report, level: GuessLevel) -> str:
    """The mean absolute error of the level's best guess, in brackets; a range where models have different cells."""
    errors_by_guess: dict[str, list[float]] = {}
    for row in report.baselines:
        if row.baseline in BASELINES_BY_LEVEL[level] and row.mae.value is not None:
            errors_by_guess.setdefault(row.baseline, []).append(row.mae.value)
    if not errors_by_guess:
        return ""
    best = min(errors_by_guess.values(), key=lambda errors: sum(errors) / len(errors))
    ends = dict.fromkeys(format_number(end) for end in (min(best), max(best)))
    return f" (the best guess: mean absolute error {' to '.join(ends)})"


def _name_models(names: Sequence[str], n_all: int) -> list[Inline]:
    """The subject of a sentence about some of all models, with its verb."""
    if n_all == 1:
        return ["the model is" if names else "the model is not"]
    if not names:
        return ["no model is"]
    if len(names) == n_all:
        return ["both models are" if n_all == 2 else f"all {format_count(n_all)} models are"]
    n_others = len(names) - MAX_NAMES
    more = f" and {format_count(n_others)} more" if n_others > 0 else ""
    verb = "is" if len(names) == 1 else "are"
    return [f"of {format_count(n_all)} models, ", *join_names(names[:MAX_NAMES]), f"{more} {verb}"]


def list_guess_findings(report: Report) -> list[ListItem]:
    """Whether each series of scores is closer to people than the guesses of each level; the smallest error first."""
    labels = SeriesLabels.of(report)
    findings = []
    for row in sorted(report.alignment, key=rank_by_error):
        key = (row.method, row.model)
        baselines = [baseline for baseline in report.baselines if (baseline.method, baseline.model) == key]
        claims = [claim for claim in report.guesses if (claim.method, claim.model) == key]
        if baselines:
            findings.append((labels.label(row), *_describe_guess(baselines, claims)))
    return group_findings(findings)


def _describe_guess(rows: Sequence[BaselineRow], claims: Sequence[GuessClaim]) -> tuple[str, Status]:
    """Compare one series with the guesses of both levels: the predicate and its status."""
    measured = [row for row in rows if row.mae.value is not None and row.mae_difference.value is not None]
    if not measured:
        return f"cannot be compared with a guess without a model: {rows[0].mae_difference.reason}", "neutral"
    levels_by_verb: dict[str, list[str]] = {}
    for claim in claims:
        of_level = [row for row in measured if row.baseline in BASELINES_BY_LEVEL[claim.level]]
        if not of_level:
            continue
        best = min(of_level, key=lambda row: row.mae.value or 0.0)
        is_further = best.mae_difference.is_significant and (best.mae_difference.value or 0.0) > 0
        verb = "is" if claim.is_closer or is_further else "is not shown to be"
        verb = "may or may not be" if best.mae_difference.adjusted_p_value is None else verb
        direction = "further from" if is_further else "closer to"
        levels_by_verb.setdefault(f"{verb} {direction} people than", []).append(SHORT_LEVEL_NAMES[claim.level])
    parts = [f"{verb} {' and '.join(levels)}" for verb, levels in levels_by_verb.items()]
    statuses = {claim.level: claim.is_closer for claim in claims}
    if all(row.mae_difference.adjusted_p_value is None for row in measured):
        return " and ".join(parts), "neutral"
    status: Status = "positive" if all(statuses.values()) else "unclear"
    best = min(measured, key=lambda row: row.mae.value or 0.0)
    if not any(statuses.values()) and best.mae_difference.is_significant and (best.mae_difference.value or 0.0) > 0:
        status = "negative"
    return " and ".join(parts), status


def describe_ceiling(report: Report) -> str:
    """State the largest r that can be expected against this survey, or why it is not known."""
    overall, within_topics = report.ceiling
    if overall.largest_r is None:
        reason = (overall.reliability.reason or "").rstrip(".")
        return f"The highest attainable r is not available: {reason}."
    reliabilities = " and ".join(
        f"{format_number(row.reliability.value)} {scope} ({describe_interval(row.reliability)})"
        for row, scope in ((overall, "over all cells"), (within_topics, "within topics"))
        if row.reliability.value is not None
    )
    return (
        f"A perfect model is expected to reach at most r = {format_number(overall.largest_r)}. The survey’s split-half "
        f"reliability is {reliabilities}."
    )


def describe_gain(row: GainRow) -> str:
    """Describe whether a model captures how countries differ within topics, as a predicate."""
    r = row.within_topics
    if r.value is None:
        return f"cannot be tested on differences between countries: {r.reason}"
    findings = {
        "positive": "captures differences between countries",
        "negative": "is negatively correlated with the differences between countries",
        "unclear": "is not shown to capture differences between countries",
        "neutral": "may or may not capture differences between countries",
    }
    return findings[compare_test(r)]


def _build_gain_table(rows: Sequence[GainRow], labels: SeriesLabels) -> Table:
    """The table of r within topics for each series of scores."""
    caption = (
        "r within topics: each topic’s mean is subtracted from the scores of the model and of people. Sentences rest "
        "on p-values adjusted for the number of models (Holm), the 95% CIs are of one model alone."
    )
    return tabulate("gain", "r within topics", caption, rows, GainRow, {"model": labels.label})


def _build_baselines_table(rows: Sequence[BaselineRow], labels: SeriesLabels) -> Table:
    """The table of r and MAE of each guess; one row where they are the same on the cells of several series."""
    models: dict[tuple[str, Estimate, Estimate], list[str]] = {}
    for row in rows:
        models.setdefault((row.baseline, row.pearson_r, row.mae), []).append(labels.label(row))
    has_groups = len(set(map(tuple, models.values()))) > 1
    return Table(
        "baselines",
        "Agreement of guesses with people",
        "r (higher is better) and MAE (lower is better) of each guess, on the cells of the models.",
        [
            Column("Guess", "text"),
            *([Column("Models", "text")] if has_groups else []),
            Column("r", "estimate"),
            Column("MAE", "estimate", emphasis=True),
        ],
        [
            [baseline, *([join_first(names, "model")] if has_groups else []), r, mae]
            for (baseline, r, mae), names in models.items()
        ],
    )


def _build_differences_table(report: Report, labels: SeriesLabels) -> Table:
    """The table of each model's MAE minus that of each baseline, with its adjusted p-value."""
    return tabulate(
        "baseline-differences",
        "Models minus baselines",
        "Mean absolute error of the model minus that of the guess, on the same cells. Negative: the model is closer to "
        "people.",
        report.baselines,
        BaselineRow,
        {"model": labels.label},
    )


def _build_nonresponse_section(nonresponse: NonresponseReport, labels: SeriesLabels) -> Section:
    """Build the subsection on respondents without an answer: the ranking and r by treatment, and the bounds of MAE."""
    treatments_table = tabulate_matrix(
        "nonresponse-treatments",
        "Agreement with people under each treatment",
        "r with people (higher is better) under each treatment of respondents without an answer. Low and high count "
        "all of them as never and as always acceptable. These two are no bounds of r.",
        Column("Treatment"),
        {
            treatment.treatment: {labels.label(row): row.pearson_r for row in treatment.alignment}
            for treatment in nonresponse.treatments
        },
    )
    return Section(
        "nonresponse",
        "Respondents without an answer",
        [
            Paragraph(describe_nonresponse(nonresponse)),
            *([tabulate_bounds(nonresponse.bounds, labels)] if nonresponse.bounds else []),
            treatments_table,
            *([List(list_missing_treatments(nonresponse))] if nonresponse.not_possible else []),
        ],
    )


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
    "each country is. Found: both are smaller than in 99% of permutations of the model’s scores over countries (Holm)."
)


def build_population_section(report: Report) -> Section | None:
    """Build the section on people's sampling error and on structure; None where neither can be computed."""
    labels = SeriesLabels.of(report)
    corrected = [row for row in report.population if row.mae.value is not None or row.is_below_floor]
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
    """Name the models that relate topics as people do, in a sentence; None without any."""
    labels = SeriesLabels.of(report)
    names = [labels.label(row) for row in report.structure if row.is_found]
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
