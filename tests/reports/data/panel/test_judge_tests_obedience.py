"""Judges that obey instructions always, at 30% and never: rates, their intervals, and what is not counted."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from auditor.domain import AlteredTraceVerdict, Cell, HarmlessAlteration, Outcome, Ruling
from auditor.metrics.estimate import ShareEstimate
from auditor.reports.data.panel.judge_tests import build_obedience_rows
from auditor.reports.data.panel.schema import ObedienceRow

CELLS = [Cell(f"country {i}", f"topic {j}") for i, j in product(range(8), range(6))]
RATES = {"always": 1.0, "third": 0.3, "never": 0.0}
N_AUDITS = 400
MIN_COVERAGE = 0.92


def simulate_audit(rng: np.random.Generator) -> list[ObedienceRow]:
    """Judges that find half of the traces VALID are told the opposite, by an instruction and beside another trace."""
    tests = []
    for judge, rate in RATES.items():
        is_valid, obeys, prefers = rng.random((3, len(CELLS))) < np.array([[0.5], [rate], [rate]])
        for cell, *draws in zip(CELLS, is_valid.tolist(), obeys.tolist(), prefers.tolist(), strict=True):
            ruling_without, other = (Ruling.VALID, Ruling.INVALID) if draws[0] else (Ruling.INVALID, Ruling.VALID)
            demand = HarmlessAlteration.DEMANDS_INVALID if draws[0] else HarmlessAlteration.DEMANDS_VALID
            preferred = Ruling.VALID if draws[2] else Ruling.INVALID
            for alteration, ruling in (
                (HarmlessAlteration.NONE, ruling_without),
                (demand, other if draws[1] else ruling_without),
                (HarmlessAlteration.DEMANDS_PREFERENCE, preferred),
            ):
                tests.append(AlteredTraceVerdict(alteration, judge, "m", cell, 0, Outcome.OK, ruling))
    return build_obedience_rows(list(RATES), tests)


def covers(share: ShareEstimate, rate: float) -> bool:
    """Whether the interval that page one reads contains a rate: for these cells where there is none for others."""
    low, high = share.ci_low, share.ci_high
    if low is None or high is None:
        low, high = share.cells_ci_low, share.cells_ci_high
    assert low is not None
    assert high is not None
    return low <= rate <= high


def test_intervals_cover_the_rate_of_judges_that_obey_always_at_30_percent_and_never() -> None:
    rng = np.random.default_rng(54)
    audits = [simulate_audit(rng) for _ in range(N_AUDITS)]
    for i, (judge, rate) in enumerate(RATES.items()):
        for name in ("verdicts", "preferences"):
            shares = [getattr(rows[i], name) for rows in audits]
            assert np.mean([covers(share, rate) for share in shares]) >= MIN_COVERAGE, (judge, name)


def test_only_traces_judged_otherwise_without_the_instruction_count() -> None:
    def verdict(alteration: str, sample: int, ruling: Ruling | None) -> AlteredTraceVerdict:
        outcome = Outcome.OK if ruling else Outcome.REFUSED
        return AlteredTraceVerdict(alteration, "j", "m", CELLS[0], sample, outcome, ruling)

    none, demands = HarmlessAlteration.NONE, HarmlessAlteration.DEMANDS_VALID
    tests = [
        *(verdict(none, 0, Ruling.INVALID), verdict(demands, 0, Ruling.VALID)),
        *(verdict(none, 1, Ruling.VALID), verdict(demands, 1, Ruling.VALID)),  # as without it
        *(verdict(none, 2, None), verdict(demands, 2, Ruling.VALID)),  # no verdict to compare with
        *(verdict(none, 3, Ruling.INVALID), verdict(demands, 3, None)),
        *(verdict(none, 4, Ruling.INVALID), verdict(demands, 4, Ruling.INVALID)),
    ]
    [row] = build_obedience_rows(["j", "not asked"], tests)
    assert (row.judge, row.verdicts.value, row.verdicts.n) == ("j", 0.5, 2)
    assert (row.valid.value, row.invalid.value, row.preferences.value) == (0.5, None, None)
    assert not any(test.has_fault for test in tests)


def test_without_planted_instructions_there_is_no_row() -> None:
    tests = [AlteredTraceVerdict(HarmlessAlteration.NONE, "j", "m", CELLS[0], 0, Outcome.OK, Ruling.VALID)]
    assert build_obedience_rows(["j"], tests) == []


@pytest.mark.parametrize("alteration", list(HarmlessAlteration))
def test_names_of_alterations_fit_the_table(alteration: HarmlessAlteration) -> None:
    """They are part of a stored key."""
    assert len(alteration) <= 32
