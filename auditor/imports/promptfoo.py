"""Read results of promptfoo (`promptfoo eval --output results.json` or `.jsonl`) as recorded answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from auditor.domain import Outcome
from auditor.errors import ImportFileError
from auditor.imports.recorded_answers import LogKeys, RecordedAnswer, find_scored_outcome, find_text, require_score
from auditor.input_files import parse_json, read_json, read_numbered_lines
from auditor.models.finish_reasons import finish_reason_outcome

CALL_FAILED = 2
"""promptfoo's `failureReason` of a failed call; 1 is a failed assertion, which is no failure of the answer."""
ERROR_OUTCOMES = (
    (re.compile(r"\b429\b|rate.?limit|too many requests", re.I), Outcome.RATE_LIMITED),
    (re.compile(r"time[d -]*out", re.I), Outcome.TIMEOUT),
    (re.compile(r"\b5\d\d\b|overloaded|internal server", re.I), Outcome.SERVER_ERROR),
)


def read_promptfoo(
    path: Path, keys: LogKeys, report_problem: Callable[[str], None] = lambda line: None
) -> Iterator[RecordedAnswer]:
    """Read the results of a file in the order of its tests.

    Country and topic are a test's variables, or its metadata. The model is the provider's label or id, followed by the
    prompt's label if the file has several prompts. Several columns of promptfoo's table with one name, such as those of
    a provider at two temperatures, are several models: their names end in the column's number. The score is the named
    score `keys.score`; the overall score of promptfoo counts assertions and is not on a survey's scale, so it is not
    used.

    Raises:
        ImportFileError: the file has no results, or one of them cannot be used.
    """
    results = _read_results(path)
    has_several_prompts = len({_prompt_label(result) for _, result in results}) > 1
    columns_by_name: dict[str, set[int]] = {}
    for location, result in results:
        name, column = _model_name(location, result, has_several_prompts), result.get("promptIdx")
        columns_by_name.setdefault(name, set()).update([column] if isinstance(column, int) else [])
    shared = {name for name, columns in columns_by_name.items() if len(columns) > 1}
    for location, result in results:
        answer = _parse_answer(location, result, keys, has_several_prompts)
        if answer.model in shared:
            if not isinstance(column := result.get("promptIdx"), int):
                raise ImportFileError(
                    f"{location}: 'promptIdx' is missing, and several providers or prompts are named {answer.model}.",
                    "Export the file again, or give each provider a label of its own.",
                )
            answer = answer._replace(model=f"{answer.model} #{column}")
        yield answer
    for name in sorted(shared):
        numbers = ", ".join(f"#{column}" for column in sorted(columns_by_name[name]))
        report_problem(f"{path}: several providers or prompts are named {name}: they are the models {name} {numbers}.")


def _read_results(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Read the results of a file, each with its location for messages, in order of their tests.

    Raises:
        ImportFileError: the file has no list of results.
    """
    if path.suffix.lower() == ".jsonl":
        results: Any = []
        for location, line in read_numbered_lines(path, ImportFileError):
            results.append(parse_json(line, location, ImportFileError, "Correct that line."))
    else:
        results = read_json(path, ImportFileError)
        while isinstance(results, dict):  # results.results since version 2; once more inside of `data` when shared
            results = results.get("results", results.get("data"))
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise ImportFileError(
            f"{path}: the list of results is missing.", "Create it with promptfoo eval --output FILE.json."
        )
    located_results = [(f"{path}: result {number}", result) for number, result in enumerate(results, start=1)]
    return sorted(located_results, key=lambda located_result: _test_index(located_result[1]))


def _test_index(result: dict[str, Any]) -> int:
    """Index of a result's test, by which results are sorted: promptfoo writes them as they arrive."""
    number = result.get("testIdx")
    return number if isinstance(number, int) else 0


def _parse_answer(location: str, result: dict[str, Any], keys: LogKeys, has_several_prompts: bool) -> RecordedAnswer:
    """Convert a result to a recorded answer; its score is None unless `keys.score` names one and the call succeeded.

    Raises:
        ImportFileError: country, topic or provider is missing, or the score is not in [-1, 1].
    """
    test, response = (
        _nested_object(result, "testCase"),
        _nested_object(result, "response") or _nested_object(result, "providerResponse"),
    )
    places = (
        _nested_object(result, "vars"),
        _nested_object(test, "vars"),
        _nested_object(result, "metadata"),
        _nested_object(test, "metadata"),
    )
    country, topic = find_text(location, keys.country, *places), find_text(location, keys.topic, *places)
    text = _output_text(response.get("output"))
    score, outcome = None, _call_outcome(result, response, text)
    if keys.score is not None:
        value = _nested_object(result, "namedScores").get(keys.score)
        if outcome is Outcome.OK:
            outcome = Outcome.UNPARSED if value is None else find_scored_outcome(text)
        score = require_score(location, value) if outcome is Outcome.OK else None
    return RecordedAnswer(
        location, _model_name(location, result, has_several_prompts), country, topic, None, text, outcome, score
    )


def _nested_object(parent: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object under a name; empty if there is none, or the value is no object."""
    child = parent.get(name)
    return child if isinstance(child, dict) else {}


def _prompt_label(result: dict[str, Any]) -> str:
    """Label of a result's prompt template; the prompt's text cannot identify it, since it differs for every test."""
    return str(_nested_object(result, "prompt").get("label") or result.get("promptId") or "")


def _model_name(location: str, result: dict[str, Any], has_several_prompts: bool) -> str:
    """Name of the model: the provider's label or id, with the prompt's label if the file has several prompts.

    Raises:
        ImportFileError: the result names no provider.
    """
    provider = result.get("provider")
    name = provider if isinstance(provider, str) else None
    if isinstance(provider, dict):
        name = provider.get("label") or provider.get("id")
    if not name:
        raise ImportFileError(
            f"{location}: the provider (the model's name) is missing.",
            "Create the file with promptfoo eval --output FILE.json.",
        )
    return f"{name} ({_prompt_label(result)})" if has_several_prompts else str(name)


def _output_text(output: Any) -> str | None:
    """Text of a response's output, as JSON if it is no text; None if it is missing or empty."""
    if output is None or isinstance(output, str):
        return output or None
    return json.dumps(output, ensure_ascii=False)


def _call_outcome(result: dict[str, Any], response: dict[str, Any], text: str | None) -> Outcome:
    """Outcome of a result's call: from a refusal or stop reason, else from its error message, else `ok`.

    A failed assertion of a test is no failure of the call: without a text, its answer was empty, which is `unparsed`.
    An unknown error, or a missing text for no known reason, is `client_error`.
    """
    reason = response.get("finishReason")
    stop_outcome = finish_reason_outcome(reason) if isinstance(reason, str) else None
    if response.get("isRefusal") is True or stop_outcome is not None:
        return stop_outcome or Outcome.REFUSED
    failure_reason = result.get("failureReason")
    failed = failure_reason == CALL_FAILED or (failure_reason is None and text is None)
    error = response.get("error") or (result.get("error") if failed else None)
    if text is None and failure_reason is not None and not failed and not error:
        return Outcome.UNPARSED
    if error or text is None:
        # Of an exception the lines of its stack follow, with names such as RateLimitRegistry, and numbers of lines.
        error_message = re.sub(r"(?m)^[ \t]+at .*$", "", error) if isinstance(error, str) else ""
        return next(
            (outcome for pattern, outcome in ERROR_OUTCOMES if pattern.search(error_message)), Outcome.CLIENT_ERROR
        )
    return Outcome.OK
