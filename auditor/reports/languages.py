"""What asking in another language changes."""

from __future__ import annotations

import numpy as np

from auditor.domain import Outcome
from auditor.metrics.bootstrap import BIAS, paired_interval
from auditor.reports.estimates import resampled
from auditor.reports.measures import Estimate, Part
from auditor.reports.source import Source
from auditor.storage import results
from auditor.storage.database import Database


class LanguageRow(Part):
    """One model asked in two languages."""

    model: str
    first: str
    second: str
    """As the configuration names them; `native` differs by country."""
    difference: Estimate
    """Mean score in the second less that in the first, over cells in which the two are different languages."""


def languages(db: Database, source: Source) -> list[LanguageRow]:
    """Each further language against the first, model by model; nothing where all were asked in one."""
    if source.config is None or len(source.config.languages) < 2:
        return []
    names = source.config.languages
    means = _means(db, source)
    return [
        LanguageRow(
            model=model,
            first=names[0],
            second=names[slot],
            difference=resampled(
                paired_interval(
                    BIAS,
                    means[slot, i],
                    means[0, i],
                    np.zeros(len(source.cells)),
                    source.country_index,
                    source.topic_index,
                    seed=source.seed,
                )
            ),
        )
        for slot in range(1, len(names))
        for i, model in enumerate(source.models)
    ]


def _means(db: Database, source: Source) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Mean score, shape (languages, models, cells); nan where there is none, or the language is the first one again."""
    assert source.config is not None
    k, shape = (
        source.config.direct.samples,
        (len(source.config.languages), len(source.models), len(source.cells)),
    )
    sums, counts = np.zeros(shape), np.zeros(shape)
    model = {name: i for i, name in enumerate(source.models)}
    column = {cell: j for j, cell in enumerate(source.cells)}
    traces = [t for t in results.traces(db, source.audit.id) if t.cell in column]
    first = {t.cell: t.language for t in traces if t.sample < k}
    for t in traces:
        same = t.sample >= k and first.get(t.cell) == t.language
        if t.outcome is Outcome.OK and t.score is not None and not same:
            where = t.sample // k, model[t.model], column[t.cell]
            sums[where] += t.score
            counts[where] += 1
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
