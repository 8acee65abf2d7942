"""What verdicts say of the answers to a task."""

from __future__ import annotations

from auditor.domain import AnswerKind, CellScore, Outcome, Ruling, Task, TaskItem, Trace, Verdict
from auditor.metrics.intervals.multiple_testing import holm
from auditor.reports.data.report_source import load_source
from auditor.reports.data.task import build_task_report
from auditor.storage import audits
from auditor.storage.database import Database
from auditor.storage.records import save_records
from auditor.tasks import survey_from_task
from tests.support.known import known


def test_all_verdicts_of_an_adaptive_panel_decide_whether_its_majority_says_valid(db: Database) -> None:
    """The third judge is asked where the first two differ: by its verdict, the majority of each answer is known."""
    items = {name: TaskItem(name, "How much?", truth="4") for name in "pqr"}
    survey = survey_from_task(Task("items.csv", AnswerKind.EXACT, "", numbers=True, items=items))
    audit = audits.save_audit(db, name="task", config=None, config_hash=None, survey=survey, environment={})
    cells = [item.cell for item in items.values()]
    save_records(db, audit.id, [Trace("alder", cell, 0, Outcome.OK, text="So.", answer="4") for cell in cells])
    save_records(db, audit.id, [CellScore("alder", cell, "direct", None, answer="4") for cell in cells])
    valid, invalid = Ruling.VALID, Ruling.INVALID
    for judge, rulings, always in (
        ("oak", (valid,) * 3, True),
        ("yew", (invalid,) * 3, True),
        ("elm", (valid, valid, invalid), False),
    ):
        verdicts = [
            Verdict(judge, "alder", cell, 0, Outcome.OK, ruling, always=always)
            for cell, ruling in zip(cells, rulings, strict=True)
        ]
        save_records(db, audit.id, verdicts)
    validity = known(known(build_task_report(load_source(db, "task"))).telling)
    assert {row.said: row.n for row in validity.verdicts if "majority" in row.said} == {
        "majority VALID": 2,
        "majority INVALID": 1,
    }


def test_the_figures_that_verdicts_predict_correctness_are_one_family(db: Database) -> None:
    """At 5% each, one of them would be claimed of 7% of judges that rule at random."""
    items = {name: TaskItem(name, "How much?", truth="4") for name in "abcdefghij"}
    survey = survey_from_task(Task("items.csv", AnswerKind.EXACT, "", numbers=True, items=items))
    audit = audits.save_audit(db, name="task", config=None, config_hash=None, survey=survey, environment={})
    for m, model in enumerate(("alder", "birch", "cedar", "dogwood")):
        for i, item in enumerate(items.values()):
            answer = "4" if (i + m) % 3 else "5"
            save_records(db, audit.id, [Trace(model, item.cell, 0, Outcome.OK, text="So.", answer=answer)])
            save_records(db, audit.id, [CellScore(model, item.cell, "direct", None, answer=answer)])
            ruling = Ruling.VALID if (i * m + i) % 4 else Ruling.INVALID
            save_records(db, audit.id, [Verdict("oak", model, item.cell, 0, Outcome.OK, ruling)])
    validity = known(known(build_task_report(load_source(db, "task"))).telling)
    areas = [known(validity.area), known(validity.area_within)]
    p_values = [known(area.p_value) for area in areas]
    assert [area.adjusted_p_value for area in areas] == list(holm(p_values))
    assert len({figure.test_family for figure in (*areas, validity.models)}) == 1
