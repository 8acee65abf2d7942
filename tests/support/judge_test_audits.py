"""A synthetic audit with tests of its judges in a database, made without requests: every table of them has rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from auditor.domain import AlteredTraceVerdict, Contest, Guess, HarmlessAlteration, Outcome, Ruling
from auditor.storage import results
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.storage.records import save_records
from tests.support.synthetic_audit import NAMES, populate

JUDGES = NAMES[:3]
"""The judges of the synthetic audit, who are its models too."""
FAULT = "norm"


def save_judge_test_audit(db: Database) -> Audit:
    """Save the synthetic audit with guesses, verdicts on altered traces and contests of all judges."""
    rng = np.random.default_rng(0)
    audit = populate(db, models=len(JUDGES))
    traces = [trace for trace in results.load_traces(db, audit.id) if trace.outcome is Outcome.OK and trace.sample == 0]

    def is_hit(share: float) -> bool:
        return bool(rng.random() < share)

    guesses, verdicts = [], []
    for judge in JUDGES:
        for trace in traces:
            result_key = (judge, trace.model, trace.cell, trace.sample, Outcome.OK)
            guesses.append(Guess(*result_key, is_hit(0.4), is_hit(0.3), is_hit(0.5), countries=4, topics=4, authors=2))
            alterations = {HarmlessAlteration.NONE: 0.2, HarmlessAlteration.NEUTRAL: 0.3, FAULT: 0.7}
            for alteration, objection_share in (
                {HarmlessAlteration.SELF: 0.1} if trace.model == judge else alterations
            ).items():
                ruling = Ruling.INVALID if is_hit(objection_share) else Ruling.VALID
                verdicts.append(AlteredTraceVerdict(alteration, *result_key, ruling))
    contests = [
        Contest(judge, cell, left, right, is_swapped, Outcome.OK, is_hit(0.6))
        for judge in JUDGES
        for cell in dict.fromkeys(trace.cell for trace in traces)
        for left, right in combinations(JUDGES, 2)
        for is_swapped in (False, True)
    ]
    save_records(db, audit.id, guesses)
    save_records(db, audit.id, verdicts)
    save_records(db, audit.id, contests)
    return audit
