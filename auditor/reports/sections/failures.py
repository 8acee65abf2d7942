"""Section on why requests failed: the most important reasons, in the providers' words, and how to fix known ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from auditor.reports.data.failures.schema import FailureGroup, UnusableModel
from auditor.reports.document import Block, Code, List, ListItem, Name, Paragraph, Section, Text
from auditor.reports.number_format import format_count, pluralize
from auditor.reports.sections.phrasing import build_finding, mark_code
from auditor.reports.sections.tables import MAX_LONG_TABLE_ROWS, tabulate

if TYPE_CHECKING:
    from auditor.reports.data.report_schema import Report


def build_failures_section(report: Report) -> Section | None:
    """Build the section; None where no request failed."""
    failures = report.failures
    if not failures.groups:
        return None
    n_requests = sum(group.requests for group in failures.groups) + failures.requests_not_listed
    unsent_sentence = describe_unsent_calls(failures.unsent_calls)
    unsent_note = f"{unsent_sentence} " if unsent_sentence else ""
    summary = (
        f"{pluralize(n_requests, 'request')} failed. Some were repeated with success; "
        f"{pluralize(failures.unusable, 'call')} {'has' if failures.unusable == 1 else 'have'} no usable answer for "
        f"this reason. {unsent_note}Failures include trial requests, which test which parameters a server accepts."
    )
    table = tabulate(
        "failures",
        "Reasons of failures",
        "Failed requests by model, outcome, HTTP status and message; those that left the most calls without a usable "
        "answer come first. Each row shows the provider’s message for its first request; the messages for its other "
        "requests differ at most in numbers, ids and quoted names.",
        failures.groups,
        FailureGroup,
        {
            "outcome": lambda group: group.outcome.replace("_", " "),
            "message": lambda group: Name(group.message),
            "how_to_fix": lambda group: mark_code(group.how_to_fix) or None,
        },
        max_rows=MAX_LONG_TABLE_ROWS,
    )
    unusable = [_describe_unusable_model(model) for model in failures.unusable_models]
    blocks: list[Block] = [
        Paragraph(summary, "finding"),
        *([List(unusable, is_findings=True)] if unusable else []),
        table,
    ]
    if failures.not_listed:
        remark: Text = [
            f"To list {pluralize(failures.not_listed, 'further reason')} of "
            f"{format_count(failures.requests_not_listed)} failed requests: ",
            Code(f"auditor errors {report.audit.name}"),
        ]
        blocks.append(Paragraph(remark, "note"))
    return Section("failures", "Why did requests fail?", blocks, "Failures")


def describe_unsent_calls(n_unsent: int) -> str:
    """A sentence on the calls that were not sent since their model was stopped; empty if there are none."""
    if not n_unsent:
        return ""
    were = "was" if n_unsent == 1 else "were"
    return f"{pluralize(n_unsent, 'further call')} {were} not sent, since their model was stopped."


def list_unusable_models(report: Report) -> Iterator[str]:
    """Yield a sentence for each model whose answers, or whose verdicts, are all unusable; without the reason."""
    for model in report.failures.unusable_models:
        yield (
            f"No {_result_noun(model)} of {model.name} is usable; “What is missing?” and “Why did requests fail?” list "
            "the reasons."
        )


def _describe_unusable_model(model: UnusableModel) -> ListItem:
    """A finding that names a model without a usable result, with the main reason, which may be a provider's words."""
    text: Text = [f"has no usable {_result_noun(model)}: ", Name(model.reason.rstrip("."))]
    return build_finding(model.name, text, "negative")


def _result_noun(model: UnusableModel) -> str:
    """What the model's results are, in the singular."""
    return "verdict" if model.is_judge else "answer"
