"""Render inline nodes; each output format says how it marks them up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from auditor.reports.document import Code, InlineEstimate, Link, Name, Strong, Text
from auditor.reports.number_format import describe_interval, format_count, format_styled


@dataclass(frozen=True, slots=True)
class InlineMarkup:
    """Functions that mark up text in one output format.

    Attributes:
        text: escapes plain text.
        name: escapes a name.
        strong: emphasizes text that is marked up already.
        code: marks up plain text as code.
        link: marks up a link, by its plain text and the id of a section.
    """

    text: Callable[[str], str]
    name: Callable[[str], str]
    strong: Callable[[str], str]
    code: Callable[[str], str]
    link: Callable[[str, str], str]


def render_inline(text: Text, markup: InlineMarkup) -> str:
    """Render a text in one output format."""
    match text:
        case str():
            return markup.text(text)
        case Name():
            return markup.name(text.text)
        case Strong():
            return markup.strong(render_inline(text.content, markup))
        case Code():
            return markup.code(text.text)
        case Link():
            return markup.link(text.text, text.section_id)
        case InlineEstimate():
            return markup.text(_describe_estimate(text))
    return "".join(render_inline(node, markup) for node in text)


def _describe_estimate(node: InlineEstimate) -> str:
    """Format an estimate as "0.52 (95% CI 0.31 to 0.68, n 25)", or say why it or its interval is missing."""
    estimate = node.estimate
    if estimate.value is None:
        return f"not available: {estimate.reason}"
    value = format_styled(estimate.value, node.style, node.digits)
    interval, n_text = describe_interval(estimate, node.digits, node.style), f"n {format_count(estimate.n)}"
    has_interval = estimate.ci_low is not None and estimate.ci_high is not None
    return f"{value} ({interval}, {n_text})" if has_interval else f"{value} ({n_text}, {interval})"
