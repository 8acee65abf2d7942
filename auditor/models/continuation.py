"""Exact log-probabilities by a model's own weights on this machine: the one door to transformers."""

from __future__ import annotations

import functools
import importlib.util
import json
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from auditor import bootstrap
from auditor.config import EMBEDDED_PREFIX, ModelSection
from auditor.domain import Answer, Attempt, Call, Outcome
from auditor.errors import ModelSetupError
from auditor.models import weights
from auditor.models.catalog import KNOWN_WEIGHTS

REQUIRED_PACKAGES = ("torch", "transformers", "gguf", "accelerate")
_compute_lock = threading.Lock()
"""Loading, and computing: the threads of one computation already take all cores."""


def weights_identity(section: ModelSection) -> str:
    """What names the weights: their SHA-256 where the program knows it, else the path or name that the config gives."""
    if section.weights is None:
        return KNOWN_WEIGHTS[section.model.removeprefix(EMBEDDED_PREFIX)].revision
    return section.weights


def check_scoring_weights(section: ModelSection) -> None:
    """Whether the weights can be loaded, as far as a look tells.

    Raises:
        ModelSetupError: the model has no weights here, or a package is missing.
    """
    missing = [name for name in REQUIRED_PACKAGES if not importlib.util.find_spec(name)]
    if missing:
        raise ModelSetupError(
            f"log-probabilities of '{section.name}' need the packages {', '.join(missing)}.",
            "Run `pip install 'auditor[continuation]'`, or choose another probes.logprob.method.",
        )
    if section.weights is None:
        weights.locate_weights(section.model.removeprefix(EMBEDDED_PREFIX))


def score_continuations(section: ModelSection, call: Call) -> Answer:
    """The log-probability of each of a call's continuations, as JSON.

    Raises:
        ModelSetupError: the weights cannot be loaded.
    """
    started, clock = datetime.now(UTC), time.monotonic()
    source = section.weights or str(weights.locate_weights(section.model.removeprefix(EMBEDDED_PREFIX)))
    with _compute_lock:
        scorer = load_continuation_scorer(source)
        found = scorer.continuation_logprobs(call.messages[0].content, call.continuations)
    attempt = Attempt(1, started, time.monotonic() - clock, Outcome.OK, cost_usd=0.0, estimated=False)
    return Answer(
        call.key,
        Outcome.OK,
        text=json.dumps(found),
        served_model=section.model,
        completion_tokens=0,
        cost_usd=0.0,
        attempts=(attempt,),
    )


class ContinuationScorer:
    """A causal language model in 32-bit floats, on the GPU where there is one."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer

    def continuation_logprobs(self, prefix: str, continuations: Sequence[str]) -> list[float]:
        """log P(end | beginning) in nats, summed over the end's tokens.

        The beginning is computed once, and all ends after it in one batch. Where an end's first letters melt into the
        beginning's last token, counting starts at the last token that all texts share, so that differences between
        ends stay exact.

        Args:
            beginning: of the sentence.
            ends: as they follow it, with the space between.
        """
        import torch

        texts = [self._encode(prefix + end) for end in continuations]
        shared = _shared_prefix_length([self._encode(prefix), *texts])
        tails = [text[shared:] for text in texts]
        longest = max(map(len, tails))
        padded = torch.tensor([tail + [0] * (longest - len(tail)) for tail in tails], device=self._model.device)
        there = torch.tensor([[i < len(tail) for i in range(longest)] for tail in tails], device=self._model.device)
        with torch.inference_mode():
            start = self._model(torch.tensor([texts[0][:shared]], device=self._model.device), use_cache=True)
            cache = start.past_key_values
            cache.batch_repeat_interleave(len(tails))
            mask = torch.cat([torch.ones(len(tails), shared, device=there.device, dtype=torch.long), there.long()], 1)
            after = self._model(padded, past_key_values=cache, attention_mask=mask).logits
            first = start.logits[:, -1:].expand(len(tails), -1, -1)
            logits = torch.cat([first, after[:, :-1]], 1).double().log_softmax(-1)
            each = logits.gather(-1, padded[..., None])[..., 0]
            found: list[float] = torch.where(there, each, 0.0).sum(1).tolist()
        return found

    def _encode(self, text: str) -> list[int]:
        ids = list(self._tokenizer(text)["input_ids"])
        return ids[:-1] if ids and ids[-1] == self._tokenizer.eos_token_id else ids


def _shared_prefix_length(token_sequences: Sequence[Sequence[int]]) -> int:
    """How many first tokens all texts have in common; one at least must stay to be counted of each."""
    limit = min(map(len, token_sequences[1:])) - 1
    columns = zip(*(text[:limit] for text in token_sequences), strict=False)
    same = next((i for i, tokens in enumerate(columns) if len(set(tokens)) > 1), None)
    return min(limit, len(token_sequences[0])) if same is None else same


@functools.lru_cache(maxsize=2)
def load_continuation_scorer(source: str) -> ContinuationScorer:
    """The model behind a folder, a `.gguf` file or a name on the Hugging Face hub.

    Raises:
        ModelSetupError: it cannot be loaded.
    """
    bootstrap.prepare_environment()
    import torch
    import transformers

    bootstrap.silence_libraries()
    library: Any = transformers
    library.utils.logging.disable_progress_bar()
    path = Path(source).expanduser()
    gguf = {"gguf_file": path.name} if path.suffix == ".gguf" else {}
    place = str(path.parent if gguf else path) if path.exists() else source
    try:
        tokenizer = library.AutoTokenizer.from_pretrained(place, **gguf)
        model = library.AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32, **gguf)
    except (OSError, ValueError, ImportError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelSetupError(
            f"the weights {source} cannot be loaded: {reason.rstrip(' .')}.",
            "Name a folder, a .gguf file or a model on the Hugging Face hub.",
        ) from None
    device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    return ContinuationScorer(model.to(device).eval(), tokenizer)
