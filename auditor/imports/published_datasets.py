"""Published data sets of compared items, as the files that `logic` reads: items with people's scores, or comparisons.

The formats are those that the data are published in: SummEval (aligned annotations, JSONL), NovelEval (a folder with
corpus.tsv, queries.tsv and qrels.txt), MS MARCO question answering (JSONL), CaTeRS (a folder of .txt and .ann as brat
writes them) and Summarize from Feedback (comparisons, JSONL).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from auditor.errors import ImportFileError, UsageError
from auditor.input_files import parse_json, read_text

PEOPLE = "people"
ASPECTS = ("coherence", "consistency", "fluency", "relevance")
CAUSES = ("cause", "enable", "prevent")


class ItemRow(NamedTuple):
    """One item of a set; `human` is people's score of it, None where they gave none."""

    context: str
    item: str
    text: str
    human: float | None = None


class PeopleRow(NamedTuple):
    """People's decision on a pair: A is `item_a`."""

    context: str
    item_a: str
    item_b: str
    decision: str


class Published(NamedTuple):
    """What a data set holds; either may be empty."""

    items: list[ItemRow]
    comparisons: list[PeopleRow]


def read_published(form: str, source: Path, aspect: str = "") -> Published:
    """Read a data set.

    Args:
        form: one of `FORMS`.
        source: its file or folder.
        aspect: for `summeval` one of `ASPECTS` (coherence where none is given), for `caters` `temporal` (where none is
            given) or `causal`.

    Raises:
        UsageError: no such form or aspect.
        ImportFileError: the data are not as published; the message names the place.
    """
    if form not in FORMS:
        raise UsageError(f"'{form}' is no published format.", f"Known are {', '.join(FORMS)}.")
    if not source.exists():
        raise ImportFileError(f"{source}: there is no such file or folder.", "Download the data first.")
    try:
        return FORMS[form](source, aspect)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ImportFileError(
            f"{source}: is not as {form} is published: a field is missing, or is of another kind.",
            "Check that it is the right file, and the right --from.",
        ) from None


def write_published(found: Published, file: Path, wanted: str) -> int:
    """Write items or comparisons as JSONL that `probes.logic.items` or `auditor import comparisons` reads.

    Returns:
        Rows written.

    Raises:
        UsageError: the data set has none of what is wanted, or the suffix is another.
    """
    from auditor.atomic_files import write_whole

    if file.suffix != ".jsonl":
        raise UsageError(f"{file}: the suffix does not say JSONL.", "Name it .jsonl.")
    if wanted == "items":
        rows: list[dict[str, Any]] = [row._asdict() for row in found.items]
    else:
        rows = [{"judge": PEOPLE, **row._asdict(), "relation": "standard"} for row in found.comparisons]
    if not rows:
        raise UsageError(f"the data have no {wanted}.", "Try --as items." if wanted != "items" else "")
    write_whole("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), file)
    return len(rows)


# --- the formats ------------------------------------------------------------------------------------------------


def _summeval(source: Path, aspect: str) -> Published:
    aspect = aspect or ASPECTS[0]
    if aspect not in ASPECTS:
        raise UsageError(f"SummEval has no aspect '{aspect}'.", f"It has {', '.join(ASPECTS)}.")
    rows = []
    for record in _jsonl(source):
        scores = [float(expert[aspect]) for expert in record["expert_annotations"]]
        context = record.get("text") or record["id"]
        rows.append(ItemRow(context, record["model_id"], record["decoded"], fmean(scores) if scores else None))
    return Published(rows, [])


def _novel_eval(source: Path, _: str) -> Published:
    texts = dict(_tsv(source / "corpus.tsv"))
    queries = dict(_tsv(source / "queries.tsv"))
    rows = []
    for line in _lines(source / "qrels.txt"):
        query, _q0, passage, grade = line.split()
        rows.append(ItemRow(queries[query], passage, texts[passage], float(grade)))
    return Published(rows, [])


def _ms_marco(source: Path, _: str) -> Published:
    rows = []
    for record in _jsonl(source):
        found = record["passages"]
        # One list of objects in the files, an object of lists where they were turned into columns.
        columns = isinstance(found, dict)
        texts = found["passage_text"] if columns else [p["passage_text"] for p in found]
        chosen = found["is_selected"] if columns else [p["is_selected"] for p in found]
        for i, (text, selected) in enumerate(zip(texts, chosen, strict=True)):
            rows.append(ItemRow(record["query"], f"{record['query_id']}-{i}", text, float(selected)))
    return Published(rows, [])


def _caters(source: Path, aspect: str) -> Published:
    if aspect not in ("", "temporal", "causal"):
        raise UsageError(f"CaTeRS has no aspect '{aspect}'.", "It has temporal and causal.")
    items, comparisons = [], []
    for file in sorted(source.glob("*.ann")):
        story = " ".join(read_text(file.with_suffix(".txt"), ImportFileError).split())
        events: dict[str, str] = {}
        for line in _lines(file):
            mark, rest, *covered = line.split("\t")
            if mark.startswith("T"):
                events[mark] = f"{covered[0]} ({mark})"
                items.append(ItemRow(story, events[mark], events[mark]))
            elif mark.startswith("R"):
                kind, one, other = rest.split()
                if _holds(kind.lower(), aspect):
                    pair = (events[one.split(":")[1]], events[other.split(":")[1]])
                    comparisons.append(PeopleRow(story, *pair, "A"))
    return Published(items, comparisons)


def _holds(kind: str, aspect: str) -> bool:
    """Whether a relation says that its first event is earlier, or the cause of the second's beginning."""
    if aspect == "causal":
        return kind.startswith(CAUSES) and "end" not in kind
    return "before" in kind


def _summarize_from_feedback(source: Path, _: str) -> Published:
    items: dict[tuple[str, str], ItemRow] = {}
    decided: dict[tuple[str, str, str], list[int]] = {}
    for record in _jsonl(source):
        post = record["info"].get("post") or record["info"]["article"]
        one, other = (summary["text"].strip() for summary in record["summaries"])
        if one == other:
            continue
        for text in (one, other):
            items.setdefault((post, text), ItemRow(post, text, text))
        votes = decided.setdefault((post, *sorted((one, other))), [0, 0])
        votes[int((one, other)[record["choice"]] == max(one, other))] += 1
    rows = [
        PeopleRow(post, a, b, "TIE" if votes[0] == votes[1] else "AB"[votes[1] > votes[0]])
        for (post, a, b), votes in decided.items()
    ]
    return Published(list(items.values()), rows)


FORMS: dict[str, Callable[[Path, str], Published]] = {
    "summeval": _summeval,
    "novel-eval": _novel_eval,
    "ms-marco": _ms_marco,
    "caters": _caters,
    "summarize-from-feedback": _summarize_from_feedback,
}


def _jsonl(file: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(_lines(file), start=1):
        yield parse_json(line, f"{file}: line {number}", ImportFileError)


def _tsv(file: Path) -> Iterator[tuple[str, str]]:
    for line in _lines(file):
        name, _, text = line.partition("\t")
        yield name, text


def _lines(file: Path) -> Iterator[str]:
    # Not `splitlines`, which also breaks at marks that stand within a text.
    for line in read_text(file, ImportFileError).split("\n"):
        if line.strip():
            yield line.rstrip("\r")
