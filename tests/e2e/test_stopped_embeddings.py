"""Embedding stops at a signal, stored self-consistencies survive a kill, and a second run embeds only the others."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import bootstrap, failpoints
from auditor.agents import background_consistency, derived_results
from auditor.agents.background_consistency import BackgroundConsistency, CellKey, CellTexts
from auditor.agents.cell_scoring import evidence_hash, self_consistencies
from auditor.config import AuditConfig
from auditor.domain import CellScore, Method
from auditor.errors import RunInterrupted
from auditor.run import run_audit, signals
from auditor.storage import audits, results
from auditor.storage.database import open_database
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer, Reply, Request, answer, completion
from tests.support.fixed_address import WordEncoder, use_encoder, word_encoder
from tests.support.forked_commands import CONTEXT
from tests.support.patience import PATIENCE_S

N_MODELS, N_CELLS, N_SAMPLES = 2, 25, 2
CELLS_PER_BATCH, TEXTS_PER_BATCH = 8, 16
"""Smaller than those of the program, so that a small audit has several batches of each."""
BATCH_OF_SIGNAL = 3
"""Number of the batch of texts during which the run is stopped."""


def audit() -> AuditConfig:
    """Simulated models, and cells for four batches of the node `measure`."""
    countries = ["Germany", "Japan", "Nigeria", "Brazil", "China"]
    topics = ["divorce", "abortion", "suicide", "euthanasia", "homosexuality"]
    models = [{"name": n, "model": f"simulated/{n}"} for n in ("knows-every-culture", "inconsistent")]
    survey = {"source": "wvs7-sample", "countries": countries, "topics": topics}
    data = {"name": "simulated-embedded", "survey": survey, "judges": [], "models": models, "seed": 7}
    probes = {"direct": {"samples": N_SAMPLES}}
    return AuditConfig.model_validate({**data, "embedding": {"model": "words"}, "probes": probes})


class LoggingEncoder(WordEncoder):
    """Appends the number of texts of each batch to a file, after `on_batch` was called with the batch's number."""

    def __init__(self, log: Path, on_batch: Callable[[int], None] = lambda number: None) -> None:
        self.log, self.on_batch = log, on_batch

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with self.log.open("a") as file:
            print(len(texts), file=file)
        self.on_batch(len(self.log.read_text().split()))
        return super().encode(texts)


def run_with_encoder(storage: str, encoder: WordEncoder, **options: Any) -> None:
    with (
        use_encoder(encoder),
        mock.patch.object(derived_results, "CELLS_PER_BATCH", CELLS_PER_BATCH),
        mock.patch.object(background_consistency, "TEXTS_PER_BATCH", TEXTS_PER_BATCH),
    ):
        run_audit(audit(), storage=storage, **options)


def run_until_killed(storage: str, log: Path, environment: dict[str, str]) -> None:
    """Run the audit; for a process of its own, which dies after two batches of cells are stored."""
    os.environ |= environment | {failpoints.ENVIRONMENT_VARIABLE: "scores:2"}
    bootstrap.prepare_environment()
    run_with_encoder(storage, LoggingEncoder(log))


def run_until_signal(storage: str, log: Path, environment: dict[str, str], n_signals: int) -> None:
    """Run the audit; for a process of its own, which is signalled during a batch of texts."""
    os.environ |= environment
    bootstrap.prepare_environment()
    stop_events: list[threading.Event] = []

    def keep_event(stop_event: threading.Event, on_notice: Callable[[str], None]) -> AbstractContextManager[None]:
        """Keep the event of the run, which its handler of signals sets."""
        stop_events.append(stop_event)
        return signals.stop_on_signals(stop_event, on_notice)

    def stop_the_run(number: int) -> None:
        """Send the signals, and wait for the handler."""
        if number == BATCH_OF_SIGNAL:
            for _ in range(n_signals):
                os.kill(os.getpid(), signal.SIGINT)
                assert stop_events[0].wait(PATIENCE_S)

    with mock.patch("auditor.run.model_access.stop_on_signals", keep_event), pytest.raises(RunInterrupted):
        run_with_encoder(storage, LoggingEncoder(log, stop_the_run), signals=True)


def run_in_process(function: Callable[..., None], *arguments: object) -> int | None:
    """Exit code of a new process that calls a function with the storage, the log and this environment."""
    process = CONTEXT.Process(target=function, args=arguments)
    process.start()
    process.join(PATIENCE_S)
    assert process.exitcode is not None, "the run hangs"
    return process.exitcode


def load_direct_scores(storage: str) -> list[CellScore]:
    with open_database(storage) as db:
        audit_row = audits.load_audits(db)[0]
        return [s for s in results.load_scores(db, audit_row.id) if s.method == Method.DIRECT]


@contextmanager
def computed_cells() -> Iterator[list[CellKey]]:
    """Cells whose self-consistency is computed."""
    cells: list[CellKey] = []

    def record(texts: Mapping[CellKey, CellTexts], load_encoder: Callable[[], WordEncoder]) -> Any:
        cells.extend(texts)
        return self_consistencies(texts, load_encoder)

    with mock.patch.object(background_consistency, "self_consistencies", record):
        yield cells


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'audits.db'}"


def test_self_consistencies_survive_a_kill_and_are_not_computed_again(storage: str, tmp_path: Path) -> None:
    assert run_in_process(run_until_killed, storage, tmp_path / "killed.log", dict(os.environ)) == -signal.SIGKILL
    stored_scores = load_direct_scores(storage)
    assert len(stored_scores) == 2 * CELLS_PER_BATCH * N_MODELS
    assert all(score.self_consistency is not None for score in stored_scores)
    with computed_cells() as cells:
        run_with_encoder(storage, WordEncoder())
    scores = load_direct_scores(storage)
    assert set(cells) == {(s.model, s.cell) for s in scores} - {(s.model, s.cell) for s in stored_scores}
    assert len(cells) == N_CELLS * N_MODELS - len(stored_scores)
    run_with_encoder(f"sqlite:///{tmp_path / 'unbroken.db'}", WordEncoder())
    unbroken_scores = load_direct_scores(f"sqlite:///{tmp_path / 'unbroken.db'}")
    assert [s.evidence for s in scores] == [s.evidence for s in unbroken_scores]
    assert [s.self_consistency for s in scores] == pytest.approx(
        [s.self_consistency for s in unbroken_scores], abs=1e-5
    )


@pytest.mark.parametrize("n_signals", [1, 2])
def test_a_signal_stops_embedding_after_the_present_batch(storage: str, tmp_path: Path, n_signals: int) -> None:
    log = tmp_path / "stopped.log"
    assert run_in_process(run_until_signal, storage, log, dict(os.environ), n_signals) == 0
    n_batches = len(log.read_text().split())
    assert BATCH_OF_SIGNAL <= n_batches <= BATCH_OF_SIGNAL + 1  # the other thread may have begun one
    stored_scores = load_direct_scores(storage)
    with computed_cells() as cells:
        run_with_encoder(storage, WordEncoder())
    assert len(load_direct_scores(storage)) == N_CELLS * N_MODELS
    assert len(cells) == len(set(cells)) == N_CELLS * N_MODELS - len(stored_scores)


@contextmanager
def submitted_cells() -> Iterator[list[tuple[CellKey, str]]]:
    """Cells that were submitted while models answered, with the evidence of their texts."""
    cells: list[tuple[CellKey, str]] = []
    submit = BackgroundConsistency.submit

    def record(self: BackgroundConsistency, cell: CellKey, texts: CellTexts) -> None:
        cells.append((cell, evidence_hash(WordEncoder.revision, [text for group in texts.values() for text in group])))
        submit(self, cell, texts)

    with mock.patch.object(BackgroundConsistency, "submit", record):
        yield cells


def answer_in_words(request: Request) -> Reply:
    """Reply to one of three direct questions with a text that has no score, until a repair is asked for."""
    if request.is_direct_question and len(request.body["messages"]) < 3 and request.draw("form") < 0.33:
        return completion("It depends on many things.")
    return answer(request)


@pytest.mark.parametrize("probe", [{"samples": 3}, {"samples": 5, "min_samples": 2, "tolerance": 0.06}])
def test_repaired_and_further_samples_are_compared_while_models_answer(
    server: FakeServer, storage: str, probe: dict[str, Any]
) -> None:
    server.script = answer_in_words
    with word_encoder(), submitted_cells() as cells:
        run_audit(config(server.url, 2, embedding={"model": "words"}, probes={"direct": probe}), storage=storage)
    scores = [score for score in load_direct_scores(storage) if score.self_consistency is not None]
    assert len(scores) > 12
    assert {((score.model, score.cell), score.evidence) for score in scores} <= set(cells)
    assert any(len(request.body["messages"]) == 4 for request in server.requests), Counter(
        len(request.body["messages"]) for request in server.requests
    )
