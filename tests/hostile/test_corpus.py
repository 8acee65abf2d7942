"""Each case of the corpus has its expected result with the real gateway, batches, ledger and database.

`make test` runs a sample; `make hostile` runs every case.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.hostile.axes import AXES, CHATS, NONE, PROTOCOLS, is_sensible, pairs_of, sensible_pairs
from tests.hostile.corpus import Case, Charge, load_cases, sample_of
from tests.hostile.expectations import complaints, violations
from tests.hostile.runner import CaseResults, run_cases
from tests.support.known import known

EVERYTHING = bool(os.environ.get("AUDITOR_ALL_HOSTILE"))
CASES = load_cases()
CHOSEN = CASES if EVERYTHING else sample_of(CASES)


@pytest.fixture(scope="module")
def case_results(memory: Path) -> CaseResults:
    """Results of all chosen cases, which run together."""
    return run_cases(CHOSEN, memory)


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.id)
def test_each_case_is_as_expected(case_results: CaseResults, case: Case) -> None:
    faults = complaints(case, case_results.results[case.id])
    assert not faults, "\n".join([str(case), *faults, case_results.results[case.id].text[:2000]])


@pytest.mark.parametrize("protocol", CHATS if EVERYTHING else CHATS[:1])
@pytest.mark.parametrize(("status", "body", "contact"), [("200", "pem", "known"), ("500", "error-pem", "first")])
def test_a_megabyte_of_private_key_headers_does_not_block_the_event_loop(
    memory: Path, protocol: str, status: str, body: str, contact: str
) -> None:
    choice = dict.fromkeys(AXES, NONE) | {"protocol": protocol, "status": status, "body": body, "timing": "now"}
    case = Case("large", choice, contact, "", 0, Charge(), 0, ())
    case_results = run_cases([case], memory / f"{protocol}-{status}-{contact}", large=True)
    assert not violations(case, case_results.results["large"])
    assert contact == "first" or case_results.results["large"].requests == 1
    answer = known(case_results.results["large"].answer)
    assert answer.outcome == ("server_error" if status == "500" else "ok")
    assert status == "500" or (answer.text or "").endswith("}")


def test_the_corpus_is_large_and_its_cases_make_sense() -> None:
    assert len(CASES) >= 400
    paired = [case for case in CASES if not case.id.startswith(("later-", "usage-", "finish-", "discovery-"))]
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
