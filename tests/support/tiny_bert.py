"""A BERT of 12 small layers with random weights, in the place of bert-base-uncased."""

from __future__ import annotations

from pathlib import Path

MAX_TOKENS = 16
WORDS = (
    "you", "should", "keep", "a", "promise", "gave", "is", "right", "bread", "cheap", "in", "the", "market", ".", "cat",
    "taxes", "schools",
)  # fmt: skip


def save_tiny_bert(folder: Path) -> Path:
    """Save the weights and a tokenizer of `WORDS` in a folder, and return it; texts are cut off at `MAX_TOKENS`."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = BertTokenizer(vocab=vocabulary, model_max_length=MAX_TOKENS)
    tokenizer.save_pretrained(str(folder))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokens), hidden_size=32, num_hidden_layers=12, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64, initializer_range=0.5,
    )  # fmt: skip
    BertModel(config).save_pretrained(str(folder))
    return folder
