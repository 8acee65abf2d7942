"""Texts in every form: escaping, inline nodes, and what stands for figures in the forms without pictures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from auditor.reports.document import (
    Block,
    Code,
    Disclosure,
    Document,
    Figure,
    FigureGrid,
    HeatMap,
    Link,
    Name,
    Strong,
    Table,
    Text,
)
from auditor.reports.document.blocks import iterate_blocks
from auditor.text_safety import escape_invisible

_RTL_CHARACTERS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_RTL_PATTERN = re.compile(rf"[{_RTL_CHARACTERS}](?:[{_RTL_CHARACTERS} '’-]*[{_RTL_CHARACTERS}])?")
"""A run of characters of right-to-left scripts, such as Hebrew and Arabic, with the spaces inside it."""

_MARKUP_PATTERN = re.compile(
    r"""[\\`*\[\]{}|~^&]|<(?![\s\d])         # emphasis, code, links, attributes, tags, cells of tables, entities
    |(?<![^\W_])_|_(?![^\W_])    # an underscore within a word is no emphasis
    |[+=](?=[+=])|(?<=[+=])[+=]  # ++inserted++ and ==marked== of extensions
    |\$(?!\d)|\#(?!\w)          # a formula, but no price; the end of a heading
    |:(?=//|[\w+-]+:)            # an address or :emoji:
    |@(?=\w)|(?<=www)\.          # addresses that are links without any mark, also by their ending alone
    |(?<=\w)\.(?=(?:[a-z]{2}|biz|com|edu|gov|net|org|pro|web|xxx|aero|asia|coop|info|museum|name|shop|рф)(?![^\W_]))
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LINE_START_PATTERN = re.compile(
    r"^(\s*)([-+:=](?=\s|$)|[-=]{2,}(?=[-=\s]*$)|[#>]|[!?]{3})|^(\s*\d+)([.)])(?=\s|$)", re.MULTILINE
)
_SPACE_PATTERN = re.compile(r"[^\S\u00a0\u202f]+")
"""White space that may break a line; the thin space within a number may not."""


def escape_html(text: str) -> str:
    """Escape a text for HTML, between tags or as an attribute in double quotes."""
    return escape(escape_invisible(text))


def isolate_rtl(text: str) -> str:
    """Escape a text for HTML, with right-to-left names in <bdi>, so that they do not reorder adjacent figures."""
    escaped = escape_html(text)
    return escaped if escaped.isascii() else _RTL_PATTERN.sub(r"<bdi>\g<0></bdi>", escaped)


def collapse_spaces(text: str) -> str:
    """Put a text on one line, with single spaces."""
    return _SPACE_PATTERN.sub(" ", text)


def escape_markdown(text: str) -> str:
    """Escape a text for Markdown, on one line: none of it is read as Markdown or HTML."""
    return escape_line_starts(escape_markdown_inline(text).strip())


def escape_markdown_inline(text: str) -> str:
    """Escape a part of a line for Markdown; the complete line is passed to `escape_line_starts`."""
    return _escape_markup(collapse_spaces(escape_invisible(text)))


def escape_line_starts(text: str) -> str:
    """Write as entities what is Markdown at the start of a line, such as a list's bullet."""
    return _LINE_START_PATTERN.sub(
        lambda match: f"{match[1] or ''}{match[3] or ''}{_to_entities(match[2] or match[4])}", text
    )


def quote_markdown(text: str) -> str:
    """Format a text of several lines as a block quote, none of which is read as Markdown or HTML."""
    lines = escape_line_starts(_escape_markup(escape_invisible(text).strip())).splitlines()
    return "\n".join(f"> {line.strip()}".rstrip() for line in lines)


def format_markdown_code(text: str) -> str:
    """Mark up a text as code on one line, between more backticks than it has in a row.

    A text with a pipe is escaped instead, since parsers disagree on where a cell of a table ends then. So is one that
    starts as a language's name does in extensions of Python-Markdown.
    """
    code = collapse_spaces(escape_invisible(text)).strip()
    if not code or "|" in code or code.startswith(("#!", ":::")):
        return escape_markdown_inline(code)
    fence = "`" * (1 + max(map(len, re.findall("`+", code)), default=0))
    padding = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{fence}{padding}{code}{padding}{fence}"


def _escape_markup(text: str) -> str:
    """Write characters that are Markdown or HTML anywhere as entities.

    Python-Markdown escapes fewer characters by a backslash than CommonMark does, and no `<`.
    """
    return _MARKUP_PATTERN.sub(lambda match: _to_entities(match[0]), text)


def _to_entities(text: str) -> str:
    """The numeric entities of a text's characters."""
    return "".join(f"&#{ord(char)};" for char in text)


@dataclass(frozen=True, slots=True)
class InlineMarkup:
    """Functions that mark up text in one output format.

    Attributes:
        text: escapes plain text.
        name: escapes a name.
        strong: emphasizes text that is marked up already.
        code: marks up plain text as code.
        link: marks up a link, by its plain text and its target: the URL of another page, or `#` and a section's id.
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
            return markup.link(text.text, text.target)
    return "".join(render_inline(node, markup) for node in text)


MAX_TITLES = 4


def label_tables(document: Document) -> dict[str, str]:
    """Labels of the tables that have the numbers of a figure, by id; these tables are printed with their label."""
    blocks = list(iterate_blocks(document))
    table_ids = {block.table_id for block in blocks if isinstance(block, Figure)}
    return {block.id: block.label for block in blocks if isinstance(block, Table) and block.id in table_ids}


def group_pictures(blocks: Sequence[Block]) -> Iterable[tuple[bool, list[Block]]]:
    """Group consecutive blocks by whether they are pictures, or disclosures of nothing but pictures."""
    return ((is_picture, list(group)) for is_picture, group in groupby(blocks, _is_picture))


def _is_picture(block: Block) -> bool:
    """Whether the block shows nothing but figures and heat maps."""
    if isinstance(block, Disclosure):
        return bool(block.blocks) and all(map(_is_picture, block.blocks))
    return isinstance(block, Figure | FigureGrid | HeatMap)


def describe_pictures(blocks: Sequence[Block], table_labels: dict[str, str]) -> str:
    """Name the figures and heat maps that only the page shows, and the tables that have their numbers."""
    titles: list[str] = []
    tables: list[str] = []
    for block in blocks:
        for picture in _iterate_pictures(block):
            titles.append(picture.label if isinstance(picture, HeatMap) else picture.title)
            if isinstance(picture, Figure) and picture.table_id in table_labels:
                tables.append(f"“{table_labels[picture.table_id]}”")
    table_names = list(dict.fromkeys(tables))
    if not titles:
        return ""
    if len(titles) > MAX_TITLES:
        titles[MAX_TITLES:] = [f"and {len(titles) - MAX_TITLES} more"]
    reference = f" For the numbers see the table{'s' * (len(table_names) > 1)} {', '.join(table_names)}."
    return f"Shown in the HTML report: {'; '.join(titles)}.{reference if table_names else ''}"


def _iterate_pictures(block: Block) -> Iterable[Figure | HeatMap]:
    """The figures and heat maps of a block that shows nothing else."""
    match block:
        case Figure() | HeatMap():
            yield block
        case FigureGrid():
            yield from block.figures
        case Disclosure():
            for nested_block in block.blocks:
                yield from _iterate_pictures(nested_block)
