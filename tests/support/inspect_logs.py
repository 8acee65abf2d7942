"""A small synthetic audit and its Inspect logs, shared by the tests of export and import formats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from auditor.storage.database import Database, open_database
from tests.support.synthetic_audit import populate


class SyntheticDatabase(NamedTuple):
    """An open database with the audit `population`, and its URL."""

    db: Database
    url: str


def write_log(path: Path, samples: list[dict[str, Any]], status: str = "success", **spec_: Any) -> Path:
    """Write a log as another task would, and return its path.

    Args:
        samples: fields of each sample: id, epoch, input, target, choices, text, stop, scores (each a value, or a value
            and an answer), metadata, error, limit, invalidation.
        spec_: `model`, `planned` (number of samples), `ids`, `epochs`, `created`, `task_id`, and `log`, further fields
            of the log itself.
    """
    pytest.importorskip("inspect_ai", reason="the extra 'inspect' is not installed")
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score

    eval_samples = []
    for number, fields in enumerate(samples, start=1):
        output = ModelOutput()
        if "text" in fields:
            output = ModelOutput.from_content("x/y", fields["text"], fields.get("stop", "stop"))
        scores = {
            name: Score(value=score[0], answer=score[1]) if isinstance(score, tuple) else Score(value=score)
            for name, score in fields.get("scores", {}).items()
        }
        others = {name: fields.get(name) for name in ("choices", "error", "limit", "invalidation")}
        sample = EvalSample(
            id=fields.get("id", number), epoch=fields.get("epoch", 1), input=fields.get("input", "?"),
            target=fields.get("target", ""), metadata=fields.get("metadata", {}), output=output, scores=scores or None,
            **others,
        )  # fmt: skip
        eval_samples.append(sample)
    spec = EvalSpec(
        created=spec_.get("created", "2026-01-02T03:04:05+00:00"), task="t", task_id=spec_.get("task_id", ""),
        model=spec_.get("model", "x/y"),
        dataset=EvalDataset(name="d", samples=spec_.get("planned"), sample_ids=spec_.get("ids")),
        config=EvalConfig(epochs=spec_.get("epochs")),
    )  # fmt: skip
    log = {"status": status, "eval": spec, "samples": eval_samples, **spec_.get("log", {})}
    write_eval_log(EvalLog.model_validate(log), str(path))
    return path


@pytest.fixture(scope="session")
def made_audit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyntheticDatabase]:
    """Three models on a few cells, with every outcome among their traces."""
    url = f"sqlite:///{tmp_path_factory.mktemp('made')}/audit.db"
    with open_database(url) as db:
        populate(db, models=3, countries=8, topics=5, samples=3)
        yield SyntheticDatabase(db, url)


@pytest.fixture(scope="session")
def inspect_logs(made_audit: SyntheticDatabase, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the audit exported as Inspect logs."""
    pytest.importorskip("inspect_ai", reason="the extra 'inspect' is not installed")
    from auditor.exports.inspect_logs import export_inspect

    folder = tmp_path_factory.mktemp("logs")
    export_inspect(made_audit.db, "population", folder)
    return folder
