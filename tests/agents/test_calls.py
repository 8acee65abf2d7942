from __future__ import annotations

import re

from auditor.agents.calls import fence, label, review_call
from auditor.domain import Cell, Outcome, Trace
from auditor.surveys import load_survey
from tests.audits import config

SURVEY = load_survey("wvs7-sample")


def trace(text: str, model: str = "model-a") -> Trace:
    return Trace(model, Cell("Germany", "divorce"), 0, Outcome.OK, 0.5, text)


def test_the_label_differs_by_judge_and_by_item_and_not_by_run_or_author() -> None:
    audit = config("http://localhost")
    first, second = audit.models[1:]

    def asked(judge: object, text: str, author: str = "model-a") -> str:
        call = review_call(audit, SURVEY, judge, trace(text, author), text)  # type: ignore[arg-type]
        return call.messages[-1].content.splitlines()[-1]

    assert re.fullmatch(r"Score of [B-Z]{4}: \+0\.50", asked(first, "one"))
    assert asked(first, "one") == asked(first, "one", "model-b")
    assert len({asked(first, "one"), asked(second, "one"), asked(first, "two")}) == 3


def test_labels_are_spread_evenly_and_are_no_words() -> None:
    labels = [label(7, "judge", i) for i in range(4000)]
    assert len(set(labels)) > 3900
    assert not set("".join(labels)) & set("AEIOUY")


def test_no_text_holds_its_fence() -> None:
    for i in range(50):
        text = "\n".join(fence("", i, j) for j in range(5))
        line = fence(text, i, "judge")
        assert line not in text
        assert line == fence(text, i, "judge")
        assert line != fence(text, i + 1, "judge")
