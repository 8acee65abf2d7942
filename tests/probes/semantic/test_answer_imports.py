"""Files of answers to moral questions: their layouts are recognised by their columns, in upper or lower case."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.probes.semantic.answer_imports import read_answer_rows

LAYOUTS = {
    "standard": ("model,question_id,paraphrase,answer", "m,q,p,a"),
    "SaGE": ("question_id,paraphrased,model_output,model", "q,p,a,m"),
    "MIC": ("Q,A,rot,chatbot", "q,a,r,m"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("change_case", [str, str.lower, str.upper, str.title])
def test_columns_are_found_in_any_case(layout: str, change_case: type[str], tmp_path: Path) -> None:
    header, row = LAYOUTS[layout]
    file = tmp_path / "answers.csv"
    file.write_text(f"{change_case(header)}\n{row}\n", encoding="utf-8")
    [answer] = read_answer_rows(file)
    assert (answer.model, answer.answer) == ("m", "a")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    file.write_text("model,question_id,paraphrase,answer\nm,q,p,Müßte gehen\n", encoding=encoding)
    assert [row.answer for row in read_answer_rows(file)] == ["Müßte gehen"]
