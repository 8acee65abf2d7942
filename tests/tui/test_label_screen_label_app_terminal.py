"""Labelling in a real terminal: traces in tmux with the keys 1, 2 and u only; a hundred and all with `make faults`."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.domain.labels import LabelKind
from auditor.storage import hash_chain, labels
from auditor.storage.database import open_database
from auditor.tui.rating_screen import DECISION_DELAY_S
from tests.support.killed_runs import ALL_FAULTS
from tests.support.label_sample import save_labelling_audit
from tests.support.tmux import Tmux

STARTS_EMPTY = True
PROGRAM = "import sys; from auditor.tui.app import run_labelling; run_labelling(sys.argv[1], 'moral', rater='ada')"
N_UNITS = 100 if ALL_FAULTS else 30  # ten a stratum
N_LABELLED = N_UNITS if ALL_FAULTS else 5
UNDO_EVERY = 10
KILLED_AFTER = 2 * N_LABELLED // 5


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    terminal = Tmux(tmp_path, settings="open_next = true")
    yield terminal
    terminal.stop()


def press(tmux: Tmux, key: str, pattern: str) -> None:
    """Press a key once the text on the screen accepts it, and wait until the screen shows a pattern."""
    time.sleep(DECISION_DELAY_S + 0.1)
    tmux.press(key)
    try:
        tmux.wait_for(pattern)
    except AssertionError:  # on a busy machine the text was drawn later
        tmux.press(key)
        tmux.wait_for(pattern)


def label_texts(tmux: Tmux, begin: int, end: int) -> None:
    """Label texts in order; each tenth is labelled wrongly first, undone, and labelled again."""
    tmux.wait_for(rf"{N_UNITS - begin} left")
    for number in range(begin, end):
        n_left = N_UNITS - number
        if number % UNDO_EVERY == 0:
            press(tmux, "2", rf" {n_left - 1} left")
            press(tmux, "u", rf" {n_left} left")
        press(tmux, "1" if number % 3 else "2", rf" {n_left - 1} left")


def test_three_keys_and_a_kill_in_between_store_every_label(tmux: Tmux, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/audits.db"
    with open_database(url) as db:
        audit = save_labelling_audit(db, N_UNITS)
        sample = labels.load_label_sample(db, audit.id, LabelKind.TRACE)
    assert len(sample) == N_UNITS
    command = shlex.join([sys.executable, "-c", PROGRAM, url])
    tmux.start(command)
    label_texts(tmux, 0, KILLED_AFTER)
    os.kill(tmux.pid(), signal.SIGKILL)
    tmux.stop()
    with open_database(url) as db:
        assert len(labels.load_labels(db, audit.id, LabelKind.TRACE)) == KILLED_AFTER, (
            "what was shown as saved is there"
        )

    tmux.start(command)
    label_texts(tmux, KILLED_AFTER, N_LABELLED)
    if N_LABELLED == N_UNITS:
        tmux.wait_for("nothing left to label")
    with open_database(url) as db:
        stored = labels.load_labels(db, audit.id, LabelKind.TRACE)
        entries = labels.load_entries(db, audit.id, LabelKind.TRACE)
        chain = hash_chain.verify_chain(db)
    assert [label.unit for label in stored] == [sampled.unit for sampled in sample[:N_LABELLED]], (
        "in the order of the sample"
    )
    assert [label.value for label in stored] == ["VALID" if i % 3 else "INVALID" for i in range(N_LABELLED)]
    assert len(entries) == N_LABELLED + 2 * -(-N_LABELLED // UNDO_EVERY)
    assert not chain.breaks
