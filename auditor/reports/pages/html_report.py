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

from auditor.reports.agreement.tiers import preference
from auditor.reports.conflicts import wording as conflict_words
from auditor.reports.cost import wording as cost_words
from auditor.reports.coverage.model_versions import remarks
from auditor.reports.logic import ranking as logic_ranking
from auditor.reports.logic import wording as logic_words
from auditor.reports.pages import alignment_wording, number_format, sentences
from auditor.reports.pages.jinja_environment import environment
from auditor.reports.pages.report_view import View
from auditor.reports.report_schema import Report
from auditor.reports.semantic import wording as semantic_words
from auditor.reports.task import wording as task_words
from auditor.text_safety import visible

TEMPLATE = "report.html.j2"
_RTL = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_RIGHT_TO_LEFT = re.compile(rf"[{_RTL}](?:[{_RTL} '’-]*[{_RTL}])?")
"""A run of Hebrew, Arabic and their like, with the spaces within."""


def render_html(report: Report) -> str:
    """The page."""
    said = {
        "words": alignment_wording,
        "said": sentences,
        "settled": conflict_words,
        "paid": cost_words,
        "logical": logic_words,
        "ranked": logic_ranking,
        "moral": semantic_words,
        "remarks": remarks,
        "asked": task_words,
    }
    return _template().render(report=report, view=View(report), preference=preference, **said)


@cache
def _template() -> jinja2.Template:
    templates = environment()
    templates.filters |= _filters()
    return templates.get_template(TEMPLATE)


def _filters() -> Mapping[str, Callable[..., str]]:
    names = ("number", "signed", "interval", "p_value", "share", "count", "usd", "plural")
    return {name: getattr(number_format, name) for name in names} | {"names": _names, "told": _told}


def _names(names: Iterable[str]) -> Markup:
    """A list of names, each kept apart: one that is written from right to left would turn its neighbours round."""
    return Markup(", ").join(Markup("<bdi>{}</bdi>").format(visible(name)) for name in names)


def _told(text: str) -> Markup:
    """A sentence of ours in which names written from right to left leave the figures beside them where they are."""
    return Markup(_RIGHT_TO_LEFT.sub(r"<bdi>\g<0></bdi>", str(escape(visible(text)))))
