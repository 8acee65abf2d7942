"""Import pairwise comparisons by judges and by people as an audit, without calling any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from auditor.config import require_audit_name
from auditor.domain import ComparisonChoice, Outcome, canonical_hash
from auditor.domain.terms import short_id
from auditor.errors import ImportFileError, UsageError
from auditor.probes.logic import comparison_rows
from auditor.probes.logic.comparison_rows import PREFERENCE_VALUES
from auditor.probes.logic.comparisons import Comparison, Item, ItemSet, Relation
from auditor.probes.logic.item_sets import draw_sets, load_item_sets, set_id
from auditor.run import EMPTY_SURVEY, describe_environment, resolve_storage_url
from auditor.storage import audits
from auditor.storage.database import Database, open_database
from auditor.surveys.distributions import parse_enum_cell
from auditor.surveys.row_reader import TextRow, read_rows

REQUIRED_COLUMNS = ("judge", "context", "item_a", "item_b", "relation", "decision")
OPTIONAL_COLUMNS = ("sample", "paraphrase", "people", "outcome", "probability")
CRITERIA = ("acceptability", "preference", "relevance", "coherence", "temporal", "causal")


class ImportedComparisons(NamedTuple):
    """Counts of what `import_comparisons` read and stored.

    Attributes:
        rows: comparisons read.
        judges: different judges in the file.
        sets: sets of items (contexts).
        items: items of all sets.
        empty: rows without a decision; they are stored as not measurable.
        replaced: whether an earlier import of this name was replaced.
        undescribed: compared items that the file of items does not have; 0 without such a file.
    """

    rows: int
    judges: int
    sets: int
    items: int
    empty: int
    replaced: bool
    undescribed: int = 0


def import_comparisons(
    file: Path,
    *,
    audit: str,
    storage: str | None = None,
    people: str | None = None,
    items: Path | None = None,
    criterion: str = "preference",
    max_sets: int | None = None,
    seed: int = 0,
) -> ImportedComparisons:
    """Store recorded comparisons as an audit. An earlier import of the same name is replaced.

    Args:
        file: CSV, JSONL or Parquet with `judge,context,item_a,item_b,relation,decision[,sample][,paraphrase][,people]`,
            and what exports of tables add (`outcome`, `probability`).
            A row is one question with `item_a` shown first; `relation` is `standard` or `negated`; `decision` is `A`,
            `B`, `TIE` or empty. Sample 0 is the judge's answer, further ones are repeats; `people` is people's
            decision on the standard question.
        audit: the audit's name.
        storage: database URL.
        people: name of the judge whose rows are people's decisions; the other judges are compared with them.
        items: a file with texts and people's scores of the items, `item[,context][,text][,human]`.
        criterion: the criterion by which items are compared, one of `CRITERIA`.
        max_sets: largest number of sets; of more, this many are drawn at random, as the probe `logic` draws them. None
            keeps all.
        seed: of that draw.

    Raises:
        ImportFileError: a row cannot be used; the message names it, and nothing is stored.
        UsageError: the name is invalid or belongs to an audit that was run; or the judge or criterion is unknown.
    """
    require_audit_name(audit)
    if criterion not in CRITERIA:
        raise UsageError(f"the criterion '{criterion}' is unknown.", f"Use one of {', '.join(CRITERIA)}.")
    judge_comparisons, item_sets = read_comparisons(file, criterion)
    if people is not None:
        judge_comparisons = add_people_decisions(judge_comparisons, people)
    undescribed: set[tuple[str, str]] = set()
    if items:
        item_sets, undescribed = _add_item_texts(item_sets, items, criterion)
    judge_comparisons, item_sets = _draw_compared_sets(judge_comparisons, item_sets, max_sets, seed)
    with open_database(resolve_storage_url(storage)) as db:
        replaced = save_comparison_audit(db, audit, item_sets, judge_comparisons)
    return ImportedComparisons(
        rows=len(judge_comparisons),
        judges=len({comparison.judge for comparison in judge_comparisons}),
        sets=len(item_sets),
        items=sum(len(item_set.items) for item_set in item_sets),
        empty=sum(comparison.decision is None for comparison in judge_comparisons),
        replaced=replaced,
        undescribed=sum(
            (item_set.context, item.id) in undescribed for item_set in item_sets for item in item_set.items
        ),
    )


def _draw_compared_sets(
    judge_comparisons: list[Comparison], item_sets: list[ItemSet], max_sets: int | None, seed: int
) -> tuple[list[Comparison], list[ItemSet]]:
    """Draw at most `max_sets` sets at random; the comparisons of these sets, and the sets."""
    drawn = draw_sets(item_sets, max_sets, seed)
    contexts = {item_set.context for item_set in drawn}
    return [comparison for comparison in judge_comparisons if comparison.context in contexts], drawn


def read_comparisons(file: Path, criterion: str) -> tuple[list[Comparison], list[ItemSet]]:
    """Read the comparisons of a file, and the item sets that they are about, both in the order of the file.

    Raises:
        ImportFileError: a row cannot be used, or the file has no rows; the message names the row or the file.
    """
    comparisons_by_question: dict[tuple[object, ...], Comparison] = {}
    for row in read_rows(file, REQUIRED_COLUMNS, OPTIONAL_COLUMNS):
        c = comparison = _parse_comparison(row, len(comparisons_by_question))
        key = (c.judge, c.context, c.item_a, c.item_b, c.relation, c.paraphrase, c.sample)
        if key in comparisons_by_question:
            raise ImportFileError(
                f"{row.location}: this judge's answer to this question occurs twice.",
                "Give each repetition its own number in the column sample, or delete the duplicate row.",
            )
        comparisons_by_question[key] = comparison
    if not comparisons_by_question:
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    return _shorten_ids(list(comparisons_by_question.values()), criterion)


def _shorten_ids(judge_comparisons: Sequence[Comparison], criterion: str) -> tuple[list[Comparison], list[ItemSet]]:
    """Replace contexts and items by short ids; return the comparisons and the sets that hold the full texts."""
    items_by_context: dict[str, dict[str, str]] = {}
    for comparison in judge_comparisons:
        items_by_context.setdefault(comparison.context, {}).update({comparison.item_a: "", comparison.item_b: ""})
    sets = [
        ItemSet(
            context=set_id(context),
            text=context,
            criterion=criterion,
            items=tuple(Item(short_id(text), text) for text in items),
        )
        for context, items in items_by_context.items()
    ]
    shortened = [
        replace(
            comparison,
            context=set_id(comparison.context),
            item_a=short_id(comparison.item_a),
            item_b=short_id(comparison.item_b),
        )
        for comparison in judge_comparisons
    ]
    return shortened, sets


def _parse_comparison(row: TextRow, position: int) -> Comparison:
    """Parse a row; its context and items are the full texts, which `_shorten_ids` replaces by ids.

    Args:
        position: of the row in the file, from 0.

    Raises:
        ImportFileError: a cell cannot be used, or the item is compared with itself.
    """
    judge, item_a, item_b = (row.required_text(name) for name in ("judge", "item_a", "item_b"))
    if item_a == item_b:
        raise ImportFileError(f"{row.location}: the row compares '{item_a}' with itself.", "Remove the row.")
    decision = parse_enum_cell(row, "decision", ComparisonChoice, str.upper)
    outcome = parse_enum_cell(row, "outcome", Outcome, str.lower)
    if decision is not None and outcome not in (None, Outcome.OK):
        raise row.make_cell_error("outcome", f"a call with the outcome {outcome} has a decision", "Empty one of them.")
    probability = row.number("probability")
    if probability is not None and not 0 <= probability <= 1:
        raise row.make_cell_error("probability", f"{probability:g} is not from 0 to 1", "Correct or empty it.")
    return Comparison(
        judge=judge,
        context=row.cells["context"],
        item_a=item_a,
        item_b=item_b,
        relation=parse_enum_cell(row, "relation", Relation, str.lower) or Relation.STANDARD,
        outcome=outcome or (Outcome.OK if decision else Outcome.NOT_MEASURABLE),
        decision=decision,
        paraphrase=row.integer("paraphrase"),
        sample=row.integer("sample"),
        probability=probability,
        people=parse_enum_cell(row, "people", ComparisonChoice, str.upper),
        position=position,
    )


def add_people_decisions(judge_comparisons: Sequence[Comparison], people_judge: str) -> list[Comparison]:
    """Add to each comparison people's decision on the same pair, whatever the order or relation they were asked in.

    Of several decisions on a pair the more frequent counts; as many for each item are a tie. People are not compared
    with themselves.

    Raises:
        UsageError: the file has no decision of a judge `people_judge`.
    """
    values_by_pair: dict[tuple[str, str, str], list[float]] = {}
    for comparison in judge_comparisons:
        if comparison.judge == people_judge and comparison.decision is not None:
            decision = comparison.decision if comparison.relation is Relation.STANDARD else comparison.decision.swapped
            pairs = (comparison.item_a, comparison.item_b), (comparison.item_b, comparison.item_a)
            for pair, choice in zip(pairs, (decision, decision.swapped), strict=True):
                values_by_pair.setdefault((comparison.context, *pair), []).append(PREFERENCE_VALUES[choice])
    decision_by_pair = {pair: _decide_by_majority(values) for pair, values in values_by_pair.items()}
    if not decision_by_pair:
        judges = ", ".join(sorted({comparison.judge for comparison in judge_comparisons}))
        raise UsageError(f"the file has no decisions of the judge '{people_judge}'.", f"Its judges are: {judges}.")
    return [
        replace(
            comparison,
            people=None
            if comparison.judge == people_judge
            else comparison.people or decision_by_pair.get((comparison.context, comparison.item_a, comparison.item_b)),
        )
        for comparison in judge_comparisons
    ]


def _decide_by_majority(values: Sequence[float]) -> ComparisonChoice:
    """The decision of which there are more; a tie if neither is. Values are those of `PREFERENCE_VALUES`."""
    mean = fmean(values)
    return ComparisonChoice.TIE if mean == 0.5 else ComparisonChoice.FIRST if mean > 0.5 else ComparisonChoice.SECOND


def _add_item_texts(
    item_sets: Sequence[ItemSet], file: Path, criterion: str
) -> tuple[list[ItemSet], set[tuple[str, str]]]:
    """Replace items by those of the file, which have texts and people's scores; items not in the file stay.

    Returns:
        The sets; and context and id of each item that is not in the file.

    Raises:
        ImportFileError: the file has none of the items.
    """
    described_items = {
        (item_set.context, item.id): item for item_set in load_item_sets(file, criterion) for item in item_set.items
    }
    compared = {(item_set.context, item.id) for item_set in item_sets for item in item_set.items}
    if compared.isdisjoint(described_items):
        raise ImportFileError(
            f"{file}: has none of the items that were compared.",
            "Write items and contexts as the file of comparisons does; items without a context have an empty one.",
        )
    described_sets = [
        replace(
            item_set, items=tuple(described_items.get((item_set.context, item.id), item) for item in item_set.items)
        )
        for item_set in item_sets
    ]
    return described_sets, compared - described_items.keys()


def save_comparison_audit(
    db: Database, name: str, item_sets: Sequence[ItemSet], judge_comparisons: Sequence[Comparison]
) -> bool:
    """Store an imported audit and return whether it replaced an earlier import of this name.

    Raises:
        UsageError: the name belongs to an audit that was run.
    """
    previous_audit = audits.find_audit(db, name)
    if previous_audit is not None and previous_audit.config is not None:
        raise UsageError(f"audit '{name}' was run, not imported.", "Choose another name with --audit.")
    digest = canonical_hash(
        [
            [
                comparison.judge,
                comparison.context,
                comparison.item_a,
                comparison.item_b,
                comparison.relation,
                comparison.decision,
            ]
            for comparison in judge_comparisons
        ]
    )
    audits.save_finished_audit(
        db,
        name=name,
        config_hash=digest,
        survey=EMPTY_SURVEY,
        environment=describe_environment(),
        write_results=lambda connection, audit_id: comparison_rows.replace_comparisons(
            connection, audit_id, item_sets, judge_comparisons
        ),
    )
    return previous_audit is not None
