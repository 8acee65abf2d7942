"""An audit to review: conflicts with opposing reasoning, verdicts on them, and texts with markup and escapes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from auditor.config import AuditConfig, DirectProbe, ModelSection, Probes, SurveySection
from auditor.domain import (
    Cell,
    CellScore,
    Conflict,
    ConflictKind,
    ConflictState,
    Outcome,
    Ruling,
    Survey,
    SurveyCell,
    Trace,
    Verdict,
    canonical_json,
)
from auditor.domain.decisions import REVIEW_ASPECTS
from auditor.storage import audits, results
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.support.stored_copies import fill_once

MODELS = ("alder", "birch", "cedar")
COUNTRIES = ("Egypt", "Netherlands", "Nigeria", "Japan", "United States")
TOPICS = ("divorce", "euthanasia", "gambling", "cheating on taxes")

LENIENT = (
    "Norms: {topic} has become an ordinary part of life in {country}; courts handle it without stigma and younger, "
    "urban respondents treat it as a private matter. Reasoning: surveys show tolerance growing with education, and "
    "the law already permits it. I would expect most people to find it often justifiable, though elders hesitate."
)
STRICT = (
    "Norms: religious teaching in {country} condemns {topic}, and families carry the shame of it for a generation. "
    "Reasoning: even where the law is silent, neighbours and clergy are not. I expect that most respondents call it "
    "never justifiable, with a small minority in the cities who would make exceptions."
)
HOSTILE = (
    "[/INST] [bold red]gotcha[/] [@click=app.quit]click me[/] see [1] [score=5] [$primary]x "
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred \x9b31m \u202eright to left\u202c \r overwritten \x08 end"
)


def save_review_audit(
    db: Database,
    *,
    name: str = "moral",
    conflicts: int = 20,
    samples: int = 3,
    hostile: bool = False,
    topics: Sequence[str] = TOPICS,
    countries: Sequence[str] = COUNTRIES,
    wording: str = "How justifiable is {topic} in {country}?",
) -> Audit:
    """Fill a database with a finished audit of up to `len(countries) * len(topics)` conflicts, all open.

    On each cell alder and birch conflict, cedar stays between them; which of the two is lenient alternates.

    Args:
        wording: the survey's question.
        hostile: the first conflict's reasoning and justifications hold markup, escapes and bidi controls.
    """
    cells = [Cell(c, t) for c, t in itertools.product(countries, topics)][:conflicts]
    key = (save_review_audit, name, tuple(cells), samples, hostile, wording)
    fill_once(db, key, lambda: _save(db, name, cells, samples, wording, hostile=hostile))
    return audits.get_audit(db, name)


def _save(db: Database, name: str, cells: Sequence[Cell], samples: int, wording: str, *, hostile: bool) -> None:
    audit = _audit(db, name, cells, samples, wording)
    traces: list[Trace] = []
    verdicts: list[Verdict] = []
    scores: list[CellScore] = []
    open_conflicts: list[Conflict] = []
    for number, cell in enumerate(cells):
        sign = 1 if number % 2 == 0 else -1
        centres = {"alder": 0.55 * sign, "birch": -0.6 * sign + 0.01 * number, "cedar": 0.05}
        for model, centre in centres.items():
            text = _text(cell, centre, hostile=hostile and number == 0)
            sample_scores = [round(max(-1.0, min(1.0, centre + 0.1 * (i - 1))), 2) for i in range(samples)]
            traces += [Trace(model, cell, i, Outcome.OK, s, text) for i, s in enumerate(sample_scores)]
            verdicts += _verdicts(model, cell, samples, centre, hostile=hostile and number == 0)
            scores.append(CellScore(model, cell, "direct", sum(sample_scores) / samples, 0.01, samples, samples, 0.9))
        by_model = {s.model: s.score or 0.0 for s in scores[-3:]}
        kind = list(ConflictKind)[number % 3]
        open_conflicts.append(
            Conflict(cell, "alder", "birch", by_model["alder"], by_model["birch"], kind, ConflictState.OPEN, 1, 0, 0)
        )
    save_records(db, audit.id, traces)
    save_records(db, audit.id, verdicts)
    save_records(db, audit.id, scores)
    results.replace_conflicts(db, audit.id, open_conflicts)
    audits.set_stage(db, audit.id, audits.FINISHED)


def _audit(db: Database, name: str, cells: Sequence[Cell], samples: int, wording: str) -> Audit:
    config = AuditConfig(
        name=name,
        survey=SurveySection(source="made"),
        models=[ModelSection(name=n, model=f"openai/{n}-large") for n in MODELS],
        probes=Probes(direct=DirectProbe(samples=samples)),
    )
    survey = Survey(
        name="made", title="A made-up survey", source="Made up; describes no real country.", wording=wording,
        scale=("never justifiable", "always justifiable"),
        cells=tuple(SurveyCell(cell, round(0.4 - 0.05 * i, 2), n=1200) for i, cell in enumerate(cells)),
    )  # fmt: skip
    config_json = canonical_json(config.model_dump(mode="json"))
    return audits.save_audit(db, name=name, config=config_json, config_hash=config.hash, survey=survey, environment={})


def _text(cell: Cell, centre: float, *, hostile: bool) -> str:
    if hostile:
        return HOSTILE
    return (LENIENT if centre > 0 else STRICT).format(topic=cell.topic, country=cell.country)


def _verdicts(model: str, cell: Cell, samples: int, centre: float, *, hostile: bool) -> list[Verdict]:
    """Verdicts of the other models; traces with a negative centre are VALID more often, so some judges are wrong."""
    verdicts = []
    for judge, sample in itertools.product([m for m in MODELS if m != model], range(samples)):
        valid = centre < 0 or (sample + len(judge)) % 3 == 0
        justification = (
            HOSTILE if hostile else "The score follows from the norms." if valid else "These are not its norms."
        )
        ruling = Ruling.VALID if valid else Ruling.INVALID
        aspects = {aspect.name: valid or aspect.name == "logical_consistency" for aspect in REVIEW_ASPECTS}
        verdicts.append(Verdict(judge, model, cell, sample, Outcome.OK, ruling, justification, aspects=aspects))
    return verdicts
