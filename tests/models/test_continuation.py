"""Log-probabilities of continuations, compared with those of transformers computed without our optimizations."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from auditor.models.continuation import ContinuationScorer, load_continuation_scorer
from auditor.prompts.language_data import load_sentence_pairs

ENDS = [f" {end}" for pair in load_sentence_pairs().ends for end in pair]


@pytest.fixture(scope="module")
def torch() -> Any:
    """PyTorch; importing it during collection would take seconds in every worker."""
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def transformers() -> Any:
    """Transformers with its reader of GGUF files."""
    pytest.importorskip("gguf")
    return pytest.importorskip("transformers")


@pytest.mark.slow
def test_logprobs_equal_those_computed_directly_with_transformers(
    smollm2: Path, torch: Any, transformers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers parses the file for each configuration, tokenizer and model, for seconds: here it does so once."""
    gguf = pytest.importorskip("gguf")
    monkeypatch.setattr(gguf, "GGUFReader", functools.cache(gguf.GGUFReader))
    scorer = load_continuation_scorer(str(smollm2))
    tokenizer = transformers.AutoTokenizer.from_pretrained(smollm2.parent, gguf_file=smollm2.name)
    model: Any = scorer._model
    assert model.dtype == torch.float32
    for beginning, ends in (
        ("In Germany, divorce is", ENDS[::12]),
        ("People in Côte d’Ivoire believe that sex before marriage is", ENDS[:2]),
    ):
        expected_logprobs = [_direct(torch, model, tokenizer, beginning, end) for end in ends]
        assert scorer.continuation_logprobs(beginning, ends) == pytest.approx(expected_logprobs, abs=1e-4)


def _direct(torch: Any, model: Any, tokenizer: Any, beginning: str, end: str) -> float:
    prefix_ids, ids = tokenizer(beginning)["input_ids"], tokenizer(beginning + end)["input_ids"]
    assert ids[: len(prefix_ids)] == prefix_ids
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return sum(float(logits[i - 1, ids[i]]) for i in range(len(prefix_ids), len(ids)))


class MergingTokenizer:
    """A tokenizer of letters that merges `is` at the end of a text into one token."""

    eos_token_id = 0

    def __call__(self, text: str) -> dict[str, list[int]]:
        ids = [ord(c) % 90 + 2 for c in text]
        return {"input_ids": [*ids[:-2], 1, 0] if text.endswith("is") else [*ids, 0]}


def test_differences_are_exact_where_tokens_merge_across_the_boundary(torch: Any, transformers: Any) -> None:
    config = transformers.LlamaConfig(
        vocab_size=100, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    logprob_right, logprob_wrong = ContinuationScorer(model, MergingTokenizer()).continuation_logprobs(
        "it is", [" right", " so wrong"]
    )

    def text_logprob(text: str) -> float:
        ids = MergingTokenizer()(text)["input_ids"][:-1]
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        return sum(float(logits[i - 1, ids[i]]) for i in range(1, len(ids)))

    assert logprob_right - logprob_wrong == pytest.approx(
        text_logprob("it is right") - text_logprob("it is so wrong"), abs=1e-4
    )
