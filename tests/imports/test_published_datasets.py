"""Readers of published data sets, with small files in the published layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor.agents.logic.item_sets import load_item_sets
from auditor.errors import ImportFileError, UsageError
from auditor.imports.comparisons import import_comparisons
from auditor.imports.published_datasets import PublishedDecision, PublishedItem, read_dataset, write_dataset
from auditor.run import open_audit


def write_jsonl(path: Path, *records: dict[str, Any]) -> Path:
    """Write records as JSONL and return the path."""
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


def test_summeval(tmp_path: Path) -> None:
    experts = [{"coherence": c, "consistency": 5, "fluency": 4, "relevance": 3} for c in (1, 2, 3)]
    records = [
        {
            "id": "dm-1",
            "model_id": m,
            "decoded": f"summary of {m}",
            "expert_annotations": experts,
            "turker_annotations": [],
        }
        for m in ("M0", "M1")
    ]
    file = write_jsonl(tmp_path / "x.jsonl", *records)
    assert read_dataset("summeval", file).items[0] == PublishedItem("dm-1", "M0", "summary of M0", 2.0)
    assert read_dataset("summeval", file, "fluency").items[1].human == 4.0
    assert write_dataset(read_dataset("summeval", file), tmp_path / "items.jsonl", "items") == 2
    [item_set] = load_item_sets(tmp_path / "items.jsonl", "preference")
    assert [(i.id, i.text, i.human) for i in item_set.items] == [
        ("M0", "summary of M0", 2.0),
        ("M1", "summary of M1", 2.0),
    ]
    with pytest.raises(UsageError, match="no aspect 'beauty'"):
        read_dataset("summeval", file, "beauty")
    with pytest.raises(UsageError, match="no comparisons"):
        write_dataset(read_dataset("summeval", file), tmp_path / "c.jsonl", "comparisons")


def test_novel_eval(tmp_path: Path) -> None:
    (tmp_path / "corpus.tsv").write_text("0-0\tA film won.\n0-1\tIt rained.\n", encoding="utf-8")
    (tmp_path / "queries.tsv").write_text("0\tWhich film won?\n", encoding="utf-8")
    (tmp_path / "qrels.txt").write_text("0 Q0 0-0 2\n0 Q0 0-1 0\n", encoding="utf-8")
    passages = read_dataset("novel-eval", tmp_path).items
    assert passages == [
        PublishedItem("Which film won?", "0-0", "A film won.", 2.0),
        PublishedItem("Which film won?", "0-1", "It rained.", 0.0),
    ]
    (tmp_path / "qrels.txt").write_text("7 Q0 0-0 2\n", encoding="utf-8")
    with pytest.raises(ImportFileError, match="does not have the format of novel-eval"):
        read_dataset("novel-eval", tmp_path)


@pytest.mark.parametrize("columns", [False, True])
def test_ms_marco(tmp_path: Path, columns: bool) -> None:
    passages: Any = [
        {"is_selected": 1, "passage_text": "yes", "url": "u"},
        {"is_selected": 0, "passage_text": "no", "url": "u"},
    ]
    if columns:
        passages = {key: [p[key] for p in passages] for key in passages[0]}
    file = write_jsonl(tmp_path / "x.jsonl", {"query": "q?", "query_id": 9, "passages": passages, "answers": ["yes"]})
    assert read_dataset("ms-marco", file).items == [
        PublishedItem("q?", "9-0", "yes", 1.0),
        PublishedItem("q?", "9-1", "no", 0.0),
    ]


def test_caters(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("Tom fell.\nHe cried.\nHe left.", encoding="utf-8")
    lines = ["T1\tEvent 4 8\tfell", "T2\tEvent 13 18\tcried", "T3\tEvent 23 27\tleft"]
    lines += ["R1\tCAUSE_BEFORE Arg1:T1 Arg2:T2", "R2\tBEFORE Arg1:T2 Arg2:T3", "R3\tOVERLAPS Arg1:T1 Arg2:T3"]
    (tmp_path / "s.ann").write_text("\n".join(lines) + "\n", encoding="utf-8")
    story = "Tom fell. He cried. He left."
    dataset = read_dataset("caters", tmp_path)
    assert [row.text for row in dataset.items] == ["fell (T1)", "cried (T2)", "left (T3)"]
    first = PublishedDecision(story, "fell (T1)", "cried (T2)", "A")
    assert dataset.comparisons == [first, PublishedDecision(story, "cried (T2)", "left (T3)", "A")]
    assert read_dataset("caters", tmp_path, "causal").comparisons == [first]


def test_summarize_from_feedback(tmp_path: Path, storage: str) -> None:
    info = {"id": "t3_1", "post": "A long post.", "title": "t", "subreddit": "r"}
    texts = {"x": "good", "y": "bad"}

    def record(first: str, second: str, choice: int) -> dict[str, Any]:
        summaries = [{"text": f" {texts[name]}", "policy": "p", "note": ""} for name in (first, second)]
        return {"info": info, "summaries": summaries, "choice": choice, "worker": "w", "batch": "b", "split": "train"}

    file = write_jsonl(tmp_path / "x.jsonl", record("x", "y", 0), record("y", "x", 1), record("x", "y", 1))
    dataset = read_dataset("summarize-from-feedback", file)
    assert dataset.comparisons == [PublishedDecision("A long post.", "bad", "good", "B")]
    write_dataset(dataset, tmp_path / "c.jsonl", "comparisons")
    import_comparisons(tmp_path / "c.jsonl", audit="feedback", storage=storage, people="people")
    logic = open_audit("feedback", storage=storage).report().logic
    assert logic is not None
    assert logic.judges[0].judge == "people"


def test_unknown_missing_or_malformed_data_sets_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'sumeval' is unknown"):
        read_dataset("sumeval", tmp_path)
    with pytest.raises(ImportFileError, match="no such file"):
        read_dataset("summeval", tmp_path / "none.jsonl")
    with pytest.raises(ImportFileError, match="does not have the format of summeval"):
        read_dataset("summeval", write_jsonl(tmp_path / "x.jsonl", {"a": 1}))
