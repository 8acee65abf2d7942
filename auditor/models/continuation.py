"""Exact log-probabilities computed from a model's weights on this machine; the only importer of transformers."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor import bootstrap
from auditor.config import ModelSection
from auditor.domain import Answer, Attempt, Call, Outcome
from auditor.errors import ModelSetupError
from auditor.lazy_imports import import_when_used
from auditor.models import weights
from auditor.models.embeddings import loading_lock, require_safe_weights
from auditor.models.weights import KNOWN_WEIGHTS

if not TYPE_CHECKING:
    torch = import_when_used("torch")
else:
    import torch

REQUIRED_PACKAGES = ("torch", "transformers", "gguf", "accelerate")
_compute_lock = threading.Lock()
"""Held while loading and computing: the threads of one computation already use all cores."""


def weights_identity(section: ModelSection) -> str:
    """Identifier of a model's weights: the SHA-256 if they are in the catalog, else the path or name in the config."""
    if section.weights is None:
        return KNOWN_WEIGHTS[section.unprefixed_model].revision
    return section.weights


def check_scoring_weights(section: ModelSection) -> None:
    """Check that packages are installed and that weights from the catalog are on this machine; nothing is loaded.

    Raises:
        ModelSetupError: a package is missing, or the catalog's weights are not on this machine.
    """
    missing = [name for name in REQUIRED_PACKAGES if not importlib.util.find_spec(name)]
    if missing:
        raise ModelSetupError(
            f"log-probabilities of '{section.name}' need the packages {', '.join(missing)}.",
            "Run `pip install 'auditor[continuation]'`, or choose another probes.logprob.method.",
        )
    if section.weights is None:
        weights.locate_weights(section.unprefixed_model)


def score_continuations(section: ModelSection, call: Call) -> Answer:
    """Compute the log-probability of each of a call's continuations of its prompt.

    Returns:
        An answer whose text is a JSON list of log-probabilities in nats, in the order of the continuations.

    Raises:
        ModelSetupError: the weights cannot be loaded.
    """
    started_at, start_s = datetime.now(UTC), time.monotonic()
    source = section.weights or str(weights.locate_weights(section.unprefixed_model))
    with _compute_lock:
        scorer = load_continuation_scorer(source)
        logprobs = scorer.continuation_logprobs(call.messages[0].content, call.continuations)
    attempt = Attempt(1, started_at, time.monotonic() - start_s, Outcome.OK, cost_usd=0.0, estimated=False)
    return Answer(
        call.key,
        Outcome.OK,
        text=json.dumps(logprobs),
        completion_tokens=0,
        cost_usd=0.0,
        attempts=(attempt,),
    )


class ContinuationScorer:
    """Scores continuations by a causal language model with 32-bit weights, on a GPU if there is one."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        """Store a loaded causal language model of transformers and its tokenizer."""
        self._model = model
        self._tokenizer = tokenizer

    def continuation_logprobs(self, prefix: str, continuations: Sequence[str]) -> list[float]:
        """Compute log P(continuation | prefix) in nats for each continuation, summed over its tokens.

        The prefix is computed once, and all continuations after it in one batch. If the first letters of a continuation
        merge with the last token of the prefix, summing starts after the last token that all sentences share, so that
        differences between continuations stay exact.

        Args:
            prefix: beginning of the sentence.
            continuations: possible ends of the sentence, each with the space before it.
        """
        token_sequences = [self._encode(prefix + continuation) for continuation in continuations]
        n_shared = _shared_prefix_length([self._encode(prefix), *token_sequences])
        # A tail is what follows the shared tokens. All are padded with 0 to the longest; `is_token` is False there.
        # Both tensors have the shape (continuations, longest tail).
        tails = [token_ids[n_shared:] for token_ids in token_sequences]
        max_tail_tokens = max(map(len, tails))
        padded_tails = torch.tensor(
            [tail + [0] * (max_tail_tokens - len(tail)) for tail in tails], device=self._model.device
        )
        is_token = torch.tensor(
            [[i < len(tail) for i in range(max_tail_tokens)] for tail in tails], device=self._model.device
        )
        with torch.inference_mode():
            prefix_output = self._model(
                torch.tensor([token_sequences[0][:n_shared]], device=self._model.device), use_cache=True
            )
            cache = prefix_output.past_key_values
            # The prefix was computed as a batch of 1; its cached states are repeated for every continuation.
            cache.batch_repeat_interleave(len(tails))
            attention_mask = torch.cat(
                [torch.ones(len(tails), n_shared, device=is_token.device, dtype=torch.long), is_token.long()], 1
            )
            tail_logits = self._model(padded_tails, past_key_values=cache, attention_mask=attention_mask).logits
            # Logits at one position predict the next token: those at the end of the prefix predict each tail's first
            # token, and those at a tail's last token predict nothing that is scored. Shape: (continuations, tail,
            # vocabulary).
            first_logits = prefix_output.logits[:, -1:].expand(len(tails), -1, -1)
            vocabulary_logprobs = torch.cat([first_logits, tail_logits[:, :-1]], 1).double().log_softmax(-1)
            token_logprobs = vocabulary_logprobs.gather(-1, padded_tails[..., None])[..., 0]
            logprob_sums: list[float] = torch.where(is_token, token_logprobs, 0.0).sum(1).tolist()
        return logprob_sums

    def _encode(self, text: str) -> list[int]:
        """Token ids of a text, without the end-of-sequence token that some tokenizers append."""
        token_ids = list(self._tokenizer(text)["input_ids"])
        return token_ids[:-1] if token_ids and token_ids[-1] == self._tokenizer.eos_token_id else token_ids


def _shared_prefix_length(token_sequences: Sequence[Sequence[int]]) -> int:
    """Number of tokens that all sequences share at their beginning.

    Args:
        token_sequences: token ids of the prefix, then of each whole sentence. The result is smaller than the length of
            each sentence, so that at least one token of it remains to be scored.
    """
    # One less than the shortest sentence's length.
    limit = min(map(len, token_sequences[1:])) - 1
    tokens_by_position = zip(*(token_ids[:limit] for token_ids in token_sequences), strict=False)
    first_difference = next((i for i, tokens in enumerate(tokens_by_position) if len(set(tokens)) > 1), None)
    return min(limit, len(token_sequences[0])) if first_difference is None else first_difference


@functools.lru_cache(maxsize=2)
def load_continuation_scorer(source: str) -> ContinuationScorer:
    """Load a causal language model and its tokenizer from a folder, a `.gguf` file or the Hugging Face hub.

    Raises:
        ModelSetupError: the model cannot be loaded.
    """
    bootstrap.prepare_environment()

    bootstrap.silence_libraries()
    importlib.import_module("transformers")
    # While another thread imports transformers for the sentence encoder, `import` binds the module that it replaces at
    # the end of its import by one with AutoTokenizer.
    library: Any = sys.modules["transformers"]
    library.utils.logging.disable_progress_bar()
    path = Path(source).expanduser()
    gguf_kwargs = {"gguf_file": path.name} if path.suffix == ".gguf" else {}
    location = str(path.parent if gguf_kwargs else path) if path.exists() else source
    weights_kwargs: dict[str, Any] = gguf_kwargs or {"use_safetensors": True}  # a pickled file could run code
    if not gguf_kwargs:
        require_safe_weights(location, f"the model {source}")
    try:
        with loading_lock:
            tokenizer = library.AutoTokenizer.from_pretrained(location, **gguf_kwargs)
            model = library.AutoModelForCausalLM.from_pretrained(location, dtype=torch.float32, **weights_kwargs)
    except Exception as error:  # noqa: BLE001 - the libraries raise errors of any class for a damaged file
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelSetupError(
            f"the weights {source} cannot be loaded: {reason.rstrip(' .')}.",
            "Name a folder, a .gguf file or a model on the Hugging Face hub.",
        ) from None
    device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    return ContinuationScorer(model.to(device).eval(), tokenizer)
