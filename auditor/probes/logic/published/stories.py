"""CaTeRS: the events of short stories, and people's temporal and causal relations between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from auditor.domain import derive_seed
from auditor.errors import ImportFileError, UsageError
from auditor.imports.published.rows import ConversionOptions, PublishedDataset, PublishedDecision, PublishedItem
from auditor.input_files import read_numbered_lines, read_text
from auditor.text_safety import truncate_text

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
            context = _describe_story(events, options.seed)
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


def _describe_story(events: Sequence[StoryEvent], seed: int) -> str:
    """What judges are shown of a story: its events in random order."""
    return "\n".join([CONTEXT_HEADING, *(f"- {event.text}" for event in _shuffle(events, seed))])


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
