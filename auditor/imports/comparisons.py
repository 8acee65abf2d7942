"""Comparisons that were recorded elsewhere, as an audit: judges' and people's, with no call to any model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from auditor.agents.logic.item_sets import load_item_sets, set_id, short_id
from auditor.config import require_audit_name
from auditor.domain import Comparison, ComparisonChoice, Item, ItemSet, Outcome, Relation, canonical_hash
from auditor.errors import ImportFileError, UsageError
from auditor.run import EMPTY_SURVEY, describe_environment, resolve_storage_url
from auditor.storage import audits, comparisons
from auditor.storage.database import Database, open_database
from auditor.surveys.row_reader import TextRow, read_rows

REQUIRED_COLUMNS = ("judge", "context", "item_a", "item_b", "relation", "decision")
OPTIONAL_COLUMNS = ("sample", "paraphrase", "people")
CRITERIA = ("acceptability", "preference", "relevance", "temporal", "causal")
MIRRORED_CHOICES = {
    ComparisonChoice.FIRST: ComparisonChoice.SECOND,
    ComparisonChoice.SECOND: ComparisonChoice.FIRST,
    ComparisonChoice.TIE: ComparisonChoice.TIE,
}

C = TypeVar("C", ComparisonChoice, Relation)


class ImportedComparisons(NamedTuple):
    """What came of a file.

    Attributes:
        empty: rows without a decision, which are not measured.
        with_people: rows about pairs that people decided.
        replaced: whether an earlier import of this name was replaced.
    """

    rows: int
    judges: int
    sets: int
    items: int
    empty: int
    with_people: int
    replaced: bool


def import_comparisons(
    file: Path,
    *,
    audit: str,
    storage: str | None = None,
    people: str | None = None,
    items: Path | None = None,
    criterion: str = "preference",
) -> ImportedComparisons:
    """Make an audit of recorded comparisons; the same name again replaces what it held.

    Args:
        file: CSV, JSONL or Parquet with `judge,context,item_a,item_b,relation,decision[,sample][,paraphrase][,people]`.
            A row is one question with `item_a` shown first; `relation` is `standard` or `negated`; `decision` is `A`,
            `B`, `TIE` or empty. Sample 0 is the judge's answer, further ones are repeats; `people` is people's
            decision on the standard question.
        audit: the audit's name.
        storage: database URL.
        people: the judge whose rows are people's decisions; the others are compared with them.
        items: a file with texts and people's scores of the items, `item[,context][,text][,human]`.
        criterion: what items are compared by, one of `CRITERIA`.

    Raises:
        ImportFileError: a row that cannot be used; the message names it. Nothing is stored then.
        UsageError: the name belongs to an audit that was run, or is none; no such judge or criterion.
    """
    require_audit_name(audit)
    if criterion not in CRITERIA:
        raise UsageError(f"'{criterion}' is no criterion.", f"Known are {', '.join(CRITERIA)}.")
    found, sets = read_comparisons(file, criterion)
    if people is not None:
        found = add_people_decisions(found, people)
    sets = _add_item_texts(sets, items, criterion) if items else sets
    with open_database(resolve_storage_url(storage)) as db:
        replaced = save_comparison_audit(db, audit, sets, found)
    return ImportedComparisons(
        rows=len(found),
        judges=len({c.judge for c in found}),
        sets=len(sets),
        items=sum(len(one.items) for one in sets),
        empty=sum(c.decision is None for c in found),
        with_people=sum(c.people is not None for c in found),
        replaced=replaced,
    )


def read_comparisons(file: Path, criterion: str) -> tuple[list[Comparison], list[ItemSet]]:
    """The comparisons of a file, and the sets of items that they are about, in its order.

    Raises:
        ImportFileError: a row that cannot be used; the message names it.
    """
    found: dict[tuple[object, ...], Comparison] = {}
    for row in read_rows(file, REQUIRED_COLUMNS, OPTIONAL_COLUMNS):
        comparison = _parse_comparison(row)
        c = comparison
        key = (c.judge, c.context, c.item_a, c.item_b, c.relation, c.paraphrase, c.sample)
        if key in found:
            raise ImportFileError(f"{row.location}: this judge was asked this question before.", "Number samples.")
        found[key] = comparison
    if not found:
        raise ImportFileError(f"{file}: has no rows.", "Is it the right file?")
    return _shorten_ids(list(found.values()), criterion)


def _shorten_ids(judge_comparisons: Sequence[Comparison], criterion: str) -> tuple[list[Comparison], list[ItemSet]]:
    """Long contexts and items by short names, and what the names stand for."""
    texts: dict[str, dict[str, str]] = {}
    for c in judge_comparisons:
        texts.setdefault(c.context, {}).update({c.item_a: "", c.item_b: ""})
    sets = [
        ItemSet(
            context=set_id(context),
            text=context,
            criterion=criterion,
            items=tuple(Item(short_id(text), text) for text in items),
        )
        for context, items in texts.items()
    ]
    named = [
        replace(c, context=set_id(c.context), item_a=short_id(c.item_a), item_b=short_id(c.item_b))
        for c in judge_comparisons
    ]
    return named, sets


def _parse_comparison(row: TextRow) -> Comparison:
    judge, item_a, item_b = (row.required_text(name) for name in ("judge", "item_a", "item_b"))
    if item_a == item_b:
        raise ImportFileError(f"{row.location}: compares '{item_a}' with itself.", "Leave the row out.")
    decision = _parse_enum(row, "decision", ComparisonChoice, str.upper)
    return Comparison(
        judge=judge,
        context=row.cells["context"],
        item_a=item_a,
        item_b=item_b,
        relation=_parse_enum(row, "relation", Relation, str.lower) or Relation.STANDARD,
        outcome=Outcome.OK if decision else Outcome.NOT_MEASURABLE,
        decision=decision,
        paraphrase=row.integer("paraphrase"),
        sample=row.integer("sample"),
        people=_parse_enum(row, "people", ComparisonChoice, str.upper),
    )


def _parse_enum(row: TextRow, column: str, enum_class: type[C], normalize: Callable[[str], str]) -> C | None:
    text = row.cells[column]
    if not text:
        return None
    try:
        return enum_class(normalize(text))
    except ValueError:
        known = ", ".join(enum_class)
        raise row.make_cell_error(column, f"'{text}' is none of {known}", "Mend it.") from None


def add_people_decisions(judge_comparisons: Sequence[Comparison], people_judge: str) -> list[Comparison]:
    """The comparisons with what people decided on the same pair, in whichever order and form they were asked.

    Raises:
        UsageError: nobody of that name compared anything.
    """
    said: dict[tuple[str, str, str], ComparisonChoice] = {}
    for c in judge_comparisons:
        if c.judge == people_judge and c.decision is not None:
            plain = c.decision if c.relation is Relation.STANDARD else MIRRORED_CHOICES[c.decision]
            said.setdefault((c.context, c.item_a, c.item_b), plain)
            said.setdefault((c.context, c.item_b, c.item_a), MIRRORED_CHOICES[plain])
    if not said:
        names = ", ".join(sorted({c.judge for c in judge_comparisons}))
        raise UsageError(f"the file has no decision of a judge '{people_judge}'.", f"Its judges are: {names}.")
    return [replace(c, people=c.people or said.get((c.context, c.item_a, c.item_b))) for c in judge_comparisons]


def _add_item_texts(item_sets: Sequence[ItemSet], file: Path, criterion: str) -> list[ItemSet]:
    """The sets with the texts and scores that a file has of their items."""
    known = {(one.context, item.id): item for one in load_item_sets(file, criterion) for item in one.items}
    return [
        replace(one, items=tuple(known.get((one.context, item.id), item) for item in one.items)) for one in item_sets
    ]


def save_comparison_audit(
    db: Database, name: str, item_sets: Sequence[ItemSet], judge_comparisons: Sequence[Comparison]
) -> bool:
    """Store an imported audit; whether there was one of this name, which this one replaces.

    Raises:
        UsageError: the name belongs to an audit that was run.
    """
    old = audits.find_audit(db, name)
    if old is not None and old.config is not None:
        raise UsageError(f"audit '{name}' was run, not imported.", "Choose another name with --audit.")
    digest = canonical_hash(
        [[c.judge, c.context, c.item_a, c.item_b, c.relation, c.decision] for c in judge_comparisons]
    )
    saved = audits.save_audit(
        db, name=name, config=None, config_hash=digest, survey=EMPTY_SURVEY, environment=describe_environment()
    )
    comparisons.delete_comparisons(db, saved.id)
    comparisons.replace_item_sets(db, saved.id, item_sets)
    comparisons.save_comparisons(db, saved.id, judge_comparisons)
    audits.set_stage(db, saved.id, audits.FINISHED)
    return old is not None
