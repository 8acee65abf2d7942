"""Inline nodes and elements as HTML."""

from __future__ import annotations

from auditor.reports.document import Text
from auditor.reports.render.escaping import escape_html, isolate_rtl
from auditor.reports.render.inline_text import InlineMarkup, render_inline

_MARKUP = InlineMarkup(
    text=isolate_rtl,
    name=lambda name: f"<bdi>{escape_html(name)}</bdi>",
    strong=lambda content: f"<strong>{content}</strong>",
    code=lambda code: f"<code>{escape_html(code)}</code>",
    link=lambda text, target: f'<a href="{escape_html(target)}">{isolate_rtl(text)}</a>',
)


def html_inline(text: Text) -> str:
    """Render a text as HTML."""
    return render_inline(text, _MARKUP)


def element(tag: str, content: str, **attributes: str) -> str:
    """Put markup into an element; an attribute `class_` is written as `class`, an empty one is left out."""
    attribute_markup = "".join(
        f' {name.rstrip("_")}="{escape_html(value)}"' for name, value in attributes.items() if value
    )
    return f"<{tag}{attribute_markup}>{content}</{tag}>"


def scroll_region(content: str, label: str) -> str:
    """Put markup into a region that scrolls sideways, by keyboard too."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape_html(label)}">{content}</div>'
