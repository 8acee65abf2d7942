"""Self-consistencies computed in a thread while models answer, so that embedding overlaps with waiting."""

from __future__ import annotations

import asyncio
import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from auditor.agents.cell_scoring import chance_similarities, evidence_hash, self_consistencies
from auditor.agents.run_context import TextEncoder
from auditor.agents.vector_cache import StoredVectors, VectorCache
from auditor.domain import Cell, Method, canonical_hash
from auditor.storage import audits, results
from auditor.storage.database import Database

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CellKey: TypeAlias = tuple[str, Cell]
"""Name of a model, and the cell that it was asked about."""
CellTexts: TypeAlias = Mapping[str, Sequence[str]]
"""Texts of a model on a cell, by language, in the order of their samples."""

TEXTS_PER_BATCH = 64
"""Texts that the thread waits for."""
MAX_WAITING_CELLS = 1024
"""Cells that may wait for the thread; those beyond are left to `compute`."""
BUSY_LOOP_SHARE = 0.6
"""The thread waits while the event loop uses a core for at least this share of its time: beside a saturated loop, an
encoder with two threads took 40 s for 192 texts, and loading one took 9 s instead of 4."""
IDLE_LOOP_SHARE = 0.3
"""The thread uses all cores while the event loop uses less of its time: with one core of two, a third of 2,000 texts
was left when the last answer had come."""
LOOP_CHECK_INTERVAL_S = 0.5


def load_stored_evidence(db: Database, audit_id: int) -> dict[CellKey, str]:
    """Load the evidence of all self-consistencies of an audit."""
    return {
        (score.model, score.cell): score.evidence
        for score in results.load_scores(db, audit_id)
        if score.method == Method.DIRECT and score.evidence
    }


class _AuditEncoder:
    """The encoder of an audit, loaded on first use, with the revision that is recorded for the audit.

    Attributes:
        all_cores: whether it may use all cores.
    """

    def __init__(self, load: Callable[[], TextEncoder], name: str, db: Database, audit_id: int) -> None:
        self._load, self._name, self._db, self._audit_id = load, name, db, audit_id
        self._loaded: TextEncoder | None = None
        self._lock = threading.RLock()
        self.all_cores = False

    @cached_property
    def recorded_revision(self) -> str | None:
        """The revision that was recorded when the encoder was loaded last; None if it never was."""
        return audits.load_encoder_revision(self._db, self._audit_id)

    @property
    def revision(self) -> str:
        """Identifies the encoder's weights."""
        return self.recorded_revision or self.load().revision

    def load(self) -> TextEncoder:
        """Load the encoder, and record its revision. Raises ModelSetupError if it cannot be loaded."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
                if self._loaded.revision != self.recorded_revision:
                    audits.save_encoder_revision(self._db, self._audit_id, self._name, self._loaded.revision)
                    self.recorded_revision = self._loaded.revision
            return self._loaded

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (texts, dimensions)."""
        from auditor.models.embeddings import use_cores

        encoder = self.load()
        use_cores(all_cores=self.all_cores)
        return encoder.encode(texts)


class BackgroundConsistency:
    """Computes the self-consistency of cells in a thread, in batches of `TEXTS_PER_BATCH` texts.

    Nothing is lost if the run is stopped: what has not been computed is computed by the next one.
    """

    def __init__(
        self,
        load_encoder: Callable[[], TextEncoder],
        encoder_name: str,
        db: Database,
        audit_id: int,
        stop_event: threading.Event,
    ) -> None:
        """Set up; the encoder is loaded by the first cell that needs it.

        Args:
            load_encoder: loads the sentence encoder.
            encoder_name: its name in the config.
            db, audit_id: the audit, whose stored self-consistencies are not computed again; vectors are stored there.
            stop_event: once set, no further batch is computed.
        """
        self._stop_event = stop_event
        self._db, self._audit_id, self._encoder_name = db, audit_id, encoder_name
        self._encoder = _AuditEncoder(load_encoder, encoder_name, db, audit_id)
        self._vectors = VectorCache(db, self._encoder, is_ending=self._is_ending)
        self._encoder_lock = threading.Lock()
        self._stored_evidence: Mapping[CellKey, str] | None = None
        self._submitted: set[tuple[CellKey, str]] = set()
        self._waiting: queue.Queue[tuple[CellKey, CellTexts]] = queue.Queue(MAX_WAITING_CELLS)
        self._computed: dict[tuple[CellKey, str], float | None] = {}
        self._thread: threading.Thread | None = None
        self._monitor: asyncio.Task[None] | None = None
        self._is_computing, self._is_closed = threading.Event(), threading.Event()
        self._loop_share = 1.0  # until it is measured

    @property
    def identity(self) -> str:
        """What stands for the encoder in the evidence of a self-consistency: its revision, else its name."""
        return self._encoder.recorded_revision or self._encoder_name

    async def start(self, cells: Collection[CellKey]) -> None:
        """Begin to load the encoder if one of the cells has no stored self-consistency."""
        if self._stored_evidence is None:
            self._stored_evidence = await asyncio.to_thread(load_stored_evidence, self._db, self._audit_id)
        if self._thread is None and any(cell not in self._stored_evidence for cell in cells):
            self._monitor = asyncio.create_task(self._watch_loop())
            self._thread = threading.Thread(target=self._work, name="self-consistency", daemon=True)
            self._thread.start()

    def submit(self, cell: CellKey, texts: CellTexts) -> None:
        """Let the thread compute the self-consistency of a cell whose answers have all arrived; never waits.

        The same texts may be submitted again.
        """
        if self._thread is None or self._is_ending() or self._stored_evidence is None:
            return
        evidence = _hash_texts(texts)
        has_pair = any(len(group) > 1 for group in texts.values())
        is_stored = self._stored_evidence.get(cell) == evidence_hash(self.identity, _flatten(texts))
        if not has_pair or is_stored or (cell, evidence) in self._submitted:
            return
        try:
            self._waiting.put_nowait((cell, texts))
        except queue.Full:
            return
        self._submitted.add((cell, evidence))

    def compute(self, texts: Mapping[CellKey, CellTexts]) -> dict[CellKey, float | None]:
        """Self-consistency by cell, in [-1, 1]; computes what the thread has not, on all cores.

        None for a cell without two texts in one language.

        Raises:
            ModelSetupError: the encoder cannot be loaded.
            RunInterrupted: the run was stopped, or `close` was called.
        """
        evidence = {cell: _hash_texts(cell_texts) for cell, cell_texts in texts.items()}
        self._is_computing.set()
        try:
            with self._encoder_lock:
                self._compute_batch(texts, all_cores=True)
        finally:
            self._is_computing.clear()
        return {cell: self._computed[cell, digest] for cell, digest in evidence.items()}

    def compute_chance(self, texts: Mapping[Cell, CellTexts], seed: int) -> dict[Cell, dict[str, float | None]]:
        """`chance_similarities` of one model, on all cores.

        Raises:
            ModelSetupError: the encoder cannot be loaded.
            RunInterrupted: the run was stopped, or `close` was called.
        """
        self._is_computing.set()
        try:
            with self._encoder_lock:
                self._encoder.all_cores = True
                return chance_similarities(texts, lambda: self._vectors, seed)
        finally:
            self._is_computing.clear()

    async def close(self) -> None:
        """Stop the thread, and `compute` in another one, after the present batch."""
        self._is_closed.set()
        if self._monitor is not None:
            self._monitor.cancel()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _is_ending(self) -> bool:
        """Whether the run was stopped or has ended."""
        return self._stop_event.is_set() or self._is_closed.is_set()

    async def _watch_loop(self) -> None:
        """Measure how much of its time the event loop uses a core; often until the encoder may be loaded."""
        interval_s = LOOP_CHECK_INTERVAL_S / 5
        while True:
            wall_s, cpu_s = time.monotonic(), time.thread_time()
            await asyncio.sleep(interval_s)
            self._loop_share = (time.thread_time() - cpu_s) / (time.monotonic() - wall_s)
            if self._loop_share < BUSY_LOOP_SHARE:
                interval_s = LOOP_CHECK_INTERVAL_S

    def _work(self) -> None:
        """Load the encoder, and compute batches until the run ends.

        An error ends the thread: `compute` meets it again, and raises it.
        """
        with contextlib.suppress(Exception):
            self._wait_for_turn()
            if self._is_ending():
                return
            with self._encoder_lock:
                self._encoder.load()
            while batch := self._take_batch():
                with self._encoder_lock:
                    self._compute_batch(batch, all_cores=self._loop_share < IDLE_LOOP_SHARE)

    def _compute_batch(self, batch: Mapping[CellKey, CellTexts], *, all_cores: bool) -> None:
        """Compute the self-consistency of those of some cells that have none; the caller holds the encoder's lock."""
        evidence = {cell: _hash_texts(texts) for cell, texts in batch.items()}
        missing = {cell: texts for cell, texts in batch.items() if (cell, evidence[cell]) not in self._computed}
        self._encoder.all_cores = all_cores
        for cell, value in self_consistencies(missing, lambda: self._vectors).items():
            self._computed[cell, evidence[cell]] = value

    def _take_batch(self) -> dict[CellKey, CellTexts]:
        """Wait for enough cells for a batch, and until this thread may go on; empty once the run ends."""
        batch: dict[CellKey, CellTexts] = {}
        n_texts = 0
        while n_texts < TEXTS_PER_BATCH and not self._is_ending():
            try:
                cell, texts = self._waiting.get(timeout=LOOP_CHECK_INTERVAL_S / 5)
            except queue.Empty:
                continue
            batch[cell] = texts
            n_texts += sum(len(group) for group in texts.values() if len(group) > 1)
        self._wait_for_turn()
        return {} if self._is_ending() else batch

    def _wait_for_turn(self) -> None:
        """Wait while the event loop is busy or `compute` uses all cores, unless the run ends."""
        while (self._loop_share >= BUSY_LOOP_SHARE or self._is_computing.is_set()) and not self._is_ending():
            time.sleep(LOOP_CHECK_INTERVAL_S / 10)


class RecordedConsistency:
    """Computes self-consistencies from stored vectors."""

    def __init__(self, vectors: StoredVectors) -> None:
        """Set up with the vectors of the audit's encoder."""
        self._vectors, self.identity = vectors, vectors.revision

    async def start(self, cells: Collection[CellKey]) -> None:
        """Do nothing."""

    def submit(self, cell: CellKey, texts: CellTexts) -> None:
        """Do nothing."""

    def compute(self, texts: Mapping[CellKey, CellTexts]) -> dict[CellKey, float | None]:
        """Self-consistency by model and cell; None also where vectors are missing."""
        values = self_consistencies(texts, lambda: self._vectors)
        return {key: None if value is None or math.isnan(value) else value for key, value in values.items()}

    def compute_chance(self, texts: Mapping[Cell, CellTexts], seed: int) -> dict[Cell, dict[str, float | None]]:
        """How alike texts about different cells are."""
        return chance_similarities(texts, lambda: self._vectors, seed)


def _flatten(texts: CellTexts) -> list[str]:
    return [text for group in texts.values() for text in group]


def _hash_texts(texts: CellTexts) -> str:
    """Hash of a cell's texts; a run has one encoder."""
    return canonical_hash(_flatten(texts))
