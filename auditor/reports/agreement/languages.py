"""The languages that models were asked in, who fell back to English, and what asking in another language changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from auditor.config import AuditConfig
from auditor.domain import ENGLISH, NATIVE, Outcome, Trace
from auditor.metrics.bootstrap import BIAS
from auditor.metrics.jackknife import paired_jackknife
from auditor.metrics.judge_bias import difference_of_shares
from auditor.reports.estimate_conversion import interval_to_estimate
from auditor.reports.measurement_schema import Estimate, ReportModel
from auditor.reports.report_source import FloatArray, ReportSource
from auditor.storage import results
from auditor.storage.database import Database

MIN_USABLE_SHARE_GAP = 0.05


class LanguageCountriesRow(ReportModel):
    """Where models were asked in one language."""

    language: str
    """ISO 639-1 code."""
    countries: list[str]


class LanguageDifferenceRow(ReportModel):
    """One model asked in two languages."""

    model: str
    first: str
    second: str
    """As the configuration names them; `native` differs by country."""
    difference: Estimate
    """Mean score in the second less that in the first, over cells in which the two are different languages."""


class UnevenLanguageRow(ReportModel):
    """A model whose answers could be used unequally often in its languages."""

    model: str
    answers: dict[str, tuple[int, int]]
    """For each language the answers that have a score, and all that were asked for."""


class LanguagesReport(ReportModel):
    """The languages of an audit."""

    configured: list[str]
    asked: list[LanguageCountriesRow]
    fell_back: list[str]
    """Countries asked in English under `native`, since there are no prompts in a main language of theirs."""
    once: list[str]
    """Countries in which all configured languages are the same one: asked once, and in no difference."""
    differences: list[LanguageDifferenceRow]
    """Each further language against the first, model by model; none where there is one."""
    uneven: list[UnevenLanguageRow]
    """Models whose shares of usable answers in two languages differ by more than chance, and by 5 points or more."""


def build_languages_report(db: Database, source: ReportSource) -> LanguagesReport | None:
    """None where no model was asked about countries."""
    config = source.config
    if config is None or config.task is not None or not config.probes.direct:
        return None
    asked: dict[str, list[str]] = defaultdict(list)
    for country in source.countries:
        for code in config.languages_in(source.survey.native.get(country, ())):
            asked[code].append(country)
    native = [c for c in source.countries if source.survey.native.get(c)]
    several = len(config.languages) > 1
    traces = results.load_traces(db, source.audit.id) if several else []
    return LanguagesReport(
        configured=list(config.languages),
        asked=[LanguageCountriesRow(language=code, countries=where) for code, where in asked.items()],
        fell_back=[c for c in source.countries if c not in native] if NATIVE in config.languages else [],
        once=[
            c for c in source.countries if several and len(config.languages_in(source.survey.native.get(c, ()))) == 1
        ],
        differences=_build_difference_rows(traces, source, config) if several else [],
        uneven=_find_uneven_models(traces, source.models),
    )


def _find_uneven_models(traces: Sequence[Trace], models: Sequence[str]) -> list[UnevenLanguageRow]:
    counted: dict[str, dict[str, list[int]]] = {model: {} for model in models}
    for t in traces:
        if t.model in counted:
            tally = counted[t.model].setdefault(t.language, [0, 0])
            tally[0] += t.outcome is Outcome.OK and t.score is not None
            tally[1] += 1
    return [
        UnevenLanguageRow(model=model, answers={code: (ok, n) for code, (ok, n) in sorted(by.items())})
        for model, by in counted.items()
        if len(by) > 1 and _shares_differ([(ok, n) for ok, n in by.values()])
    ]


def _shares_differ(usable_counts: Sequence[tuple[int, int]]) -> bool:
    (most, of_most), (least, of_least) = (f(usable_counts, key=lambda a: a[0] / a[1]) for f in (max, min))
    apart = difference_of_shares(most, of_most, least, of_least)
    return (apart.value or 0.0) > MIN_USABLE_SHARE_GAP and (apart.ci_low or 0.0) > 0


def _build_difference_rows(
    traces: Sequence[Trace], source: ReportSource, config: AuditConfig
) -> list[LanguageDifferenceRow]:
    names = config.languages
    means = _compute_mean_scores(traces, source, config)
    table = (np.zeros(len(source.cells)), source.country_index, source.topic_index)
    return [
        LanguageDifferenceRow(
            model=model,
            first=names[0],
            second=names[slot],
            difference=interval_to_estimate(paired_jackknife(BIAS, means[slot, i], means[0, i], *table)),
        )
        for slot in range(1, len(names))
        for i, model in enumerate(source.models)
    ]


def _compute_mean_scores(traces: Sequence[Trace], source: ReportSource, config: AuditConfig) -> FloatArray:
    """Mean score, shape (languages, models, cells); nan where there is none, or the language is the first one again."""
    shape = (len(config.languages), len(source.models), len(source.cells))
    sums, counts = np.zeros(shape), np.zeros(shape)
    model = {name: i for i, name in enumerate(source.models)}
    column = {cell: j for j, cell in enumerate(source.cells)}
    slots = {
        country: _language_positions(config, source.survey.native.get(country, ())) for country in source.countries
    }
    for t in traces:
        if t.cell in column and t.outcome is Outcome.OK and t.score is not None:
            for slot in slots[t.cell.country].get(t.language, ()):
                sums[slot, model[t.model], column[t.cell]] += t.score
                counts[slot, model[t.model], column[t.cell]] += 1
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _language_positions(config: AuditConfig, native_languages: Sequence[str]) -> dict[str, list[int]]:
    """For each language of a country the configured ones that it stands for; the first's are in no other."""
    meant = [(tuple(native_languages) or (ENGLISH,)) if name == NATIVE else (name,) for name in config.languages]
    found: dict[str, list[int]] = defaultdict(list)
    for slot, codes in enumerate(meant):
        for code in codes:
            if slot == 0 or code not in meant[0]:
                found[code].append(slot)
    return found
