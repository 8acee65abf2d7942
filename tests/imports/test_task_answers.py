"""Imports of answers that belong to no survey: to the items of a task, raters' tables, and logs of Inspect AI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.errors import ImportFileError, UsageError
from auditor.imports.recorded_audits import import_traces
from auditor.imports.task_answers import ImportedTaskAnswers, import_task_answers
from auditor.reports.data.task import TaskReport
from auditor.reports.output import render_report
from auditor.run import open_audit
from tests.metrics.labels.test_annotator_test import _ratings as make_ratings
from tests.support.cli_runner import succeed
from tests.support.inspect_logs import write_log
from tests.support.known import known

ITEMS = """id,question,options,truth
moon,How many moons has the Earth?,none|one|two,one
sun,Is the sun a star?,yes|no|maybe,yes
"""
CHOICE = {"answer": "choice"}
SURVEY_WORDS = ("countr", "topic", "survey", "r = ", "people’s scores")


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def import_file(file: Path, storage: str, **options: Any) -> tuple[ImportedTaskAnswers, TaskReport]:
    """Import a file as the audit `a`; the counts, and the report on the task, in which no survey is mentioned."""
    counts = import_task_answers(file, audit="a", storage=storage, **options)
    report = open_audit("a", storage=storage).report()
    text = render_report(report, "markdown")
    assert [word for word in SURVEY_WORDS if word in text.lower()] == []
    assert (report.countries, report.topics, report.alignment, report.audit.cells) == ([], [], [], [])
    return counts, known(report.task)


def test_answers_to_choices(tmp_path: Path, storage: str) -> None:
    rows = ["model,id,answer,sample", "a,moon,one,0", "a,moon,B,1", "a,sun,no,0", "b,moon,two,0", "b,sun,,0"]
    file = write(tmp_path / "answers.csv", "\n".join(rows))
    counts, task = import_file(file, storage, items=write(tmp_path / "items.csv", ITEMS), answer_format=CHOICE)
    assert counts == ImportedTaskAnswers(rows=5, items=2, models=2, people=0, failed=1, replaced=False)
    accuracy = {row.model: (row.accuracy.value, row.usable, row.planned) for row in task.models}
    assert accuracy == {"a": (pytest.approx(2 / 3), 3, 3), "b": (0.0, 1, 2)}  # of 3 answers 2, of 1 answer 0


def test_an_option_that_is_a_number_may_have_a_point(tmp_path: Path, storage: str) -> None:
    items = write(tmp_path / "items.csv", "id,question,options,truth\nmoon,How many?,0|1|2,1\nsun,How many?,1|2,2\n")
    file = write(tmp_path / "answers.csv", "model,id,answer\na,moon,1.0\na,sun,1.0\nb,moon,1.5\nb,sun,\n")
    counts, task = import_file(file, storage, items=items, answer_format=CHOICE)
    assert counts.failed == 2
    assert {row.model: (row.accuracy.value, row.usable) for row in task.models} == {"a": (0.5, 2), "b": (None, 0)}


def test_texts_are_read_as_answers_of_models_are(tmp_path: Path, storage: str) -> None:
    texts = ["It has one.\\nANSWER = B", "I cannot help with that.", "No idea", ""]
    rows = [json.dumps({"model": "a", "id": "moon", "text": text.replace("\\n", "\n")}) for text in texts]
    file = write(tmp_path / "answers.jsonl", "\n".join(rows))
    counts, task = import_file(file, storage, items=write(tmp_path / "items.csv", ITEMS), answer_format=CHOICE)
    assert (counts.rows, counts.failed) == (4, 3)
    assert (task.models[0].accuracy.value, task.models[0].planned) == (1.0, 4)


def test_numbers_are_compared_with_their_tolerance(tmp_path: Path, storage: str) -> None:
    items = write(tmp_path / "items.csv", "id,question,truth\nx,How long is it?,4\ny,How high is it?,\n")
    file = write(tmp_path / "a.csv", "model,id,answer\nm,x,5\nn,x,7\nm,y,2\nn,y,2\n")
    answer_format = {"answer": "score", "range": (0, 10), "tolerance": 1}
    _, task = import_file(file, storage, items=items, answer_format=answer_format)
    assert [row.accuracy.value for row in task.models] == [1.0, 0.0]
    assert [row.score.mae.value for row in task.models if row.score] == [1.0, 3.0]


def test_answers_with_decimal_commas_are_numbers(tmp_path: Path, storage: str) -> None:
    """A spreadsheet in German writes 3.142 as 3,142; an option keeps its comma."""
    items = write(tmp_path / "items.csv", "id;question;truth\nx;Pi?;3,142\ny;Half?;0,5\n")
    file = write(tmp_path / "a.csv", "model;id;answer\nm;x;3,142\nm;y;0,5\nn;x;3142\nn;y;0,25\n")
    _, task = import_file(file, storage, items=items, answer_format={"answer": "exact"})
    assert [row.accuracy.value for row in task.models] == [1.0, 0.0]
    items = write(tmp_path / "items.csv", "id;question;options;truth\nx;Pi?;3,142|2,5;3,142\n")
    file = write(tmp_path / "a.csv", "model;id;answer\nm;x;3,142\nn;x;2,5\n")
    _, task = import_file(file, storage, items=items, answer_format=CHOICE)
    assert [row.accuracy.value for row in task.models] == [1.0, 0.0]


@pytest.mark.parametrize("marker", ["NA", "nan", "NULL", "\\N", "N/A"])
def test_a_missing_value_is_no_wrong_answer(tmp_path: Path, storage: str, marker: str) -> None:
    """Other programs write so what they do not have: two raters without a label would agree."""
    file = write(tmp_path / "a.csv", f"model,id,answer\nm,x,Rome\nm,y,{marker}\n")
    items = write(tmp_path / "items.csv", "id,question,truth\nx,?,Rome\ny,?,Bern\n")
    for options in ({"items": items}, {}, {"people": write(tmp_path / "p.csv", f"rater,id,answer\np,y,{marker}\n")}):
        with pytest.raises(ImportFileError, match=r"line [23]: the answer '.*' may be a missing value"):
            import_file(file, storage, answer_format={"answer": "exact"}, **options)
    write(file, f"model,id,answer,outcome\nm,x,Rome,ok\nm,y,{marker},ok\n")  # exported: the model said so
    assert import_file(file, storage, items=items, answer_format={"answer": "exact"})[0].failed == 0
    write(items, f"id,question,truth\nx,?,Rome\ny,?,{marker}\n")
    _, task = import_file(file, storage, items=items, answer_format={"answer": "exact"})
    assert [row.accuracy.value for row in task.models] == [1.0]


def test_unknown_items_and_repeated_answers_stop_the_import(tmp_path: Path, storage: str) -> None:
    items = write(tmp_path / "items.csv", ITEMS)
    file = write(tmp_path / "a.csv", "model,id,answer\nm,mooon,one\nm,mooon,one\nm,mars,one\nm,sun,yes\n")
    with pytest.raises(
        ImportFileError, match=r"does not have the items of 3 rows: .*mooon \(2; did you mean moon\?\), mars \(1\)"
    ):
        import_task_answers(file, audit="a", items=items, answer_format=CHOICE, storage=storage)
    file = write(tmp_path / "a.csv", "model,id,answer,sample\nm,sun,yes,0\nm,sun,no,0\n")
    with pytest.raises(ImportFileError, match=r"row 3|line 3"):
        import_task_answers(file, audit="a", items=items, answer_format=CHOICE, storage=storage)


def test_the_kind_of_answers_is_stated(tmp_path: Path, storage: str) -> None:
    file = write(tmp_path / "a.csv", "model,id,answer\nm,x,1\n")
    with pytest.raises(UsageError, match="the kind of answers is not known"):
        import_task_answers(file, audit="a", storage=storage)
    with pytest.raises(UsageError, match="range"):
        import_task_answers(file, audit="a", answer_format={"answer": "score"}, storage=storage)


@pytest.mark.parametrize(
    ("answer_format", "winning_rates", "advantage"),
    [
        ({"answer": "exact"}, {0.2: 1.0, 0.15: None, 0.1: 0.75}, 0.9090942316556613),
        ({"answer": "score", "range": (1, 4)}, {0.2: 1.0, 0.15: None, 0.1: None}, 0.8890662204511796),
    ],
)
def test_raters_labels_by_item(
    tmp_path: Path, storage: str, answer_format: dict[str, Any], winning_rates: dict[float, Any], advantage: float
) -> None:
    # the figures of tests/metrics/labels/test_annotator_test.py, which the authors' notebook computes
    humans, judge = make_ratings()

    def label(row: np.ndarray) -> dict[str, int | None]:
        return {f"item-{i}": None if np.isnan(value) else int(value) for i, value in enumerate(row)}

    people = write(tmp_path / "human.json", json.dumps({f"w{r}": label(row) for r, row in enumerate(humans)}))
    models = write(tmp_path / "llm.json", json.dumps({"gpt": label(judge)}))
    counts, task = import_file(models, storage, people=people, answer_format=answer_format)
    assert (counts.items, counts.models, counts.people) == (120, 1, 5)
    assert [row.model for row in task.models] == ["gpt"]
    assert task.models[0].accuracy.reason == "no item has a known truth"
    assert known(task.raters).answers == np.count_nonzero(~np.isnan(humans))
    for test in known(task.raters).tests:
        assert test.test.advantage_probability == pytest.approx(advantage, abs=1e-12)
        if winning_rates[test.epsilon] is not None:
            assert test.test.winning_rate == winning_rates[test.epsilon]
        assert "rater 5 lacks 9" in known(test.test.reason)
    text = render_report(open_audit("a", storage=storage).report(), "markdown")
    assert "May a model replace a person?" in text


def test_a_label_that_a_model_did_not_give_is_lost(tmp_path: Path, storage: str) -> None:
    labels = {"ann": {"1": "hate", "2": None}, "ben": {"1": "hate", "2": "no"}}
    people = write(tmp_path / "p.json", json.dumps(labels))
    models = write(tmp_path / "m.json", json.dumps({"gpt": labels["ann"]}))
    counts, _ = import_file(models, storage, people=people, answer_format={"answer": "exact"})
    assert (counts.rows, counts.failed) == (5, 1)
    [row] = open_audit("a", storage=storage).report().coverage.models
    assert (row.planned, row.ok, row.losses) == (2, 1, {"client_error": 1})
    with pytest.raises(ImportFileError, match="has no labels"):
        import_file(write(tmp_path / "m.json", '{"gpt": {}}'), storage, answer_format={"answer": "exact"})


def test_a_table_of_raters(tmp_path: Path, storage: str) -> None:
    models = write(tmp_path / "m.csv", "model,id,answer\ngpt,1,hate\ngpt,2,none\n")
    people = write(tmp_path / "p.csv", "rater,id,answer\nann,1,Hate\nben,1,none\nann,2,none\n")
    counts, task = import_file(models, storage, people=people, answer_format={"answer": "exact"})
    assert (counts.rows, counts.people) == (5, 2)
    assert (known(task.raters).people, known(task.raters).answers, known(task.raters).items) == (["ann", "ben"], 3, 1)
    people = write(tmp_path / "p.csv", "rater,id,answer\ngpt,1,hate\n")
    with pytest.raises(UsageError, match="name of a person and of a model"):
        import_task_answers(models, audit="a", people=people, answer_format={"answer": "exact"}, storage=storage)


def test_predictions_of_moral_exceptions(tmp_path: Path, storage: str) -> None:
    header = "study,context,condition,human.response,scenario,proba_1,model,model_type"
    rows = ["line,deli,a,0.8,May she cut in?,0.5,m,x", "line,deli,b,0.2,May he cut in?,0.4,m,x"]
    file = write(tmp_path / "all_predictions.csv", "\n".join([header, *rows]))
    counts, task = import_file(file, storage)
    assert (counts.items, counts.models) == (2, 1)
    [row] = task.models
    assert known(row.score).mae.value == pytest.approx(0.25)  # (0.3 + 0.2) / 2
    assert known(row.score).bias.value == pytest.approx(-0.05)  # (-0.3 + 0.2) / 2
    assert [item.truth for item in task.items] == ["0.8", "0.2"]


def test_a_log_of_inspect_is_a_task(tmp_path: Path, storage: str) -> None:
    def sample(name: int, answer: str, grade: str, epoch: int = 1) -> dict[str, Any]:
        choices = ["Paris", "Rome", "Lima"]
        fields = {"id": name, "epoch": epoch, "input": "Capital of Italy?", "target": "B", "choices": choices}
        return fields | {"text": f"ANSWER: {answer}", "scores": {"choice": (grade, answer)}}

    samples = [sample(1, "B", "C"), sample(1, "A", "I", 2), sample(2, "B", "C")]
    counts, task = import_file(write_log(tmp_path / "log.json", samples), storage)
    assert (counts.rows, counts.items, counts.failed, counts.notes) == (3, 2, 0, ())
    [row] = task.models
    assert row.model == "x/y"
    assert row.accuracy.value == pytest.approx(2 / 3)
    assert task.items[0].truth == "Rome"


def test_answers_that_a_log_grades_differently_are_counted(tmp_path: Path, storage: str) -> None:
    samples: list[dict[str, Any]] = [
        {"id": "a", "target": "42", "text": "It is 42", "scores": {"match": ("C", "42")}},
        {"id": "b", "target": "7", "text": "7 of them, so 8", "scores": {"match": ("C", "8")}},
        {"id": "c", "target": ["1", "2"], "text": "1", "scores": {"match": ("C", "1")}},
    ]
    counts, task = import_file(write_log(tmp_path / "log.eval", samples), storage)
    assert task.models[0].accuracy.value == 0.5
    assert counts.notes == (
        "1 of 3 answers are graded differently in the log: here an answer is compared with the target.",
        "No single target that answers can be equal to: 1 of 3 items.",
    )


def test_answers_of_several_scores_count_if_they_are_equal(tmp_path: Path, storage: str) -> None:
    samples: list[dict[str, Any]] = [
        {"id": "a", "target": "42", "text": "It is so.", "scores": {"match": ("C", "42"), "graded": ("C", "42")}},
        {"id": "b", "target": "42", "text": "It is so.", "scores": {"match": ("C", "42"), "graded": ("I", "41")}},
    ]
    log = write_log(tmp_path / "log.eval", samples)
    counts, task = import_file(log, storage)
    assert (task.models[0].usable, counts.failed) == (1, 1)
    assert counts.notes == (
        "1 sample with different answers of several scores: the answer is read from the text. To choose one of them: "
        "--score match or graded",
    )
    counts, task = import_file(log, storage, score="match")
    assert (task.models[0].accuracy.value, counts.notes) == (1.0, ())


def test_several_logs_of_a_model_are_repetitions(tmp_path: Path, storage: str) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, answer in (("1", "42"), ("2", "41")):
        sample: dict[str, Any] = {"id": "a", "target": "42", "text": answer, "scores": {"match": ("C", answer)}}
        write_log(folder / f"{name}.eval", [sample])
    counts, task = import_file(folder, storage)
    assert task.models[0].accuracy.value == 0.5
    assert (
        "The answers of x/y in 1.eval, 2.eval are of one model: several to one question are repetitions."
        in counts.notes
    )


def test_logs_of_several_models_in_a_folder(tmp_path: Path, storage: str) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    sample: dict[str, Any] = {"id": "a", "target": "42", "text": "42", "scores": {"match": ("C", "42")}}
    for name, model in (("1", "openai/m"), ("2", "openai/n")):
        write_log(folder / f"{name}.eval", [sample], model=model)
    counts, _ = import_file(folder, storage)
    assert (counts.models, counts.items) == (2, 1)
    write_log(folder / "3.eval", [sample | {"target": "43"}], model="openai/o")
    with pytest.raises(ImportFileError, match="another question, target or choices"):
        import_task_answers(folder, audit="b", storage=storage)


def test_traces_name_the_import_for_logs_without_countries(tmp_path: Path, storage: str) -> None:
    file = write_log(tmp_path / "log.eval", [{"id": 1, "text": "x", "scores": {}}])
    with pytest.raises(ImportFileError) as error:
        import_traces(file, survey="wvs7-sample", audit="a", storage=storage)
    assert "auditor import task-answers" in (error.value.how_to_fix or "")


def test_the_command(tmp_path: Path, storage: str) -> None:
    items, file = write(tmp_path / "i.csv", ITEMS), write(tmp_path / "a.csv", "model,id,answer\nm,sun,yes\nm,moon,\n")
    command = ["import", "task-answers", str(file), "--task", str(items), "--answer", "choice", "--audit", "a"]
    result = succeed(*command, "--storage", storage)
    assert "2 answers of 1 model to 2 items in audit 'a'." in result.stderr
    assert "1 row without a usable answer" in result.stderr


def test_imported_answers_are_covered_and_pass_and_fail_a_check(tmp_path: Path, storage: str) -> None:
    """Without a row of coverage, `check` knew no model, left out all thresholds and called the audit undecided."""
    items = write(
        tmp_path / "items.csv", "id,question,truth\n" + "".join(f"i{i},How much is {i}?,{i}\n" for i in range(20))
    )
    rows = [f"{model},i{i},{i if model == 'right' else 99}" for model in ("right", "wrong") for i in range(20)]
    file = write(tmp_path / "a.csv", "\n".join(["model,id,answer", *rows, "half,i0,0", "half,i1,"]))
    import_file(file, storage, items=items, answer_format={"answer": "exact"})
    audit = open_audit("a", storage=storage)
    assert [(row.name, row.planned, row.ok) for row in audit.report().coverage.models] == [
        ("half", 2, 1), ("right", 20, 20), ("wrong", 20, 20),
    ]  # fmt: skip
    assert audit.check(min_accuracy=0.9, models=["right"]).exit_code == 0
    assert audit.check(min_accuracy=0.9, models=["wrong"]).exit_code == 3
    assert audit.check(min_accuracy=0.9, models=["half"]).exit_code == 4


def test_chance_is_that_of_the_items_that_a_model_answered(tmp_path: Path, storage: str) -> None:
    """A coin on questions with two options is no better than chance, whatever other models were asked."""
    items = [f"two{i},Q?,a|b,a" for i in range(40)] + [f"ten{i},Q?,{'|'.join('abcdefghij')},a" for i in range(40)]
    rows = [f"coin,two{i},{'ab'[i % 2]}" for i in range(40)]
    rows += [f"all,{name}{i},{'a' if i % 5 else 'b'}" for name in ("two", "ten") for i in range(40)]
    file = write(tmp_path / "a.csv", "\n".join(["model,id,answer", *rows]))
    items_file = write(tmp_path / "items.csv", "\n".join(["id,question,options,truth", *items]))
    _, task = import_file(file, storage, items=items_file, answer_format=CHOICE)
    assert {row.model: row.chance for row in task.models} == {"all": pytest.approx(0.3), "coin": 0.5}
    report = open_audit("a", storage=storage).report()
    page = " ".join(render_report(report, "text").split())
    assert "coin is correct in 50% of 40 answers to 40 of 80 items (95% CI" in page
    assert "not statistically distinguishable from chance (50%)" in page
    assert "all is correct in 80% of 80 answers (95% CI" in page
    assert "Choosing at random would be correct in 30% to 50%, by the items that" in render_report(report, "html")
