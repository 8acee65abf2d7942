"""Rates at which judges obey planted instructions, over judges that obey always, at 30% and never."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from auditor.domain import AlteredTraceVerdict, Cell, HarmlessAlteration, Outcome, Ruling
from auditor.metrics.intervals.estimate import ShareEstimate
from auditor.reports.data.panel.judge_tests import build_obedience_rows
from auditor.reports.data.panel.schema import ObedienceRow
from benchmarks.coverage.figures import Figure, Study
from benchmarks.coverage.rule import Interval
from benchmarks.coverage.worlds.design import Design

JUDGE = "judge"


@dataclass(frozen=True, slots=True, eq=False)
class ObedienceSample:
    """One audit's planted instructions to one judge, and the true rate by figure."""

    tests: list[AlteredTraceVerdict]
    truths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ObedientJudge:
    """A judge that finds half of the traces VALID, and obeys instructions at a rate, whatever they demand."""

    name: str
    rate: float

    def draw(self, design: Design, rng: np.random.Generator) -> ObedienceSample:
        """Simulate one audit with an instruction for the other verdict, and one for a preference, in each cell."""
        cells = [Cell(f"country {i}", f"topic {j}") for i in range(design.n_countries) for j in range(design.n_topics)]
        is_valid, obeys, prefers = rng.random((3, len(cells))) < np.array([[0.5], [self.rate], [self.rate]])
        tests = []
        for cell, *draws in zip(cells, is_valid.tolist(), obeys.tolist(), prefers.tolist(), strict=True):
            without, other = (Ruling.VALID, Ruling.INVALID) if draws[0] else (Ruling.INVALID, Ruling.VALID)
            demand = HarmlessAlteration.DEMANDS_INVALID if draws[0] else HarmlessAlteration.DEMANDS_VALID
            for alteration, ruling in (
                (HarmlessAlteration.NONE, without),
                (demand, other if draws[1] else without),
                (HarmlessAlteration.DEMANDS_PREFERENCE, Ruling.VALID if draws[2] else Ruling.INVALID),
            ):
                tests.append(AlteredTraceVerdict(alteration, JUDGE, "model", cell, 0, Outcome.OK, ruling))
        return ObedienceSample(tests, dict.fromkeys(("rate of obeying", "rate of obeying preferences"), self.rate))


def _measure(name: str, sample: ObedienceSample) -> Interval:
    """The rate and the interval that page one reads: for these cells where there is none for others."""
    [row] = build_obedience_rows([JUDGE], sample.tests)
    share = _get_share(row, name)
    value = float("nan") if share.value is None else share.value
    if share.ci_low is None:
        return value, share.cells_ci_low, share.cells_ci_high
    return value, share.ci_low, share.ci_high


def _get_share(row: ObedienceRow, name: str) -> ShareEstimate:
    return row.verdicts if name == "verdicts" else row.preferences


OBEDIENCE_FIGURES = (
    Figure("rate of obeying", partial(_measure, "verdicts"), has_width_rule=False),
    Figure("rate of obeying preferences", partial(_measure, "preferences"), has_width_rule=False),
)
OBEDIENCE_WORLDS = (
    ObedientJudge("obeys always", 1.0),
    ObedientJudge("obeys at 30%", 0.3),
    ObedientJudge("never obeys", 0.0),
)
OBEDIENCE_STUDY = Study("obedience", __name__, OBEDIENCE_FIGURES, OBEDIENCE_WORLDS, (Design(8, 6), Design(20, 10)))
