"""A synthetic audit in a database with known truth, made without requests: every table is filled, every outcome occurs.

The larger i, the less model i agrees with the survey (its noise grows), so that the correct report is
known. Equal arguments give equal rows. The last of several models has no known price.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from auditor.config import AuditConfig, DirectProbe, ModelSection, Probes, SurveySection
from auditor.domain import (
    Answer,
    Attempt,
    Call,
    Cell,
    CellScore,
    Conflict,
    ConflictKind,
    ConflictState,
    Decision,
    Message,
    Outcome,
    Purpose,
    Rating,
    Ruling,
    Survey,
    SurveyCell,
    Trace,
    Verdict,
    canonical_json,
)
from auditor.domain.decisions import REVIEW_ASPECTS
from auditor.storage import audits, ledger, results
from auditor.storage.audits import Audit
from auditor.storage.call_records import StoredAnswer, StoredAttempt
from auditor.storage.database import Database
from auditor.storage.records import save_records
from auditor.storage.row_classes import insert_new
from tests.support.stored_copies import fill_once
from tests.support.stored_rows import add_rating

COUNTRIES = (
    "Australia", "Brazil", "China", "Egypt", "Germany", "Netherlands", "Nigeria", "United States", "Indonesia", "Japan",
    "Mexico", "Pakistan", "Russia", "Turkey", "Argentina", "Bolivia", "Canada", "Chile", "Colombia", "Cyprus",
    "Ecuador", "Ethiopia", "France", "Ghana", "Greece", "Guatemala", "India", "Iran", "Iraq", "Italy",
    "Jordan", "Kazakhstan", "Kenya", "Kyrgyzstan", "Lebanon", "Libya", "Malaysia", "Maldives", "Mongolia", "Morocco",
    "Myanmar", "New Zealand", "Nicaragua", "Peru", "Philippines", "Poland", "Romania", "Senegal", "Serbia", "Singapore",
    "South Africa", "South Korea", "Spain", "Taiwan", "Tajikistan", "Thailand", "Tunisia", "Uganda", "Ukraine",
    "Venezuela", "Vietnam", "Zimbabwe",
)  # fmt: skip
TOPICS = (
    "divorce", "homosexuality", "abortion", "euthanasia", "cheating on taxes", "death penalty", "stealing property",
    "sex before marriage", "prostitution", "suicide", "gambling", "drinking alcohol", "political violence",
    "accepting a bribe", "avoiding a fare", "claiming benefits", "beating children", "violence against others",
    "terrorism", "casual sex", "using contraceptives", "having an affair", "eating meat",
)  # fmt: skip
NAMES = (
    "alder", "birch", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel", "ironwood", "juniper", "kauri", "larch",
    "maple", "neem", "oak", "pine", "quince", "rowan", "spruce", "teak", "ulmo", "viburnum", "willow", "yew",
)  # fmt: skip

FAILURES = tuple(o for o in Outcome if o is not Outcome.OK)
FAILURE_SHARE = 0.12
REVIEW_FAILURE_SHARE = 0.05
THRESHOLD = 0.38
N_PROMPT_TOKENS, N_COMPLETION_TOKENS = 120, 80
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def populate(
    db: Database,
    *,
    models: int = 3,
    countries: int = 8,
    topics: int = 6,
    samples: int = 3,
    judges: int | None = None,
    seed: int = 0,
    name: str = "population",
) -> Audit:
    """Fill a database with one finished audit.

    Args:
        models, countries, topics, samples: size; at most 24 models, 62 countries and 23 topics.
        judges: maximum number of judges per trace; None is every other model.
        seed: of the random numbers.
        name: the audit's name.
    """
    key = (populate, models, countries, topics, samples, judges, seed, name)
    fill_once(db, key, lambda: _fill(db, models, countries, topics, samples, judges, seed, name))
    return audits.get_audit(db, name)


def _fill(
    db: Database, models: int, countries: int, topics: int, samples: int, judges: int | None, seed: int, name: str
) -> None:
    rng = np.random.default_rng(seed)
    names = NAMES[:models]
    survey = _survey(rng, COUNTRIES[:countries], TOPICS[:topics])
    config = _config(name, names, samples, seed)
    audit = audits.save_audit(
        db, name=name, config=canonical_json(config.model_dump(mode="json")), config_hash=config.hash, survey=survey,
        environment={"auditor": "0.1.0", "python": "3.11.7", "numpy": "2.4.0", "platform": "Linux x86_64"},
    )  # fmt: skip
    scored_cells = [cell.cell for cell in survey.cells if cell.score is not None]
    truth = np.array([survey.scores[cell] for cell in scored_cells])
    scores: list[CellScore] = []
    for index, model in enumerate(names):
        traces = _traces(rng, index, model, scored_cells, truth, samples)
        verdicts = _verdicts(rng, index, names, traces, judges)
        scores += _cell_scores(rng, model, traces, samples)
        save_records(db, audit.id, traces)
        save_records(db, audit.id, verdicts)
        _record(db, audit.id, [*_answered(traces, names), *_answered(verdicts, names)])
    save_records(db, audit.id, scores)
    conflicts = _conflicts(rng, names, scores)
    results.replace_conflicts(db, audit.id, conflicts)
    for rating in _ratings(conflicts):
        add_rating(db, audit.id, rating)
    audits.set_stage(db, audit.id, audits.FINISHED)


def _config(name: str, names: Sequence[str], samples: int, seed: int) -> AuditConfig:
    models = [ModelSection(name=n, model=f"openai/{n}-1") for n in names]
    return AuditConfig(
        name=name,
        survey=SurveySection(source="population"),
        models=models,
        judges="peers" if len(names) > 1 else [],
        probes=Probes(direct=DirectProbe(samples=samples)),
        seed=seed,
    )


def _survey(rng: np.random.Generator, countries: Sequence[str], topics: Sequence[str]) -> Survey:
    level = rng.normal(0, 0.25, len(countries))[:, None] + rng.normal(-0.25, 0.45, len(topics))[None, :]
    score = np.clip(level + rng.normal(0, 0.12, level.shape), -0.99, 0.99).round(2)
    cells = []
    for (i, country), (j, topic) in itertools.product(enumerate(countries), enumerate(topics)):
        cell_score = None if (7 * i + 5 * j) % 29 == 17 else float(score[i, j])
        cells.append(SurveyCell(cell=Cell(country, topic), score=cell_score, n=1000 + 10 * i))
    return Survey(
        name="population", title="A made-up survey", source="Drawn at random; describes no real country.",
        wording="How justifiable is {topic} in {country}?", scale=("never justifiable", "always justifiable"),
        cells=tuple(cells), words={topic: tuple(topic.split()) for topic in topics},
    )  # fmt: skip


def _traces(
    rng: np.random.Generator, index: int, model: str, cells: Sequence[Cell], truth: NDArray[np.float64], samples: int
) -> list[Trace]:
    centre = truth + rng.normal(0.15 * (index % 4), 0.1 + 0.1 * (index % 8), truth.size)
    scores = np.clip(centre[:, None] + rng.normal(0, 0.08, (truth.size, samples)), -1, 1).round(2)
    failed = rng.random((truth.size, samples)) < FAILURE_SHARE
    causes = itertools.cycle(FAILURES)
    traces = []
    for (i, cell), sample in itertools.product(enumerate(cells), range(samples)):
        outcome = next(causes) if failed[i, sample] else Outcome.OK
        score = float(scores[i, sample]) if outcome is Outcome.OK else None
        text = _text(cell, score) if outcome.is_answer else None
        key = _call(model, Purpose.DIRECT, cell, sample).key
        traces.append(Trace(model, cell, sample, outcome, score, text, key))
    return traces


def _text(cell: Cell, score: float | None) -> str:
    lean = "an open question" if score is None else "accepted" if score > 0.2 else "refused" if score < -0.2 else "torn"
    return (
        f"Norms: in {cell.country}, family, faith and law shape how people speak of {cell.topic}; the young and the "
        f"cities are more lenient than the old and the villages. Reasoning: what is said in public differs from what "
        f"is done in private, and the survey asks what can be justified. Taken together, {cell.topic} is {lean} here."
    )


def _verdicts(
    rng: np.random.Generator, index: int, names: Sequence[str], traces: Sequence[Trace], judges: int | None
) -> list[Verdict]:
    others = [n for i, n in enumerate(names) if i != index][:judges]
    pairs = [(trace, judge) for trace in traces if trace.outcome is Outcome.OK for judge in others]
    failed = rng.random(len(pairs)) < REVIEW_FAILURE_SHARE
    valid = rng.random(len(pairs)) < 0.95 - 0.08 * (index % 8)
    causes = itertools.cycle(FAILURES)
    verdicts = []
    for (trace, judge), is_failure, is_valid in zip(pairs, failed.tolist(), valid.tolist(), strict=True):
        outcome = next(causes) if is_failure else Outcome.OK
        key = _call(judge, Purpose.REVIEW, trace.cell, trace.sample, of=trace.model).key
        verdict = Verdict(judge, trace.model, trace.cell, trace.sample, outcome, key=key)
        if outcome is Outcome.OK:
            ruling = Ruling.VALID if is_valid else Ruling.INVALID
            ratings = {aspect.name: is_valid or aspect.name == "logical_consistency" for aspect in REVIEW_ASPECTS}
            words = "The score follows." if is_valid else "The score does not follow."
            verdict = replace(verdict, ruling=ruling, aspects=ratings, justification=words)
        verdicts.append(verdict)
    return verdicts


def _cell_scores(rng: np.random.Generator, model: str, traces: Sequence[Trace], samples: int) -> list[CellScore]:
    cell_scores = []
    for cell, group in itertools.groupby(traces, key=lambda t: t.cell):
        ok_scores = [t.score for t in group if t.score is not None]
        has_several = len(ok_scores) > 1
        consistency = float(rng.uniform(0.6, 0.98)) if has_several else None
        score = float(np.mean(ok_scores)) if ok_scores else None
        variance = float(np.var(ok_scores, ddof=1)) if has_several else None
        cell_score = CellScore(model, cell, "direct", score, variance, len(ok_scores), samples, consistency)
        if consistency is not None:
            chance, topic = 0.3 + 0.1 * consistency, 0.4 + 0.1 * consistency
            cell_score = replace(cell_score, chance_similarity=chance, topic_similarity=topic)
        cell_scores.append(cell_score)
    return cell_scores


def _conflicts(rng: np.random.Generator, names: Sequence[str], scores: Sequence[CellScore]) -> list[Conflict]:
    by_cell: dict[Cell, dict[str, float]] = {}
    for s in scores:
        if s.score is not None:
            by_cell.setdefault(s.cell, {})[s.model] = s.score
    n_judges = max(len(names) - 2, 0)
    conflicts = []
    for cell, score_by_model in by_cell.items():
        for (left, a), (right, b) in itertools.combinations(score_by_model.items(), 2):
            if abs(a - b) < THRESHOLD:
                continue
            for_left = int(rng.binomial(n_judges, 0.3))
            for_right = int(rng.binomial(n_judges - for_left, 0.3))
            winner = left if 2 * for_left > n_judges else right if 2 * for_right > n_judges else None
            state = ConflictState.OPEN if winner is None else ConflictState.MAJORITY
            kind = _kind(a, b, list(score_by_model.values()))
            conflicts.append(Conflict(cell, left, right, a, b, kind, state, n_judges, for_left, for_right, winner))
    return conflicts


def _kind(a: float, b: float, everyone: Sequence[float]) -> ConflictKind:
    if a * b < 0:
        return ConflictKind.BINARY
    other_scores = [s for s in everyone if s not in (a, b)]
    others_agree = len(other_scores) > 1 and max(other_scores) - min(other_scores) < THRESHOLD
    is_outlier = any(all(abs(x - s) >= THRESHOLD for s in other_scores) for x in (a, b))
    return ConflictKind.OUTLIER if others_agree and is_outlier else ConflictKind.GRADIENT


def _ratings(conflicts: Sequence[Conflict]) -> Iterator[Rating]:
    """One rating of each decision on the first open conflicts; the last rates scores that have changed since."""
    open_conflicts = [c for c in conflicts if c.state is ConflictState.OPEN]
    for i, (conflict, decision) in enumerate(zip(open_conflicts, [*Decision, Decision.LEFT], strict=False)):
        yield Rating(
            cell=conflict.cell, left=conflict.left, right=conflict.right,
            score_left=(conflict.score_left or 0.0) - (0.05 if i == len(Decision) else 0.0),
            score_right=conflict.score_right, rater="ada", decision=decision,
            decided_at=STARTED + timedelta(minutes=i), note="as seen there" if i == 0 else "",
            score=0.1 if decision is Decision.SCORE else None,
        )  # fmt: skip


def _call(name: str, purpose: Purpose, cell: Cell, sample: int, of: str = "") -> Call:
    return Call(
        name=name, model=f"openai/{name}-1",
        messages=(Message("user", f"{purpose} {cell.topic} {cell.country} {of}"),), purpose=purpose, sample=sample,
        params={"max_tokens": 400, "temperature": 0.7},
    )  # fmt: skip


def _answered(rows: Sequence[Trace] | Sequence[Verdict], names: Sequence[str]) -> Iterator[tuple[Call, Answer]]:
    """Yield each row's call and its answer."""
    for row in rows:
        if isinstance(row, Trace):
            model_name, text = row.model, row.text
            call = _call(model_name, Purpose.DIRECT, row.cell, row.sample)
        else:
            model_name, text = row.judge, row.justification
            call = _call(model_name, Purpose.REVIEW, row.cell, row.sample, of=row.model)
        cost = 0.0002 if len(names) == 1 or model_name != names[-1] else None
        if not row.outcome.is_answer:
            refused = Attempt(1, STARTED, 0.5, row.outcome, cost_usd=0.0, estimated=False)
            yield call, Answer(call.key, row.outcome, error="the server said no", attempts=(refused,))
            continue
        attempt = Attempt(
            number=1, started_at=STARTED, latency_s=0.5, outcome=row.outcome, http_status=200,
            prompt_tokens=N_PROMPT_TOKENS, completion_tokens=N_COMPLETION_TOKENS, cost_usd=cost, estimated=False,
        )  # fmt: skip
        attempts = [attempt]
        if row.sample == 0:
            limited = Attempt(1, STARTED, 0.1, Outcome.RATE_LIMITED, 429, cost_usd=0.0, estimated=False)
            attempts = [limited, replace(attempt, number=2)]
        cached_tokens = 90 if model_name == names[0] else None
        answer = Answer(
            call.key,
            row.outcome,
            text,
            prompt_tokens=N_PROMPT_TOKENS,
            completion_tokens=N_COMPLETION_TOKENS,
            cached_tokens=cached_tokens,
            cost_usd=cost,
            attempts=tuple(attempts),
        )
        yield call, answer


def _record(db: Database, audit_id: int, answered: Sequence[tuple[Call, Answer]]) -> None:
    """Record calls and answers like the ledger, but in one transaction with two statements."""
    attempts = [
        ledger._attempt_columns(call, attempt, audit_id) for call, answer in answered for attempt in answer.attempts
    ]
    answers = [ledger._answer_columns(call, answer) for call, answer in answered if answer.outcome.is_answer]

    def write_rows(connection: Connection) -> None:
        insert_new(connection, StoredAttempt, attempts)
        insert_new(connection, StoredAnswer, answers)

    db.write(write_rows)
