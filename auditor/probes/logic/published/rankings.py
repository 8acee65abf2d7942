"""Data sets of summaries and passages that people or a model ranked: SummEval, NovelEval, MS MARCO and RankGPT."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean

import numpy as np

from auditor.domain import derive_seed
from auditor.errors import ImportFileError, UsageError
from auditor.imports.published.records import (
    WRONG_LAYOUT_HINT,
    SourceRecord,
    read_records,
    read_text_list,
)
from auditor.imports.published.rows import (
    ConversionOptions,
    DatasetFormat,
    PublishedDataset,
    PublishedDecision,
    PublishedItem,
)
from auditor.input_files import read_numbered_lines
from auditor.probes.logic.published.feedback import read_summarize_from_feedback
from auditor.probes.logic.published.stories import read_caters

DEFAULT_PASSAGES = 10
"""Passages of a query, as in "Aligning with Logic" (ICML 2025), Appendix B."""
SUMMEVAL_ASPECTS = ("coherence", "consistency", "fluency", "relevance")


def read_summeval(source: Path, options: ConversionOptions) -> PublishedDataset:
    """Read SummEval: per text, the summaries of several systems with the experts' mean score of an aspect.

    Both published forms are read: one line for each summary (`model_annotations.aligned.paired.jsonl`), and the rows of
    the Hugging Face data set `mteb/summeval`, with lists of summaries and of mean scores.
    """
    aspect = options.aspect or SUMMEVAL_ASPECTS[0]
    if aspect not in SUMMEVAL_ASPECTS:
        raise UsageError(f"SummEval has no aspect '{aspect}'.", f"Use one of {', '.join(SUMMEVAL_ASPECTS)}.")
    items: list[PublishedItem] = []
    for record in read_records(source):
        if "machine_summaries" in record.fields:
            items += _read_summary_lists(record, aspect)
            continue
        scores = [expert.number(aspect) for expert in record.children("expert_annotations")]
        context = record.optional_text("text") or record.text("id")
        score = fmean(scores) if scores else None
        items.append(PublishedItem(context, record.text("model_id"), record.text("decoded"), score))
    return PublishedDataset({"items": items}, [count_sets(items)])


def _read_summary_lists(record: SourceRecord, aspect: str) -> list[PublishedItem]:
    """The summaries of one text; systems have no names in this form, and are numbered from 1."""
    summaries, scores = record.texts("machine_summaries"), record.numbers(aspect)
    if len(summaries) != len(scores):
        raise record.make_error(aspect, f"has {len(scores)} scores for {len(summaries)} summaries")
    return [
        PublishedItem(record.text("text"), f"summary {number}", summary, score)
        for number, (summary, score) in enumerate(zip(summaries, scores, strict=True), start=1)
    ]


def read_novel_eval(source: Path, _: ConversionOptions) -> PublishedDataset:
    """Read NovelEval: per query, its passages with people's grade of relevance."""
    texts, queries = _read_tsv(source / "corpus.tsv"), _read_tsv(source / "queries.tsv")
    items = []
    for location, line in read_numbered_lines(source / "qrels.txt", ImportFileError):
        fields = line.split()  # TREC format: query, an unused column, passage, grade
        grade = _parse_number(fields[3]) if len(fields) == 4 else None
        if grade is None:
            raise ImportFileError(f"{location} is not 'query 0 passage grade'.", WRONG_LAYOUT_HINT)
        for name, texts_by_id, file_name in ((fields[0], queries, "queries.tsv"), (fields[2], texts, "corpus.tsv")):
            if name not in texts_by_id:
                raise ImportFileError(f"{location}: {file_name} has no '{name}'.", WRONG_LAYOUT_HINT)
        items.append(PublishedItem(queries[fields[0]], fields[2], texts[fields[2]], grade))
    return PublishedDataset({"items": items}, [count_sets(items)])


def read_ms_marco(source: Path, _: ConversionOptions) -> PublishedDataset:
    """Read MS MARCO: per query, its passages with the score 1 if people used them for the answer, else 0."""
    items = []
    for record in read_records(source):
        query_id = record.fields.get("query_id")
        if not isinstance(query_id, (int, str)):
            raise record.make_error("query_id", "is missing")
        for i, passage in enumerate(record.children("passages")):
            selected = passage.number("is_selected")
            items.append(PublishedItem(record.text("query"), f"{query_id}-{i}", passage.text("passage_text"), selected))
    return PublishedDataset({"items": items}, [count_sets(items)])


def read_rankgpt(source: Path, options: ConversionOptions) -> PublishedDataset:
    """Read RankGPT's MS MARCO: per query, its passages and the permutation in which GPT-3.5 or GPT-4 ranked them.

    Of each query, the first passages are read in the order in which they were retrieved (10 by default). A passage's
    score is the number of these passages ranked after it. As in the authors' program, the first mention of a passage
    counts, and numbers without a passage are ignored. Passages that the permutation does not name have no score; the
    authors' program appends them in their original order. Passages without text are left out. Comparisons are all pairs
    of ranked passages, each in one order, drawn at random.
    """
    items: list[PublishedItem] = []
    decisions: list[PublishedDecision] = []
    queries: set[str] = set()
    n_passages = DEFAULT_PASSAGES if options.passages is None else options.passages
    n_repeated = n_left_out = n_empty = 0
    for record, permutation in _read_ranked_queries(source, options.permutations):
        query, texts = record.text("query"), _passage_texts(record)
        if query in queries:
            n_repeated += 1
            continue
        queries.add(query)
        n_left_out += max(0, len(texts) - n_passages)
        texts = texts[:n_passages]
        text_by_number = {number: text for number, text in enumerate(texts, start=1) if text.strip()}
        n_empty += len(texts) - len(text_by_number)
        ranking = [number for number in parse_permutation(permutation, len(texts)) if number in text_by_number]
        score_by_number = {number: float(n_after) for n_after, number in enumerate(reversed(ranking))}
        items += [
            PublishedItem(query, str(number), text, score_by_number.get(number))
            for number, text in text_by_number.items()
        ]
        decisions += _decide_ranked_pairs(query, ranking, options.seed)
    counts = {
        f"Passages after the first {n_passages} of their query, left out": n_left_out,
        "Passages without text, left out": n_empty,
        "Passages that are not in the permutation of their query, without a score": sum(i.human is None for i in items),
        "Queries that occur again later in the file, and are left out there": n_repeated,
    }
    notes = [count_sets(items), *(f"{text}: {count}." for text, count in counts.items() if count)]
    return PublishedDataset({"items": items, "comparisons": decisions}, notes)


def _read_ranked_queries(source: Path, permutations_file: Path | None) -> Iterator[tuple[SourceRecord, str]]:
    """Yield the queries with their permutations, which belong together by their order."""
    if permutations_file is None:
        raise UsageError(
            "the passages of RankGPT are ranked in a second file.", "Add --permutations marco-train-10k-gpt3.5.json."
        )
    records, permutations = list(read_records(source)), read_text_list(permutations_file)
    if len(records) != len(permutations):
        raise ImportFileError(
            f"{permutations_file}: has {len(permutations)} permutations, but {source} has {len(records)} queries.",
            "Use the two files of one release: permutations belong to queries by their order.",
        )
    yield from zip(records, permutations, strict=True)


def _decide_ranked_pairs(query: str, ranking: Sequence[int], seed: int) -> Iterator[PublishedDecision]:
    """Yield the decision on each pair of ranked passages, in a random order: else the first were always preferred."""
    rng = np.random.default_rng(derive_seed(seed, "published", "rankgpt", query))
    for better, worse in combinations(map(str, ranking), 2):
        if rng.random() < 0.5:
            yield PublishedDecision(query, better, worse, "A")
        else:
            yield PublishedDecision(query, worse, better, "B")


def _passage_texts(record: SourceRecord) -> list[str]:
    """The passages of a query, as RankGPT's ranking program writes them, or as its training program reads them."""
    if "retrieved_passages" in record.fields:
        return [passage.text("text") for passage in record.children("retrieved_passages")]
    return [passage.text("content") for passage in record.children("hits")]


def parse_permutation(text: str, n_passages: int) -> list[int]:
    """Parse a text such as `[2] > [1]` to the numbers of passages, best first, from 1 and each at most once."""
    numbers = (int(digits) for digits in re.findall(r"[0-9]{1,9}", text))
    return list(dict.fromkeys(number for number in numbers if 1 <= number <= n_passages))


def count_sets(items: list[PublishedItem]) -> str:
    """A sentence on the number of items and sets."""
    return f"Items: {len(items)}, in sets: {len({item.context for item in items})}."


def _read_tsv(file: Path) -> dict[str, str]:
    """The lines of a file by the text before the first tab."""
    return {line.partition("\t")[0]: line.partition("\t")[2] for _, line in read_numbered_lines(file, ImportFileError)}


def _parse_number(text: str) -> float | None:
    """Parse a finite number; None if it is not one."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


FORMATS: Mapping[str, DatasetFormat] = {
    "summeval": DatasetFormat(
        read_summeval,
        used_options=frozenset({"aspect"}),
        relation="coherence",
        layout_source="the authors' documentation",
    ),
    "novel-eval": DatasetFormat(read_novel_eval, relation="relevance"),
    "ms-marco": DatasetFormat(read_ms_marco, relation="relevance", layout_source="the authors' documentation"),
    "rankgpt": DatasetFormat(
        read_rankgpt,
        kinds=("items", "comparisons"),
        used_options=frozenset({"permutations", "passages", "split"}),
        relation="relevance",
        labeller="rankgpt",
        is_split_at_random=True,
        layout_source="the authors' training program",
    ),
    "caters": DatasetFormat(
        read_caters,
        kinds=("items", "comparisons"),
        used_options=frozenset({"aspect", "min_events"}),
        relation="temporal",
    ),
    "summarize-from-feedback": DatasetFormat(
        read_summarize_from_feedback,
        kinds=("items", "comparisons"),
        used_options=frozenset({"split"}),
        layout_source="the authors' documentation",
    ),
}
"""The data sets by name."""
