"""Summarize from Feedback: people's comparisons of two summaries of a post."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from auditor.domain.identifiers import short_id
from auditor.imports.published.records import SourceRecord, read_records, select_split
from auditor.imports.published.rows import ConversionOptions, PublishedDataset, PublishedDecision, PublishedItem


def read_summarize_from_feedback(source: Path, options: ConversionOptions) -> PublishedDataset:
    """Read the comparisons: per post, its summaries, and people's majority decision on each pair of them.

    Comparisons have the texts of the summaries, and need no file of items; items have ids that imports make of them.

    `source` is a file of comparisons as published, a folder of such files, or a Parquet file with the same fields.
    """
    items: dict[tuple[str, str], PublishedItem] = {}
    votes_by_pair: dict[tuple[str, str, str], list[int]] = {}
    records = list(read_records(source))
    selected = select_split(records, options.split)
    n_equal = n_empty = 0
    for record in selected:
        post, summaries, choice = _read_comparison(record)
        if not all(summaries):
            n_empty += 1
            continue
        if summaries[0] == summaries[1]:
            n_equal += 1
            continue
        for text in summaries:
            items.setdefault((post, text), PublishedItem(post, short_id(text), text))
        # Votes for the first and for the second summary of the pair in alphabetical order.
        first, second = sorted(summaries)
        votes = votes_by_pair.setdefault((post, first, second), [0, 0])
        votes[int(summaries[choice] == second)] += 1
    decisions = [
        PublishedDecision(post, a, b, "TIE" if votes[0] == votes[1] else "AB"[votes[1] > votes[0]])
        for (post, a, b), votes in votes_by_pair.items()
    ]
    n_by_split = Counter(record.optional_text("split") or "no split" for record in records)
    splits = ", ".join(f"{split} {n}" for split, n in sorted(n_by_split.items()))
    notes = [f"Comparisons in the data: {len(records)} ({splits}). Selected: {len(selected)}."]
    if n_equal:
        notes.append(f"Comparisons of two equal summaries, left out: {n_equal}.")
    if n_empty:
        notes.append(f"Comparisons with a summary without text, left out: {n_empty}.")
    notes.append(_describe_decisions(decisions, len(selected) - n_equal - n_empty))
    return PublishedDataset({"items": list(items.values()), "comparisons": decisions}, notes)


def _read_comparison(record: SourceRecord) -> tuple[str, tuple[str, str], int]:
    """The post, its two summaries, and the position of the better one."""
    info, summaries = record.child("info"), record.children("summaries")
    post = info.optional_text("post") or info.text("article")
    if len(summaries) != 2:
        raise record.make_error("summaries", f"has {len(summaries)} summaries, not two")
    first, second = (summary.text("text").strip() for summary in summaries)
    return post, (first, second), record.position("choice", 2)


def _describe_decisions(decisions: list[PublishedDecision], n_comparisons: int) -> str:
    """A sentence on the posts and pairs that comparisons are about."""
    n_posts = len({decision.context for decision in decisions})
    n_ties = sum(decision.decision == "TIE" for decision in decisions)
    mean = n_comparisons / n_posts if n_posts else 0.0
    return (
        f"Posts: {n_posts}, with {mean:.2f} comparisons on average. Different pairs: {len(decisions)}, of them tied: "
        f"{n_ties}."
    )
