"""How often a report states something false, or finds what is true, in each family of sentences.

A statement is a claim as the sections make it: the same data functions and the same rules, without the words. Its truth
is that of the simulated audit. docs/method.md fixes the families, their rules and the limits.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.stats import binom

from auditor.domain import Cell, CellScore, Outcome, Survey, SurveyCell
from auditor.metrics.intervals.estimate import SHARED_LEVEL
from auditor.reports.data.agreement.alignment import compute_alignment
from auditor.reports.data.agreement.baselines import build_guess_claims, compute_baselines, compute_gains
from auditor.reports.data.agreement.cultural_findings import (
    MAX_TOPIC_MAE,
    MIN_PEER_AGREEMENT,
    build_cultural_findings,
    compute_country_errors,
    compute_topic_errors,
    find_shortfalls,
)
from auditor.reports.data.agreement.population import compute_structure
from auditor.reports.data.agreement.regions import build_regions_report
from auditor.reports.data.agreement.sensitivity import find_influential_units
from auditor.reports.data.agreement.tiers import ALL_COUNTRIES, build_tier_rankings
from auditor.reports.data.report_source import ReportSource
from auditor.reports.sections.agreement import list_candidates
from auditor.reports.sections.agreement_words import describe_closeness
from auditor.reports.sections.phrasing import compare_test
from auditor.storage.count_queries import JudgeVerdictCounts
from auditor.storage.votes import VoteArrays
from benchmarks.coverage.worlds.sentence_worlds import (
    GUESS_ERRORS,
    N_COUNTRIES,
    N_TOPICS,
    SentenceSample,
    SentenceWorld,
)

COUNTRIES = (
    "Germany", "France", "Canada", "Australia", "Netherlands", "Sweden",
    "Japan", "China", "Nigeria", "Brazil", "Turkey", "Indonesia",
)  # fmt: skip
"""Six Western countries and six others, of six cultural zones."""
MAX_FALSE_IN_FAMILY, MAX_FALSE_ON_PAGE = 0.05, 0.10
MAX_INFLUENCE_NAMED = 0.06
WORD_BOUNDS: Mapping[str, tuple[float, float]] = {
    "hardly": (-1.0, 0.5), "partly": (0.5, 0.75), "well": (0.75, 0.9), "closely": (0.9, 1.0)
}  # fmt: skip


class Claim(NamedTuple):
    """One statement of a report: its family, what it is about, whether it is true, and whether page one has it too.

    Page one is taken to have every statement that may stand there, though it has four findings at most.
    """

    family: str
    subject: str
    is_true: bool
    is_on_page_one: bool = False


@dataclass(frozen=True, slots=True)
class SentenceResult:
    """What the audits of one world gave.

    Attributes:
        n_false: by family, audits with a false statement; `page one` and `report` are those with any.
        n_found: audits that state what was planted.
    """

    world: str
    n_audits: int
    n_false: Mapping[str, int]
    n_found: int
    planted: str | None
    min_found: float

    def list_problems(self) -> Iterator[str]:
        """How the result breaks the rule: a rate of errors above the limit beyond chance, or too little power."""
        for family, n_false in self.n_false.items():
            if n_false > largest_count(family, self.n_audits):
                yield f"{self.world}: a false sentence of the family “{family}” in {n_false / self.n_audits:.1%}"
        smallest = int(binom.ppf(0.025, self.n_audits, self.min_found)) if self.planted else 0
        if self.n_found < smallest:
            yield f"{self.world}: {self.planted} is stated in {self.n_found / self.n_audits:.1%}"


def largest_count(family: str, n_audits: int) -> int:
    """The largest number of audits with a false sentence that agrees with the limit of a family, or of any family."""
    limits = dict.fromkeys(("page one", "report"), MAX_FALSE_ON_PAGE) | {"influence": MAX_INFLUENCE_NAMED}
    limit = limits.get(family, MAX_FALSE_IN_FAMILY)
    return int(binom.ppf(0.975, n_audits, limit))


def measure_sentences(world: SentenceWorld, max_audits: int | None = None) -> SentenceResult:
    """Simulate audits of a world and count those with a false statement, by family."""
    n_audits = world.n_audits if max_audits is None else min(max_audits, world.n_audits)
    n_false: dict[str, int] = {}
    n_found = 0
    for run in range(n_audits):
        sample = world.draw(np.random.default_rng([zlib.crc32(world.name.encode()), run]))
        claims = list(list_claims(sample))
        families = {claim.family for claim in claims if not claim.is_true}
        if any(claim.is_on_page_one and not claim.is_true for claim in claims):
            families.add("page one")
        for family in families | ({"report"} if families else set()):
            n_false[family] = n_false.get(family, 0) + 1
        n_found += world.planted in {(claim.family, claim.subject) for claim in claims}
    planted = None if world.planted is None else " ".join(world.planted)
    return SentenceResult(world.name, n_audits, n_false, n_found, planted, world.min_found)


def to_row(result: SentenceResult) -> dict[str, Any]:
    """The result as it is stored."""
    return asdict(result)


def make_source(sample: SentenceSample) -> ReportSource:
    """The records of a simulated audit, as a report reads them; the audit itself has no row."""
    countries = COUNTRIES if sample.is_placed else [f"country {i}" for i in range(N_COUNTRIES)]
    cells = [Cell(country, f"topic {i}") for country in countries for i in range(N_TOPICS)]
    survey = Survey(
        name="simulated", title="Simulated people", source="simulated", wording="How justifiable is {topic}?",
        scale=("never", "always"),
        cells=tuple(SurveyCell(cell, float(v)) for cell, v in zip(cells, sample.survey.ravel(), strict=True)),
    )  # fmt: skip
    scores = [
        CellScore(f"m{m}", cell, "direct", float(value), n_ok=1, n_planned=1)
        for m, table in enumerate(sample.scores)
        for cell, value in zip(cells, table.ravel(), strict=True)
    ]
    source = ReportSource(audit=cast(Any, None), config=None, survey=survey, scores=scores)
    return source if sample.verdicts is None else _add_verdicts(source, sample.verdicts, cells)


def _add_verdicts(source: ReportSource, verdicts: np.ndarray, cells: list[Cell]) -> ReportSource:
    """The same with a verdict of each judge on each model's trace of each cell."""
    n_judges, n_models = verdicts.shape[:2]
    traces = [(f"m{m}", cell.country, cell.topic, 0) for m in range(n_models) for cell in cells]
    judges = [f"judge {j}" for j in range(n_judges)]
    n = verdicts.size
    votes = VoteArrays(
        judges, traces, [None] * len(traces), np.full(len(traces), np.nan), ({},),
        np.repeat(np.arange(n_judges), len(traces)), np.tile(np.arange(len(traces)), n_judges),
        np.zeros(n, dtype=np.intp), verdicts.reshape(n).astype(np.int8), np.full(n, np.nan), np.ones(n, dtype=np.bool_),
        np.full(n, np.nan),
    )  # fmt: skip
    counts = [
        JudgeVerdictCounts(judge, f"m{m}", Outcome.OK, len(cells), int(verdicts[j, m].sum()), 0)
        for j, judge in enumerate(judges)
        for m in range(n_models)
    ]
    return ReportSource(
        audit=source.audit, config=None, survey=source.survey, scores=source.scores, votes=votes, judge_counts=counts
    )


# --- the statements ---------------------------------------------------------------------------------------------


def list_claims(sample: SentenceSample) -> Iterator[Claim]:
    """All statements of a report about this audit."""
    source = make_source(sample)
    for build in (
        _claim_agreement,
        _claim_best,
        _claim_guesses,
        _claim_places,
        _claim_regions,
        _claim_shortfalls,
        _claim_influence,
    ):
        yield from cast(Callable[[ReportSource, SentenceSample], Iterator[Claim]], build)(source, sample)


def _number(model: str) -> int:
    return int(model.removeprefix("m"))


def _claim_agreement(source: ReportSource, sample: SentenceSample) -> Iterator[Claim]:
    """Words for the concordance, order by r, differences between countries, and structure."""
    for row in compute_alignment(source):
        m = _number(row.model)
        if (status := compare_test(row.pearson_r)) in ("positive", "negative"):
            yield Claim("order", row.model, sample.r[m] * (1 if status == "positive" else -1) > 0)
        words = [word for word in WORD_BOUNDS if word in describe_closeness(row).split()]
        if words:
            low, high = WORD_BOUNDS[words[0]][0], WORD_BOUNDS[words[-1]][1]
            yield Claim("closeness", row.model, bool(low <= sample.concordance[m] <= high), is_on_page_one=True)
    for gain in compute_gains(source):
        if (status := compare_test(gain.within_topics)) in ("positive", "negative"):
            is_true = sample.within_r[_number(gain.model)] * (1 if status == "positive" else -1) > 0
            yield Claim("differences between countries", gain.model, bool(is_true))
    for structure in compute_structure(source):
        if structure.is_found:
            is_true = sample.within_r[_number(structure.model)] > 0
            yield Claim("structure", structure.model, bool(is_true), is_on_page_one=True)


def _claim_best(source: ReportSource, sample: SentenceSample) -> Iterator[Claim]:
    """The model that is the closest, and models that are worse than another, over all countries and in each region."""
    for ranking in build_tier_rankings(source):
        if ranking.by != "MAE":
            continue
        family = "closest" if ranking.scope == ALL_COUNTRIES else f"closest in {ranking.scope} countries"
        candidates = list_candidates(ranking)
        maes = {row.model: sample.mae[_number(row.model)] for row in ranking.rows}
        smallest = min(maes.values())
        for row in ranking.rows:
            if row.may_be_best is False:
                is_true = maes[row.model] > smallest + 1e-9
                yield Claim(family, f"{row.model} is worse", bool(is_true), family == "closest")
        if len(candidates) == 1:
            n_best = sum(mae < smallest + 1e-9 for mae in maes.values())
            is_true = maes[candidates[0]] < smallest + 1e-9 and n_best == 1
            yield Claim(family, candidates[0], bool(is_true), family == "closest")


def _claim_guesses(source: ReportSource, sample: SentenceSample) -> Iterator[Claim]:
    """Models that are closer to people than the guesses of a level: false where the best guess errs as little."""
    for claim in build_guess_claims(source, compute_baselines(source)):
        if claim.is_closer:
            is_true = sample.mae[_number(claim.model)] < GUESS_ERRORS[claim.level] - 0.003
            yield Claim("guesses", f"{claim.model} {claim.level}", bool(is_true), is_on_page_one=True)


def _claim_places(source: ReportSource, sample: SentenceSample) -> Iterator[Claim]:
    """Countries and topics in which a model is more permissive, or further from people than elsewhere."""
    countries, topics = compute_country_errors(source), compute_topic_errors(source)
    findings = build_cultural_findings(source, countries)
    for finding in [] if findings is None else findings.rows:
        if finding.bias is not None:
            is_country = finding.kind == "country"
            table = sample.bias_by_country if is_country else sample.bias_by_topic
            place = source.countries.index(finding.name) if is_country else int(finding.name.removeprefix("topic "))
            is_true = table[_number(finding.model), place] * (finding.bias.value or 0.0) > 0
            yield Claim("places", f"{finding.model} {finding.kind} {place}", bool(is_true), is_on_page_one=True)
    for kind, rows, maes in (
        ("country", countries, sample.mae_by_country),
        ("topic", topics, sample.mae_by_topic),
    ):
        logs = np.log(maes)
        true_ratios = logs - (logs.sum(axis=1, keepdims=True) - logs) / (maes.shape[1] - 1)
        for row in rows:
            if row.mae_ratio.is_significant_at(SHARED_LEVEL):
                place = source.countries.index(row.name) if kind == "country" else int(row.name.removeprefix("topic "))
                true_ratio = true_ratios[_number(row.model), place]
                is_true = abs(true_ratio) > 1e-9 and (true_ratio > 0) == ((row.mae_ratio.value or 1.0) > 1)
                family = "further" if kind == "country" else "further on topics"
                yield Claim(family, f"{row.model} {kind} {place}", bool(is_true), is_on_page_one=kind == "country")


def _claim_regions(source: ReportSource, sample: SentenceSample) -> Iterator[Claim]:
    """Gaps between regions, of which none is true: countries of both have the same effects on average."""
    del sample
    for gap in build_regions_report(source).gaps:
        for family, test in (("regions", gap.mae_gap), ("bias in regions", gap.bias_gap)):
            if test.is_significant_at(SHARED_LEVEL):
                yield Claim(family, gap.model, is_true=False, is_on_page_one=True)


def _claim_shortfalls(source: ReportSource, sample: SentenceSample) -> Iterator[Claim]:
    """Figures beyond a threshold."""
    for row in find_shortfalls(source).rows:
        m = _number(row.model)
        if row.threshold == "topic error" and row.topic is not None:
            topic = int(row.topic.removeprefix("topic "))
            is_true = sample.mae_by_topic[m, topic] > MAX_TOPIC_MAE
            yield Claim("shortfalls", f"{row.model} topic {topic}", bool(is_true), is_on_page_one=True)
        else:
            is_true = row.threshold == "valid share" and sample.valid_shares[m] < MIN_PEER_AGREEMENT
            yield Claim("shortfalls", f"{row.model} {row.threshold}", bool(is_true), is_on_page_one=True)


def _claim_influence(source: ReportSource, sample: SentenceSample) -> Iterator[Claim]:
    """Countries and topics on which nearly all uncertainty rests: true where most of the true variance does."""
    for unit in find_influential_units(source):
        maes = sample.mae_by_country if unit.kind == "country" else sample.mae_by_topic
        place = source.countries.index(unit.name) if unit.kind == "country" else int(unit.name.removeprefix("topic "))
        squares = (maes[_number(unit.model)] - maes[_number(unit.model)].mean()) ** 2
        is_true = squares[place] > 0.5 * squares.sum() > 1e-12
        yield Claim("influence", f"{unit.model} {unit.kind} {place}", bool(is_true), is_on_page_one=True)
