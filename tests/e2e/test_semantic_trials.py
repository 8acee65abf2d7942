"""The papers' experiments on consistency, against a scripted server and with the real encoder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from auditor.cost_estimation.audit_estimate import estimate_audit
from auditor.errors import ImportFileError, UsageError
from auditor.experiments.stored_audit import ExperimentContext
from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.metrics.intervals.multiple_testing import holm
from auditor.models import weights
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.answer_imports import import_answers
from auditor.probes.semantic.experiments.runs import accuracy, judgements, rules, temperature
from auditor.probes.semantic.figures.schema import SemanticReport
from auditor.probes.semantic.questions import load_built_in_questions
from auditor.reports.document import Table
from auditor.run import EMPTY_SURVEY, finish_audit, open_audit, run_audit, store_audit
from auditor.storage import audits
from auditor.storage.database import open_database
from tests.e2e.test_semantic import RULES, STANDS, config, write
from tests.reports.sections.node_text import iterate_nodes, text_of
from tests.support.fake_server import FakeServer, Reply, Request, completion
from tests.support.families_of_tests import run_checked
from tests.support.known import known
from tests.support.stored_rows import find_part, load_stored


@pytest.fixture(autouse=True, scope="module")
def encoder() -> Path:
    return weights.pull_weights("all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def trial_server() -> Iterator[FakeServer]:
    with FakeServer(script) as running:
        yield running


@pytest.fixture(scope="module")
def finished(encoder: Path, trial_server: FakeServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of an audit of two models and eight questions."""
    path = tmp_path_factory.mktemp("finished") / "audits.db"
    run_audit(config(trial_server.url, models=2, limit=8, rivals=["rouge_l"]), storage=f"sqlite:///{path}")
    return path


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> str:
    """URL of a copy of that database."""
    return f"sqlite:///{shutil.copy(finished, tmp_path)}"


def value(estimate: Estimate) -> float:
    assert estimate.value is not None
    return estimate.value


def untested(difference: Tested) -> Tested:
    """The difference as in the list of all measures, in which it is in no family of tests."""
    return replace(difference, adjusted_p_value=None, test_family=None)


def script(request: Request) -> Reply:
    """Answer as the rule of thumb in the prompt says; without one, draw an answer that depends on the request."""
    if request.schema == "RuleOfThumb":
        return completion(json.dumps({"rule": RULES[next(i for i in (0, 1) if STANDS[i] in request.text)]}))
    if "Rule of thumb:" in request.text:
        side = RULES.index(next(r for r in RULES if r in request.text))
    else:
        side = int(request.draw("side") < 0.5)
    return completion(json.dumps({"answer": STANDS[side]}))


def test_paraphrases_are_compared_with_repetitions_of_one_wording(server: FakeServer, storage: str) -> None:
    server.script = script
    run_audit(config(server.url, models=1, limit=6, rivals=["bleu_nltk"]), storage=storage)
    requests_before = len(server.requests)
    [cold, warm] = temperature(ExperimentContext(storage), "moral", "0,1").data
    assert (cold.temperature, warm.temperature) == (0.0, 1.0)
    assert cold.same_words.n == cold.other_words.n == 6
    assert None not in (p_values := [cold.difference.p_value, warm.difference.p_value])
    assert [cold.difference.adjusted_p_value, warm.difference.adjusted_p_value] == pytest.approx(holm(p_values))
    semantic_section = find_part(open_audit("moral", storage=storage).report(), SemanticReport)
    # At the audit's own temperature the experiment reuses the audit's answers.
    assert value(cold.other_words) == pytest.approx(value(semantic_section.models[0].consistency))
    assert value(cold.difference) == pytest.approx(value(cold.other_words) - value(cold.same_words))
    by_measure = {(row.text, row.metric): row for row in cold.measures}
    for rival in semantic_section.rivals:
        assert by_measure[rival.text, rival.metric].other_words == rival.value
    assert by_measure["rot", "sage"].difference == untested(cold.difference)
    assert {("answer", "bleu_nltk"), ("rot", "bleu_nltk"), ("mix:0.2", "sage"), ("answer", "sage:alpha=1")} < set(
        by_measure
    )
    new_requests = len(server.requests) - requests_before
    assert new_requests <= 6 * 5 * 3 * 2
    temperature(ExperimentContext(storage), "moral", "0,1")
    assert len(server.requests) - requests_before == new_requests


def test_answers_that_cannot_be_used_are_counted_by_cause(server: FakeServer, storage: str, tmp_path: Path) -> None:
    """Each model's answers to the wording 4 are cut off, those to wording 3 are no JSON, and so is each fourth rule."""

    def fail_sometimes(request: Request) -> Reply:
        if request.schema in ("Choice", "MoralAnswer") and "wording 4" in request.text:
            return completion('{"answer": "I', finish="length")
        if request.schema in ("Choice", "MoralAnswer") and "wording 3" in request.text:
            return completion("I cannot say.")
        if request.schema == "Choice":
            return completion(json.dumps({"reason": STANDS[0], "choice": 1}))
        return script(request)

    server.script = fail_sometimes
    columns = ["question_id", "question", "paraphrase"]
    wordings: list[list[object]] = [
        [f"q{i}", f"Question {i}?", f"q{i}, wording {j}?"] for i in (1, 2) for j in range(5)
    ]
    questions = write(tmp_path / "q.csv", columns, wordings)
    audit = config(server.url, models=1, questions=str(questions), limit=None, rivals=["rouge_l"])
    context = ExperimentContext(run_audit(audit, storage=storage).storage)
    facts = write(
        tmp_path / "facts.csv",
        ["question_id", "question", "choices", "correct", "paraphrase"],
        [[id_, question, "no|yes", "no", paraphrase] for id_, question, paraphrase in wordings],
    )
    result = accuracy(context, "moral", facts, limit=1)
    [row] = result.data
    assert (row.questions, row.wordings, row.paraphraser, row.accuracy.n) == (1, (5, 5), None, 1)
    [counts] = row.counts
    assert (counts.text, counts.planned, counts.ok, counts.losses) == ("answer", 5, 3, {"truncated": 1, "unparsed": 1})
    assert "2 answers of 5 cannot be used: 1 truncated, 1 unparsed." in text_of(result.document.sections)
    assert {"sage", "sage:alpha=1", "cosine", "rouge_l"} == {measure.metric for measure in row.measures}
    [row] = temperature(context, "moral", "0").data
    assert row.questions == 2
    counts_by_setting = {(counts.setting, counts.text): counts for counts in row.counts}
    assert counts_by_setting["same_words", "answer"].ok == counts_by_setting["same_words", "answer"].planned == 10
    assert counts_by_setting["other_words", "answer"].losses == {"truncated": 2, "unparsed": 2}
    rules_of_usable = counts_by_setting["other_words", "rot"]
    assert rules_of_usable.planned == counts_by_setting["other_words", "answer"].ok == 6
    assert rules_of_usable.ok == 6


def test_rules_of_questions_beyond_the_limit_are_left_out(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = script
    run_audit(config(server.url, models=1, limit=1), storage=storage)
    ids = [question.id for question in load_built_in_questions()]
    file = write(tmp_path / "rules.csv", ["question_id", "rule"], [[id_, RULES[0]] for id_ in ids])
    [row] = rules(ExperimentContext(storage), "moral", file).data
    assert (row.questions, row.before.n, row.after.n) == (1, 1, 1)
    others = write(tmp_path / "others.csv", ["question_id", "rule"], [[id_, RULES[0]] for id_ in ids[1:]])
    with pytest.raises(ImportFileError, match="no row is of a question that the audit 'moral' asks"):
        rules(ExperimentContext(storage), "moral", others)


def test_an_experiment_stores_questions_that_no_run_has_asked(server: FakeServer, storage: str, tmp_path: Path) -> None:
    server.script = script
    audit = config(server.url, models=1, limit=2)
    assert store_audit(audit, storage=storage).report().find(SemanticReport) is None
    assert server.requests == []
    [row] = temperature(ExperimentContext(storage), "moral", "0").data
    assert (row.questions, row.same_words.n, row.other_words.n) == (2, 2, 2)
    n_requests = len(server.requests)
    finish_audit("moral", storage=storage)
    run_audit(audit, storage=storage)
    assert len(server.requests) == n_requests, "its answers at temperature 0 are recorded"
    report = open_audit("moral", storage=storage).report()
    assert report.audit.stage == "done"
    semantic = find_part(report, SemanticReport)
    assert value(semantic.models[0].consistency) == value(row.other_words)


def test_following_a_rule_makes_answers_consistent(server: FakeServer, storage: str) -> None:
    server.script = script
    run_audit(config(server.url, models=1, limit=8), storage=storage)
    [row] = rules(ExperimentContext(storage), "moral").data
    assert value(row.after) == pytest.approx(1.0, abs=1e-6)
    assert value(row.before) < 0.9
    assert value(row.change) == pytest.approx(value(row.after) - value(row.before))
    assert row.change.adjusted_p_value == known(row.change.p_value) < 0.05


def test_rules_of_a_file_are_followed(trial_server: FakeServer, copied: str, tmp_path: Path) -> None:
    with open_database(copied, create=False) as db:
        questions = [question.id for question in answer_rows.load_questions(db, audits.get_audit(db, "moral").id)]
    file = write(tmp_path / "rules.csv", ["question_id", "rule"], [[id_, RULES[0]] for id_ in questions[:6]])
    requests_before = len(trial_server.requests)
    result = rules(ExperimentContext(copied), "moral", file)
    # With the rule, answers and the rules behind them; the answers without it are those of the audit.
    assert 0 < len(trial_server.requests) - requests_before <= 2 * 6 * 5 * 2
    asked = [request for request in trial_server.requests[requests_before:] if request.schema == "MoralAnswer"]
    assert len(asked) == 2 * 6 * 5
    assert all(RULES[0] in request.text for request in asked)
    for row in result.data:
        assert (row.rules_file, row.before.n, row.after.n) == ("rules.csv", 6, 6)
        by_measure = {(measure.text, measure.metric): measure for measure in row.measures}
        assert by_measure["rot", "sage"].change == untested(row.change)
        for key in (("answer", "rouge_l"), ("rot", "rouge_l"), ("answer", "sage"), ("mix:0.2", "sage:alpha=1")):
            assert value(by_measure[key].after) == pytest.approx(1.0, abs=1e-6)
            assert value(by_measure[key].before) < 0.9
    [table] = [block for block in iterate_nodes(result.document.sections[-1]) if isinstance(block, Table)]
    assert len(table.rows) == sum(len(row.measures) for row in result.data)


def test_rules_that_cannot_be_used_say_where(server: FakeServer, storage: str, tmp_path: Path) -> None:
    columns = ["question_id", "question", "paraphrase"]
    wordings: list[list[object]] = [
        ["care-1", "May one lie?", text] for text in ("Is it fine to lie?", "Are lies fine?")
    ]
    questions = write(tmp_path / "q.csv", columns, wordings)
    server.script = script
    run_audit(config(server.url, models=1, questions=str(questions), paraphrases=2, limit=None), storage=storage)
    requests_before = len(server.requests)
    cases: dict[str, list[list[object]]] = {
        "line 3.*the audit 'moral' has no question 'nowhere'": [["care-1", "Be kind."], ["nowhere", "Be kind."]],
        "line 3.*'care-1' has a rule in an earlier row": [["care-1", "Be kind."], ["care-1", "Be fair."]],
        "line 2.*'rule' is empty": [["care-1", ""]],
        "has no rows": [],
    }
    for message, rows in cases.items():
        file = write(tmp_path / "rules.csv", ["question_id", "rule"], rows)
        with pytest.raises(ImportFileError, match=message):
            rules(ExperimentContext(storage), "moral", file)
    assert len(server.requests) == requests_before


def test_accuracy_is_reported_with_consistency(server: FakeServer, storage: str, tmp_path: Path) -> None:
    def answer_easy_questions(request: Request) -> Reply:
        if request.schema == "Choice":
            sure = "easy" in request.text
            choice = 2 if sure or request.draw() < 0.5 else 1
            return completion(json.dumps({"reason": STANDS[choice - 1], "choice": choice}))
        return script(request)

    server.script = answer_easy_questions
    run_audit(config(server.url, models=3, limit=1), storage=storage)
    columns = ["question_id", "question", "choices", "correct", "paraphrase"]
    rows: list[list[object]] = [
        [i, f"{'easy' if i % 2 else 'hard'} question {i}?", "no|yes", "yes", f"{'easy' if i % 2 else 'hard'} {i}-{j}?"]
        for i in range(16)
        for j in range(4)
    ]
    result = accuracy(ExperimentContext(storage), "moral", write(tmp_path / "facts.csv", columns, rows))
    row = result.data[0]
    assert all(other.over_models == row.over_models for other in result.data)
    assert row.over_models.models == 3
    assert row.over_models.r_over_models == pytest.approx(
        np.corrcoef([value(r.consistency) for r in result.data], [value(r.accuracy) for r in result.data])[0, 1]
    )
    assert row.r.n == row.accuracy.n == row.consistency.n == 16
    assert 0.5 < value(row.accuracy) < 1
    assert value(row.r) > 0.5
    unknown_choice = write(tmp_path / "b.csv", columns, [[1, "Q?", "no|yes", "maybe", "P?"]])
    with pytest.raises(ImportFileError, match="'maybe' is not one of the choices"):
        accuracy(ExperimentContext(storage), "moral", unknown_choice)
    without_paraphrase = write(tmp_path / "c.csv", columns, [[1, "Q?", "no|yes", "yes", ""]])
    requests_before = len(server.requests)
    with pytest.raises(UsageError, match="question '1' has no paraphrase, and the audit has no model that writes one"):
        accuracy(ExperimentContext(storage), "moral", without_paraphrase)
    assert len(server.requests) == requests_before


def test_questions_with_known_answers_are_paraphrased(server: FakeServer, storage: str, tmp_path: Path) -> None:
    def write_paraphrases(request: Request) -> Reply:
        if request.schema == "Paraphrases":
            texts = ["Would people call water a wet thing?", "Does something that is under water count as wet?"]
            return completion(json.dumps({"paraphrases": texts}))
        if request.schema == "Choice":
            return completion(json.dumps({"reason": STANDS[0], "choice": 2}))
        return script(request)

    server.script = write_paraphrases
    settings = config(server.url, models=1, limit=1, paraphrases=2, paraphraser="model-a", threshold=0.01)
    run_audit(settings, storage=storage)
    with open_database(storage, create=False) as db:
        audit_id = audits.get_audit(db, "moral").id
        wordings_before = answer_rows.load_wordings(db, audit_id, ["1"])
    file = write(
        tmp_path / "d.csv", ["question_id", "question", "choices", "correct"], [[1, "Is water wet?", "no|yes", "yes"]]
    )
    requests_before = len(server.requests)
    [row] = accuracy(ExperimentContext(storage), "moral", file).data
    purposes = [request.schema for request in server.requests[requests_before:]]
    assert purposes.count("Paraphrases") >= 1
    assert purposes.count("Choice") == 2  # the two paraphrases
    assert (row.accuracy.value, row.accuracy.n) == (1.0, 1)
    assert row.consistency.value is not None
    with open_database(storage, create=False) as db:
        assert answer_rows.load_wordings(db, audit_id, ["1"]) == wordings_before
    requests_before = len(server.requests)
    [repeated_row] = accuracy(ExperimentContext(storage), "moral", file).data
    assert (repeated_row, len(server.requests)) == (row, requests_before)


def test_measures_are_compared_with_people(copied: str, tmp_path: Path) -> None:
    answers = load_stored(copied, answer_rows.load_answers, name="moral")
    text_by_wording = {(a.model, a.question, a.wording): a.text for a in answers}

    def judge(model: str, question: str, i: int) -> str:
        is_alike = text_by_wording[model, question, i] == text_by_wording[model, question, i + 1]
        return "Y" if is_alike else "N"

    rows: list[list[object]] = [
        [rater, model, question, i, i + 1, judge(model, question, i)]
        for rater in ("ann", "bob")
        for (model, question, i) in text_by_wording
        if i < 5
    ]
    rows[0][-1] = "NA"
    file = write(tmp_path / "people.csv", ["rater", "model", "question_id", "left", "right", "judgement"], rows)
    part = run_checked(judgements, ExperimentContext(copied), "moral", file).data
    assert (part.questions, part.judgements) == (8, len(rows))  # of two models
    assert part.alpha.value == pytest.approx(1.0)
    correlation_by_metric = {(c.text, c.metric): c for c in part.correlations}
    sage = correlation_by_metric["rot", "sage"]
    assert sage.r.n == 16
    assert value(sage.r) > 0.5
    # Entropy over pairs, as the paper words it: log2 of the number of pairs alike, where raters agree.
    n_alike = [
        sum(row[-1] == "Y" for row in rows if row[0] == "bob" and row[1:3] == [model, question])
        for model, question in dict.fromkeys((row[1], row[2]) for row in rows)
    ]
    assert part.pair_entropy.value == pytest.approx(np.mean([np.log2(n) for n in n_alike if n]))
    assert part.pair_entropy.n == sum(n > 0 for n in n_alike)
    assert sage.r_pair_entropy is not None
    assert sage.r_pair_entropy.n == part.pair_entropy.n
    assert sage.r_pair_entropy.ci_low is not None
    tests = [row.r_pair_entropy for row in part.correlations if row.r_pair_entropy and row.r_pair_entropy.p_value]
    assert len(tests) > 1
    assert len({test.test_family for test in tests}) == 1
    assert all((test.adjusted_p_value or 0) >= (test.p_value or 1) for test in tests)
    assert {(d.text, d.metric) for d in part.differences} == set(correlation_by_metric) - {("rot", "sage")}
    metric_difference = next(d for d in part.differences if (d.text, d.metric) == ("answer", "rouge_l"))
    rouge_correlation = value(correlation_by_metric["answer", "rouge_l"].r)
    if metric_difference.difference.value is not None:
        assert value(metric_difference.difference) == pytest.approx(value(sage.r) - rouge_correlation)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["a", "m", "q", 1, 2, "maybe"]], "'maybe' is not one of Y, N and NA"),
        ([["a", "m", "q", 1, 2, "Y"], ["a", "m", "q", 2, 1, "N"]], "line 3: this rater's judgement of this pair"),
        ([["", "m", "q", 1, 2, "Y"]], "line 2: the column 'rater' is empty"),
    ],
)
def test_unusable_judgements_say_where(rows: list[list[object]], message: str, storage: str, tmp_path: Path) -> None:
    file = write(tmp_path / "p.csv", ["rater", "model", "question_id", "left", "right", "judgement"], rows)
    with pytest.raises(ImportFileError, match=message):
        judgements(ExperimentContext(storage), "x", file)


def test_an_imported_audit_has_no_rule_experiment(server: FakeServer, storage: str, tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", ["model", "question_id", "paraphrase", "answer"], [["m", "q", "p", "a"]])
    import_answers(file, audit="given", storage=storage)
    with pytest.raises(UsageError, match="has asked no moral questions"):
        rules(ExperimentContext(storage), "given")


def test_the_estimate_counts_answers_and_rules(server: FakeServer) -> None:
    forecast = estimate_audit(config(server.url, limit=8), EMPTY_SURVEY, [])
    by_stage = {(r.name, r.stage): r.calls.expected for r in forecast.rows}
    assert by_stage["model-a", "moral"] == by_stage["model-b", "moral"] == 40
    assert by_stage["model-a", "rule"] == pytest.approx(0.95 * 40)
    assert forecast.not_estimated == []
