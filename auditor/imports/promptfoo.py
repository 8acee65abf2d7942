"""Results of promptfoo as recorded answers: what `promptfoo eval --output results.json` (or `.jsonl`) writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from auditor.domain import Outcome
from auditor.errors import ImportFileError
from auditor.imports.recorded_answers import Keys, Recorded, load_json, named, usable_score
from auditor.input_files import parse_json, read_text
from auditor.models.finish_reasons import outcome_of

FAILED = 2
"""promptfoo's `failureReason` of a result whose call failed; 1 is an assertion that did, which says nothing here."""
CAUSES = (
    (re.compile(r"\b429\b|rate.?limit|too many requests", re.I), Outcome.RATE_LIMITED),
    (re.compile(r"time[d -]*out", re.I), Outcome.TIMEOUT),
    (re.compile(r"\b5\d\d\b|overloaded|internal server", re.I), Outcome.SERVER_ERROR),
)


def promptfoo_answers(path: Path, keys: Keys) -> Iterator[Recorded]:
    """The results of a file in its order.

    Country and topic are those of a test's variables, or of its metadata. The model is the provider, by its label
    where it has one, and the prompt's label too where the file has several prompts. A score is taken where `keys` names
    one of the named scores; the overall score is of assertions, on no survey's scale.

    Raises:
        ImportFileError: no results, or one that cannot be used.
    """
    results = _results(path)
    several = len({_prompt(result) for _, result in results}) > 1
    for where, result in results:
        yield _answer(where, result, keys, several)


def _results(path: Path) -> list[tuple[str, dict[str, Any]]]:
    if path.suffix.lower() == ".jsonl":
        found: Any = []
        for number, line in enumerate(read_text(path, ImportFileError).split("\n"), start=1):
            if line.strip():
                found.append(parse_json(line, f"{path}: line {number}", ImportFileError, "Correct that line."))
    else:
        found = load_json(path)
        while isinstance(found, dict):  # results.results since version 2; once more inside of `data` when shared
            found = found.get("results", found.get("data"))
    if not isinstance(found, list) or not all(isinstance(result, dict) for result in found):
        raise ImportFileError(f"{path}: has no list of results.", "Write it with promptfoo eval --output FILE.json.")
    told = [(f"{path}: result {number}", result) for number, result in enumerate(found, start=1)]
    return sorted(told, key=lambda at: _number(at[1]))


def _number(result: dict[str, Any]) -> int:
    """Its test's: results are written as they arrive."""
    number = result.get("testIdx")
    return number if isinstance(number, int) else 0


def _answer(where: str, result: dict[str, Any], keys: Keys, several: bool) -> Recorded:
    test, response = _part(result, "testCase"), _part(result, "response") or _part(result, "providerResponse")
    places = (_part(result, "vars"), _part(test, "vars"), _part(result, "metadata"), _part(test, "metadata"))
    country, topic = named(where, keys.country, *places), named(where, keys.topic, *places)
    text = _text(response.get("output"))
    score, outcome = None, _outcome(result, response, text)
    if keys.score is not None:
        value = _part(result, "namedScores").get(keys.score)
        if value is None:
            outcome = Outcome.UNPARSED if outcome is Outcome.OK else outcome
        else:
            score = usable_score(where, value) if outcome is Outcome.OK else None
    return Recorded(where, _model(where, result, several), country, topic, None, text, outcome, score)


def _part(whole: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = whole.get(name)
    return part if isinstance(part, dict) else {}


def _prompt(result: dict[str, Any]) -> str:
    """Tells prompts apart: by the template's label, since the words themselves are another for every test."""
    return str(_part(result, "prompt").get("label") or result.get("promptId") or "")


def _model(where: str, result: dict[str, Any], several: bool) -> str:
    provider = result.get("provider")
    name = provider if isinstance(provider, str) else None
    if isinstance(provider, dict):
        name = provider.get("label") or provider.get("id")
    if not name:
        raise ImportFileError(f"{where}: does not say its provider.", "Was it written by promptfoo eval --output?")
    return f"{name} ({_prompt(result)})" if several else str(name)


def _text(output: Any) -> str | None:
    if output is None or isinstance(output, str):
        return output or None
    return json.dumps(output, ensure_ascii=False)


def _outcome(result: dict[str, Any], response: dict[str, Any], text: str | None) -> Outcome:
    reason = response.get("finishReason")
    stopped = outcome_of(reason) if isinstance(reason, str) else None
    if response.get("isRefusal") is True or stopped is not None:
        return stopped or Outcome.REFUSED
    why = result.get("failureReason")
    failed = why == FAILED or (why is None and text is None)
    error = response.get("error") or (result.get("error") if failed else None)
    if error or text is None:
        said = error if isinstance(error, str) else ""
        return next((outcome for pattern, outcome in CAUSES if pattern.search(said)), Outcome.CLIENT_ERROR)
    return Outcome.OK
