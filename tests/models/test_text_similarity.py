from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.errors import ModelSetupError
from auditor.models.embeddings import SentenceEncoder
from auditor.models.text_similarity import (
    bertscore,
    bleu,
    bleu_nltk,
    check_similarity_packages,
    consistency_measures,
    rouge_l,
    rouge_l_stemmed,
)
from tests.support.tiny_bert import MAX_TOKENS, save_tiny_bert

TEXTS = ("You should keep a promise that you gave.", "Keeping promises is right.", "Bread is cheap in the market.")


def test_worked_values() -> None:
    # Longest common subsequence "a b c" of three and four words: P = 1, R = 3/4, F = 6/7.
    assert rouge_l("a b c", "a x b c") == pytest.approx(6 / 7)
    assert bleu("the same words here", "the same words here") == pytest.approx(1.0)
    assert bleu("one two three four", "five six seven eight") == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("first", "second", "shared", "lengths"), [
    ("держать слово", "держать слово", 2, (2, 2)),
    ("держать слово хорошо", "держать обещание", 1, (3, 2)),
    ("وعد صادق", "وعد كاذب", 1, (2, 2)),
    ("守信用", "守承诺用", 2, (3, 4)),
    ("Keep-2 promises", "keep 2 PROMISES", 3, (3, 3)),
])  # fmt: skip
def test_rouge_counts_words_of_every_script(first: str, second: str, shared: int, lengths: tuple[int, int]) -> None:
    assert rouge_l(first, second) == pytest.approx(2 * shared / sum(lengths))


def test_published_bleu_has_one_direction_and_smooths_counts_of_zero() -> None:
    # Reference of five words, "d" replaced: precisions 4/5, 2/4, 1/3 and 0.1/2 (smoothing method 1), equal lengths.
    expected = (4 / 5 * 2 / 4 * 1 / 3 * 0.1 / 2) ** 0.25
    assert bleu_nltk("a b c d e", "a b c x e") == pytest.approx(expected)
    # A hypothesis of 4 of the reference's 5 words: all precisions 1, brevity penalty exp(1 - 5/4). Not so vice versa.
    assert bleu_nltk("a b c d e", "a b c d") == pytest.approx(math.exp(-1 / 4))
    assert bleu_nltk("a b c d", "a b c d e") == pytest.approx((4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)


def test_published_rouge_stems_words() -> None:
    # Two of three stems are shared in order: "keep" and "promis".
    assert rouge_l_stemmed("keeping promises matters", "keep promise always") == pytest.approx(2 / 3)
    assert rouge_l("keeping promises matters", "keep promise always") == 0.0


def test_published_measures_take_the_earlier_answer_as_reference(encoder: SentenceEncoder) -> None:
    measures = consistency_measures(["bleu_nltk", "rouge_l_stemmed"], encoder)
    [value] = measures["bleu_nltk"]([["a b c d e", "a b c d", None]])
    assert value == pytest.approx(math.exp(-1 / 4))
    [identical] = measures["rouge_l_stemmed"]([["keep it", "keep it", "keep it"]])
    assert identical == 1.0


def test_bertscore_is_the_papers_greedy_match(encoder: SentenceEncoder) -> None:
    (a, words_a), (b, words_b) = encoder.encode_tokens(TEXTS[0]), encoder.encode_tokens(TEXTS[1])
    assert words_a.sum() == len(a) - 2  # the special tokens at both ends
    recall = np.mean([max(float(x @ y) for x in a) for y in b[words_b]])
    precision = np.mean([max(float(x @ y) for y in b) for x in a[words_a]])
    f1 = 2 * precision * recall / (precision + recall)
    assert bertscore(encoder)(TEXTS[0], TEXTS[1]) == pytest.approx(f1, abs=1e-6)


def test_bertscore_of_equal_texts_is_one_in_spite_of_rounding() -> None:
    """Otherwise the interval of a mean of such scores is that of values that differ."""
    vector = np.array([[1.0 - 6e-8, 0.0]], dtype=np.float32)

    class Encoder:
        def encode_tokens(self, _text: str) -> tuple[Any, Any]:
            return vector, np.ones(1, dtype=np.bool_)

    assert float((vector @ vector.T)[0, 0]) < 1
    assert bertscore(Encoder())("a", "a") == 1.0
    vector = np.array([[0.999, 0.0]], dtype=np.float32)
    assert bertscore(Encoder())("a", "b") < 0.9981


def layer_nine(folder: Path, text: str) -> tuple[Any, Any]:
    """Unit vectors of all tokens in layer 9, and of the tokens without the first and the last, which are special."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)(text, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
    with torch.no_grad():
        output = AutoModel.from_pretrained(folder)(**tokens, output_hidden_states=True)
    vectors = torch.nn.functional.normalize(output.hidden_states[9][0], dim=-1).numpy()
    return vectors, vectors[1:-1]


def test_published_bertscore_is_that_of_layer_nine(tmp_path: Path) -> None:
    folder = save_tiny_bert(tmp_path / "bert")
    measure = consistency_measures(["bertscore_bert_base"], None, str(folder))["bertscore_bert_base"]
    long_text = "keep a promise " * 20  # cut off, as the package bert-score does
    pairs = [(TEXTS[0], TEXTS[1]), (TEXTS[0], TEXTS[2]), (TEXTS[2], long_text)]
    expected = []
    for left, right in pairs:
        (a, words_a), (b, words_b) = layer_nine(folder, left), layer_nine(folder, right)
        precision, recall = (words_a @ b.T).max(axis=1).mean(), (words_b @ a.T).max(axis=1).mean()
        expected.append(2 * precision * recall / (precision + recall))
    assert measure(pairs) == pytest.approx(expected, abs=1e-6)
    [identical] = measure([[TEXTS[0]] * 3])
    assert identical == pytest.approx(1.0, abs=1e-6)


def test_published_bertscore_needs_the_layers_of_its_weights(minilm: Path) -> None:
    with pytest.raises(ModelSetupError, match="'all-MiniLM-L6-v2' has 6 layers, but layer 9 is needed"):
        consistency_measures(["bertscore_bert_base"], None, "all-MiniLM-L6-v2")
    with pytest.raises(ModelSetupError, match="path to a folder that does not exist"):
        consistency_measures(["bertscore_bert_base"], None, "./nowhere")


def test_every_measure_is_symmetric_one_for_equal_texts_and_higher_for_likeness(encoder: SentenceEncoder) -> None:
    for similarity in (bleu, rouge_l, bertscore(encoder)):
        assert similarity(TEXTS[0], TEXTS[0]) == pytest.approx(1.0, abs=1e-5)
        assert similarity(TEXTS[0], TEXTS[1]) == pytest.approx(similarity(TEXTS[1], TEXTS[0]))
        assert similarity(TEXTS[0], TEXTS[0]) > similarity(TEXTS[0], TEXTS[1])
    score = bertscore(encoder)
    assert score(TEXTS[0], TEXTS[1]) > score(TEXTS[0], TEXTS[2])


def test_consistency_is_the_mean_over_pairs_of_present_answers(encoder: SentenceEncoder) -> None:
    rouge = consistency_measures(["rouge_l"], encoder)["rouge_l"]
    values = rouge([["a b", "a b", None], ["a b", None, None], ["a", "a", "b"]])
    assert values[0] == 1.0
    assert math.isnan(values[1])
    assert values[2] == pytest.approx(1 / 3)


def test_all_tokens_of_a_long_text_are_encoded(encoder: SentenceEncoder) -> None:
    rows, words = encoder.encode_tokens("promise " * 700)
    assert words.sum() >= 700
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_a_missing_package_is_an_error_with_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelSetupError, match=r"auditor\[rivals\]"):
        check_similarity_packages(["bleu"])
    check_similarity_packages(["bertscore"])
