"""Judges without a fault are rarely named in any sentence on tests of judges; one with a planted fault is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from auditor.domain import AlteredTraceVerdict, Cell, Contest, Guess, HarmlessAlteration, Outcome, Ruling, Verdict
from auditor.metrics.intervals.estimate import Tested
from auditor.reports.data.panel.judge_tests import (
    build_blinding_rows,
    build_fault_rows,
    build_obedience_rows,
    build_position_rows,
    compare_verdict_pairs,
    cross_validate_peers,
    measure_judge_drift,
)
from auditor.reports.data.panel.schema import BlindingCheckRow, FaultDetectionRow, PositionBiasRow, RestatementShiftRow
from auditor.reports.data.report_source import cell_units, load_source
from auditor.storage import results
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.support.known import known
from tests.support.synthetic_audit import populate

CELLS = [Cell(f"country {i}", f"topic {(i + j) % 40}") for i, j in product(range(40), range(4))]
JUDGES = [f"judge {i:02}" for i in range(20)]
FAULTS = [f"fault {i}" for i in range(4)]
FEW_JUDGES = JUDGES[:5]
N_AUDITS = 15


JudgeTestRow = PositionBiasRow | BlindingCheckRow | FaultDetectionRow | RestatementShiftRow


def simulate_positions(seed: int, planted: float = 0.0) -> list[PositionBiasRow]:
    """20 judges that compare equal traces in both orders; the first prefers the first side more often by `planted`."""
    rng = np.random.default_rng(seed)
    contests = [
        Contest(judge, cell, "a", "b", is_swapped, Outcome.OK, prefers_first=bool(rng.random() < share))
        for judge, share in zip(JUDGES, [0.5 + planted] + [0.5] * 19, strict=True)
        for cell, is_swapped in product(CELLS, (False, True))
    ]
    return build_position_rows(JUDGES, contests)


def simulate_guesses(seed: int, planted: float = 0.0) -> list[BlindingCheckRow]:
    """20 judges that guess one of four; the first guesses the topic more often than by chance by `planted`."""
    rng = np.random.default_rng(seed)
    guesses = []
    for judge in JUDGES:
        shares = np.array([0.25, 0.25 + planted * (judge == JUDGES[0]), 0.25])
        for cell, hits in zip(CELLS, (rng.random((len(CELLS), 3)) < shares).tolist(), strict=True):
            guess = Guess(judge, "m", cell, 0, Outcome.OK, countries=4, topics=4, authors=4)
            guesses.append(replace(guess, hit_country=hits[0], hit_topic=hits[1], hit_author=hits[2]))
    return build_blinding_rows(JUDGES, guesses)


def simulate_faults(seed: int, planted: float = 0.0) -> list[FaultDetectionRow]:
    """5 judges that overlook 4 faults; the first objects to the first fault more often by `planted`."""
    rng = np.random.default_rng(seed)
    verdicts = [
        AlteredTraceVerdict(fault, judge, "m", cell, 0, Outcome.OK, Ruling.INVALID if is_object else Ruling.VALID)
        for judge, fault in product(FEW_JUDGES, [HarmlessAlteration.NONE, *FAULTS])
        for cell, is_object in zip(
            CELLS, rng.random(len(CELLS)) < 0.3 + planted * ((judge, fault) == (FEW_JUDGES[0], FAULTS[0])), strict=True
        )
    ]
    return build_fault_rows(FEW_JUDGES, verdicts)


def simulate_drift(seed: int, planted: float = 0.0) -> list[RestatementShiftRow]:
    """20 judges that give verdicts twice; the first one's second verdicts are more lenient by `planted`."""
    rng = np.random.default_rng(seed)
    return compare_verdict_pairs(
        {
            judge: (
                (rng.random(len(CELLS)) < 0.5).astype(float),
                (rng.random(len(CELLS)) < 0.5 + planted * (judge == JUDGES[0])).astype(float),
            )
            for judge in JUDGES
        },
        cell_units(CELLS),
    )


def get_test(row: JudgeTestRow) -> Tested:
    """The test of a row."""
    return next(value for _, value in row if isinstance(value, Tested))


Simulate = Callable[..., Sequence[JudgeTestRow]]
SIMULATIONS = [simulate_positions, simulate_guesses, simulate_faults, simulate_drift]


@pytest.mark.parametrize("simulate", SIMULATIONS)
def test_honest_judges_are_rarely_named_and_a_planted_fault_always(simulate: Simulate) -> None:
    audits = [simulate(seed) for seed in range(N_AUDITS)]
    expected = stats.binom.ppf(0.99, N_AUDITS, 0.05)
    tests = [[get_test(row) for row in rows] for rows in audits]
    assert sum(any(test.is_significant for test in audit) for audit in tests) <= expected
    n_uncorrected = sum(any((test.p_value or 1.0) < 0.05 for test in audit) for audit in tests)
    assert n_uncorrected > expected, "without a correction, honest judges are named too often"
    for seed in range(3):
        assert [row.judge for row in simulate(seed, planted=0.3) if get_test(row).is_significant] == [JUDGES[0]]


def test_without_an_interval_there_is_no_test() -> None:
    contests = [
        Contest("judge", cell, "a", "b", is_swapped, Outcome.OK, prefers_first=True)
        for cell, is_swapped in product(CELLS[:4], (False, True))
    ]
    [row] = build_position_rows(["judge"], contests)
    assert (row.first.value, row.first.ci_low) == (1.0, None)
    assert (row.first.p_value, row.first.adjusted_p_value, row.first.is_significant) == (None, None, False)


ONE_CELL = [Cell("country", "topic")]


def test_only_traces_judged_otherwise_without_the_instruction_count() -> None:
    def verdict(alteration: str, sample: int, ruling: Ruling | None) -> AlteredTraceVerdict:
        outcome = Outcome.OK if ruling else Outcome.REFUSED
        return AlteredTraceVerdict(alteration, "j", "m", ONE_CELL[0], sample, outcome, ruling)

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
    tests = [AlteredTraceVerdict(HarmlessAlteration.NONE, "j", "m", ONE_CELL[0], 0, Outcome.OK, Ruling.VALID)]
    assert build_obedience_rows(["j"], tests) == []


def test_drift_between_two_runs(db: Database) -> None:
    first = populate(db, name="first")
    second = populate(db, name="second")
    flipped = 0
    changed_verdicts: list[Verdict] = []
    for v in results.load_verdicts(db, second.id):
        if v.judge == "birch" and v.ruling is Ruling.INVALID:
            changed_verdicts.append(Verdict(v.judge, v.model, v.cell, v.sample, v.outcome, Ruling.VALID, key=v.key))
            flipped += 1
    save_records(db, second.id, changed_verdicts)
    rows = {row.judge: row for row in measure_judge_drift(db, first.name, db, second.name)}
    assert (rows["alder"].shift.value, rows["alder"].changed.value) == (0.0, 0.0)
    assert rows["birch"].changed.value == pytest.approx(flipped / rows["birch"].valid.n)
    assert known(rows["birch"].shift.ci_low) > 0
    assert rows["birch"].restated.value == 1.0

    traces = results.load_traces(db, second.id)
    reversed_traces = [
        replace(trace, text=trace.text and trace.text[::-1]) for trace in traces if trace.cell == traces[0].cell
    ]  # of the same length
    traces_without_text = [replace(trace, text=None) for trace in traces if trace.cell == traces[-1].cell]
    rescored_traces = [
        replace(trace, score=-trace.score) for trace in traces if trace.cell == traces[60].cell and trace.score
    ]
    save_records(db, second.id, rescored_traces)
    of_equal_scores = {row.judge: row for row in measure_judge_drift(db, first.name, db, second.name)}
    assert of_equal_scores["birch"].valid.n < rows["birch"].valid.n
    rows = of_equal_scores
    save_records(db, second.id, reversed_traces + traces_without_text)
    rows_after_change = {row.judge: row for row in measure_judge_drift(db, first.name, db, second.name)}
    judged_cells = {
        verdict.cell
        for verdict in results.load_verdicts(db, second.id)
        if verdict.judge == "birch" and verdict.outcome is Outcome.OK
    }
    assert {traces[0].cell, traces[-1].cell} < judged_cells
    assert rows_after_change["birch"].valid.n < rows["birch"].valid.n
    save_records(db, first.id, traces_without_text)  # unrecorded answers cannot be compared
    assert {r.judge: r.valid.n for r in measure_judge_drift(db, first.name, db, second.name)}[
        "birch"
    ] == rows_after_change["birch"].valid.n


def test_the_holdout_of_an_audit(db: Database) -> None:
    [row] = cross_validate_peers(load_source(db, populate(db, models=6, countries=8, topics=6).name), 50)
    assert (row.method, row.prediction.models) == ("direct", 6)
    assert row.prediction.unseen_cells.n == 6
    assert "6 models" in row.sentence
    [small_audit_row] = cross_validate_peers(load_source(db, populate(db, models=3, name="few").name), 50)
    assert "cells: fewer than 4 models" in small_audit_row.sentence
