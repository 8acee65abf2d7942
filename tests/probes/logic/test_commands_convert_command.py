"""The command `auditor logic convert`: what it writes, counts and says to do next."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli_runner import auditor, succeed
from tests.support.json_lines import write_json_lines


def test_the_questions_of_a_data_set_and_what_to_do_with_them(tmp_path: Path) -> None:
    rows = "".join(f"Question {i}?,Answer.,Rule {i}.,care,4\n" for i in range(8))
    (tmp_path / "MIC.csv").write_text(f"Q,A,rot,moral,rot-agree\n{rows}", encoding="utf-8")
    options = ("--limit", "3", "--seed", "5")
    questions = succeed("logic", "convert", "mic", "MIC.csv", "-o", "q.jsonl", *options, cwd=tmp_path)
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


def test_a_verified_layout_has_no_caution_and_its_next_step_works(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("Tom fell.\nHe cried.\n", encoding="utf-8")
    marks = "T1\tEvent 4 8\tfell\nT2\tEvent 13 18\tcried\nR1\tBEFORE Arg1:T1 Arg2:T2\n"
    (tmp_path / "s.ann").write_text(marks, encoding="utf-8")
    options = ("--as", "comparisons", "--min-events", "2")
    converted = succeed("logic", "convert", "caters", ".", "-o", "c.jsonl", *options, cwd=tmp_path)
    assert "not verified" not in converted.stderr
    assert 'people = "c.jsonl"' in converted.stderr
    command = "auditor import comparisons c.jsonl --items ITEMS.jsonl --audit NAME --people people --criterion temporal"
    assert command in converted.stderr  # the comparisons only name the events
    assert "1 comparison: " in converted.stderr
    items = auditor("logic", "convert", "caters", ".", "-o", "i.jsonl", *options[2:], cwd=tmp_path)
    assert 'items = "i.jsonl", relation = "temporal"' in items.stderr
    command = command.replace("ITEMS", "i").replace("NAME", "stories")
    succeed(*command.split()[1:], cwd=tmp_path)
    succeed("logic", "repair", "stories", "-o", "rows.jsonl", cwd=tmp_path)
    prompt = json.loads((tmp_path / "rows.jsonl").read_text("utf-8").splitlines()[0])["prompt"]
    assert "Tom [fell]." in prompt
    assert "earlier" in prompt


def test_ranked_passages_become_comparisons_of_two_parts(tmp_path: Path) -> None:
    """Table 5 of Aligning with Logic: 1,000 of the queries, 800 for tuning and 200 for the test."""
    passages = [{"content": f"passage {i}"} for i in range(12)]
    write_json_lines(tmp_path / "marco.jsonl", *({"query": f"q{n}?", "hits": passages} for n in range(30)))
    permutation = " > ".join(f"[{i}]" for i in range(12, 0, -1))
    (tmp_path / "p.json").write_text(json.dumps([permutation] * 30), "utf-8")
    contexts: dict[str, set[str]] = {}
    for part in ("train", "test"):
        for kind in ("items", "comparisons"):
            words = (
                "logic", "convert", "rankgpt", "marco.jsonl", "--permutations", "p.json", "-o",
                f"{part}-{kind}.jsonl",
            )  # fmt: skip
            options = ("--as", kind, "--split", part, "--limit", "20", "--seed", "4")
            converted = succeed(*words, *options, cwd=tmp_path)
            rows = [json.loads(line) for line in (tmp_path / f"{part}-{kind}.jsonl").read_text("utf-8").splitlines()]
            assert len(rows) == {"train": 16, "test": 4}[part] * (10 if kind == "items" else 45)
            assert contexts.setdefault(part, {row["context"] for row in rows}) == {row["context"] for row in rows}
    assert (len(contexts["train"]), len(contexts["test"])) == (16, 4)
    assert not contexts["train"] & contexts["test"]
    assert {row["judge"] for row in rows} == {"rankgpt"}
    assert {row["decision"] for row in rows} == {"A", "B"}  # in random order
    assert all((int(row["item_a"]) > int(row["item_b"])) == (row["decision"] == "A") for row in rows)
    command = "auditor import comparisons test-comparisons.jsonl --items ITEMS.jsonl --audit NAME --criterion relevance"
    assert command in converted.stderr
    refused = auditor(*words, "--split", "valid", cwd=tmp_path)
    assert "--split: there is no part 'valid'. Use train or test." in refused.stderr
