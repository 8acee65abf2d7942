"""Self-consistencies computed in a thread while models answer, so that embedding overlaps with waiting."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from auditor.agents.cell_scoring import evidence_hash, self_consistencies
from auditor.agents.run_context import TextEncoder
from auditor.domain import Cell, Method
from auditor.storage import results
from auditor.storage.database import Database

CellKey: TypeAlias = tuple[str, Cell]
"""Name of a model, and the cell that it was asked about."""
CellTexts: TypeAlias = Mapping[str, Sequence[str]]
"""Texts of a model on a cell, by language, in the order of their samples."""

TEXTS_PER_BATCH = 64
MAX_WAITING_CELLS = 1024
"""Cells that may wait for the thread; those beyond are left to `compute`."""
BUSY_LOOP_SHARE = 0.6
"""The thread waits while the event loop uses a core for at least this share of its time: beside a saturated loop, an
encoder with two threads took 40 s for 192 texts, and the loop was late by as much."""
LOOP_CHECK_INTERVAL_S = 0.5


def load_stored_evidence(db: Database, audit_id: int) -> dict[CellKey, str]:
    """Load the evidence of all self-consistencies of an audit."""
    return {
        (score.model, score.cell): score.evidence
        for score in results.load_scores(db, audit_id)
        if score.method == Method.DIRECT and score.evidence
    }


class BackgroundConsistency:
    """Computes the self-consistency of cells in a thread, in batches of `TEXTS_PER_BATCH` texts.

    Nothing is lost if the run is stopped: what has not been computed is computed by the next one.
    """

    def __init__(
        self,
        load_encoder: Callable[[], TextEncoder],
        encoder_name: str,
        load_evidence: Callable[[], Mapping[CellKey, str]],
    ) -> None:
        """Set up; the encoder is loaded by the first cell that needs it.

        Args:
            load_encoder: loads the sentence encoder.
            encoder_name: its name in the config, a part of each cell's evidence.
            load_evidence: loads the evidence of stored self-consistencies, which are not computed again.
        """
        self._load_encoder, self._encoder_name, self._load_evidence = load_encoder, encoder_name, load_evidence
        self._encoder: TextEncoder | None = None
        self._encoder_lock = threading.Lock()
        self._stored_evidence: Mapping[CellKey, str] | None = None
        self._waiting: queue.Queue[tuple[CellKey, CellTexts]] = queue.Queue(MAX_WAITING_CELLS)
        self._computed: dict[tuple[CellKey, str], float | None] = {}
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        self._monitor: asyncio.Task[None] | None = None
        self._loop_is_busy = threading.Event()
        self._is_finishing, self._is_closed = threading.Event(), threading.Event()

    async def start(self, cells: Collection[CellKey]) -> None:
        """Begin to load the encoder if one of the cells has no stored self-consistency."""
        if self._stored_evidence is None:
            self._stored_evidence = await asyncio.to_thread(self._load_evidence)
        if self._thread is None and any(cell not in self._stored_evidence for cell in cells):
            self._monitor = asyncio.create_task(self._watch_loop())
            self._thread = threading.Thread(target=self._work, name="self-consistency", daemon=True)
            self._thread.start()

    def submit(self, cell: CellKey, texts: CellTexts) -> None:
        """Let the thread compute the self-consistency of a cell whose answers have all arrived; never waits."""
        if self._thread is None or self._is_closed.is_set() or self._stored_evidence is None:
            return
        has_pair = any(len(group) > 1 for group in texts.values())
        if not has_pair or self._stored_evidence.get(cell) == self._evidence(texts):
            return
        try:
            self._waiting.put_nowait((cell, texts))
        except queue.Full:
            return

    def compute(self, texts: Mapping[CellKey, CellTexts]) -> dict[CellKey, float | None]:
        """Self-consistency by cell, in [-1, 1]; waits for the thread, and computes what it has not.

        None for a cell without two texts in one language.

        Raises:
            ModelSetupError: the encoder cannot be loaded.
        """
        self._is_finishing.set()
        self._waiting.join()
        self._is_finishing.clear()
        if self._error is not None:
            raise self._error
        evidence = {cell: self._evidence(cell_texts) for cell, cell_texts in texts.items()}
        missing = {cell: texts[cell] for cell, digest in evidence.items() if (cell, digest) not in self._computed}
        known = {cell: self._computed[cell, evidence[cell]] for cell in texts if cell not in missing}
        return known | self_consistencies(missing, self._get_encoder)

    async def close(self) -> None:
        """Stop the thread after its present batch."""
        self._is_closed.set()
        if self._monitor is not None:
            self._monitor.cancel()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _evidence(self, texts: CellTexts) -> str:
        """Hash of a cell's texts and of the encoder, as it is stored with the self-consistency."""
        return evidence_hash(self._encoder_name, [text for group in texts.values() for text in group])

    def _get_encoder(self) -> TextEncoder:
        """The encoder, loaded once."""
        with self._encoder_lock:
            if self._encoder is None:
                self._encoder = self._load_encoder()
            return self._encoder

    async def _watch_loop(self) -> None:
        """Note whether the event loop is busy, by the CPU time of its thread."""
        while True:
            wall_s, cpu_s = time.monotonic(), time.thread_time()
            await asyncio.sleep(LOOP_CHECK_INTERVAL_S)
            share = (time.thread_time() - cpu_s) / (time.monotonic() - wall_s)
            (self._loop_is_busy.set if share >= BUSY_LOOP_SHARE else self._loop_is_busy.clear)()

    def _work(self) -> None:
        """Load the encoder, and compute batches until the run ends; after an error, only empty the queue."""
        batch: list[tuple[CellKey, CellTexts]] = []
        while not self._is_closed.is_set():
            try:
                if self._error is None:
                    self._compute_batch(self._get_encoder(), dict(batch))
            except Exception as error:  # noqa: BLE001 - raised by `compute`
                self._error = error
            for _ in batch:
                self._waiting.task_done()
            batch = self._take_batch()
        while True:  # `compute` must not wait for what is not computed any more
            for _ in batch:
                self._waiting.task_done()
            try:
                batch = [self._waiting.get_nowait()]
            except queue.Empty:
                return

    def _compute_batch(self, encoder: TextEncoder, batch: Mapping[CellKey, CellTexts]) -> None:
        """Compute the self-consistency of some cells, on all cores once no more answers arrive."""
        from auditor.models.embeddings import use_cores

        if not batch and self._is_finishing.is_set():  # nothing more was waiting
            return
        use_cores(all_cores=self._is_finishing.is_set())
        for cell, value in self_consistencies(batch, lambda: encoder).items():
            self._computed[cell, self._evidence(batch[cell])] = value

    def _take_batch(self) -> list[tuple[CellKey, CellTexts]]:
        """Take cells from the queue: enough for a batch, or what there is when answers no longer arrive."""
        batch: list[tuple[CellKey, CellTexts]] = []
        n_texts = 0
        while n_texts < TEXTS_PER_BATCH and not self._is_closed.is_set():
            try:
                cell, texts = self._waiting.get(timeout=LOOP_CHECK_INTERVAL_S / 5)
            except queue.Empty:
                if self._is_finishing.is_set():
                    break
                continue
            batch.append((cell, texts))
            n_texts += sum(len(group) for group in texts.values() if len(group) > 1)
        while self._loop_is_busy.is_set() and not self._is_finishing.is_set() and not self._is_closed.is_set():
            time.sleep(LOOP_CHECK_INTERVAL_S / 5)
        return batch
