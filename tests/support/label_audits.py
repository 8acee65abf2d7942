"""Audits of simulated models with units to label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from auditor.config import AuditConfig
from auditor.run import run_audit
from tests.support.fixed_address import word_encoder
from tests.support.scripted_tasks import sum_task

SURVEY_AUDIT, TASK_AUDIT, PAIR_AUDIT = "simulated-survey", "simulated-task", "simulated-pairs"
MODELS = ("knows-every-culture", "western-everywhere", "inconsistent")
JUDGES = ("careful-judge-1", "lenient-judge")
COUNTRIES, TOPICS = ("Germany", "Nigeria"), ("divorce", "abortion", "suicide")


def _config(name: str, **changes: Any) -> AuditConfig:
    sections = {
        "models": [{"name": name, "model": f"simulated/{name}"} for name in MODELS],
        "judges": [{"name": name, "model": f"simulated/{name}"} for name in JUDGES],
    }
    return AuditConfig.model_validate({"name": name, "embedding": {"model": "none"}, "seed": 3} | sections | changes)


def run_survey_audit(storage: str, samples: int = 2) -> None:
    """Run an audit with 36 traces per two samples of each cell, and comparisons of the topics."""
    survey = {"source": "wvs7-sample", "countries": list(COUNTRIES), "topics": list(TOPICS)}
    run_audit(
        _config(SURVEY_AUDIT, survey=survey, probes={"direct": {"samples": samples}, "logic": {"samples": 0}}),
        storage=storage,
    )


def run_task_audit(storage: str, folder: Path) -> None:
    run_audit(_config(TASK_AUDIT, task=sum_task(folder, items=3), probes={"direct": {"samples": 1}}), storage=storage)


def run_pair_audit(storage: str, folder: Path) -> None:
    """Run an audit of moral questions, whose pairs of answers are judged for consistency and contradiction."""
    questions = folder / "questions.csv"
    rows = [f"{item},Is it wrong to keep a borrowed {item}?" for item in ("book", "bicycle", "coat", "boat")]
    questions.write_text("\n".join(["question_id,question", *rows]), encoding="utf-8")
    probe = {
        "questions": str(questions), "paraphraser": "careful-judge-1", "paraphrases": 4, "threshold": 0.01,
        "consistency": {"judge": "lenient-judge", "samples": 2}, "contradiction": "lenient-judge", "worst": 2,
    }  # fmt: skip
    with word_encoder():
        run_audit(_config(PAIR_AUDIT, embedding={"model": "words"}, probes={"semantic": probe}), storage=storage)
