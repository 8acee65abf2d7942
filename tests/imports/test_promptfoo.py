"""Import of promptfoo's results; the files have the layout of its formats 2 and 3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor.domain import Outcome
from auditor.errors import ImportFileError
from auditor.imports.promptfoo import read_promptfoo
from auditor.imports.recorded_answers import AnswerFileFormat, LogKeys, detect_format
from auditor.imports.recorded_audits import import_traces
from auditor.storage import audits, results
from auditor.storage.database import open_database
from tests.support.refusals import UNUSABLE_TEXTS
from tests.support.stored_rows import load_stored


def make_result(test: int, output: Any = None, **changes: Any) -> dict[str, Any]:
    """One result in format 3, with fields replaced by `changes`.

    A failed assertion has `failureReason` 1 and an `error`; a failed request has `failureReason` 2.
    """
    variables = {"country": "Germany", "topic": "divorce"}
    return {
        "testIdx": test, "promptIdx": 0, "promptId": "p", "vars": variables,
        "testCase": {"vars": variables, "assert": [], "metadata": {}},
        "provider": {"id": "openai:gpt-4o", "label": ""},
        "prompt": {"raw": "How justifiable is divorce in Germany?", "label": "{{topic}} in {{country}}"},
        "response": {} if output is None else {"output": output, "tokenUsage": {"total": 9}},
        "success": True, "score": 1, "failureReason": 0, "namedScores": {}, "latencyMs": 12,
    } | changes  # fmt: skip


def write_results(path: Path, *test_results: dict[str, Any]) -> Path:
    """Write results as promptfoo's JSON or JSONL file and return its path."""
    eval_file = {
        "evalId": "eval-1",
        "results": {"version": 3, "results": list(test_results), "stats": {}},
        "config": {},
    }
    lines = "\n".join(json.dumps(one) for one in test_results)
    path.write_text(lines if path.suffix == ".jsonl" else json.dumps(eval_file), encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_repeats_are_samples_and_failed_assertions_are_no_failures(tmp_path: Path, storage: str, suffix: str) -> None:
    file = write_results(
        tmp_path / f"results.{suffix}",
        make_result(
            1, "No.\nSCORE = -1", success=False, score=0, failureReason=1, error="Expected output to contain 500"
        ),
        make_result(0, "Yes.\nSCORE = 0.5"),
        make_result(2, success=False, score=0, failureReason=2, error="API error: 429 Too Many Requests"),
        make_result(3, "I'm sorry, but I can't help with that."),
    )
    assert detect_format(file) is AnswerFileFormat.PROMPTFOO
    counts = import_traces(file, survey="wvs7-sample", audit="foo", storage=storage)
    assert (counts.rows, counts.models, counts.scores, counts.empty) == (4, 1, 1, 2)
    traces = load_stored(storage, results.load_traces, name="foo")
    assert [(t.model, t.sample, t.outcome, t.score) for t in traces] == [
        ("openai:gpt-4o", 0, Outcome.OK, 0.5),
        ("openai:gpt-4o", 1, Outcome.OK, -1.0),
        ("openai:gpt-4o", 2, Outcome.RATE_LIMITED, None),
        ("openai:gpt-4o", 3, Outcome.REFUSED, None),
    ]


STACK = """Error: {}
    at callApi (file:///promptfoo/dist/src/evaluator.js:6995:39)
    at async RateLimitRegistry.execute (file:///promptfoo/dist/src/shared.js:514:26)"""
"""An exception of a provider, as promptfoo 0.121 writes it."""


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"failureReason": 2, "error": "Request timed out after 300000ms"}, Outcome.TIMEOUT),
        ({"failureReason": 2, "error": STACK.format("request timed out")}, Outcome.TIMEOUT),
        ({"failureReason": 2, "error": STACK.format("no such model")}, Outcome.CLIENT_ERROR),
        ({"response": {"error": "API error: 503 Service Unavailable"}}, Outcome.SERVER_ERROR),
        ({"failureReason": 2, "error": "no such model"}, Outcome.CLIENT_ERROR),
        ({"response": {"output": "So far", "finishReason": "length"}}, Outcome.TRUNCATED),
        ({"response": {"output": "So far", "finishReason": "MAX_TOKENS"}}, Outcome.TRUNCATED),
        ({"response": {"output": "So far", "finishReason": "SAFETY"}}, Outcome.REFUSED),
        ({"response": {"output": "So far", "finishReason": "error"}}, Outcome.SERVER_ERROR),
        ({"response": {"output": "fine", "finishReason": "end_turn"}}, Outcome.OK),
        ({"response": {"output": "No.", "isRefusal": True}}, Outcome.REFUSED),
        ({"response": {"output": ""}}, Outcome.UNPARSED),
        ({"response": {"output": ""}, "failureReason": 1}, Outcome.UNPARSED),  # a failed assertion is no failed call
        ({"response": {"output": "fine"}}, Outcome.OK),
    ],
)
def test_failures_have_the_outcome_of_their_cause(tmp_path: Path, changes: dict[str, Any], outcome: Outcome) -> None:
    [recorded_answer] = read_promptfoo(write_results(tmp_path / "r.json", make_result(0, **changes)), LogKeys())
    assert (recorded_answer.outcome, recorded_answer.score) == (outcome, None)
    assert recorded_answer.text == (changes.get("response", {}).get("output") or None)


def test_the_overall_score_is_ignored_and_a_requested_named_score_is_used(tmp_path: Path) -> None:
    file = write_results(
        tmp_path / "r.json",
        make_result(0, "SCORE = 0.5", namedScores={"moral": -0.75}),
        make_result(1, "SCORE = 0.5"),
        make_result(2, failureReason=2, error="boom", namedScores={"moral": 0}),
    )
    assert [f.score for f in read_promptfoo(file, LogKeys())] == [None, None, None]
    assert [(f.score, f.outcome) for f in read_promptfoo(file, LogKeys(score="moral"))] == [
        (-0.75, Outcome.OK),
        (None, Outcome.UNPARSED),
        (None, Outcome.CLIENT_ERROR),
    ]


@pytest.mark.parametrize(("output", "outcome"), UNUSABLE_TEXTS.items())
def test_a_named_score_of_an_answer_that_says_nothing_or_refuses_does_not_count(
    tmp_path: Path, output: str, outcome: Outcome
) -> None:
    file = write_results(tmp_path / "r.json", make_result(0, output, namedScores={"moral": 0.3}))
    [recorded_answer] = read_promptfoo(file, LogKeys(score="moral"))
    assert (recorded_answer.outcome, recorded_answer.score) == (outcome, None)


def test_prompts_are_distinguished_and_labels_name_providers(tmp_path: Path) -> None:
    labelled_provider = make_result(0, "a", provider={"id": "openai:gpt-4o", "label": "gpt"})
    labelled_prompt = make_result(0, "b", provider="openai:gpt-4o", prompt={"raw": "?", "label": "short"})
    assert [f.model for f in read_promptfoo(write_results(tmp_path / "a.json", labelled_provider), LogKeys())] == [
        "gpt"
    ]
    assert [
        f.model
        for f in read_promptfoo(write_results(tmp_path / "b.json", labelled_provider, labelled_prompt), LogKeys())
    ] == ["gpt ({{topic}} in {{country}})", "openai:gpt-4o (short)"]


def test_columns_of_one_name_are_different_models(tmp_path: Path, storage: str) -> None:
    rows = [make_result(0, f"SCORE = {score}", promptIdx=column) for column, score in ((0, 0.5), (1, -0.5))]
    file = write_results(tmp_path / "results.json", *rows)
    counts = import_traces(file, survey="wvs7-sample", audit="foo", storage=storage)
    assert [note.split(": ", 1)[1] for note in counts.notes] == [
        "several providers or prompts are named openai:gpt-4o: they are the models openai:gpt-4o #0, #1."
    ]
    with open_database(storage, create=False) as db:
        scores = results.load_scores(db, audits.get_audit(db, "foo").id)
    assert [(score.model, score.score) for score in scores] == [("openai:gpt-4o #0", 0.5), ("openai:gpt-4o #1", -0.5)]


def test_an_answer_of_an_unknown_column_is_no_model_of_its_own(tmp_path: Path) -> None:
    results = [make_result(0, "a", promptIdx=0), make_result(0, "b", promptIdx=1), make_result(1, "c", promptIdx=None)]
    with pytest.raises(ImportFileError, match=r"result 3: 'promptIdx' is missing, and several .* are named"):
        list(read_promptfoo(write_results(tmp_path / "r.json", *results), LogKeys()))


def test_a_folder_without_logs_is_refused(tmp_path: Path, storage: str) -> None:
    with pytest.raises(ImportFileError, match="contains no log"):
        import_traces(tmp_path, survey="wvs7-sample", audit="a", storage=storage)


def test_a_score_that_no_result_has_is_an_error(tmp_path: Path, storage: str) -> None:
    file = write_results(tmp_path / "results.json", make_result(0, "SCORE = 0.5", namedScores={"moral": 0.5}))
    with pytest.raises(ImportFileError, match="no answer has a usable score 'morals'"):
        import_traces(file, survey="wvs7-sample", audit="foo", storage=storage, keys=LogKeys(score="morals"))


def test_version_2_files_are_read(tmp_path: Path) -> None:
    version_2_result = make_result(0, providerResponse={"output": "SCORE = 1"})
    del version_2_result["response"], version_2_result["vars"]
    path = tmp_path / "old.json"
    path.write_text(json.dumps({"evalId": "e", "data": {"results": {"version": 2, "results": [version_2_result]}}}))
    [recorded_answer] = read_promptfoo(path, LogKeys())
    assert (recorded_answer.country, recorded_answer.text) == ("Germany", "SCORE = 1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"evalId": "e", "results": {"stats": {}}}', "the list of results is missing"),
        ('{"evalId": "e", "results": [3]}', "the list of results is missing"),
        (json.dumps({"evalId": "e", "results": [make_result(0, "a", vars={"land": "x"}, testCase={})]}),
         "keys are: land"),
        (json.dumps({"evalId": "e", "results": [make_result(0, "a", provider=None)]}),
         r"the provider \(the model's name\) is missing"),
        ('{"other": 1}', "neither an Inspect AI log nor a promptfoo result file"),
        ("{", "is not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_an_unusable_file_is_an_error_and_nothing_is_stored(
    tmp_path: Path, storage: str, text: str, message: str
) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ImportFileError, match=message) as caught:
        import_traces(tmp_path / "r.json", survey="wvs7-sample", audit="a", storage=storage)
    assert caught.value.how_to_fix
    with open_database(storage) as db:
        assert audits.find_audit(db, "a") is None


def test_characters_that_no_database_accepts_are_escaped_as_in_a_run(tmp_path: Path, storage: str) -> None:
    file = write_results(tmp_path / "results.json", make_result(0, "\ud83d they weigh it\0.\nSCORE = 0.5"))
    assert import_traces(file, survey="wvs7-sample", audit="odd", storage=storage).scores == 1
    [trace] = load_stored(storage, results.load_traces, name="odd")
    assert (trace.text, trace.score) == ("\\ud83d they weigh it\\x00.", 0.5)
