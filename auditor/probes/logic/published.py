"""Published data sets with items that people, or a model, ranked or compared."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np

from auditor.domain import derive_seed
from auditor.domain.terms import short_id
from auditor.errors import ImportFileError, UsageError
from auditor.imports.published import (
    WRONG_LAYOUT_HINT,
    ConversionOptions,
    DatasetFormat,
    PublishedDataset,
    PublishedDecision,
    PublishedItem,
    SourceRecord,
    read_records,
    read_text_list,
    select_split,
)
from auditor.input_files import read_numbered_lines, read_text
from auditor.text_safety import truncate_text


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


DEFAULT_MIN_EVENTS = 7
"""As in "Aligning with Logic" (ICML 2025), Appendix B."""
ASPECTS = ("temporal", "causal")
CAUSAL_RELATIONS = ("cause", "enable", "prevent")
CONTEXT_HEADING = "Events, in no particular order:"
_STORY_SEPARATOR = re.compile(r"^[ \t]*\*{3,}[ \t]*$", re.MULTILINE)
_ANNOTATION_HINT = "Check that the .ann file is in the format of brat, and belongs to the .txt file of the same name."


EVENT_TYPE = "event"
"""Type of the text marks that are events, in lower case; others are times or people."""


class StoryEvent(NamedTuple):
    """An event of a file.

    Attributes:
        name: its words, followed by its id in the annotation.
        text: the line of the story with its words in brackets.
        story: number of its story in the file.
        line: position of the line in the file.
    """

    name: str
    text: str
    story: int
    line: int


class _AnnotatedFile(NamedTuple):
    """The events of a file by id, and its relations as (location, type, first event, second event)."""

    events: dict[str, StoryEvent]
    relations: list[tuple[str, str, StoryEvent, StoryEvent]]


@dataclass
class _Stories:
    """The stories that are read from all files, and their counts."""

    items: list[PublishedItem] = field(default_factory=list)
    decisions: list[PublishedDecision] = field(default_factory=list)
    contexts: set[str] = field(default_factory=set)
    n_stories: int = 0
    n_repeated: int = 0
    n_one_line: int = 0

    def add(self, content: _AnnotatedFile, options: ConversionOptions) -> None:
        """Add the stories of a file that have enough events, and that no earlier file has with the same events."""
        stories = _group_by_story(content.events.values())
        self.n_stories += len(stories)
        contexts: dict[int, str] = {}
        for story, events in stories.items():
            if len(events) < _min_events(options):
                continue
            context = "\n".join([CONTEXT_HEADING, *(f"- {event.text}" for event in _shuffle(events, options.seed))])
            if context in self.contexts:
                self.n_repeated += 1
                continue
            self.contexts.add(context)
            contexts[story] = context
            self.n_one_line += len({event.line for event in events}) == 1
            self.items += [PublishedItem(context, event.name, event.text) for event in _shuffle(events, options.seed)]
        self.decisions += _decide_pairs(content, contexts, options)

    def describe(self, min_events: int) -> Iterator[str]:
        """Yield sentences on what was counted and left out."""
        n_selected = len(self.contexts)
        yield (
            f"Stories with at least {min_events} events: {n_selected} of {self.n_stories}. Their events: "
            f"{len(self.items)}."
        )
        if self.n_repeated:
            yield f"Stories that occur again with the same events, and are left out there: {self.n_repeated}."
        if self.n_one_line:
            yield (
                f"Caution: stories that are one line of the file: {self.n_one_line}. Each of their items is the whole "
                "story, whose order answers the question. Write each sentence in a line of its own."
            )


def read_caters(source: Path, options: ConversionOptions) -> PublishedDataset:
    """Read CaTeRS: per story, its events as items without scores, and people's relations of events as comparisons.

    A story with fewer than `min_events` events (default 7) is left out. Judges are shown its events in random order and
    not the story, since the order of reading nearly always answers the temporal question. People decide for the event
    that comes earlier, or is the cause (see `orders_events`); the order of a pair is random. Pairs with relations in
    both directions are left out, and so is a story that occurs again with the same events.

    Args:
        source: a folder with the .ann and .txt files of brat, or with folders of them. Stories in a file are separated
            by a line of three asterisks.
        options: `aspect` is `temporal` (default) or `causal`.
    """
    if options.aspect not in ("", *ASPECTS):
        raise UsageError(f"CaTeRS has no aspect '{options.aspect}'.", f"Use {' or '.join(ASPECTS)}.")
    if not source.is_dir():
        raise ImportFileError(f"{source}: is not a folder.", "Name the folder with the .ann and .txt files.")
    files = sorted(source.rglob("*.ann"))
    annotated = [file for file in files if file.with_suffix(".txt").is_file()]
    if not annotated:
        raise ImportFileError(
            f"{source}: has no .ann file with a .txt file of the same name.", "Name the folder that has both."
        )
    stories = _Stories()
    for file in annotated:
        stories.add(_read_annotated_file(file), options)
    notes = list(stories.describe(_min_events(options)))
    if missing_texts := [file.name for file in files if file not in annotated]:
        notes.append(f"Left out, since there is no .txt file of the same name: {', '.join(missing_texts)}.")
    return PublishedDataset({"items": stories.items, "comparisons": stories.decisions}, notes)


def _min_events(options: ConversionOptions) -> int:
    """Fewest events of a story."""
    return DEFAULT_MIN_EVENTS if options.min_events is None else options.min_events


def orders_events(relation: str, aspect: str) -> bool:
    """Whether a CaTeRS relation puts its first event before the second in time, or makes it the cause of its start.

    A relation `CAUSE_TO_END_…` does neither: what an event ends has begun before it.
    """
    relation = relation.lower()
    if "to_end" in relation:
        return False
    return relation.startswith(CAUSAL_RELATIONS) if aspect == "causal" else "before" in relation


def _group_by_story(events: Iterable[StoryEvent]) -> dict[int, list[StoryEvent]]:
    """The events of each story of a file."""
    stories: dict[int, list[StoryEvent]] = {}
    for event in events:
        stories.setdefault(event.story, []).append(event)
    return stories


def _shuffle(events: Sequence[StoryEvent], seed: int) -> list[StoryEvent]:
    """The events of a story in random order, the same one for the same seed and events."""
    rng = np.random.default_rng(derive_seed(seed, "published", "caters", *(event.text for event in events)))
    return [events[index] for index in rng.permutation(len(events))]


def _decide_pairs(
    content: _AnnotatedFile, contexts: dict[int, str], options: ConversionOptions
) -> Iterator[PublishedDecision]:
    """Yield people's decision on each pair of events of the selected stories, in a random order: else always `A`."""
    ordered_pairs: dict[tuple[str, str], str] = {}
    for location, relation, first, second in content.relations:
        if first.story != second.story:
            raise ImportFileError(f"{location}: the relation is between two stories.", _ANNOTATION_HINT)
        if first.story in contexts and orders_events(relation, options.aspect):
            ordered_pairs[first.name, second.name] = contexts[first.story]
    for (first_name, second_name), context in ordered_pairs.items():
        if (second_name, first_name) in ordered_pairs:
            continue
        seed = derive_seed(options.seed, "published", "caters", context, first_name, second_name)
        if np.random.default_rng(seed).random() < 0.5:
            yield PublishedDecision(context, first_name, second_name, "A")
        else:
            yield PublishedDecision(context, second_name, first_name, "B")


def _read_annotated_file(file: Path) -> _AnnotatedFile:
    """Read the events and relations of an .ann file; relations may name text marks (T1) or events (E1).

    Relations with a text mark that is no event are left out.
    """
    text = read_text(file.with_suffix(".txt"), ImportFileError)
    marks: dict[str, StoryEvent] = {}
    typed_events: list[str] = []
    triggers: dict[str, str] = {}
    relation_lines: list[tuple[str, list[str]]] = []
    for location, line in read_numbered_lines(file, ImportFileError):
        annotation_id, *fields = line.split("\t")
        if annotation_id in marks or annotation_id in triggers:
            raise ImportFileError(f"{location}: the id '{annotation_id}' occurs twice.", _ANNOTATION_HINT)
        if annotation_id.startswith("T"):
            if len(fields) != 2:
                raise ImportFileError(f"{location} is not 'id, type and positions, text'.", _ANNOTATION_HINT)
            marks[annotation_id] = _read_event(location, text, annotation_id, *fields)
            typed_events += [annotation_id] * (fields[0].split(" ")[0].lower() == EVENT_TYPE)
        elif annotation_id.startswith("E") and fields:
            triggers[annotation_id] = fields[0].split(" ")[0].partition(":")[2]
        elif annotation_id.startswith("R") and fields:
            relation_lines.append((location, fields[0].split()))
    if marks and not triggers and not typed_events:
        raise ImportFileError(f"{file}: has text marks, but no events.", _ANNOTATION_HINT)
    event_ids = dict.fromkeys(triggers.values()) if triggers else typed_events
    events = {name: marks[name] for name in event_ids if name in marks}
    pairs = [(location, parts, _find_marks(location, parts, marks, triggers)) for location, parts in relation_lines]
    relations = [
        (location, parts[0], events[first], events[second])
        for location, parts, (first, second) in pairs
        if first in events and second in events
    ]
    return _AnnotatedFile(events, relations)


def _find_marks(
    location: str, parts: Sequence[str], marks: Mapping[str, StoryEvent], triggers: Mapping[str, str]
) -> tuple[str, str]:
    """The text marks of a relation's arguments, such as `Arg1:E3` and `Arg2:T2`.

    Args:
        parts: of the line: type of the relation, and its arguments.
        triggers: text marks of events, by id of the event.
    """
    names = [argument.partition(":")[2] for argument in parts[1:]]
    if len(parts) != 3 or not all(names):
        raise ImportFileError(f"{location} is not 'id, relation Arg1:id Arg2:id'.", _ANNOTATION_HINT)
    first, second = (triggers.get(name, name) for name in names)
    for name, mark in zip(names, (first, second), strict=True):
        if mark not in marks:
            missing = f"event '{truncate_text(name)}'" if name == mark else f"text mark '{mark}' of the event '{name}'"
            raise ImportFileError(f"{location}: the file has no {missing}.", _ANNOTATION_HINT)
    return first, second


def _read_event(location: str, text: str, annotation_id: str, marks: str, covered_text: str) -> StoryEvent:
    """Read a text mark such as `Event 7 10;13 16`, whose positions count the characters of the text."""
    spans = [(int(start), int(end)) for start, end in re.findall(r"(\d{1,9}) (\d{1,9})", marks)]
    if not spans or " ".join(text[start:end] for start, end in spans) != covered_text:
        raise ImportFileError(
            f"{location}: the text at these positions is not '{truncate_text(covered_text)}'.", _ANNOTATION_HINT
        )
    spans = sorted(spans)
    story = len(_STORY_SEPARATOR.findall(text[: spans[0][0]]))
    line_start = text.rfind("\n", 0, spans[0][0]) + 1
    line_end = text.find("\n", spans[-1][1])
    pieces, position = [], line_start
    for start, end in spans:
        pieces += [text[position:start], "[", text[start:end], "]"]
        position = end
    pieces.append(text[position : line_end if line_end >= 0 else len(text)])
    return StoryEvent(f"{covered_text} ({annotation_id})", " ".join("".join(pieces).split()), story, line_start)


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
