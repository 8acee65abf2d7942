"""A model that answers a survey's question in every form of the experiment `robustness`."""

from __future__ import annotations

import json
import re
from typing import Any

from auditor.models.answer_schemas import DESIGN_SCHEMAS
from tests.support.fake_server import Reply, Request, answer, completion


def answer_all_forms(request: Request) -> Reply:
    """Answer +0.5 on the scale that is asked for, in the form that is asked for."""
    if request.schema in DESIGN_SCHEMAS:
        properties = request.body["response_format"]["json_schema"]["schema"]["properties"]
        reply: dict[str, Any] = dict.fromkeys(properties, "People there hold norms.")
        return completion(json.dumps(reply | {"score": _score(request, str(request.schema).rpartition("On")[2])}))
    if request.schema is None and "SCORE = x" in request.text:
        kind = "Words" if "word for word" in request.text else "Ten" if "10 (" in request.text else "Unit"
        return completion(f"Norms matter.\nSCORE = {_score(request, kind)}")
    return answer(request)


def _score(request: Request, kind: str) -> float | str:
    if kind != "Words":
        return 7.75 if kind == "Ten" else 0.5
    match = re.search(r"word for word: (.*?)[.:\n]", request.text)
    assert match
    return next(text for text in match[1].split("; ") if "closer to" in text and "always" in text)
