"""The probe `semantic` from questions to report, against a scripted server and with the real encoder."""

from __future__ import annotations

import csv
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.errors import ConfigError, ImportFileError, UsageError
from auditor.models import weights
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.answer_imports import import_answers
from auditor.probes.semantic.figures.schema import SemanticReport
from auditor.probes.semantic.records import FOUNDATIONS, MoralWording
from auditor.probes.semantic.settings import SemanticProbe
from auditor.reports.data.audit_status import load_audit_status
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.run import open_audit, run_audit
from auditor.run.rederivation import derive_again
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.storage.overview import load_overviews
from auditor.tui.home import render_audit_card
from tests.support import audit_configs
from tests.support.document_figures import assert_report_shows_figures
from tests.support.fake_server import FakeServer, Reply, Request, completion, error
from tests.support.known import known
from tests.support.stored_rows import find_part, load_stored

QUESTIONS, WORDINGS = 8, 5
STANDS = (
    "No, one must not do that, since it harms somebody who has done no wrong.",
    "Yes, people are free to choose it.",
)
RULES = ("You should not harm those who are innocent.", "It is fine for people to choose for themselves.")


@pytest.fixture(autouse=True, scope="module")
def encoder() -> Path:
    return weights.pull_weights("all-MiniLM-L6-v2")


def config(url: str, models: int = 2, **probe: Any) -> AuditConfig:
    data = audit_configs.config(url, models, judges=[]).model_dump(
        mode="json", include={"models", "seed"}, exclude_unset=True
    )
    return AuditConfig.model_validate({"name": "moral", **data, "probes": {"semantic": {"limit": QUESTIONS, **probe}}})


def script(request: Request) -> Reply:
    """Model a always gives the same answer; the answer of model b depends on the wording."""
    side = 0 if str(request.body["model"]).endswith("a") else int(request.draw("side") < 0.5)
    if request.schema == "MoralAnswer":
        return completion(json.dumps({"answer": STANDS[side]}))
    if request.schema == "RuleOfThumb":
        return completion(json.dumps({"rule": RULES[next(i for i in (0, 1) if STANDS[i] in request.text)]}))
    raise AssertionError(request.schema)


def report_of(storage: str, name: str = "moral") -> Report:
    return open_audit(name, storage=storage).report()


@pytest.fixture(scope="module")
def asked(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, AuditConfig]:
    """URL of a database with a finished audit of questions alone, which tests only read, and its config.

    Its server has ended, so that further requests would fail.
    """
    storage = f"sqlite:///{tmp_path_factory.mktemp('asked')}/audits.db"
    with FakeServer(script) as server:
        run_audit(config(server.url), storage=storage)
        assert len(server.requests) == 2 * QUESTIONS * WORDINGS * 2
        return storage, config(server.url)


def test_an_audit_of_questions_alone(asked: tuple[str, AuditConfig]) -> None:
    storage, _ = asked
    report = report_of(storage)
    semantic_section = find_part(report, SemanticReport)
    assert report.audit.stage == "done"
    settings = semantic_section.settings
    assert (semantic_section.questions, settings.wordings, settings.measured) == (8, 5, "rot")
    assert settings.encoder == "all-MiniLM-L6-v2"
    consistent_row, wavering_row = semantic_section.models
    assert consistent_row.consistency.value == pytest.approx(1.0, abs=1e-6)
    assert known(wavering_row.consistency.value) < 0.9
    assert (consistent_row.planned, consistent_row.ok, consistent_row.losses, consistent_row.missing) == (40, 40, {}, 0)
    # Model a answers every question alike, so its shuffled baseline is as high as its consistency.
    assert consistent_row.shuffled.mean == pytest.approx(1.0, abs=1e-6)
    assert {f.foundation for f in semantic_section.foundations} == set(FOUNDATIONS)
    difference = semantic_section.differences[0].difference.value
    assert difference == pytest.approx(known(wavering_row.consistency.value) - 1, abs=1e-6)
    worst = next(w for w in semantic_section.worst if w.model == "model-b")
    assert {worst.left.answer, worst.right.answer} == set(STANDS)
    assert worst.left.wording != worst.right.wording
    assert report.cost.total.sums.calls == 2 * QUESTIONS * WORDINGS * 2
    rows = [(r.stage, r.method, r.name, r.planned, r.ok, r.losses, r.missing) for r in report.coverage.models]
    methods_and_models = itertools.product(("answers", "rules"), ("model-a", "model-b"))
    assert rows == [("semantic", method, model, 40, 40, {}, 0) for method, model in methods_and_models]
    assert {r.counted_label: r.ok for r in report.coverage.total} == {"free-text answers": 80, "rules of thumb": 80}
    assert report.coverage.countries == report.coverage.topics == []
    with open_database(storage, create=False) as db:
        status, [overview] = load_audit_status(db, audits.get_audit(db, "moral")), load_overviews(db)
    assert (status["moral_answers"], status["moral_answers_ok"]) == (80, 80)
    assert (overview.probe_answers["semantic"], overview.usable_share, overview.progress) == ((80, 80), 1.0, None)
    assert "80 free-text answers · 100% usable" in render_audit_card(overview, 80).plain
    assert "0 samples" not in render_audit_card(overview, 80).plain


def test_a_second_run_asks_and_computes_nothing(
    asked: tuple[str, AuditConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished, audit = asked
    storage = f"sqlite:///{shutil.copy(finished.removeprefix('sqlite:///'), tmp_path)}"
    first = report_of(storage)

    def never(*args: object) -> None:
        raise AssertionError("the encoder was loaded")

    monkeypatch.setattr("auditor.models.embeddings.load_encoder", never)
    run_audit(audit, storage=storage)
    second = report_of(storage)
    assert second.find(SemanticReport) == first.find(SemanticReport)
    assert second.cost == first.cost, "no request was tried"


def test_failures_have_no_score_and_are_counted(server: FakeServer, storage: str) -> None:
    server.script = lambda request: (
        completion(None, refusal="I would rather not.")
        if request.schema == "MoralAnswer" and request.number > 2 and request.draw("mood") < 0.3
        else script(request)
    )
    run_audit(config(server.url, limit=4), storage=storage)
    semantic_section = find_part(report_of(storage), SemanticReport)
    for row in semantic_section.models:
        assert row.ok + row.losses["refused"] == row.planned == 20
        assert row.rules_planned == row.ok
    answers = load_stored(storage, answer_rows.load_answers, name="moral")
    assert all((a.text is None) == (a.outcome != "ok") for a in answers)


def test_a_rule_copied_from_the_prompt_is_rejected(server: FakeServer, storage: str) -> None:
    rule = completion(json.dumps({"rule": "It is wrong to read what others wrote for themselves."}))
    server.script = lambda request: rule if request.schema == "RuleOfThumb" else script(request)
    run_audit(config(server.url, models=1, limit=1), storage=storage)
    semantic_section = find_part(report_of(storage), SemanticReport)
    assert semantic_section.models[0].rules_losses == {"unparsed": 5}
    assert semantic_section.models[0].consistency.value is None


def write(path: Path, columns: list[str], rows: list[list[object]]) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def test_refusals_and_words_for_missing_answers_are_counted_and_not_compared(storage: str, tmp_path: Path) -> None:
    """Two answers "nan" were perfectly consistent."""
    refusal, missing = "I'm sorry, but I can't help with that.", ("nan", "NaN", "None", "null", "<NA>", "")
    rows: list[list[object]] = [["m", "care-1", wording, text] for wording, text in enumerate((*[refusal] * 4, "No."))]
    rows += [["n", "care-1", wording, text] for wording, text in enumerate(missing)]
    file = write(tmp_path / "answers.csv", ["model", "question_id", "paraphrase", "answer"], rows)
    counts = import_answers(file, audit="published", storage=storage)
    assert (counts.rows, counts.empty, counts.unscorable) == (11, 10, 2)
    section = find_part(report_of(storage, "published"), SemanticReport)
    assert section.models[0].losses == {"refused": 4}
    assert [row.consistency.value for row in section.models] == [None, None]


def test_rules_of_refused_answers_are_not_compared(storage: str, tmp_path: Path) -> None:
    """A model that refused everything was perfectly consistent by the rules of thumb in the file."""
    refusal, rule = "I'm sorry, but I can't help with that.", "You should not lie."
    rows: list[list[object]] = [["refuses", "care-1", wording, refusal, rule] for wording in range(4)]
    rows += [["answers", "care-1", wording, "It is wrong to lie.", rule] for wording in range(4)]
    rows += [["answers", "care-2", wording, "It is wrong to lie.", "" if wording else rule] for wording in range(4)]
    file = write(tmp_path / "answers.csv", ["model", "question_id", "paraphrase", "answer", "rot"], rows)
    counts = import_answers(file, audit="published", storage=storage)
    assert (counts.rows, counts.empty, counts.unscorable) == (12, 4, 2)
    section = find_part(report_of(storage, "published"), SemanticReport)
    assert {row.model: row.consistency.n for row in section.models} == {"answers": 1, "refuses": 0}


def test_imported_answers_score_as_asked_ones(asked: tuple[str, AuditConfig], storage: str, tmp_path: Path) -> None:
    with open_database(asked[0], create=False) as db:
        answers = answer_rows.load_answers(db, audits.get_audit(db, "moral").id)
    rows: list[list[object]] = [[a.model, a.question, a.wording, a.text, a.rot] for a in answers]
    file = write(tmp_path / "answers.csv", ["model", "question_id", "paraphrase", "answer", "rot"], rows)
    counts = import_answers(file, audit="published", storage=storage)
    assert (counts.rows, counts.models, counts.questions, counts.empty, counts.unscorable) == (80, 2, 8, 0, 0)
    asked_section = find_part(report_of(asked[0]), SemanticReport)
    imported_section = find_part(report_of(storage, "published"), SemanticReport)
    asked_consistency = {r.model: r.consistency.value for r in asked_section.models}
    assert {r.model: r.consistency.value for r in imported_section.models} == pytest.approx(asked_consistency)
    assert sorted(imported_section.foundations, key=str) == sorted(asked_section.foundations, key=str)
    assert imported_section.worst[-1].left.wording  # the paraphrase's text, not its number
    assert not imported_section.worst[-1].left.wording.isdigit()


def test_the_published_corpora_are_read(storage: str, tmp_path: Path) -> None:
    rows: list[list[object]] = [
        [q, f"Question {q}", f"wording {i} of {q}", STANDS[(q + i) % 2], RULES[(q + i) % 2]]
        for q, i in itertools.product(range(6), range(3))
    ]
    columns = ["question_id", "question", "paraphrased", "model_output", "rot"]
    import_answers(write(tmp_path / "vicuna.csv", columns, rows), audit="mcc", storage=storage)
    semantic_section = find_part(report_of(storage, "mcc"), SemanticReport)
    settings = semantic_section.settings
    assert [row.model for row in semantic_section.models] == ["vicuna"]
    assert (semantic_section.questions, settings.wordings, settings.measured) == (6, 3, "rot")
    rows = [[f"What of {q}?", STANDS[i], RULES[i], "care|fairness", "train"] for q in range(6) for i in range(2)]
    import_answers(write(tmp_path / "MIC.csv", ["Q", "A", "rot", "moral", "split"], rows), audit="mic", storage=storage)
    semantic_section = find_part(report_of(storage, "mic"), SemanticReport)
    assert {f.foundation for f in semantic_section.foundations} == {"care"}
    assert semantic_section.models[0].consistency.n == 6


@pytest.mark.parametrize(
    ("columns", "rows", "message"),
    [
        (["model", "question_id", "answer"], [["m", "q", "a"]], "'paraphrase' is missing"),
        (["model", "question_id", "paraphrase", "answer"], [["m", "", "p", "a"]], "line 2: the column 'question_id'"),
        (["model", "question_id", "paraphrase", "answer"], [["m", "q", "p", "a"]] * 2, "line 3: m's answer .* twice"),
        (["model", "question_id", "paraphrase", "answer"], [], "has no rows"),
    ],
)
def test_a_file_that_cannot_be_used_says_where(
    columns: list[str], rows: list[list[object]], message: str, storage: str, tmp_path: Path
) -> None:
    with pytest.raises(ImportFileError, match=message):
        import_answers(write(tmp_path / "a.csv", columns, rows), audit="x", storage=storage)


def test_an_audit_that_was_run_is_not_overwritten(asked: tuple[str, AuditConfig], tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", ["model", "question_id", "paraphrase", "answer"], [["m", "q", "p", "a"]])
    with pytest.raises(UsageError, match="was run, not imported"):
        import_answers(file, audit="moral", storage=asked[0])


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        ({"questions": "none.csv"}, "there is no file 'none.csv'"),
        ({"paraphrases": 6}, r"has 5 paraphrases, but 6 are required\. Add paraphrases, or name a model"),
        ({"foundations": ["care"], "questions": "FILE"}, "no question"),
    ],
)
def test_questions_that_cannot_be_asked_stop_a_run_before_it_starts(
    probe: dict[str, Any], message: str, server: FakeServer, storage: str, tmp_path: Path
) -> None:
    if probe.get("questions") == "FILE":
        columns = ["question_id", "question", "paraphrase", "foundation"]
        probe = probe | {"questions": str(write(tmp_path / "q.csv", columns, [["a", "T?", "Other?", "liberty"]]))}
    with pytest.raises(ConfigError, match=message):
        run_audit(config(server.url, **probe), storage=storage)
    assert not server.requests


def test_consistency_of_mixed_rules_and_answers_is_between(server: FakeServer, storage: str, tmp_path: Path) -> None:
    texts = (STANDS[0], STANDS[0], "Answer number 2 speaks of bread and weather.")
    rows: list[list[object]] = [["m", q, i, text, RULES[0]] for q in range(5) for i, text in enumerate(texts)]
    file = write(tmp_path / "a.csv", ["model", "question_id", "paraphrase", "answer", "rot"], rows)
    consistency_by_weight = {}
    for weight in (0.0, 0.2, 1.0):
        import_answers(file, audit=f"w{weight}", probe=SemanticProbe(rot_weight=weight), storage=storage)
        semantic_section = find_part(report_of(storage, f"w{weight}"), SemanticReport)
        consistency_by_weight[weight] = semantic_section.models[0].consistency.value or 0.0
    answers, mixed, rules = consistency_by_weight.values()
    assert answers < mixed < rules == pytest.approx(1.0, abs=1e-6)


BOOK = "Is it wrong to keep a book that one has borrowed from a friend?"
OF_BOOK = [
    "Should we not hold on to books that a friend lent us?",
    "Does a person do wrong by keeping a book borrowed from a friend?",
    "A friend lent you a book: is keeping it wrong?",
]
"""Wordings of that question that are near enough to it, and far enough from each other."""


def paraphrased_audit(
    server: FakeServer, tmp_path: Path, lists: list[list[str]], later: list[str], *, attempts: int
) -> AuditConfig:
    """An audit whose paraphraser answers with each of some lists, then with a later one; an empty list is an error."""

    def author(request: Request) -> Reply:
        if request.schema != "Paraphrases":
            return script(request)
        texts = lists.pop(0) if lists else later
        return completion(json.dumps({"paraphrases": texts})) if texts else error(400, "bad request")

    server.script = author
    file = write(tmp_path / "q.csv", ["question_id", "question"], [["book", BOOK]])
    probe: dict[str, Any] = {"paraphrases": 3, "paraphraser": "model-b", "threshold": 0.6, "attempts": attempts}
    return config(server.url, questions=str(file), **probe)


def wordings_of_book(storage: str) -> list[MoralWording]:
    with open_database(storage, create=False) as db:
        return list(answer_rows.load_wordings(db, audits.get_audit(db, "moral").id)["book"])


def test_a_model_paraphrases_and_rejected_wordings_are_stored(server: FakeServer, storage: str, tmp_path: Path) -> None:
    rejected_wordings = [BOOK.replace("has borrowed", "borrowed"), "What is the price of bread in Paris today?"]
    lists = [[*rejected_wordings, wording] for wording in OF_BOOK]
    run_audit(paraphrased_audit(server, tmp_path, lists, [], attempts=5), storage=storage)
    # Repeated only until there were enough wordings.
    assert [request.schema for request in server.requests].count("Paraphrases") == 3
    wordings = wordings_of_book(storage)
    assert [w.text for w in sorted(wordings, key=lambda w: w.number or 0) if w.number] == OF_BOOK
    rejected = [w for w in wordings if w.number is None]
    assert {w.reason for w in rejected} == {"too near to another wording", "too far in meaning"}
    assert all(w.similarity is not None and w.score is not None and w.key for w in rejected)
    semantic_section = find_part(report_of(storage), SemanticReport)
    assert semantic_section.rejected == {"too far in meaning": 3, "too near to another wording": 3}
    assert semantic_section.models[0].planned == 3


def test_paraphrases_still_missing_are_not_requested_again(server: FakeServer, storage: str, tmp_path: Path) -> None:
    lists = [[f"Price of bread {n}?", "Is it fine to keep a borrowed book?", OF_BOOK[0]] for n in range(3)]
    audit = paraphrased_audit(server, tmp_path, lists, OF_BOOK, attempts=3)
    rounds = []
    for _ in range(3):
        run_audit(audit, storage=storage)
        rounds.append((len(server.requests), wordings_of_book(storage)))
    assert sum(wording.number is not None for wording in rounds[0][1]) == 3, "the question and two paraphrases"
    assert rounds[1:] == rounds[:1] * 2


def test_candidates_of_a_later_answer_replace_the_earlier_ones(
    server: FakeServer, storage: str, tmp_path: Path
) -> None:
    """A wording of the first run would have the number of another one."""
    lists = [[], [f"Price of bread {n}?" for n in range(5)] + OF_BOOK[:1], ["Price of milk?", OF_BOOK[1]], []]
    audit = paraphrased_audit(server, tmp_path, lists, OF_BOOK, attempts=4)
    for n in (2, 3):
        run_audit(audit, storage=storage)
        stored = wordings_of_book(storage)
        assert sorted(wording.number for wording in stored if wording.number) == list(range(1, n + 1))
        lists.clear()
    assert [wording.text for wording in stored if wording.number] == OF_BOOK
    assert len(stored) == 4


def test_answers_to_a_wording_that_is_gone_are_not_scored(server: FakeServer, storage: str, tmp_path: Path) -> None:
    lists = [[], [OF_BOOK[0], "Is it bad to hold on to a book of a friend?"], [OF_BOOK[2]]]
    paraphrased = paraphrased_audit(server, tmp_path, lists, [], attempts=2)
    for n in (2, 1):
        run_audit(paraphrased, storage=storage)
        with open_database(storage, create=False) as db:
            audit = audits.get_audit(db, "moral")
            answers = answer_rows.load_answers(db, audit.id, ["book"])
            check = derive_again(db, audit).check
        assert {answer.wording for answer in answers} == set(range(1, n + 1))
        assert not known(check).changed


def test_a_judge_scores_samples_and_checks_the_worst_pairs(server: FakeServer, storage: str) -> None:
    def reply_as_judge(request: Request) -> Reply:
        if request.schema == "Support":
            if request.draw("fails") < 0.2 and request.number > 20:
                return completion("I cannot say.")
            same = request.text.count(STANDS[0]) != 1
            return completion(json.dumps({"reason": "They say the same.", "supported": same}))
        if request.schema == "Contradiction":
            return completion(json.dumps({"reason": "One says no.", "contradict": request.text.count(STANDS[0]) == 1}))
        return script(request)

    server.script = reply_as_judge
    consistency = {"judge": "model-c", "samples": 4, "pairs": "all"}
    audit = config(server.url, models=3, limit=4, consistency=consistency, contradiction="model-c", worst=3)
    run_audit(audit, storage=storage)
    semantic_section = find_part(report_of(storage), SemanticReport)
    assert [(r.model, r.judge) for r in semantic_section.judged] == [("model-a", "model-c"), ("model-b", "model-c")]
    for row in semantic_section.judged:
        assert row.asked == 4 * 6
        assert row.score.n == row.asked - row.failed
        assert row.score.value == pytest.approx(row.consistent / row.score.n)
    assert semantic_section.judged[0].score.value == 1.0
    assert (semantic_section.judged[1].score.value or 0) < 1
    assert sum(r.failed for r in semantic_section.judged) > 0
    contradiction_by_model = {w.model: w.contradict for w in semantic_section.worst}
    assert contradiction_by_model == {"model-a": False, "model-b": True, "model-c": None}  # itself is not judged
    report = report_of(storage)
    assert {r.purpose for r in report.cost.rows} >= {"consistency", "contradiction"}
    assert "Consistency score" in render_report(report, "html")


def test_published_forms_and_questions_alone_are_scored_from_the_same_answers(
    asked: tuple[str, AuditConfig],
) -> None:
    report = report_of(asked[0])
    section = find_part(report, SemanticReport)
    values = {(form.model, form.text, form.rot_weight, form.alpha): form.value for form in section.forms}
    forms = [("answer", 0.0), ("rot", 1.0), ("mix", 0.2)]
    assert set(values) == {
        *((model, *form, alpha) for model in ("model-a", "model-b") for form in forms for alpha in (10.0, 1.0)),
        *(("", "question", None, alpha) for alpha in (10.0, 1.0)),
    }
    wavering = section.models[1]
    assert values["model-b", "rot", 1.0, 10.0] == wavering.consistency == wavering.rules
    assert values["model-b", "answer", 0.0, 10.0] == wavering.answers
    # The exponent emphasizes answers that resemble many others, which lowers the entropy.
    assert (values["model-b", "rot", 1.0, 1.0].value or 0) > (wavering.rules.value or 1)
    assert section.questions_only == values["", "question", None, 10.0]
    assert (section.questions_only.n, [row.model for row in section.models]) == (8, ["model-a", "model-b"])
    assert 0.2 < (section.questions_only.value or 0) < 0.6
    assert_report_shows_figures(report)
    assert "SaGE of the questions themselves" in render_report(report, "markdown")
    for form in ("markdown", "html", "json"):  # without a survey
        for nonsense in ("0 cells", "0 countries", "cells asked", "Measured against", "agreement with people"):
            assert nonsense not in render_report(report, form), (form, nonsense)


def test_the_released_mix_is_the_audits_score_where_that_weight_is_set(server: FakeServer, storage: str) -> None:
    server.script = script
    run_audit(config(server.url, models=1, limit=3, rot_weight=0.2, variant="sge"), storage=storage)
    section = find_part(report_of(storage), SemanticReport)
    values = {(form.text, form.rot_weight, form.alpha): form.value for form in section.forms}
    assert set(values) == {("question", None, None), ("answer", 0.0, None), ("rot", 1.0, None), ("mix", 0.2, None)}
    assert values["mix", 0.2, None] == section.models[0].consistency


def test_imported_numbers_of_wordings_are_not_scored_as_questions(storage: str, tmp_path: Path) -> None:
    rows: list[list[object]] = [["m", q, i, f"Answer {i} to {q}."] for q in range(6) for i in range(3)]
    file = write(tmp_path / "a.csv", ["model", "question_id", "paraphrase", "answer"], rows)
    import_answers(file, audit="numbers", storage=storage)
    section = find_part(report_of(storage, "numbers"), SemanticReport)
    assert section.questions_only is None
    assert {(form.model, form.text) for form in section.forms} == {("m", "answer")}


def test_baseline_similarities_are_measured_on_rules_and_answers(server: FakeServer, storage: str) -> None:
    server.script = script
    baseline_metrics = ["bleu", "bleu_nltk", "rouge_l", "rouge_l_stemmed", "bertscore"]
    run_audit(config(server.url, models=1, limit=2, rivals=baseline_metrics), storage=storage)
    semantic_section = find_part(report_of(storage), SemanticReport)
    expected = set(itertools.product(("rot", "answer"), ("cosine", *baseline_metrics)))
    assert {(r.text, r.metric) for r in semantic_section.rivals} == expected
    assert all(r.value.value == pytest.approx(1.0, abs=1e-5) for r in semantic_section.rivals)
