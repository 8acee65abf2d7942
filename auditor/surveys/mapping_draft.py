"""Write a draft of a mapping for a file, to be corrected by its user; an import refuses it until then."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from auditor.errors import pluralize
from auditor.surveys.answer_codes import format_value, parse_number
from auditor.surveys.column_reader import DistinctValueColumn, is_missing_marker
from auditor.surveys.mapping import locate_mapping, normalize_label
from auditor.surveys.microdata import find_newest_wave
from auditor.surveys.preview import ColumnPreview, FilePreview
from auditor.surveys.writer import format_toml_list, format_toml_string

HEADER = (
    "# A draft of a mapping. Check every line, then remove the line `draft = true`; an import refuses it until then."
)
PLACEHOLDER = '"?"'
"""A score that the user has to fill in; a mapping with it is not valid."""
MAX_ANSWERS = 20
"""Distinct values up to which a column may be one of answers."""
MAX_ACTIVE_TOPICS = 40
_NONRESPONSE = re.compile(
    r"(don'?t know|dk|refus|no answer|not? asked|not applicable|inapplicable|iap|missing|not available|no opinion|"
    r"can'?t choose|cannot choose|prefer not|declin|undecided|skipped|unknown).*"
)
_NOT_ASKED = re.compile(r"(not? asked|not applicable|inapplicable|iap|skipped).*")


def copy_mapping(source: str) -> str:
    """Return the text of an existing mapping as a draft."""
    text = locate_mapping(source).read_text(encoding="utf-8")
    return f"{HEADER}\ndraft = true\n{text}"


def draft_mapping(path: Path, preview: FilePreview, topic_columns: Collection[str] = ()) -> str:
    """Return a draft of a mapping for a file.

    Args:
        topic_columns: the columns of answers; without them, all that may be.
    """
    by_role: dict[str, list[ColumnPreview]] = {}
    for column in preview.columns:
        by_role.setdefault(column.role, []).append(column)
    topics = _find_topics(preview, topic_columns)
    lines = [
        HEADER,
        "draft = true",
        f"title = {format_toml_string(path.stem)}",
        'source = "…"                     # who published the data, as a citation',
        'wording = "Think of what most people in {country} would say of this: {topic}. Is it always acceptable, '
        'never acceptable, or something in between?"',
        'scale = ["never acceptable", "always acceptable"]   # the meaning of the scores -1 and +1',
        *_draft_settings(by_role, topics),
        "",
        "[columns]",
        *_draft_columns(by_role),
        *_draft_waves(by_role.get("wave", ())),
        "",
        "[topics]                          # column = topic, as models are asked about it",
        *(f"{_format_key(column.name)} = {format_toml_string(column.name)}" for column in topics[:MAX_ACTIVE_TOPICS]),
        *(f"# {_format_key(column.name)} = {format_toml_string(column.name)}" for column in topics[MAX_ACTIVE_TOPICS:]),
        "",
        *_draft_answers([column.column for column in topics[:MAX_ACTIVE_TOPICS] if column.column is not None]),
    ]
    return "\n".join(lines) + "\n"


def _find_topics(preview: FilePreview, topic_columns: Collection[str]) -> list[ColumnPreview]:
    """The columns of answers: the named ones, else those without a role that have few values."""
    if topic_columns:
        names = {name.casefold() for name in topic_columns}
        return [column for column in preview.columns if column.name.casefold() in names]
    return [column for column in preview.columns if not column.role and 1 < column.n_values <= MAX_ANSWERS]


def _draft_settings(by_role: dict[str, list[ColumnPreview]], topics: Sequence[ColumnPreview]) -> Iterator[str]:
    """Yield the keys above the first table, commented out where the user has to choose."""
    n_empty = sum(column.n_empty for column in topics)
    if n_empty:
        yield f'# blank = "nonresponse"          # or "not asked": the meaning of {pluralize(n_empty, "empty answer")}'
    if not by_role.get("country"):
        yield 'country = "…"                    # of all respondents: no column has countries'
    country = next(iter(by_role.get("country", ())), None)
    values = country.column.values if country and country.column and not country.column.labels else ()
    if any((parse_number(value) or -1) >= 0 for value in values):
        yield '# country_codes = "iso-3166-numeric"   # if the numbers of countries are those of ISO 3166'
    if any(column.n_values > 1 for column in by_role.get("wave", ())):
        yield "# pool = true                    # take the waves together"


def _draft_columns(by_role: dict[str, list[ColumnPreview]]) -> Iterator[str]:
    """Yield the columns of countries and weights."""
    # Names and letters say more than numbers.
    candidates = sorted(
        by_role.get("country", ()),
        key=lambda column: (
            column.column is None
            or (
                not column.column.labels
                and all(value is None or parse_number(value) is not None for value in column.column.values)
            )
        ),
    )
    countries = [column.name for column in candidates]
    if countries:
        yield f"country = {format_toml_list(countries)}     # the first that the file has"
    weights = [column.name for column in by_role.get("weight", ())]
    if weights:
        yield f"weight = {format_toml_string(weights[0])}" + (
            f"   # or {', '.join(weights[1:])}" if weights[1:] else ""
        )
    else:
        yield '# weight = "…"                    # without it, every respondent counts once'


def _draft_waves(waves: Sequence[ColumnPreview]) -> Iterator[str]:
    """Yield a filter for the newest wave of a file with several."""
    for column in waves:
        if column.n_values > 1 and column.column is not None:
            rows = ", ".join(f"{value.value}: {pluralize(value.n_rows, 'row')}" for value in column.values or ())
            newest = find_newest_wave(column.column)
            wave = format_value(newest) if parse_number(newest) is not None else format_toml_string(str(newest))
            yield from ("", "[keep]", f"{_format_key(column.name)} = [{wave}]   # {rows}")


def _draft_answers(columns: Sequence[DistinctValueColumn]) -> Iterator[str]:
    """Yield a scale or choices, and kinds of nonresponse, from the values of the columns of answers."""
    codes, labels = _collect_values(columns)
    nonresponse_codes = {
        code: label for code, label in codes.items() if code < 0 or _NONRESPONSE.fullmatch(normalize_label(label))
    }
    answer_codes = {code: label for code, label in codes.items() if code not in nonresponse_codes}
    nonresponse_labels = [label for label in labels if _NONRESPONSE.fullmatch(normalize_label(label))]
    answer_labels = [label for label in labels if label not in nonresponse_labels]
    # The inner points of a scale have no labels, or only numbers.
    is_labelled = all(label and parse_number(label) is None for label in answer_codes.values())
    if answer_codes and not is_labelled:
        yield from _draft_scale(answer_codes, answer_labels)
    else:
        yield "[choices]                         # fill in the scores, from -1 to +1"
        for label in answer_labels:
            yield f"{format_toml_string(label)} = {{ score = {PLACEHOLDER}, labels = {format_toml_list([label])} }}"
        for code, label in answer_codes.items():
            meaning = f"score = {PLACEHOLDER}, codes = [{code:g}], labels = {format_toml_list([label])}"
            yield f"{format_toml_string(label)} = {{ {meaning} }}"
    yield from ("", "[nonresponse]")
    for code, label in nonresponse_codes.items():
        name = label or f"code {code:g}"
        asked = ", asked = false" if _NOT_ASKED.fullmatch(normalize_label(name)) else ""
        yield f"{format_toml_string(name)} = {{ codes = [{code:g}]{asked} }}"
    named_labels = {normalize_label(label) for label in nonresponse_codes.values()}
    for label in nonresponse_labels:
        if normalize_label(label) not in named_labels:
            asked = ", asked = false" if _NOT_ASKED.fullmatch(normalize_label(label)) else ""
            yield f"{format_toml_string(label)} = {{ labels = {format_toml_list([label])}{asked} }}"


def _draft_scale(answer_codes: dict[float, str], answer_labels: Sequence[str]) -> Iterator[str]:
    """Yield a scale from the smallest to the largest code; labels without a code are those of an end."""
    low, high = min(answer_codes), max(answer_codes)
    yield from ("[answers]", f"low = {low:g}                           # the code that means never acceptable")
    yield f"high = {high:g}"
    ends = {"low_label": answer_codes[low], "high_label": answer_codes[high]}
    for key, label in ends.items():
        if label:
            yield f"{key} = {format_toml_string(label)}"
    for label in answer_labels:
        yield f"# low_label or high_label = {format_toml_string(label)}"


def _collect_values(columns: Sequence[DistinctValueColumn]) -> tuple[dict[float, str], list[str]]:
    """Return the numbers with their labels (empty without one) in their order, and the texts that are no numbers."""
    codes: dict[float, str] = {}
    labels: dict[str, str] = {}
    for column in columns:
        for value in column.values:
            number = parse_number(value)
            if number is not None:
                codes[number] = codes.get(number) or column.labels.get(value) or ""
            elif column.labels.get(value) or not is_missing_marker(value):
                label = column.labels.get(value) or format_value(value)
                labels.setdefault(normalize_label(label), label)
    return dict(sorted(codes.items())), list(labels.values())


def _format_key(name: str) -> str:
    """A key of a TOML table, in quotation marks where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else format_toml_string(name)
