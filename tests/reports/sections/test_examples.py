"""Examples are quoted with the verdicts in plain view."""

from __future__ import annotations

from auditor.reports.data.report_schema import Report
from auditor.reports.data.traces import ExampleReport, ExampleVerdict
from auditor.reports.document import List, ListItem, Quote
from auditor.reports.sections.examples import build_examples_section
from tests.reports.sections.node_text import blocks_of, text_of
from tests.support.known import known

EXAMPLE = ExampleReport(
    model="m", country="Egypt", topic="divorce", survey=-0.5, score=0.25, sample_score=0.3, reasoning="Because.",
    shortened=True,
    verdicts=[
        ExampleVerdict(valid=True, unmet_aspects=[], justification=None),
        ExampleVerdict(valid=False, unmet_aspects=["cultural_accuracy"], justification="It does not follow."),
    ],
)  # fmt: skip


def test_an_example_has_scores_reasoning_and_verdicts(report: Report) -> None:
    section = known(build_examples_section(report.model_copy(update={"examples": [EXAMPLE]})))
    text = text_of(section)
    assert "m on divorce in Egypt: the model’s score is +0.25, people’s −0.50." in text
    assert "1 of 2 judges voted VALID:" in text
    [quote] = blocks_of(section, Quote)
    assert (quote.text, quote.note) == ("Because.", "The text is shortened.")
    [verdicts] = blocks_of(section, List)
    items = [item for item in verdicts.items if isinstance(item, ListItem)]
    assert [item.status for item in items] == ["positive", "negative"]
    assert text_of(items[1].content) == "INVALID, criteria not met: Cultural accuracy: “It does not follow.”"
