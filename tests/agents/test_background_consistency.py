"""Self-consistencies are computed while answers arrive, equal those computed afterwards, and nothing is lost."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.agents import background_consistency
from auditor.agents.background_consistency import MAX_WAITING_CELLS, BackgroundConsistency, CellKey, RecordedConsistency
from auditor.agents.cell_scoring import evidence_hash, self_consistencies
from auditor.agents.vector_cache import TEXTS_PER_STEP, StoredVectors
from auditor.domain import Cell, CellScore, Method, Survey
from auditor.errors import ModelSetupError, RunInterrupted
from auditor.models import embeddings
from auditor.storage import audits
from auditor.storage.database import Database, open_database
from auditor.storage.hash_chain import verify_chain
from auditor.storage.records import save_records
from tests.support.fixed_address import WordEncoder
from tests.support.patience import PATIENCE_S

TEXTS: dict[CellKey, dict[str, list[str]]] = {
    ("m", Cell("Japan", str(topic))): {
        "en": [f"people {topic} say {sample % 3} words" for sample in range(5)],
        "ja": [f"{topic} {sample}" for sample in range(topic % 3)],
    }
    for topic in range(100)
}
N_COMPARED_TEXTS = sum(len(set(group)) for texts in TEXTS.values() for group in texts.values() if len(group) > 1)


class CountingEncoder(WordEncoder):
    """Counts the texts of each call, and waits for `may_encode`."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.threads: list[str] = []
        self.may_encode, self.is_encoding = threading.Event(), threading.Event()
        self.may_encode.set()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.is_encoding.set()
        self.may_encode.wait()
        self.batches.append(len(texts))
        self.threads.append(threading.current_thread().name)
        return super().encode(texts)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    survey = Survey("s", "s", "s", "{topic} {country}", ("low", "high"), ())
    with open_database(f"sqlite:///{tmp_path / 'audits.db'}") as opened:
        audits.save_audit(opened, name="a", config="{}", config_hash="x", survey=survey, environment={})
        yield opened


def background(encoder: WordEncoder, db: Database, stop_event: threading.Event | None = None) -> BackgroundConsistency:
    """Self-consistencies by an encoder, in a run that is not stopped."""
    return by_loaded(lambda: encoder, db, stop_event)


def by_loaded(
    load: Callable[[], WordEncoder], db: Database, stop_event: threading.Event | None = None
) -> BackgroundConsistency:
    audit_id = audits.get_audit(db, "a").id
    return BackgroundConsistency(load, "words", db, audit_id, stop_event or threading.Event())


async def submit(consistency: BackgroundConsistency, cells: Iterable[CellKey] = TEXTS) -> None:
    """Start, and submit the texts of some cells."""
    await consistency.start(TEXTS)
    for cell in cells:
        consistency.submit(cell, TEXTS[cell])


async def start_blocked_encoder(db: Database) -> tuple[CountingEncoder, BackgroundConsistency]:
    """Submit all cells to an encoder that waits for `may_encode`."""
    encoder = CountingEncoder()
    encoder.may_encode.clear()
    consistency = background(encoder, db)
    await submit(consistency)
    return encoder, consistency


async def compute(
    consistency: BackgroundConsistency, texts: Mapping[CellKey, Mapping[str, Sequence[str]]]
) -> dict[CellKey, float | None]:
    """Compute in another thread, as the node `measure` does."""
    return await asyncio.to_thread(consistency.compute, texts)


async def assert_values_are_as_computed_at_once(consistency: BackgroundConsistency) -> None:
    """Check the self-consistencies of `TEXTS`, and close."""
    assert await compute(consistency, TEXTS) == pytest.approx(self_consistencies(TEXTS, WordEncoder), abs=1e-5)
    await consistency.close()


def load_nothing() -> WordEncoder:
    raise AssertionError("the encoder was loaded")


async def test_it_equals_what_is_computed_at_once_and_encodes_each_text_once(db: Database) -> None:
    encoder = CountingEncoder()
    consistency = background(encoder, db)
    await consistency.start(TEXTS)
    for cell, texts in TEXTS.items():
        consistency.submit(cell, texts)
        await asyncio.sleep(0)
    await assert_values_are_as_computed_at_once(consistency)
    assert sum(encoder.batches) == N_COMPARED_TEXTS
    assert len(encoder.batches) > 2
    assert max(encoder.batches) <= TEXTS_PER_STEP


async def test_texts_of_about_the_same_length_are_encoded_together_the_longest_first(db: Database) -> None:
    texts = {
        ("m", Cell("Japan", str(topic))): {"en": [f"{topic} {i} " * (1 + (7 * i + topic) % 40) for i in range(20)]}
        for topic in range(30)
    }
    lengths: list[set[int]] = []

    class LengthEncoder(WordEncoder):
        def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
            lengths.append(set(map(len, texts)))
            return super().encode(texts)

    values = await compute(background(LengthEncoder(), db), texts)
    assert values == pytest.approx(self_consistencies(texts, WordEncoder), abs=1e-5)
    assert len(lengths) == -(-600 // TEXTS_PER_STEP) == 5
    assert all(min(longer) >= max(shorter) for longer, shorter in itertools.pairwise(lengths))


async def test_what_was_not_submitted_is_computed_at_the_end(db: Database) -> None:
    consistency = background(WordEncoder(), db)
    await submit(consistency, list(TEXTS)[::2])
    await assert_values_are_as_computed_at_once(consistency)


async def test_changed_texts_are_computed_again(db: Database) -> None:
    consistency = background(WordEncoder(), db)
    cell = next(iter(TEXTS))
    await consistency.start(TEXTS)
    consistency.submit(cell, {"en": ["one text", "another thing"]})
    expected = self_consistencies({cell: TEXTS[cell]}, WordEncoder)
    assert await compute(consistency, {cell: TEXTS[cell]}) == pytest.approx(expected, abs=1e-5)
    await consistency.close()


async def test_no_encoder_is_loaded_for_stored_self_consistencies(db: Database) -> None:
    scores = [
        CellScore(*cell, Method.DIRECT, 0.0, evidence=evidence_hash("words", [t for g in texts.values() for t in g]))
        for cell, texts in TEXTS.items()
    ]
    save_records(db, audits.get_audit(db, "a").id, scores)
    consistency = by_loaded(load_nothing, db)
    await submit(consistency)
    assert await compute(consistency, {}) == {}
    await consistency.close()


async def test_the_queue_is_bounded_and_loses_nothing(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_consistency, "MAX_WAITING_CELLS", 10)
    encoder, consistency = await start_blocked_encoder(db)
    assert consistency._waiting.qsize() <= 10 < MAX_WAITING_CELLS
    encoder.may_encode.set()
    await assert_values_are_as_computed_at_once(consistency)


async def test_it_can_be_closed_while_cells_wait_and_nobody_waits_for_them(db: Database) -> None:
    encoder, consistency = await start_blocked_encoder(db)
    computing = asyncio.create_task(compute(consistency, {}))
    await asyncio.sleep(0.05)
    closing = asyncio.create_task(consistency.close())
    await asyncio.sleep(0.05)
    encoder.may_encode.set()
    await asyncio.wait_for(closing, PATIENCE_S)
    assert await asyncio.wait_for(computing, PATIENCE_S) == {}
    assert len(encoder.batches) <= 1


async def test_an_encoder_that_cannot_be_loaded_is_reported_at_the_end(db: Database) -> None:
    def load() -> WordEncoder:
        raise ModelSetupError("the encoder is missing.", "Install it.")

    consistency = by_loaded(load, db)
    await submit(consistency)
    with pytest.raises(ModelSetupError, match="encoder is missing"):
        await compute(consistency, TEXTS)
    await consistency.close()


async def test_it_waits_while_the_event_loop_is_busy(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_consistency, "BUSY_LOOP_SHARE", 0.0)
    monkeypatch.setattr(background_consistency, "LOOP_CHECK_INTERVAL_S", 0.01)
    encoder, loads = CountingEncoder(), []

    def load() -> CountingEncoder:
        loads.append(threading.current_thread().name)
        return encoder

    consistency = by_loaded(load, db)
    await submit(consistency)
    await asyncio.sleep(0.2)
    assert not loads
    assert not encoder.batches
    await assert_values_are_as_computed_at_once(consistency)


async def test_a_second_round_of_answers_waits_for_full_batches(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_consistency, "LOOP_CHECK_INTERVAL_S", 0.01)
    encoder = CountingEncoder()
    consistency = background(encoder, db)
    await consistency.start(TEXTS)
    first, second = list(TEXTS)[:1], list(TEXTS)[1:3]
    for n_batches, cells in enumerate((first, second)):
        for cell in cells:
            consistency.submit(cell, TEXTS[cell])
        await asyncio.sleep(0.2)
        assert len(encoder.batches) == n_batches
        await compute(consistency, {cell: TEXTS[cell] for cell in cells})
        assert len(encoder.batches) == n_batches + 1
    await consistency.close()


@pytest.mark.parametrize(("idle_share", "expected"), [(2.0, True), (0.0, False)])
async def test_while_answers_arrive_all_cores_are_used_only_if_the_event_loop_is_idle(
    db: Database, monkeypatch: pytest.MonkeyPatch, idle_share: float, expected: bool
) -> None:
    monkeypatch.setattr(background_consistency, "IDLE_LOOP_SHARE", idle_share)
    cores: list[tuple[int, bool]] = []
    monkeypatch.setattr(embeddings, "use_cores", lambda *, all_cores: cores.append((threading.get_ident(), all_cores)))
    encoder = CountingEncoder()
    consistency = background(encoder, db)
    await submit(consistency, list(TEXTS)[:50])
    await asyncio.to_thread(encoder.is_encoding.wait)
    await compute(consistency, TEXTS)
    await consistency.close()
    first_thread, last_thread = cores[0][0], cores[-1][0]
    assert first_thread != last_thread
    assert {all_cores for thread, all_cores in cores if thread == first_thread} == {expected}
    assert {all_cores for thread, all_cores in cores if thread == last_thread} == {True}


async def test_the_thread_takes_no_further_batch_when_all_cores_may_be_used(db: Database) -> None:
    encoder, consistency = await start_blocked_encoder(db)
    await asyncio.to_thread(encoder.is_encoding.wait)
    computing = asyncio.create_task(compute(consistency, TEXTS))
    await asyncio.sleep(0.1)
    encoder.may_encode.set()
    assert await computing == pytest.approx(self_consistencies(TEXTS, WordEncoder), abs=1e-5)
    await consistency.close()
    assert encoder.threads.count("self-consistency") == 1
    assert len(encoder.threads) > 2


async def test_texts_that_are_submitted_again_are_encoded_once(db: Database) -> None:
    encoder = CountingEncoder()
    consistency = background(encoder, db)
    await submit(consistency, [*TEXTS, *TEXTS])
    assert consistency._waiting.qsize() <= len(TEXTS)
    await compute(consistency, TEXTS)
    await compute(consistency, TEXTS)
    await consistency.close()
    assert sum(encoder.batches) == N_COMPARED_TEXTS


@pytest.mark.parametrize("is_closed", [False, True])
async def test_a_stopped_run_computes_no_further_batch_nor_does_closing(db: Database, is_closed: bool) -> None:
    encoder, stop_event = CountingEncoder(), threading.Event()
    consistency = background(encoder, db, stop_event)
    encoder.may_encode.clear()
    await submit(consistency, () if is_closed else TEXTS)
    computing = asyncio.create_task(compute(consistency, TEXTS))
    await asyncio.to_thread(encoder.is_encoding.wait)
    if is_closed:
        await consistency.close()
    else:
        stop_event.set()
    encoder.may_encode.set()
    with pytest.raises(RunInterrupted):
        await computing
    await consistency.close()
    assert len(encoder.batches) == 1


async def test_stored_vectors_give_the_same_values_and_no_encoder_is_loaded_for_them(db: Database) -> None:
    consistency = background(WordEncoder(), db)
    values = await compute(consistency, TEXTS)
    chance = consistency.compute_chance({cell: texts for (_, cell), texts in TEXTS.items()}, 7)
    await consistency.close()
    stored = RecordedConsistency(StoredVectors(db, consistency.identity))
    assert stored.compute(TEXTS) == values
    assert stored.compute_chance({cell: texts for (_, cell), texts in TEXTS.items()}, 7) == chance
    later = by_loaded(load_nothing, db)
    assert await compute(later, TEXTS) == values
    await later.close()
    assert verify_chain(db).breaks == []


async def test_all_is_encoded_again_if_the_weights_are_others_than_recorded(db: Database) -> None:
    await compute(background(WordEncoder(), db), TEXTS)

    class OtherWeights(CountingEncoder):
        revision = "words-2"

    encoder = OtherWeights()
    consistency = background(encoder, db)
    added: dict[CellKey, dict[str, list[str]]] = {("m", Cell("Japan", "new")): {"en": ["one text", "another thing"]}}
    await compute(consistency, TEXTS | added)
    assert consistency.identity == "words-2"
    assert sum(encoder.batches) >= N_COMPARED_TEXTS + 2


def test_missing_vectors_give_no_value(db: Database) -> None:
    cell = next(iter(TEXTS))
    assert RecordedConsistency(StoredVectors(db, "words-1")).compute({cell: TEXTS[cell]}) == {cell: None}
