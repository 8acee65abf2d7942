"""CaTeRS: the events of short stories, and people's temporal and causal relations between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from auditor.domain import derive_seed
from auditor.errors import ImportFileError, UsageError
from auditor.imports.published.records import read_numbered_lines
from auditor.imports.published.rows import ConversionOptions, PublishedDataset, PublishedDecision, PublishedItem
from auditor.input_files import read_text
from auditor.text_safety import truncate_text

DEFAULT_MIN_EVENTS = 7
"""As in "Aligning with Logic" (ICML 2025), Appendix B."""
ASPECTS = ("temporal", "causal")
CAUSAL_RELATIONS = ("cause", "enable", "prevent")
CONTEXT_HEADING = "Events, in no particular order:"
_STORY_SEPARATOR = re.compile(r"^[ \t]*\*{3,}[ \t]*$", re.MULTILINE)
_ANNOTATION_HINT = "Check that the .ann file is in the format of brat, and belongs to the .txt file of the same name."


class StoryEvent(NamedTuple):
    """An event of a file.

    Attributes:
        name: its words, followed by its id in the annotation.
        text: the line of the story with its words in brackets.
        story: number of its story in the file.
    """

    name: str
    text: str
    story: int


class _AnnotatedFile(NamedTuple):
    """The events of a file by id, and its relations as (location, type, first event, second event)."""

    events: dict[str, StoryEvent]
    relations: list[tuple[str, str, StoryEvent, StoryEvent]]


def read_caters(source: Path, options: ConversionOptions) -> PublishedDataset:
    """Read CaTeRS: per story, its events as items without scores, and people's relations of events as comparisons.

    A story with fewer than `min_events` events (default 7) is left out. Judges are shown its events in random order and
    not the story, since the order of reading nearly always answers the temporal question. The decision is always `A`:
    the first event comes earlier, or is the cause (see `orders_events`). Pairs with relations in both directions are
    left out.

    Args:
        source: a folder with the .ann and .txt files of brat, or with folders of them. Stories in a file are separated
            by a line of three asterisks.
        options: `aspect` is `temporal` (default) or `causal`.
    """
    if options.aspect not in ("", *ASPECTS):
        raise UsageError(f"CaTeRS has no aspect '{options.aspect}'.", f"Use {' or '.join(ASPECTS)}.")
    if not source.is_dir():
        raise ImportFileError(f"{source}: is not a folder.", "Name the folder with the .ann and .txt files.")
    min_events = DEFAULT_MIN_EVENTS if options.min_events is None else options.min_events
    files = sorted(source.rglob("*.ann"))
    annotated = [file for file in files if file.with_suffix(".txt").is_file()]
    if not annotated:
        raise ImportFileError(
            f"{source}: has no .ann file with a .txt file of the same name.", "Name the folder that has both."
        )
    items: list[PublishedItem] = []
    decisions: list[PublishedDecision] = []
    n_stories = n_selected = 0
    for file in annotated:
        content = _read_annotated_file(file)
        stories = _group_by_story(content.events.values())
        selected = {story: events for story, events in stories.items() if len(events) >= min_events}
        contexts = {story: _describe_story(events, options.seed) for story, events in selected.items()}
        for story, events in selected.items():
            items += [
                PublishedItem(contexts[story], event.name, event.text) for event in _shuffle(events, options.seed)
            ]
        decisions += _decide_pairs(content, contexts, options.aspect)
        n_stories, n_selected = n_stories + len(stories), n_selected + len(selected)
    notes = [f"Stories with at least {min_events} events: {n_selected} of {n_stories}. Their events: {len(items)}."]
    if missing_texts := [file.name for file in files if file not in annotated]:
        notes.append(f"Left out, since there is no .txt file of the same name: {', '.join(missing_texts)}.")
    return PublishedDataset({"items": items, "comparisons": decisions}, notes)


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


def _decide_pairs(content: _AnnotatedFile, contexts: dict[int, str], aspect: str) -> Iterator[PublishedDecision]:
    """Yield people's decision on each pair of events of the selected stories."""
    ordered_pairs: dict[tuple[str, str], str] = {}
    for location, relation, first, second in content.relations:
        if first.story != second.story:
            raise ImportFileError(f"{location}: the relation is between two stories.", _ANNOTATION_HINT)
        if first.story in contexts and orders_events(relation, aspect):
            ordered_pairs[first.name, second.name] = contexts[first.story]
    for (first_name, second_name), context in ordered_pairs.items():
        if (second_name, first_name) not in ordered_pairs:
            yield PublishedDecision(context, first_name, second_name, "A")


def _read_annotated_file(file: Path) -> _AnnotatedFile:
    """Read the events and relations of an .ann file; relations may name text marks (T1) or events (E1)."""
    text = read_text(file.with_suffix(".txt"), ImportFileError)
    events: dict[str, StoryEvent] = {}
    triggers: dict[str, str] = {}
    relation_lines: list[tuple[str, list[str]]] = []
    for location, line in read_numbered_lines(file):
        annotation_id, *fields = line.split("\t")
        if annotation_id.startswith("T"):
            if len(fields) != 2:
                raise ImportFileError(f"{location} is not 'id, type and positions, text'.", _ANNOTATION_HINT)
            events[annotation_id] = _read_event(location, text, annotation_id, *fields)
        elif annotation_id.startswith("E") and fields:
            triggers[annotation_id] = fields[0].split(" ")[0].partition(":")[2]
        elif annotation_id.startswith("R") and fields:
            relation_lines.append((location, fields[0].split()))
    if triggers:  # then other text marks are not events, but times or people
        events = {name: events[name] for name in dict.fromkeys(triggers.values()) if name in events}

    def find_event(location: str, argument: str) -> StoryEvent:
        """The event of an argument such as `Arg1:E3`."""
        name = argument.partition(":")[2]
        event = events.get(triggers.get(name, name))
        if event is None:
            raise ImportFileError(f"{location}: the file has no event '{truncate_text(name)}'.", _ANNOTATION_HINT)
        return event

    relations = []
    for location, parts in relation_lines:
        if len(parts) != 3:
            raise ImportFileError(f"{location} is not 'id, relation Arg1:id Arg2:id'.", _ANNOTATION_HINT)
        relations.append((location, parts[0], find_event(location, parts[1]), find_event(location, parts[2])))
    return _AnnotatedFile(events, relations)


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
    return StoryEvent(f"{covered_text} ({annotation_id})", " ".join("".join(pieces).split()), story)
