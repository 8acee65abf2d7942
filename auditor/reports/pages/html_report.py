"""Render the report as one HTML file that needs no network and contains no script.

Every value is sanitized (`auditor.text_safety.escape_invisible`) and escaped; printing None is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

import jinja2
from markupsafe import Markup, escape

from auditor.reports import number_format
from auditor.reports.conflicts import wording as conflict_wording
from auditor.reports.cost import wording as cost_wording
from auditor.reports.data.agreement.tiers import describe_preference
from auditor.reports.data.coverage.model_versions import describe_model_versions
from auditor.reports.data.logic import ranking as logic_ranking
from auditor.reports.data.report_schema import Report
from auditor.reports.logic import wording as logic_wording
from auditor.reports.pages import alignment_wording, sentences
from auditor.reports.pages.jinja_environment import create_environment
from auditor.reports.pages.report_view import ReportView
from auditor.reports.semantic import wording as semantic_wording
from auditor.reports.task import wording as task_wording
from auditor.text_safety import escape_invisible

REPORT_TEMPLATE = "report.html.j2"
_RTL_CHARACTERS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_RTL_PATTERN = re.compile(rf"[{_RTL_CHARACTERS}](?:[{_RTL_CHARACTERS} '’-]*[{_RTL_CHARACTERS}])?")
"""A run of characters of right-to-left scripts, such as Hebrew and Arabic, with the spaces inside it."""


def render_html(report: Report) -> str:
    """Render the report as an HTML page."""
    template_modules = {
        "alignment_wording": alignment_wording,
        "sentences": sentences,
        "conflict_wording": conflict_wording,
        "cost_wording": cost_wording,
        "logic_wording": logic_wording,
        "logic_ranking": logic_ranking,
        "semantic_wording": semantic_wording,
        "describe_model_versions": describe_model_versions,
        "task_wording": task_wording,
    }
    return _load_template().render(
        report=report, view=ReportView(report), describe_preference=describe_preference, **template_modules
    )


@cache
def _load_template() -> jinja2.Template:
    """The report's Jinja template with its filters; loaded once per process."""
    environment = create_environment()
    environment.filters |= _template_filters()
    return environment.get_template(REPORT_TEMPLATE)


def _template_filters() -> Mapping[str, Callable[..., str]]:
    """Functions that the template uses as filters, by name."""
    filter_names = (
        "format_number",
        "format_signed",
        "format_interval",
        "format_p_value",
        "format_percent",
        "format_count",
        "format_usd",
        "pluralize",
    )
    return {filter_name: getattr(number_format, filter_name) for filter_name in filter_names} | {
        "isolate_names": _isolate_names,
        "isolate_rtl": _isolate_rtl,
    }


def _isolate_names(names: Iterable[str]) -> Markup:
    """Join names by commas, each in <bdi>: a right-to-left name would otherwise reorder its neighbours."""
    return Markup(", ").join(Markup("<bdi>{}</bdi>").format(escape_invisible(name)) for name in names)


def _isolate_rtl(text: str) -> Markup:
    """Escape a sentence and wrap its right-to-left names in <bdi>, so that they do not reorder adjacent figures."""
    return Markup(_RTL_PATTERN.sub(r"<bdi>\g<0></bdi>", str(escape(escape_invisible(text)))))
