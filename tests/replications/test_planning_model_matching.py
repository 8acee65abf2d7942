"""Which model of the user's is set beside which published one."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.errors import UsageError
from auditor.replications.planning import build_named_models, match_models, split_named_models
from auditor.replications.presets import load_paper


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("absent", "GPT-4o")], "no audited model 'absent'"),
        ([("GPT-4o", "a")], "'GPT-4o' is the published model, and 'a' is yours. Write it as --as a=GPT-4o"),
        ([("a", "GPT-9")], r"no published model 'GPT-9'.*PaLM-2"),
        ([("a", "GPT-4o"), ("b", "GPT-4o")], "two models are beside 'GPT-4o': 'a' and 'b'"),
        ([("a", "GPT-4")], "two models are beside 'GPT-4': 'GPT-4' and 'a'"),
    ],
)
def test_pairs_that_cannot_be_used_are_refused(pairs: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        match_models(load_paper("evalmoraal"), ["a", "b", "GPT-4"], pairs)


def test_a_named_model_has_the_name_of_a_published_one() -> None:
    tuned = ("repaired", "hosted_vllm/my/tuned")
    pairs = [tuned, ("mine", "perturbed"), ("perturbed", "mine"), ("a/b", "repaired"), tuned]
    assert split_named_models(load_paper("logic"), pairs) == (dict([tuned]), [pairs[1], pairs[2], pairs[3]])
    with pytest.raises(UsageError, match="two models are beside 'repaired': 'hosted_vllm/my/tuned' and 'openai/x'"):
        split_named_models(load_paper("logic"), [tuned, ("repaired", "openai/x")])


def test_a_named_model_is_asked_at_the_server_of_its_provider() -> None:
    vllm = {"model": "hosted_vllm/base", "api_base": "http://127.0.0.1:1", "temperature": 0.3}
    sections: list[dict[str, Any]] = [
        {"name": "a", "model": "openai/a", "api_key": "os.environ/KEY"},
        {"name": "b", **vllm},
        {"name": "c", **vllm, "api_base": "http://127.0.0.1:2"},
        {"name": "d", "model": "azure/d", "timeout_s": 9, "params": {"api_version": "1", "top_k": 5}},
    ]
    named = {"repaired": "hosted_vllm/my/tuned", "perturbed": "openai/ft", "zero-shot": "groq/x", "cot": "azure/ft"}
    assert build_named_models(named, sections) == [
        {"name": "repaired", "model": "hosted_vllm/my/tuned", "api_base": "http://127.0.0.1:1"},
        {"name": "perturbed", "model": "openai/ft", "api_key": "os.environ/KEY"},
        {"name": "zero-shot", "model": "groq/x"},
        {"name": "cot", "model": "azure/ft", "timeout_s": 9, "params": {"api_version": "1"}},
    ]
    with pytest.raises(UsageError, match=r"the address of the server is not known.*model = 'hosted_vllm/…'"):
        build_named_models(named, sections[:1])
    with pytest.raises(UsageError, match="the file has another model 'a'"):
        build_named_models({"a": "openai/b"}, sections)


def test_models_of_equal_names_are_compared() -> None:
    pairs = [("mine", "GPT-4o"), ("mine", "PaLM-2"), ("GPT-4", "GPT-4")]
    assert match_models(load_paper("evalmoraal"), ["GPT-4", "mine"], pairs) == {
        "GPT-4": "GPT-4",
        "GPT-4o": "mine",
        "PaLM-2": "mine",
    }
