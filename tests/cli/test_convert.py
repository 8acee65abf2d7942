"""The command `auditor logic convert`: what it writes, counts and says to do next."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli_runner import auditor
from tests.support.json_lines import write_json_lines


def test_the_questions_of_a_data_set_and_what_to_do_with_them(tmp_path: Path) -> None:
    rows = "".join(f"Question {i}?,Answer.,Rule {i}.,care,4\n" for i in range(8))
    (tmp_path / "MIC.csv").write_text(f"Q,A,rot,moral,rot-agree\n{rows}", encoding="utf-8")
    options = ("--limit", "3", "--seed", "5")
    questions = auditor("logic", "convert", "mic", "MIC.csv", "-o", "q.jsonl", *options, cwd=tmp_path)
    assert questions.returncode == 0, questions.stderr
    assert "Questions: 8, of them without one most frequent foundation: 0." in questions.stderr
    assert "Drawn at random with seed 5: 3 of 8." in questions.stderr
    assert "Layout not verified on a real file" in questions.stderr
    assert 'semantic = { questions = "q.jsonl", paraphraser = "…" }' in questions.stderr
    rules = auditor("logic", "convert", "mic", "MIC.csv", "-o", "r.jsonl", "--as", "rules", *options, cwd=tmp_path)
    assert "auditor experiment rules AUDIT --file r.jsonl" in rules.stderr
    ids = [
        [json.loads(line)["question_id"] for line in (tmp_path / name).read_text(encoding="utf-8").splitlines()]
        for name in ("q.jsonl", "r.jsonl")
    ]
    assert ids[0] == ids[1]
    assert len(ids[0]) == 3


def test_items_of_a_task_are_named_as_such(tmp_path: Path) -> None:
    write_json_lines(tmp_path / "h.jsonl", {"ctx": "He", "endings": ["sits.", "runs."], "label": 0})
    converted = auditor("logic", "convert", "hellaswag", "h.jsonl", "-o", "t.jsonl", cwd=tmp_path)
    assert 'task = { source = "t.jsonl", answer = "choice" }' in converted.stderr
    refused = auditor("logic", "convert", "hellaswag", "h.jsonl", "-o", "t.jsonl", "--as", "rules", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--as: hellaswag has no rules. Use items or known-answers." in refused.stderr


def test_a_verified_layout_has_no_caution(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("Tom fell.\nHe cried.\n", encoding="utf-8")
    marks = "T1\tEvent 4 8\tfell\nT2\tEvent 13 18\tcried\nR1\tBEFORE Arg1:T1 Arg2:T2\n"
    (tmp_path / "s.ann").write_text(marks, encoding="utf-8")
    options = ("--as", "comparisons", "--min-events", "2")
    converted = auditor("logic", "convert", "caters", ".", "-o", "c.jsonl", *options, cwd=tmp_path)
    assert converted.returncode == 0, converted.stderr
    assert "not verified" not in converted.stderr
    assert 'people = "c.jsonl"' in converted.stderr
    assert "auditor import comparisons c.jsonl --audit NAME --people people" in converted.stderr
