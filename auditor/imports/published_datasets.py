"""Convert published data sets for the probe `logic`: to items with people's scores, or to people's comparisons.

The formats are those in which the data are published: SummEval (aligned annotations, JSONL), NovelEval (a folder with
corpus.tsv, queries.tsv and qrels.txt), MS MARCO question answering (JSONL), CaTeRS (a folder of .txt and .ann files in
the format of brat) and Summarize from Feedback (comparisons, JSONL).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from auditor.atomic_files import write_atomically
from auditor.errors import ImportFileError, UsageError
from auditor.input_files import parse_json, read_text

PEOPLE_JUDGE = "people"
SUMMEVAL_ASPECTS = ("coherence", "consistency", "fluency", "relevance")
CAUSAL_RELATIONS = ("cause", "enable", "prevent")


class PublishedItem(NamedTuple):
    """One item of a set; `human` is people's score of it, None if there is none."""

    context: str
    item: str
    text: str
    human: float | None = None


class PublishedDecision(NamedTuple):
    """People's decision on a pair: `A` stands for `item_a`, `B` for `item_b`, or `TIE`."""

    context: str
    item_a: str
    item_b: str
    decision: str


class PublishedDataset(NamedTuple):
    """Items and comparisons of a data set; either list may be empty."""

    items: list[PublishedItem]
    comparisons: list[PublishedDecision]


def read_dataset(dataset_format: str, source: Path, aspect: str = "") -> PublishedDataset:
    """Read a data set.

    Args:
        dataset_format: one of `DATASET_READERS`.
        source: file or folder of the data set.
        aspect: for `summeval` one of `SUMMEVAL_ASPECTS` (default: coherence), for `caters` `temporal` (default) or
            `causal`; ignored for the others.

    Raises:
        UsageError: unknown format or aspect.
        ImportFileError: the data are not as published; the message names the file, and the line if known.
    """
    if dataset_format not in DATASET_READERS:
        raise UsageError(f"the format '{dataset_format}' is unknown.", f"Use one of {', '.join(DATASET_READERS)}.")
    if not source.exists():
        raise ImportFileError(f"{source}: there is no such file or folder.", "Download the data first.")
    try:
        return DATASET_READERS[dataset_format](source, aspect)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ImportFileError(
            f"{source}: does not have the format of {dataset_format}: a field is missing or has another type.",
            "Check that it is the right file, and the right --from.",
        ) from None


def write_dataset(dataset: PublishedDataset, file: Path, row_kind: str) -> int:
    """Write items or comparisons as JSONL that `probes.logic.items` or `auditor import comparisons` reads.

    Returns:
        Number of rows written.

    Raises:
        UsageError: the data set has no rows of that kind, or the suffix is not `.jsonl`.
    """
    if file.suffix != ".jsonl":
        raise UsageError(f"{file}: the file name must end in .jsonl.", "Rename the file.")
    if row_kind == "items":
        rows: list[dict[str, Any]] = [row._asdict() for row in dataset.items]
    else:
        rows = [{"judge": PEOPLE_JUDGE, **row._asdict(), "relation": "standard"} for row in dataset.comparisons]
    if not rows:
        raise UsageError(f"the file has no {row_kind}.", "Try --as items." if row_kind != "items" else "")
    write_atomically("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), file)
    return len(rows)


# --- the formats ------------------------------------------------------------------------------------------------


def _read_summeval(source: Path, aspect: str) -> PublishedDataset:
    """Read SummEval: per text, the summaries of several systems with the experts' mean score of an aspect."""
    aspect = aspect or SUMMEVAL_ASPECTS[0]
    if aspect not in SUMMEVAL_ASPECTS:
        raise UsageError(f"SummEval has no aspect '{aspect}'.", f"Use one of {', '.join(SUMMEVAL_ASPECTS)}.")
    rows = []
    for record in _read_jsonl(source):
        scores = [float(expert[aspect]) for expert in record["expert_annotations"]]
        context = record.get("text") or record["id"]
        rows.append(PublishedItem(context, record["model_id"], record["decoded"], fmean(scores) if scores else None))
    return PublishedDataset(rows, [])


def _read_novel_eval(source: Path, _: str) -> PublishedDataset:
    """Read NovelEval: per query, its passages with people's grade of relevance."""
    texts = dict(_read_tsv(source / "corpus.tsv"))
    queries = dict(_read_tsv(source / "queries.tsv"))
    rows = []
    for line in _read_lines(source / "qrels.txt"):
        query, _q0, passage, grade = line.split()  # TREC format; its second column is not used
        rows.append(PublishedItem(queries[query], passage, texts[passage], float(grade)))
    return PublishedDataset(rows, [])


def _read_ms_marco(source: Path, _: str) -> PublishedDataset:
    """Read MS MARCO: per query, its passages with the score 1 if people used them for the answer, else 0."""
    rows = []
    for record in _read_jsonl(source):
        passages = record["passages"]
        # The original files have a list of objects; copies in columnar form have an object of lists.
        is_columnar = isinstance(passages, dict)
        texts = passages["passage_text"] if is_columnar else [passage["passage_text"] for passage in passages]
        selections = passages["is_selected"] if is_columnar else [passage["is_selected"] for passage in passages]
        for i, (text, selected) in enumerate(zip(texts, selections, strict=True)):
            rows.append(PublishedItem(record["query"], f"{record['query_id']}-{i}", text, float(selected)))
    return PublishedDataset(rows, [])


def _read_caters(source: Path, aspect: str) -> PublishedDataset:
    """Read CaTeRS: per story, its events as items without scores, and people's relations of events as comparisons.

    The decision is always `A`: the first event comes earlier, or is the cause (see `_orders_events`).
    """
    if aspect not in ("", "temporal", "causal"):
        raise UsageError(f"CaTeRS has no aspect '{aspect}'.", "Use temporal or causal.")
    items, comparisons = [], []
    for file in sorted(source.glob("*.ann")):
        story = " ".join(read_text(file.with_suffix(".txt"), ImportFileError).split())
        events: dict[str, str] = {}
        for line in _read_lines(file):
            annotation_id, annotation, *covered_texts = line.split("\t")
            if annotation_id.startswith("T"):
                events[annotation_id] = f"{covered_texts[0]} ({annotation_id})"
                items.append(PublishedItem(story, events[annotation_id], events[annotation_id]))
            elif annotation_id.startswith("R"):
                relation, first_argument, second_argument = annotation.split()
                if _orders_events(relation.lower(), aspect):
                    pair = (events[first_argument.split(":")[1]], events[second_argument.split(":")[1]])
                    comparisons.append(PublishedDecision(story, *pair, "A"))
    return PublishedDataset(items, comparisons)


def _orders_events(relation: str, aspect: str) -> bool:
    """Whether a CaTeRS relation puts its first event before the second in time, or makes it the cause of its start."""
    if aspect == "causal":
        return relation.startswith(CAUSAL_RELATIONS) and "end" not in relation
    return "before" in relation


def _read_summarize_from_feedback(source: Path, _: str) -> PublishedDataset:
    """Read Summarize from Feedback: per post, its summaries, and people's majority decision on each pair of them."""
    items: dict[tuple[str, str], PublishedItem] = {}
    votes_by_pair: dict[tuple[str, str, str], list[int]] = {}
    for record in _read_jsonl(source):
        post = record["info"].get("post") or record["info"]["article"]
        first_summary, second_summary = (summary["text"].strip() for summary in record["summaries"])
        if first_summary == second_summary:
            continue
        for text in (first_summary, second_summary):
            items.setdefault((post, text), PublishedItem(post, text, text))
        # Votes for the first and for the second summary of the pair in alphabetical order.
        votes = votes_by_pair.setdefault((post, *sorted((first_summary, second_summary))), [0, 0])
        votes[int((first_summary, second_summary)[record["choice"]] == max(first_summary, second_summary))] += 1
    rows = [
        PublishedDecision(post, a, b, "TIE" if votes[0] == votes[1] else "AB"[votes[1] > votes[0]])
        for (post, a, b), votes in votes_by_pair.items()
    ]
    return PublishedDataset(list(items.values()), rows)


DATASET_READERS: dict[str, Callable[[Path, str], PublishedDataset]] = {
    "summeval": _read_summeval,
    "novel-eval": _read_novel_eval,
    "ms-marco": _read_ms_marco,
    "caters": _read_caters,
    "summarize-from-feedback": _read_summarize_from_feedback,
}


def _read_jsonl(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSONL file.

    Raises:
        ImportFileError: a line is not JSON; the message names it.
    """
    for number, line in enumerate(_read_lines(file), start=1):
        yield parse_json(line, f"{file}: line {number}", ImportFileError)


def _read_tsv(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file as (text before the first tab, text after it)."""
    for line in _read_lines(file):
        name, _, text = line.partition("\t")
        yield name, text


def _read_lines(file: Path) -> Iterator[str]:
    """Yield the lines of a file without their ends; blank lines are left out."""
    # Not `splitlines`: it also splits at characters that occur within a text, such as U+2028.
    for line in read_text(file, ImportFileError).split("\n"):
        if line.strip():
            yield line.rstrip("\r")
