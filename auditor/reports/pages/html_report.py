"""The report as one HTML file that needs no network and runs no script.

Every value that enters the page passes one sanitiser (`auditor.text_safety.visible`) and is escaped; None may not be
printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

import jinja2
from markupsafe import Markup, escape

from auditor.reports.agreement.tiers import describe_preference
from auditor.reports.conflicts import wording as conflict_wording
from auditor.reports.cost import wording as cost_wording
from auditor.reports.coverage.model_versions import describe_model_versions
from auditor.reports.logic import ranking as logic_ranking
from auditor.reports.logic import wording as logic_wording
from auditor.reports.pages import alignment_wording, number_format, sentences
from auditor.reports.pages.jinja_environment import create_environment
from auditor.reports.pages.report_view import ReportView
from auditor.reports.report_schema import Report
from auditor.reports.semantic import wording as semantic_wording
from auditor.reports.task import wording as task_wording
from auditor.text_safety import escape_invisible

REPORT_TEMPLATE = "report.html.j2"
_RTL_CHARACTERS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_RTL_PATTERN = re.compile(rf"[{_RTL_CHARACTERS}](?:[{_RTL_CHARACTERS} '’-]*[{_RTL_CHARACTERS}])?")
"""A run of Hebrew, Arabic and their like, with the spaces within."""


def render_html(report: Report) -> str:
    """The page."""
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
    templates = create_environment()
    templates.filters |= _template_filters()
    return templates.get_template(REPORT_TEMPLATE)


def _template_filters() -> Mapping[str, Callable[..., str]]:
    names = (
        "format_number",
        "format_signed",
        "format_interval",
        "format_p_value",
        "format_percent",
        "format_count",
        "format_usd",
        "pluralize",
    )
    return {name: getattr(number_format, name) for name in names} | {
        "isolate_names": _isolate_names,
        "isolate_rtl": _isolate_rtl,
    }


def _isolate_names(names: Iterable[str]) -> Markup:
    """A list of names, each kept apart: one that is written from right to left would turn its neighbours round."""
    return Markup(", ").join(Markup("<bdi>{}</bdi>").format(escape_invisible(name)) for name in names)


def _isolate_rtl(text: str) -> Markup:
    """A sentence of ours in which names written from right to left leave the figures beside them where they are."""
    return Markup(_RTL_PATTERN.sub(r"<bdi>\g<0></bdi>", str(escape(escape_invisible(text)))))
