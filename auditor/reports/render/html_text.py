"""Inline nodes as HTML."""

from __future__ import annotations

from auditor.reports.document import Text
from auditor.reports.render.escaping import escape_html, isolate_rtl
from auditor.reports.render.inline_text import InlineMarkup, render_inline

_MARKUP = InlineMarkup(
    text=isolate_rtl,
    name=lambda name: f"<bdi>{escape_html(name)}</bdi>",
    strong=lambda content: f"<strong>{content}</strong>",
    code=lambda code: f"<code>{escape_html(code)}</code>",
    link=lambda text, section_id: f'<a href="#{escape_html(section_id)}">{isolate_rtl(text)}</a>',
)


def html_inline(text: Text) -> str:
    """Render a text as HTML."""
    return render_inline(text, _MARKUP)


def element(tag: str, content: str, **attributes: str) -> str:
    """An HTML element around markup; an attribute `class_` is written as `class`, an empty one is left out."""
    listed = "".join(f' {name.rstrip("_")}="{escape_html(value)}"' for name, value in attributes.items() if value)
    return f"<{tag}{listed}>{content}</{tag}>"
