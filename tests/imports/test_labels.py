"""`auditor import labels`: tables and Label Studio's export, samples drawn here or elsewhere, and bad rows."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from auditor.domain import Outcome
from auditor.domain.labels import Label, LabelKind, LabelUnit, UnitToLabel
from auditor.review.label_sampling import draw_label_sample
from auditor.review.labelling import LabellingSession, LabelQueue
from auditor.storage import audits, hash_chain, labels, results
from auditor.storage.database import open_database
from auditor.storage.records import save_records
from tests.support.cli_runner import CommandOutput, auditor, succeed
from tests.support.review_audit import save_review_audit

UNIT_COLUMNS = ("model", "country", "topic", "sample")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the audit `moral` of 180 traces."""
    path = tmp_path_factory.mktemp("moral") / "audits.db"
    with open_database(f"sqlite:///{path}") as db:
        save_review_audit(db)
    return path


@pytest.fixture
def storage(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of a copy of that database, which commands use."""
    url = f"sqlite:///{shutil.copy(finished, tmp_path)}"
    monkeypatch.setenv("AUDITOR_STORAGE", url)
    monkeypatch.chdir(tmp_path)
    return url


@pytest.fixture
def sample(storage: str) -> list[UnitToLabel]:
    """A drawn sample of 90 traces."""
    with open_database(storage) as db:
        audit = audits.get_audit(db, "moral")
        draw_label_sample(db, audit, LabelKind.TRACE, 90)
        return labels.load_label_sample(db, audit.id, LabelKind.TRACE)


def make_row(
    unit: UnitToLabel | tuple[str, ...], rater: str = "ada", verdict: str = "VALID", **more: Any
) -> dict[str, Any]:
    parts = unit.unit.parts if isinstance(unit, UnitToLabel) else unit
    return {"rater": rater, **dict(zip(UNIT_COLUMNS, parts, strict=True)), "verdict": verdict, **more}


TRACES = [("alder", country, "divorce", "0") for country in ("Egypt", "Netherlands", "Nigeria", "Japan")]


def write_csv(rows: list[dict[str, Any]], name: str = "labels.csv") -> str:
    with open(name, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return name


def import_file(name: str, code: int = 0) -> CommandOutput:
    output = auditor("import", "labels", name, "--audit", "moral")
    assert output.returncode == code, output.stderr
    return output


def load(storage: str) -> tuple[list[Label], list[UnitToLabel]]:
    """The labels and the sample of the audit, whose hash chain must hold."""
    with open_database(storage, create=False) as db:
        audit_id = audits.get_audit(db, "moral").id
        assert hash_chain.verify_chain(db).breaks == []
        sample = labels.load_label_sample(db, audit_id, LabelKind.TRACE)
        return labels.load_labels(db, audit_id, LabelKind.TRACE), sample


def test_labels_of_the_drawn_sample_are_stored(storage: str, sample: list[UnitToLabel]) -> None:
    rows = [
        make_row(sample[0], verdict="valid", score_fit="yes", cultural_accuracy=""),
        make_row(sample[0], rater="ben", verdict="UNSURE", score_fit="", cultural_accuracy="0"),
        make_row(sample[1], verdict="", score_fit="", cultural_accuracy=""),
    ]
    result = import_file(write_csv(rows))
    assert result.stderr == "2 labels of 2 raters in audit 'moral'.\n  1 row without a verdict: not imported.\n"
    (first, second), stored_sample = load(storage)
    assert (first.unit, first.rater, first.value, first.aspects) == (
        sample[0].unit, "ada", "VALID", {"score_fit": True},
    )  # fmt: skip
    assert (second.value, second.aspects, second.source) == ("unsure", {"cultural_accuracy": False}, "labels.csv")
    assert stored_sample == sample


def test_an_import_that_is_repeated_stores_nothing_new(storage: str, sample: list[UnitToLabel]) -> None:
    file = write_csv([make_row(sample[0]), make_row(sample[1])])
    import_file(file)
    assert "Already stored and unchanged: 2 labels." in import_file(file).stderr
    with open_database(storage, create=False) as db:
        assert len(labels.load_entries(db, audits.get_audit(db, "moral").id)) == 2


def test_countries_and_topics_are_found_in_any_spelling(storage: str) -> None:
    row = make_row(("alder", "EGY", "Divorce", "0"))
    import_file(write_csv([row]))
    [label], _ = load(storage)
    assert label.unit.parts == ("alder", "Egypt", "divorce", "0")


def test_labels_outside_of_the_sample_are_stored_and_not_counted(storage: str, sample: list[UnitToLabel]) -> None:
    sampled = {unit.unit.parts for unit in sample}
    outside = next(trace for trace in TRACES if trace not in sampled)
    message = "1 label stored, but not used to correct the judges' figures: their traces are outside of the sample"
    assert message in import_file(write_csv([make_row(sample[0]), make_row(outside)])).stderr
    stored, stored_sample = load(storage)
    assert len(stored) == 2
    assert stored_sample == sample


def test_labels_without_any_sample_say_what_is_missing(storage: str) -> None:
    message = "4 labels stored, but not used to correct the judges' figures: their traces have no inclusion probability"
    assert message in import_file(write_csv([make_row(trace) for trace in TRACES])).stderr


def test_labels_with_inclusion_make_a_sample(storage: str) -> None:
    rows = [make_row(trace, inclusion=0.25 * (i + 1)) for i, trace in enumerate(TRACES)]
    import_file(write_csv(rows))
    stored, sample = load(storage)
    assert len(stored) == 4
    assert [unit.inclusion for unit in sample] == [0.25, 0.5, 0.75, 1.0]
    assert {(unit.stratum, unit.n_in_stratum) for unit in sample} == {((), 180)}
    with open_database(storage, create=False) as db:
        assert "was imported from labels.csv" in auditor("review", "moral", "--sample", "90").stderr
        assert draw_label_sample(db, audits.get_audit(db, "moral"), LabelKind.TRACE).n_sampled == 4

    more = [make_row(TRACES[0], rater="ben", inclusion=0.25), make_row(("birch", *TRACES[0][1:]), "ben", inclusion=0.1)]
    import_file(write_csv(more, "more.csv"))
    assert [unit.inclusion for unit in load(storage)[1]] == [0.25, 0.5, 0.75, 1.0, 0.1]


def test_importing_a_sample_is_refused_if_one_was_drawn(storage: str, sample: list[UnitToLabel]) -> None:
    result = import_file(write_csv([make_row(TRACES[0], inclusion=0.5)]), code=2)
    assert "has a drawn label sample of traces, so no other can be imported" in result.stderr
    assert load(storage)[0] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "maybe"},
         "labels.csv: line 3, column 'verdict': 'maybe' is no label. Write VALID or INVALID or unsure"),
        ({"score_fit": "perhaps"}, "line 3, column 'score_fit': 'perhaps' is neither true nor false"),
        ({"inclusion": "1.5"}, "line 3, column 'inclusion': 1.5 is no probability"),
        ({"inclusion": ""}, "line 3: the row has no inclusion probability, but other rows have one"),
        ({"sample": "x"}, "line 3, column 'sample'"),
        ({"sample": "9"}, "line 3: audit 'moral' has no trace to label with model alder, country Netherlands,"),
        ({"model": "aldr"}, "line 3: audit 'moral' has no trace to label with model aldr, country Netherlands,"),
        ({"model": "aldr"}, "Did you mean 'alder'? Only traces with a readable answer can be labelled."),
        ({"sample": "10"}, "Correct the row. Only traces with a readable answer can be labelled."),
        ({"rater": ""}, "line 3: the column 'rater' is empty"),
        ({"country": "Egypt"}, "line 3: the label of ada on this trace occurs twice"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named_and_nothing_is_stored(storage: str, change: dict[str, str], message: str) -> None:
    rows = [make_row(trace, score_fit="true", inclusion="0.5") for trace in TRACES]
    rows[1] |= change
    result = import_file(write_csv(rows), code=1)
    assert message in result.stderr
    assert load(storage) == ([], [])


def test_traces_without_a_verdict_are_in_no_imported_sample(storage: str) -> None:
    with open_database(storage) as db:
        audit_id = audits.get_audit(db, "moral").id
        verdicts = [v for v in results.load_verdicts(db, audit_id) if v.model == "birch"]
        save_records(db, audit_id, [replace(v, outcome=Outcome.TIMEOUT, ruling=None) for v in verdicts])
    rows = [make_row(trace, inclusion=0.5) for trace in (TRACES[0], ("birch", *TRACES[0][1:]))]
    assert "1 label stored, but not used to correct the judges' figures" in import_file(write_csv(rows)).stderr
    stored, sample = load(storage)
    assert len(stored) == 2
    assert [(sampled.unit.parts, sampled.n_in_stratum) for sampled in sample] == [(TRACES[0], 120)]


def test_two_probabilities_of_one_trace_are_refused(storage: str) -> None:
    rows = [make_row(TRACES[0], rater, inclusion=share) for rater, share in (("ada", 0.5), ("ben", 0.25))]
    message = "line 3: the inclusion probability is 0.25, but 0.5 in another row or import"
    assert message in import_file(write_csv(rows), code=1).stderr
    assert load(storage) == ([], [])


def test_jsonl_and_parquet_take_booleans(storage: str, sample: list[UnitToLabel]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [make_row(unit, score_fit=bool(i % 2)) for i, unit in enumerate(sample[:4])]
    Path("labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:2]), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(rows[2:]), "labels.parquet")
    for name in ("labels.jsonl", "labels.parquet"):
        import_file(name)
    assert [label.aspects["score_fit"] for label in load(storage)[0]] == [False, True, False, True]


# --- Label Studio


def make_task(unit: UnitToLabel, *annotations: dict[str, Any], **data: Any) -> dict[str, Any]:
    """A task of Label Studio's export, with the members that it has there."""
    parts = dict(zip(UNIT_COLUMNS, unit.unit.parts, strict=True)) | {"sample": int(unit.unit.parts[3])}
    members = {"id": 7, "project": 1, "predictions": [], "total_annotations": len(annotations), "meta": {}}
    return members | {"data": {"text": "…", **parts, **data}, "annotations": list(annotations)}


def make_annotation(rater: Any, verdict: str = "VALID", *, skipped: bool = False, **aspects: str) -> dict[str, Any]:
    choices = {"verdict": verdict, **aspects}
    result = [
        {"id": "a", "from_name": name, "to_name": "text", "type": "choices", "value": {"choices": [choice]}}
        for name, choice in choices.items()
    ]
    result.append({"from_name": "note", "to_name": "text", "type": "textarea", "value": {"text": ["odd"]}})
    return {
        "id": 1, "completed_by": rater, "was_cancelled": skipped, "ground_truth": False, "lead_time": 4.3,
        "created_at": "2026-11-20T10:00:00Z", "result": [] if skipped else result,
    }  # fmt: skip


def write_json(value: Any) -> str:
    Path("export.json").write_text(json.dumps(value), encoding="utf-8")
    return "export.json"


def test_label_studio_gives_the_labels_of_a_table(storage: str, sample: list[UnitToLabel]) -> None:
    tasks = [
        make_task(sample[0], make_annotation({"id": 3, "email": "ada@example.org"}, score_fit="no"),
         make_annotation(12, "unsure")),
        make_task(sample[1], make_annotation(12, skipped=True), make_annotation(12, "INVALID")),
        make_task(sample[2]),
    ]  # fmt: skip
    import_file(write_json(tasks))
    stored, _ = load(storage)
    assert [(label.unit, label.rater, label.value, label.aspects) for label in stored] == [
        (sample[0].unit, "ada@example.org", "VALID", {"score_fit": False}),
        (sample[0].unit, "12", "unsure", {}),
        (sample[1].unit, "12", "INVALID", {}),
    ]


def test_label_studio_can_bring_its_own_sample(storage: str) -> None:
    unit = UnitToLabel(LabelUnit(LabelKind.TRACE, TRACES[0]), (), 0, 0.0, 0)
    import_file(write_json([make_task(unit, make_annotation(1), inclusion=0.2)]))
    assert [sampled.inclusion for sampled in load(storage)[1]] == [0.2]


def rename_controls(task: dict[str, Any]) -> None:
    result = task["annotations"][0]["result"]
    result[0]["from_name"] = "first"
    result.append({**result[0], "from_name": "second"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda task: task["data"].pop("topic"), "export.json: task 7: the task's data has no 'topic'"),
        (lambda task: task.pop("annotations"),
         "task 7: the task has no 'data' or no 'annotations'. In Label Studio, export"),
        (lambda task: task["annotations"][0].update(completed_by=None),
         "task 7: an annotation does not name its annotator"),
        (lambda task: task["data"].update(sample=[1]),
         "task 7: 'sample' in the task's data is neither text nor a number"),
        (lambda task: task["annotations"][0]["result"][0]["value"].update(choices=["VALID", "INVALID"]),
         "task 7: the annotation has no choice for 'verdict', or several choices"),
        (rename_controls,
         "task 7: several questions of the labelling form have choices: first, second. In Label Studio, name the"),
    ],
)  # fmt: skip
def test_a_bad_task_is_named_and_nothing_is_stored(
    storage: str, sample: list[UnitToLabel], change: Any, message: str
) -> None:
    task = make_task(sample[1], make_annotation(1))
    change(task)
    result = import_file(write_json([make_task(sample[0], make_annotation(1)), task]), code=1)
    assert message in result.stderr
    assert load(storage)[0] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "the file is not a list of tasks from Label Studio"),
        ("[1]", "task 1: the task has no 'data'"),
        ("[]", "no row has a label"),
    ],
)
def test_another_json_file_is_refused(storage: str, text: str, message: str) -> None:
    Path("export.json").write_text(text, encoding="utf-8")
    result = import_file("export.json", code=1)
    assert message in result.stderr


@pytest.mark.parametrize("file_format", ["csv", "jsonl"])
def test_exported_labels_can_be_imported_again(storage: str, sample: list[UnitToLabel], file_format: str) -> None:
    outside = next(trace for trace in TRACES if trace not in {unit.unit.parts for unit in sample})
    rows = [
        make_row(sample[0], score_fit="true"),
        make_row(sample[1], verdict="INVALID"),
        make_row(outside, rater="=ada"),
    ]
    import_file(write_csv(rows))
    import_file(write_csv([make_row(sample[0], verdict="INVALID")], "changed.csv"))  # replaces the first label
    succeed("export", "labels", "moral", "--format", file_format, "-o", f"again.{file_format}")
    before = load(storage)
    assert "Already stored and unchanged: 3 labels" in import_file(f"again.{file_format}").stderr
    assert load(storage) == before
    assert len(before[0]) == 3


def test_exported_labels_bring_their_sample_to_another_database(
    storage: str, sample: list[UnitToLabel], finished: Path
) -> None:
    outside = next(trace for trace in TRACES if trace not in {unit.unit.parts for unit in sample})
    import_file(write_csv([*(make_row(unit) for unit in sample), make_row(outside)]))
    auditor("export", "labels", "moral", "-o", "again.csv")
    other = f"sqlite:///{shutil.copy(finished, 'other.db')}"
    succeed("import", "labels", "again.csv", "--audit", "moral", "--storage", other)
    with open_database(other) as db:
        audit = audits.get_audit(db, "moral")
        drawn = {unit.unit: unit.inclusion for unit in labels.load_label_sample(db, audit.id, LabelKind.TRACE)}
        assert len(labels.load_labels(db, audit.id, LabelKind.TRACE)) == len(sample) + 1
    assert drawn == {unit.unit: unit.inclusion for unit in sample}


@pytest.mark.parametrize(("yes", "no"), [("1", "0"), ("yes", "no"), ("TRUE", "FALSE")])
def test_exported_labels_that_are_not_in_force_are_left_out_however_a_program_writes_it(
    storage: str, yes: str, no: str
) -> None:
    rows = [make_row(TRACES[0], in_force=no), make_row(TRACES[0], verdict="INVALID", in_force=yes)]
    assert "1 label of 1 rater" in import_file(write_csv([*rows, make_row(TRACES[1], in_force=no)])).stderr
    assert [(label.unit.parts, label.value) for label in load(storage)[0]] == [(TRACES[0], "INVALID")]
    refused = import_file(write_csv([make_row(TRACES[2], in_force="perhaps")]), code=1)
    assert "'perhaps' is neither true nor false" in refused.stderr


def test_labels_of_the_reasoning_of_another_audit_are_refused(storage: str, sample: list[UnitToLabel]) -> None:
    with open_database(storage) as db:
        session = LabellingSession(db, audits.get_audit(db, "moral"), "ada")
        for unit in sample[:3]:
            opened = LabelQueue(session).load(unit.unit)
            LabelQueue(session).save_value(opened, "VALID")
    succeed("export", "labels", "moral", "-o", "exported.csv")
    assert "unchanged: 3 labels" in import_file("exported.csv").stderr
    model, country, topic, number = sample[0].unit.parts
    with sqlite3.connect(storage.removeprefix("sqlite:///")) as connection:
        place = "model = ? AND country = ? AND topic = ? AND sample = ?"
        connection.execute(
            f"UPDATE trace SET text = 'It is another reasoning.' WHERE {place}", (model, country, topic, number)
        )
    refused = import_file("exported.csv", code=1)
    assert "exported.csv: line 2: 1 label made of another text than that of audit 'moral'" in refused.stderr
    assert "empty the column text_hash" in refused.stderr


def test_labels_that_replace_others_of_the_rater_are_counted(storage: str) -> None:
    import_file(write_csv([make_row(TRACES[0]), make_row(TRACES[1])]))
    second_import = import_file(
        write_csv([make_row(TRACES[0], verdict="INVALID"), make_row(TRACES[1]), make_row(TRACES[2])])
    )
    assert "1 label replaced another label of the rater on the same trace" in second_import.stderr
    assert "unchanged: 1 label" in second_import.stderr


def test_a_rater_whose_name_is_written_in_two_ways_is_not_two_raters(storage: str) -> None:
    refused = import_file(write_csv([make_row(TRACES[0], rater="Ada"), make_row(TRACES[1], rater="ada")]), code=1)
    assert "labels.csv: line 3: the raters 'ada' and 'Ada' differ in capital letters or spaces only." in refused.stderr
    import_file(write_csv([make_row(TRACES[0], rater="Ada")]))
    import_file(write_csv([make_row(TRACES[0], rater="ADA")]), code=1)
    assert {label.rater for label in load(storage)[0]} == {"Ada"}
    for name in ("Ada  Lovelace", "Ada Lovelace"):
        rows = [make_row(TRACES[0], rater=name), make_row(TRACES[1], rater="ada lovelace")]
        refused = import_file(write_csv(rows), code=1)
        assert "the raters 'ada lovelace' and 'Ada Lovelace' differ in capital letters or spaces only" in refused.stderr


@pytest.mark.parametrize("stored", ["ada ", "\u00a0ada", "Jose\u0301", "Jos\u00e9"])
def test_the_labels_of_a_rater_whose_name_was_stored_as_typed_can_be_imported_again(storage: str, stored: str) -> None:
    """A table has no spaces around a name, in which earlier versions stored it."""
    with open_database(storage) as db:
        label = Label(LabelUnit(LabelKind.TRACE, TRACES[0]), stored, "VALID", datetime.now(UTC))
        labels.append_labels(db, audits.get_audit(db, "moral").id, [label])
    succeed("export", "labels", "moral", "-o", "exported.csv")
    assert "unchanged: 1 label" in import_file("exported.csv").stderr
    import_file(write_csv([make_row(TRACES[1], rater=stored)]))
    assert {label.rater for label in load(storage)[0]} == {stored}


def test_a_model_whose_name_is_written_in_two_unicode_forms_gets_its_labels(storage: str) -> None:
    with sqlite3.connect(storage.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE trace SET model = 'mode\u0300le' WHERE model = 'alder'")
    rows = [make_row(("mode\u0300le", *TRACES[0][1:])), make_row(("mod\u00e8le", *TRACES[1][1:]))]
    assert "2 labels of 1 rater" in import_file(write_csv(rows)).stderr
