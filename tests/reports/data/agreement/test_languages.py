"""Models are named for fewer usable answers in one language only after correction, and on the same cells."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from scipy import stats

from auditor.domain import Cell, CellScore, Grouping, Outcome, Region, Survey, SurveyCell, Trace
from auditor.reports.data.agreement.languages import UnevenLanguageRow, build_languages_report
from auditor.reports.data.report_source import ReportSource
from auditor.storage import audits, results
from auditor.storage.database import Database
from tests.support.audit_configs import config
from tests.support.known import known

LANGUAGES = ("en", "de", "es")
MODELS = [f"m{i}" for i in range(6)]
CELLS = [Cell(f"country {i:02}", f"topic {(i + j) % 40:02}") for i, j in product(range(40), range(3))]
SURVEY = Survey(
    "own", "t", "s", "{topic} {country}", ("never", "always"), tuple(SurveyCell(cell, 0.0) for cell in CELLS)
)


class Answers:
    """Simulated answers of an audit in three languages, for the part of its report on languages."""

    def __init__(self, db: Database, patch: pytest.MonkeyPatch) -> None:
        audit = audits.save_audit(
            db, name="a", config=None, config_hash=None, survey=SURVEY, environment={"auditor": "0"}
        )
        multilingual = config("http://127.0.0.1", language=list(LANGUAGES), probes={"direct": {"samples": 1}})
        scores = [CellScore(model, CELLS[0], "direct", 0.0) for model in MODELS]
        self._source = ReportSource(audit, multilingual, SURVEY, scores)
        self._db, self._patch = db, patch

    def find_uneven(self, traces: list[Trace]) -> list[UnevenLanguageRow]:
        """The models that are named for an audit with these answers."""
        self._patch.setattr(results, "load_traces", lambda db, audit_id: traces)
        report = known(build_languages_report(self._db, self._source))
        return report.uneven


@pytest.fixture
def answers(db: Database, monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Answers of an audit of six models in three languages."""
    return Answers(db, monkeypatch)


def draw_traces(seed: int, planted: float = 0.0) -> Iterator[Trace]:
    """Nine of ten answers are usable in each language; the first model has fewer in the last one by `planted`."""
    rng = np.random.default_rng(seed)
    for model, (sample, language) in product(MODELS, enumerate(LANGUAGES)):
        share = 0.9 - planted * (model == MODELS[0] and language == LANGUAGES[-1])
        for cell, is_usable in zip(CELLS, (rng.random(len(CELLS)) < share).tolist(), strict=True):
            yield make_trace(model, cell, sample, is_usable=is_usable)


def make_trace(model: str, cell: Cell, sample: int, *, is_usable: bool) -> Trace:
    """An answer in the language with the number of its sample."""
    outcome, score = (Outcome.OK, 0.0) if is_usable else (Outcome.REFUSED, None)
    return Trace(model, cell, sample, outcome, score, language=LANGUAGES[sample])


def test_equal_languages_are_rarely_named_and_a_planted_one_always(answers: Answers) -> None:
    n_audits = 12
    n_named = sum(bool(answers.find_uneven(list(draw_traces(seed)))) for seed in range(n_audits))
    assert n_named <= stats.binom.ppf(0.99, n_audits, 0.05)
    for seed in range(2):
        [row] = answers.find_uneven(list(draw_traces(seed, planted=0.3)))
        assert row.model == MODELS[0]
        assert {code: n_asked for code, (_, n_asked) in row.answers.items()} == dict.fromkeys(LANGUAGES, len(CELLS))
        usable = {code: n_usable / n_asked for code, (n_usable, n_asked) in row.answers.items()}
        assert usable["es"] < 0.75 < min(usable["en"], usable["de"])


@pytest.mark.parametrize(("is_usable_in_english", "is_named"), [(False, False), (True, True)])
def test_languages_are_compared_on_the_cells_that_were_asked_in_both(
    answers: Answers, is_usable_in_english: bool, is_named: bool
) -> None:
    """The second language is asked in a fourth of the countries, in which no answer in it is usable."""
    traces = []
    for cell in CELLS:
        is_bilingual = cell.country < "country 10"
        traces.append(make_trace("m0", cell, 0, is_usable=is_usable_in_english or not is_bilingual))
        if is_bilingual:
            traces.append(make_trace("m0", cell, 1, is_usable=False))
    rows = answers.find_uneven(traces)
    assert [row.model for row in rows] == ["m0"] * is_named
    assert [row.answers for row in rows] == [{"de": (0, 30), "en": (120, 120)}] * is_named


def test_a_language_of_few_countries_is_not_tested(answers: Answers) -> None:
    traces = [make_trace("m0", cell, 0, is_usable=True) for cell in CELLS]
    traces += [make_trace("m0", cell, 1, is_usable=False) for cell in CELLS if cell.country < "country 04"]
    assert answers.find_uneven(traces) == []


@pytest.mark.parametrize("is_worse", [True, False])
def test_agreement_by_language_and_region_finds_the_region_where_a_model_is_worse(
    db: Database, monkeypatch: pytest.MonkeyPatch, is_worse: bool
) -> None:
    rng = np.random.default_rng(3)
    countries = [f"country {i:02}" for i in range(23)]
    regions = (
        Region("North", (*countries[:10],)),
        Region("South", (*countries[10:20],)),
        Region("Sea", ("country 20",)),
    )
    cells = [Cell(country, f"topic {j}") for country in countries for j in range(8)]
    scores = dict(zip(cells, rng.normal(0, 0.4, len(cells)).clip(-0.9, 0.9).tolist(), strict=True))
    survey = Survey(
        "own", "t", "s", "{topic} {country}", ("never", "always"),
        tuple(SurveyCell(cell, score) for cell, score in scores.items()), grouping=Grouping("g", "Seas", regions),
    )  # fmt: skip
    traces = []
    for cell, score in scores.items():
        error = float(rng.normal(0, 0.15))
        factor = 2.0 if is_worse and cell.country in regions[1].countries else 1.0
        for sample, (language, size) in enumerate((("en", 1.0), ("de", factor))):
            answer = float(score + size * error + rng.normal(0, 0.05))
            traces.append(Trace("m0", cell, sample, Outcome.OK, answer, language=language))
    audit = audits.save_audit(db, name="a", config=None, config_hash=None, survey=survey, environment={"auditor": "0"})
    bilingual = config("http://127.0.0.1", language=["en", "de"], probes={"direct": {"samples": 1}})
    monkeypatch.setattr(results, "load_traces", lambda db, audit_id: traces)
    report = known(
        build_languages_report(
            db, ReportSource(audit, bilingual, survey, [CellScore("m0", cell, "direct", 0.0) for cell in cells])
        )
    )
    rows = [row for row in report.agreement if row.model == "m0"]
    assert [(row.region, row.countries) for row in rows] == [(None, 23), ("North", 10), ("South", 10)]
    assert report.small_regions == ["Sea"]
    worse = [row.region for row in rows if row.mae.is_significant and (row.mae.value or 0) > 0]
    assert worse == ([None, "South"] if is_worse else [])
    south = rows[-1]
    in_south = [trace for trace in traces if trace.cell.country in regions[1].countries]
    figures = {
        language: stats.pearsonr(
            *zip(*[(t.score, scores[t.cell]) for t in in_south if t.language == language], strict=True)
        )[0]
        for language in ("en", "de")
    }
    assert south.pearson_r.value == pytest.approx(figures["de"] - figures["en"])
    assert south.mae.n == 80
    if is_worse:
        assert (south.concordance.value or 0) < 0
        assert (south.pearson_r.ci_high or 0) < 0


def test_languages_are_compared_by_equally_many_samples(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    countries, codes, samples = [f"country {i:02}" for i in range(16)], ("de", "fr", "it"), 2
    cells = [Cell(country, f"topic {j}") for country in countries for j in range(10)]
    scores = dict(zip(cells, rng.normal(0, 0.3, len(cells)).tolist(), strict=True))
    survey = Survey(
        "own", "t", "s", "{topic} {country}", ("never", "always"),
        tuple(SurveyCell(cell, score) for cell, score in scores.items()), native=dict.fromkeys(countries, codes),
    )  # fmt: skip
    traces = [
        Trace("m0", cell, i * samples + rank, Outcome.OK, float(score + rng.normal(0, 0.4)), language=language)
        for cell, score in scores.items()
        for i, language in enumerate(("en", *codes))
        for rank in range(samples)
    ]
    audit = audits.save_audit(db, name="a", config=None, config_hash=None, survey=survey, environment={"auditor": "0"})
    audit_config = config("http://127.0.0.1", language=["en", "native"], probes={"direct": {"samples": samples}})
    monkeypatch.setattr(results, "load_traces", lambda db, audit_id: traces)
    source = ReportSource(audit, audit_config, survey, [CellScore("m0", cell, "direct", 0.0) for cell in cells])
    report = known(build_languages_report(db, source))
    # The mean of six samples in three languages is nearer to people than that of two in one, which is no difference.
    row = next(row for row in report.agreement if row.model == "m0")
    assert abs(row.mae.value or 1) < 0.03
    assert abs(row.pearson_r.value or 1) < 0.06
    assert not row.mae.is_significant
    assert not row.pearson_r.is_significant
