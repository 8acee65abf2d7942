"""Each case of the corpus, through the gateway, the batches, the ledger and a database: what is expected is what happens.

A sample runs with all tests; `make hostile` runs every case.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.audits import KEY_VARIABLE
from tests.hostile.axes import AXES, NONE, PROTOCOLS, is_sensible, pairs_of, sensible_pairs
from tests.hostile.corpus import Case, load_cases, sample_of
from tests.hostile.expectations import complaints
from tests.hostile.keys import KEY
from tests.hostile.runner import Result, run_cases

EVERYTHING = bool(os.environ.get("AUDITOR_ALL_HOSTILE"))
CASES = load_cases()
CHOSEN = CASES if EVERYTHING else sample_of(CASES)
MAX_STALL_S = 0.5
"""For how long the event loop may stand still, in seconds of its thread's own time."""
MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def outcome() -> Iterator[tuple[dict[str, Result], float]]:
    """What became of all cases, which run together."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(dir=_in_memory()) as folder:
        patch.setenv(KEY_VARIABLE, KEY)
        patch.setenv("AUDITOR_TRUST", f"{KEY_VARIABLE}@127.0.0.1")
        patch.setattr("auditor.models.limiter.FIRST_WAIT_S", 0.01)
        yield run_cases(CHOSEN, Path(folder))


def _in_memory() -> str | None:
    return str(MEMORY) if os.access(MEMORY, os.W_OK) else None


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.id)
def test_each_case_is_as_expected(outcome: tuple[dict[str, Result], float], case: Case) -> None:
    found = complaints(case, outcome[0][case.id])
    assert not found, "\n".join([str(case), *found, outcome[0][case.id].text[:2000]])


def test_the_event_loop_never_stands_still(outcome: tuple[dict[str, Result], float]) -> None:
    assert outcome[1] < MAX_STALL_S


def test_the_corpus_is_large_and_its_cases_make_sense() -> None:
    assert len(CASES) >= 400
    paired = [case for case in CASES if not case.id.startswith(("later-", "usage-", "finish-"))]
    assert len(paired) >= 400
    assert not [case.id for case in paired if not is_sensible(case.choice)]
    assert Counter(case.protocol for case in paired).keys() == set(PROTOCOLS)


def test_every_pair_of_choices_that_makes_sense_is_in_the_corpus() -> None:
    pairs = set().union(*(pairs_of(case.choice) for case in CASES))
    assert not sensible_pairs() - pairs
    values = {(axis, case.choice[axis]) for case in CASES for axis in AXES if case.choice[axis] != NONE}
    assert {value for pair in sensible_pairs() for value in pair} <= values


def test_the_sample_has_every_value_of_every_axis() -> None:
    sample = sample_of(CASES)
    assert len(CASES) / 7 <= len(sample) <= len(CASES) / 4
    values = {item for case in CASES for item in case.choice.items()}
    assert {item for case in sample for item in case.choice.items()} == values
