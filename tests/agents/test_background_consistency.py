"""Self-consistencies are computed while answers arrive, equal those computed afterwards, and nothing is lost."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.agents import background_consistency
from auditor.agents.background_consistency import MAX_WAITING_CELLS, TEXTS_PER_STEP, BackgroundConsistency, CellKey
from auditor.agents.cell_scoring import evidence_hash, self_consistencies
from auditor.domain import Cell
from auditor.errors import ModelSetupError, RunInterrupted
from auditor.models import embeddings
from tests.support.fixed_address import WordEncoder

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
        """Unit vectors, shape (texts, dimensions)."""
        self.is_encoding.set()
        self.may_encode.wait()
        self.batches.append(len(texts))
        self.threads.append(threading.current_thread().name)
        return super().encode(texts)


def background(encoder: WordEncoder) -> BackgroundConsistency:
    """Self-consistencies by an encoder, in a run that is not stopped, without stored ones."""
    return BackgroundConsistency(lambda: encoder, "words", dict, threading.Event())


async def start_blocked_encoder() -> tuple[CountingEncoder, BackgroundConsistency]:
    """Submit all cells to an encoder that waits for `may_encode`."""
    encoder = CountingEncoder()
    encoder.may_encode.clear()
    consistency = background(encoder)
    await consistency.start(TEXTS)
    for cell, texts in TEXTS.items():
        consistency.submit(cell, texts)
    return encoder, consistency


async def compute(
    consistency: BackgroundConsistency, texts: Mapping[CellKey, Mapping[str, Sequence[str]]]
) -> dict[CellKey, float | None]:
    """Compute in another thread, as the node `measure` does."""
    return await asyncio.to_thread(consistency.compute, texts)


def expected_values() -> dict[CellKey, float | None]:
    """The self-consistencies of `TEXTS`, computed at once."""
    return self_consistencies(TEXTS, WordEncoder)


async def test_it_equals_what_is_computed_at_once_and_encodes_each_text_once() -> None:
    encoder = CountingEncoder()
    consistency = background(encoder)
    await consistency.start(TEXTS)
    for cell, texts in TEXTS.items():
        consistency.submit(cell, texts)
        await asyncio.sleep(0)
    assert await compute(consistency, TEXTS) == pytest.approx(expected_values(), abs=1e-5)
    await consistency.close()
    assert sum(encoder.batches) == N_COMPARED_TEXTS
    assert len(encoder.batches) > 2
    assert max(encoder.batches) <= TEXTS_PER_STEP


async def test_texts_of_about_the_same_length_are_encoded_together_the_longest_first() -> None:
    texts: dict[CellKey, dict[str, list[str]]] = {
        ("m", Cell("Japan", str(topic))): {
            "en": [f"{topic} {sample} " * (1 + (7 * sample + topic) % 40) for sample in range(20)]
        }
        for topic in range(30)
    }
    lengths: list[set[int]] = []

    class LengthEncoder(WordEncoder):
        def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
            """Unit vectors, shape (texts, dimensions)."""
            lengths.append(set(map(len, texts)))
            return super().encode(texts)

    values = await compute(background(LengthEncoder()), texts)
    assert values == pytest.approx(self_consistencies(texts, WordEncoder), abs=1e-5)
    assert len(lengths) == -(-600 // TEXTS_PER_STEP) == 5
    assert all(min(longer) >= max(shorter) for longer, shorter in itertools.pairwise(lengths))


async def test_what_was_not_submitted_is_computed_at_the_end() -> None:
    consistency = background(WordEncoder())
    await consistency.start(TEXTS)
    for cell in list(TEXTS)[::2]:
        consistency.submit(cell, TEXTS[cell])
    assert await compute(consistency, TEXTS) == pytest.approx(expected_values(), abs=1e-5)
    await consistency.close()


async def test_changed_texts_are_computed_again() -> None:
    consistency = background(WordEncoder())
    cell = next(iter(TEXTS))
    await consistency.start(TEXTS)
    consistency.submit(cell, {"en": ["one text", "another thing"]})
    assert (await compute(consistency, {cell: TEXTS[cell]}))[cell] == pytest.approx(expected_values()[cell], abs=1e-5)
    await consistency.close()


async def test_no_encoder_is_loaded_for_stored_self_consistencies() -> None:
    def load() -> WordEncoder:
        raise AssertionError("the encoder was loaded")

    evidence = {
        cell: evidence_hash("words", [text for group in texts.values() for text in group])
        for cell, texts in TEXTS.items()
    }
    consistency = BackgroundConsistency(load, "words", lambda: evidence, threading.Event())
    await consistency.start(TEXTS)
    for cell, texts in TEXTS.items():
        consistency.submit(cell, texts)
    assert await compute(consistency, {}) == {}
    await consistency.close()


async def test_the_queue_is_bounded_and_what_does_not_fit_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_consistency, "MAX_WAITING_CELLS", 10)
    encoder, consistency = await start_blocked_encoder()
    assert consistency._waiting.qsize() <= 10 < MAX_WAITING_CELLS
    encoder.may_encode.set()
    assert await compute(consistency, TEXTS) == pytest.approx(expected_values(), abs=1e-5)
    await consistency.close()


async def test_it_can_be_closed_while_cells_wait_and_nobody_waits_for_them() -> None:
    encoder, consistency = await start_blocked_encoder()
    computing = asyncio.create_task(compute(consistency, {}))
    await asyncio.sleep(0.05)
    closing = asyncio.create_task(consistency.close())
    await asyncio.sleep(0.05)
    encoder.may_encode.set()
    await asyncio.wait_for(closing, 30)
    assert await asyncio.wait_for(computing, 30) == {}
    assert len(encoder.batches) <= 1


async def test_an_encoder_that_cannot_be_loaded_is_reported_at_the_end() -> None:
    def load() -> WordEncoder:
        raise ModelSetupError("the encoder is missing.", "Install it.")

    consistency = BackgroundConsistency(load, "words", dict, threading.Event())
    await consistency.start(TEXTS)
    for cell, texts in TEXTS.items():
        consistency.submit(cell, texts)
    with pytest.raises(ModelSetupError, match="encoder is missing"):
        await compute(consistency, TEXTS)
    await consistency.close()


async def test_it_waits_while_the_event_loop_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_consistency, "BUSY_LOOP_SHARE", 0.0)
    monkeypatch.setattr(background_consistency, "LOOP_CHECK_INTERVAL_S", 0.01)
    encoder, loads = CountingEncoder(), []

    def load() -> CountingEncoder:
        loads.append(threading.current_thread().name)
        return encoder

    consistency = BackgroundConsistency(load, "words", dict, threading.Event())
    await consistency.start(TEXTS)
    for cell, texts in TEXTS.items():
        consistency.submit(cell, texts)
    await asyncio.sleep(0.2)
    assert not loads
    assert not encoder.batches
    assert await compute(consistency, TEXTS) == pytest.approx(expected_values(), abs=1e-5)
    await consistency.close()


async def test_a_second_round_of_answers_waits_for_whole_batches_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_consistency, "LOOP_CHECK_INTERVAL_S", 0.01)
    encoder = CountingEncoder()
    consistency = background(encoder)
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
    monkeypatch: pytest.MonkeyPatch, idle_share: float, expected: bool
) -> None:
    monkeypatch.setattr(background_consistency, "IDLE_LOOP_SHARE", idle_share)
    cores: list[tuple[int, bool]] = []
    monkeypatch.setattr(embeddings, "use_cores", lambda *, all_cores: cores.append((threading.get_ident(), all_cores)))
    encoder = CountingEncoder()
    consistency = background(encoder)
    await consistency.start(TEXTS)
    for cell in list(TEXTS)[:50]:
        consistency.submit(cell, TEXTS[cell])
    await asyncio.to_thread(encoder.is_encoding.wait)
    await compute(consistency, TEXTS)
    await consistency.close()
    first_thread, last_thread = cores[0][0], cores[-1][0]
    assert first_thread != last_thread
    assert {all_cores for thread, all_cores in cores if thread == first_thread} == {expected}
    assert {all_cores for thread, all_cores in cores if thread == last_thread} == {True}


async def test_the_thread_takes_no_further_batch_when_all_cores_may_be_used() -> None:
    encoder, consistency = await start_blocked_encoder()
    await asyncio.to_thread(encoder.is_encoding.wait)
    computing = asyncio.create_task(compute(consistency, TEXTS))
    await asyncio.sleep(0.1)
    encoder.may_encode.set()
    assert await computing == pytest.approx(expected_values(), abs=1e-5)
    await consistency.close()
    assert encoder.threads.count("self-consistency") == 1
    assert len(encoder.threads) > 2


async def test_texts_that_are_submitted_again_are_encoded_once() -> None:
    encoder = CountingEncoder()
    consistency = background(encoder)
    await consistency.start(TEXTS)
    for cell, texts in [*TEXTS.items(), *TEXTS.items()]:
        consistency.submit(cell, texts)
    assert consistency._waiting.qsize() <= len(TEXTS)
    await compute(consistency, TEXTS)
    await compute(consistency, TEXTS)
    await consistency.close()
    assert sum(encoder.batches) == N_COMPARED_TEXTS


async def test_a_stopped_run_computes_no_further_batch() -> None:
    encoder, stop_event = CountingEncoder(), threading.Event()
    consistency = BackgroundConsistency(lambda: encoder, "words", dict, stop_event)
    encoder.may_encode.clear()
    await consistency.start(TEXTS)
    for cell, texts in TEXTS.items():
        consistency.submit(cell, texts)
    computing = asyncio.create_task(compute(consistency, TEXTS))
    await asyncio.to_thread(encoder.is_encoding.wait)
    stop_event.set()
    encoder.may_encode.set()
    with pytest.raises(RunInterrupted):
        await computing
    await consistency.close()
    assert len(encoder.batches) == 1


async def test_closing_ends_a_computation_that_nobody_waits_for() -> None:
    encoder = CountingEncoder()
    encoder.may_encode.clear()
    consistency = background(encoder)
    computing = asyncio.create_task(compute(consistency, TEXTS))
    await asyncio.to_thread(encoder.is_encoding.wait)
    await consistency.close()
    encoder.may_encode.set()
    with pytest.raises(RunInterrupted):
        await computing
    assert len(encoder.batches) == 1
