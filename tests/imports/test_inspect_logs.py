"""Import of Inspect logs: exported audits are imported unchanged, and answers of other tasks are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auditor.domain import Outcome
from auditor.errors import ImportFileError, UsageError
from auditor.imports.inspect_logs import read_inspect_log
from auditor.imports.recorded_answers import LogKeys
from auditor.imports.recorded_audits import import_traces
from auditor.run import open_audit
from auditor.storage import audits, results
from auditor.storage.database import open_database
from tests.support.cli_runner import succeed
from tests.support.inspect_logs import SyntheticDatabase, write_log
from tests.support.refusals import UNUSABLE_TEXTS

ANSWERED_SAMPLE = {"text": "SCORE = 0.5"}
EVAL_ERROR = {"message": "boom \x1b[31m\nand more", "traceback": "", "traceback_ansi": ""}


@pytest.fixture(scope="module", autouse=True)
def _needs_inspect() -> None:
    """Skip the module without Inspect; importing it during collection would take seconds in every worker."""
    pytest.importorskip("inspect_ai.log", reason="the extra 'inspect' is not installed")


def test_an_exported_audit_is_imported_unchanged(
    inspect_logs: Path, made_audit: SyntheticDatabase, tmp_path: Path, storage: str
) -> None:
    survey = tmp_path / "truth.csv"
    audit = audits.get_audit(made_audit.db, "population")
    cells = audits.load_audit_survey(made_audit.db, audit).cells
    rows = [f"{c.cell.country},{c.cell.topic},{'' if c.score is None else c.score}" for c in cells]
    survey.write_text("\n".join(["country,topic,score", *rows]), encoding="utf-8")
    counts = import_traces(inspect_logs, survey=str(survey), audit="back", storage=storage)
    original_traces = {
        (t.model, t.cell, t.sample): (t.outcome, t.score) for t in results.load_traces(made_audit.db, audit.id)
    }
    with open_database(storage, create=False) as db:
        traces = results.load_traces(db, audits.get_audit(db, "back").id)
    assert {(t.model, t.cell, t.sample): (t.outcome, t.score) for t in traces} == original_traces
    assert (counts.models, counts.unmatched.rows) == (3, 0)
    exported_report, imported_report = (
        open_audit("population", storage=made_audit.url).report(),
        open_audit("back", storage=storage).report(),
    )
    assert [r.pearson_r.value for r in imported_report.alignment] == pytest.approx(
        [r.pearson_r.value for r in exported_report.alignment]
    )


def write_foreign_log(path: Path, samples: list[dict[str, Any]], status: str = "success", **spec: Any) -> Path:
    """Write a log as another task would, whose samples are about divorce in Germany unless they have other metadata."""
    place = {"country": "Germany", "topic": "divorce"}
    return write_log(path, [{"metadata": place} | sample for sample in samples], status, **spec)


@pytest.mark.parametrize("suffix", ["eval", "json"])
def test_answers_of_other_tasks_are_read_from_the_text_without_their_grades(tmp_path: Path, suffix: str) -> None:
    log = write_foreign_log(
        tmp_path / f"log.{suffix}",
        [
            {"text": "They accept it.\nSCORE = 0.5", "scores": {"match": "C"}},
            {"text": "They do not.", "stop": "max_tokens", "scores": {"match": 1.0}},
            {"error": EVAL_ERROR},
        ],
    )
    recorded_answers = list(read_inspect_log(log, LogKeys()))
    assert [(f.model, f.country, f.topic, f.score, f.sample, f.outcome) for f in recorded_answers] == [
        ("x/y", "Germany", "divorce", None, None, outcome)
        for outcome in (Outcome.OK, Outcome.TRUNCATED, Outcome.CLIENT_ERROR)
    ]


def test_a_named_score_is_used_and_a_missing_one_is_not_read_from_the_text(tmp_path: Path) -> None:
    log = write_foreign_log(
        tmp_path / "log.eval",
        [
            {"text": "SCORE = 0.5", "scores": {"moral": -0.25}},
            {"text": "SCORE = 0.5", "scores": {"moral": float("nan")}},
            {"text": "SCORE = 0.5"},
        ],
    )
    recorded_answers = list(read_inspect_log(log, LogKeys(score="moral")))
    figures = [(f.score, f.outcome) for f in recorded_answers]
    assert figures == [(-0.25, Outcome.OK), (None, Outcome.UNPARSED), (None, Outcome.UNPARSED)]


@pytest.mark.parametrize(
    ("sample", "keys", "message"),
    [
        ({"text": "a", "metadata": {"nation": "Chile"}}, LogKeys(),
         r"the country is missing; the keys are: nation.*--country"),
        ({"text": "a", "metadata": {"country": 7, "topic": "divorce"}}, LogKeys(),
         "the value of 'country' is empty or not a text"),
        ({"text": "a", "scores": {"match": "C"}}, LogKeys(score="match"), r"'C' is not a number from -1 to 1"),
        ({"text": "a", "scores": {"match": 70}}, LogKeys(score="match"), r"70(\.0)? is not a number"),
    ],
)  # fmt: skip
def test_a_sample_that_cannot_be_used_is_named(
    tmp_path: Path, sample: dict[str, Any], keys: LogKeys, message: str
) -> None:
    with pytest.raises(ImportFileError, match=message):
        list(read_inspect_log(write_foreign_log(tmp_path / "log.eval", [sample]), keys))


def test_the_cell_is_read_from_other_keys_or_from_the_id(tmp_path: Path) -> None:
    sample_with_metadata = {"text": "a", "metadata": {"Nation": "Chile", "topic": "divorce"}}
    sample_with_id = {"text": "a", "metadata": {}, "id": "Chile | divorce"}
    [cell_from_metadata] = read_inspect_log(
        write_foreign_log(tmp_path / "a.eval", [sample_with_metadata]), LogKeys(country="nation")
    )
    [cell_from_id] = read_inspect_log(write_foreign_log(tmp_path / "b.eval", [sample_with_id]), LogKeys())
    for answer in (cell_from_metadata, cell_from_id):
        assert (answer.country, answer.topic) == ("Chile", "divorce")


def test_a_file_that_is_no_log_is_refused(tmp_path: Path, storage: str) -> None:
    (tmp_path / "a.eval").write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(ImportFileError, match="is not a valid Inspect AI log"):
        import_traces(tmp_path / "a.eval", survey="wvs7-sample", audit="a", storage=storage)


def test_without_inspect_the_extra_is_named(inspect_logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(UsageError, match=r"auditor\[inspect\]"):
        list(read_inspect_log(inspect_logs / "population_alder.eval", LogKeys()))


@pytest.mark.parametrize("suffix", ["eval", "json"])
@pytest.mark.parametrize(
    ("log", "expected_note"),
    [
        ({"samples": [ANSWERED_SAMPLE] * 2, "planned": 2}, None),
        ({"samples": [ANSWERED_SAMPLE] * 2}, None),
        ({"samples": [ANSWERED_SAMPLE] * 2, "planned": 5}, "3 of its 5 samples are missing"),
        ({"samples": [ANSWERED_SAMPLE] * 2, "ids": [1, 2], "epochs": 3}, "4 of its 6 samples are missing"),
        ({"samples": [ANSWERED_SAMPLE], "status": "cancelled", "planned": 1}, "its run was cancelled."),
        ({"samples": [ANSWERED_SAMPLE], "status": "started", "planned": 4},
         "its run did not finish; 3 of its 4 samples are missing"),
        ({"samples": [ANSWERED_SAMPLE], "status": "error", "planned": 3, "log": {"error": EVAL_ERROR}},
         "its run ended with an error (boom ␛[31m); 2 of its 3 samples are missing."),
        ({"samples": [ANSWERED_SAMPLE], "log": {"invalidated": True}}, "it is marked as invalid"),
        ({"samples": [ANSWERED_SAMPLE, {**ANSWERED_SAMPLE, "error": EVAL_ERROR}], "planned": 2},
         "1 of its samples ended with an error and count as failures."),
    ],
)  # fmt: skip
def test_missing_samples_of_a_log_are_reported_and_the_others_are_imported(
    tmp_path: Path, storage: str, suffix: str, log: dict[str, Any], expected_note: str | None
) -> None:
    file = write_foreign_log(tmp_path / f"log.{suffix}", **log)
    counts = import_traces(file, survey="wvs7-sample", audit="theirs", storage=storage)
    assert counts.rows == len(log["samples"])
    assert counts.empty == sum("error" in sample for sample in log["samples"])
    assert len(counts.notes) == (expected_note is not None)
    for note in counts.notes:
        assert note.startswith(f"{file}: ")
        assert (expected_note or "") in note


def test_a_sample_that_ended_early_says_nothing_or_refuses_has_no_score_even_if_one_was_given(tmp_path: Path) -> None:
    endings: list[tuple[dict[str, Any], Outcome]] = [
        ({"error": EVAL_ERROR}, Outcome.CLIENT_ERROR),
        ({"stop": "max_tokens"}, Outcome.TRUNCATED),
        ({"stop": "content_filter"}, Outcome.REFUSED),
        ({"limit": {"type": "token", "limit": 9}}, Outcome.TRUNCATED),
        ({"limit": {"type": "time", "limit": 9}}, Outcome.TIMEOUT),
        *(({"text": text}, outcome) for text, outcome in UNUSABLE_TEXTS.items()),
        ({"text": ""}, Outcome.UNPARSED),
        ({}, Outcome.OK),
    ]
    samples = [{"text": "SCORE = 0.5", "scores": {"moral": 0.5}, **ending} for ending, _ in endings]
    answers = read_inspect_log(write_foreign_log(tmp_path / "log.eval", samples), LogKeys(score="moral"))
    expected = [(outcome, 0.5 if outcome is Outcome.OK else None) for _, outcome in endings]
    assert [(answer.outcome, answer.score) for answer in answers] == expected


def test_samples_that_people_declared_invalid_are_excluded(tmp_path: Path, storage: str) -> None:
    invalid: dict[str, Any] = {"scores": {"moral": 0.5}, "invalidation": {"author": "ada"}}
    samples = [{**ANSWERED_SAMPLE, **invalid}, ANSWERED_SAMPLE]
    log = write_foreign_log(tmp_path / "log.eval", samples, log={"invalidated": True})
    counts = import_traces(log, survey="wvs7-sample", audit="theirs", storage=storage)
    assert counts.notes == (f"{log}: 1 of its samples were declared invalid and are excluded.",)
    [row] = open_audit("theirs", storage=storage).report().coverage.total
    assert (row.planned, row.ok, row.losses) == (2, 1, {"excluded": 1})


def test_samples_that_a_retry_of_a_run_took_over_count_once(tmp_path: Path, storage: str) -> None:
    cells = [{"country": country, "topic": "divorce"} for country in ("Germany", "Japan")]
    answered = [{"text": "SCORE = 0.5", "metadata": cell} for cell in cells]
    failed = {"error": EVAL_ERROR, "metadata": cells[1]}
    write_foreign_log(tmp_path / "1.eval", [answered[0], failed], status="error", task_id="t")
    write_foreign_log(tmp_path / "2.eval", answered, created="2026-01-03T03:04:05+00:00", task_id="t")
    counts = import_traces(tmp_path, survey="wvs7-sample", audit="theirs", storage=storage)
    assert (counts.rows, counts.scores, counts.empty) == (2, 2, 0)
    assert [note.partition("eval: ")[2] for note in counts.notes] == [
        "its run ended with an error; 2 of its samples are in a later log of the same run, and count once."
    ]


def test_several_logs_of_a_model_are_named(tmp_path: Path, storage: str) -> None:
    for name in ("a", "b"):
        write_foreign_log(tmp_path / f"{name}.eval", [ANSWERED_SAMPLE], task_id=name)
    counts = import_traces(tmp_path, survey="wvs7-sample", audit="theirs", storage=storage)
    note = "The answers of x/y in a.eval, b.eval are of one model: several to one question are repetitions."
    assert (counts.rows, counts.notes) == (2, (note,))


@pytest.mark.parametrize("suffix", ["eval", "json"])
def test_a_log_without_samples_is_named_in_a_folder_and_an_error_alone(
    tmp_path: Path, storage: str, suffix: str
) -> None:
    empty = write_foreign_log(tmp_path / f"a.{suffix}", [], status="error", planned=7, log={"error": EVAL_ERROR})
    with pytest.raises(ImportFileError, match=r"ended with an error .*7 of its 7 samples are missing"):
        import_traces(empty, survey="wvs7-sample", audit="theirs", storage=storage)
    write_foreign_log(tmp_path / f"b.{suffix}", [ANSWERED_SAMPLE])
    counts = import_traces(tmp_path, survey="wvs7-sample", audit="theirs", storage=storage)
    assert counts.rows == 1
    assert [note.split(":")[0] for note in counts.notes] == [str(empty)]


def test_the_command_reports_missing_samples(tmp_path: Path) -> None:
    log_path = write_foreign_log(tmp_path / "log.eval", [ANSWERED_SAMPLE], status="cancelled", planned=9)
    command = succeed("import", "traces", log_path, "--survey", "wvs7-sample", "--audit", "theirs", cwd=tmp_path)
    assert "its run was cancelled; 8 of its 9 samples are missing." in " ".join(command.stderr.split())
