"""examples/tune_lora.py: two steps of the smallest Llama on the CPU, with the hyperparameters of the paper."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

SCRIPT = Path(__file__).parents[2] / "examples" / "tune_lora.py"
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}{{ eos_token }}{% endfor %}"


def save_smallest_llama(folder: Path) -> None:
    """Save a Llama of one layer with random weights, and a tokenizer of characters."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    characters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate(["<pad>", "<eos>", *characters])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", chat_template=TEMPLATE
    )
    fast.save_pretrained(str(folder))
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, pad_token_id=0, eos_token_id=1, max_position_embeddings=512,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(str(folder))


def test_two_steps_write_an_adapter(tmp_path: Path) -> None:
    for library in ("trl", "peft", "datasets"):
        pytest.importorskip(library, reason=f"the script needs {library}: pip install 'auditor[tune]'")
    save_smallest_llama(tmp_path / "model")
    completion = [{"role": "assistant", "content": "+0.50"}]
    prompts = [[{"role": "user", "content": f"How acceptable is it? {i}"}] for i in range(16)]
    rows = [{"prompt": prompt, "completion": completion, "country": "Japan"} for prompt in prompts]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    options = ["rows.jsonl", "--model", "model", "-o", "tuned", "--max-steps", "2", "--cpu"]
    command = [sys.executable, str(SCRIPT), *options]
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home"), "TOKENIZERS_PARALLELISM": "false"}
    result = subprocess.run(
        command, cwd=tmp_path, env=os.environ | offline, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert result.returncode == 0, result.stderr
    settings = json.loads((tmp_path / "tuned" / "adapter_config.json").read_text("utf-8"))
    assert (settings["r"], settings["lora_alpha"]) == (16, 64)
    assert (tmp_path / "tuned" / "adapter_model.safetensors").stat().st_size > 0


def test_the_hyperparameters_are_those_that_the_paper_prints() -> None:
    assignments = [node for node in ast.parse(SCRIPT.read_text("utf-8")).body if isinstance(node, ast.Assign)]
    values = {ast.unparse(node.targets[0]): ast.literal_eval(node.value) for node in assignments}
    assert values["LEARNING_RATE"] == 5e-5
    assert (values["EPOCHS"], values["WEIGHT_DECAY"]) == (2, 0.01)
    assert values["(LORA_RANK, LORA_ALPHA)"] == (16, 64)
    assert values["(BATCH_SIZE, GRADIENT_ACCUMULATION_STEPS)"] == (4, 2)
