"""Sentence embeddings: the one door to sentence-transformers."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from auditor import bootstrap
from auditor.errors import ModelSetupError
from auditor.models import weights
from auditor.models.catalog import KNOWN_WEIGHTS
from auditor.text_safety import truncate_middle

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENCODER_BATCH_SIZE = 32
MAX_TEXT_CHARS = 100_000
"""The longest text that is encoded whole. Time grows with length: a text of a megabyte takes minutes on a processor."""
HUB_CONNECT_TIMEOUT_S = 3.0
DEFAULT_ORGANISATION = "sentence-transformers"


class SentenceEncoder:
    """A sentence encoder that has been loaded.

    Attributes:
        name: as it was asked for.
    """

    def __init__(self, model: Any, name: str) -> None:
        self._model = model
        self.name = name

    @functools.cached_property
    def revision(self) -> str:
        """SHA-256, in hex, over the names and values of all weights as they were loaded."""
        import torch

        digest = hashlib.sha256()
        for key, tensor in sorted(self._model.state_dict().items()):
            digest.update(key.encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of texts.

        A text that is longer than the encoder reads is split into pieces of about equal length, and its vector is the
        mean of theirs, scaled to length one. Nothing is cut off, except that a text of more than `MAX_CHARS` characters
        is encoded without its middle. Equal texts get equal vectors; other texts in the same call can change a vector
        by about 1e-7.

        Returns:
            Shape (number of texts, dimensions), each row of length 1.
        """
        unique = list(dict.fromkeys(texts))
        if not unique:
            return np.zeros((0, self._model.get_embedding_dimension() or 0), dtype=np.float32)
        pieces = [self._split_text(truncate_middle(text, MAX_TEXT_CHARS)) for text in unique]
        vectors = self._encode_pieces(list(itertools.chain.from_iterable(pieces)))
        starts = np.cumsum([0, *map(len, pieces[:-1])])
        pooled = np.add.reduceat(vectors, starts, axis=0)
        pooled /= np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        row = {text: i for i, text in enumerate(unique)}
        return pooled[[row[text] for text in texts]]

    def encode_tokens(self, text: str) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Unit vectors of a text's tokens in the last layer, shape (tokens, dimensions), and which of them are words.

        The others are marks that the encoder puts around each piece of a text; nothing is cut off.
        """
        parts, words = [], []
        for piece in self._split_text(text):
            vectors = self._model.encode([piece], output_value="token_embeddings", show_progress_bar=False)[0]
            rows = np.asarray(vectors.detach().cpu().float(), dtype=np.float32)
            marks = self._model.tokenizer.get_special_tokens_mask(
                self._model.tokenizer(piece, truncation=True, max_length=len(rows))["input_ids"],
                already_has_special_tokens=True,
            )
            parts.append(rows)
            words.append(~np.asarray(marks, dtype=np.bool_)[: len(rows)])
        rows = np.concatenate(parts)
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return rows, np.concatenate(words)

    def _encode_pieces(self, texts: list[str]) -> NDArray[np.float32]:
        # It sorts by length itself, so that little is padded.
        vectors = self._model.encode(
            texts, batch_size=ENCODER_BATCH_SIZE, show_progress_bar=False, normalize_embeddings=True
        )
        return np.asarray(vectors, dtype=np.float32)

    def _split_text(self, text: str) -> list[str]:
        """The text in as few pieces of about equal length as the encoder can read whole, cut between words."""
        count = self._piece_count(text)
        if count < 2 or len(text) < 2:
            return [text]
        cuts = [_word_start(text, len(text) * i // count) for i in range(1, count)]
        bounds = sorted({0, *cuts, len(text)})
        if len(bounds) < 3:
            bounds = [0, len(text) // 2, len(text)]
        return [piece for start, end in itertools.pairwise(bounds) for piece in self._split_text(text[start:end])]

    def _piece_count(self, text: str) -> int:
        """How many times what the encoder reads the text holds, rounded up; 1 for an encoder without a limit."""
        room = self._max_text_tokens
        if math.isinf(room) or len(text) <= room:  # A token is at least a character of most tokenizers' input.
            return 1
        return math.ceil(len(self._model.tokenizer(text, **_UNTRUNCATED)["input_ids"]) / room)

    @functools.cached_property
    def _max_text_tokens(self) -> float:
        """Tokens of a text that the encoder reads, its own marks and prompt aside."""
        limit, tokenizer = self._model.max_seq_length, self._model.tokenizer
        if not limit or math.isinf(limit) or not hasattr(tokenizer, "num_special_tokens_to_add"):
            return math.inf
        prompt = self._model.prompts.get(self._model.default_prompt_name or "") or ""
        taken = tokenizer.num_special_tokens_to_add() + len(tokenizer(prompt, **_UNTRUNCATED)["input_ids"])
        return max(1.0, float(limit - taken))


_UNTRUNCATED = {"add_special_tokens": False, "truncation": False, "verbose": False}


def _word_start(text: str, position: int) -> int:
    """The beginning of the word at a position, or the position itself where no space is near."""
    space = text.rfind(" ", max(0, position - 50), position)
    return space + 1 if space >= 0 else position


# --- loading ----------------------------------------------------------------------------------------------------


def check_encoder(model: str) -> None:
    """Make sure that an encoder can be loaded, without loading it.

    Raises:
        ModelSetupError: see `load_encoder`.
    """
    _require_sentence_transformers()
    _resolve_model_source(model)


def load_encoder(model: str) -> SentenceEncoder:
    """Load a sentence encoder, from this machine wherever it can be.

    Args:
        model: `all-MiniLM-L6-v2`, a folder that holds a sentence-transformers model, or such a model's name on the
            Hugging Face hub.

    Raises:
        ModelSetupError: sentence-transformers is not installed, or the model is neither here nor to be had.
    """
    _require_sentence_transformers()
    source, local = _resolve_model_source(model)
    bootstrap.prepare_environment()
    from sentence_transformers import SentenceTransformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        return SentenceEncoder(SentenceTransformer(source, local_files_only=local), model)
    except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelSetupError(f"the encoder '{model}' cannot be loaded: {reason}", _ENCODER_HINT) from None


_ENCODER_HINT = "Name a sentence-transformers model or a folder that holds one; all-MiniLM-L6-v2 is the default."


def _require_sentence_transformers() -> None:
    if not importlib.util.find_spec("sentence_transformers"):
        raise ModelSetupError(
            "sentence embeddings need the package sentence-transformers.",
            "Install torch for your machine, then run `pip install 'auditor[embeddings]'`.",
        )


def _resolve_model_source(model: str) -> tuple[str, bool]:
    """What to load, and whether it is all on this machine."""
    if model in KNOWN_WEIGHTS:
        path = weights.locate_weights(model)
        if not path.is_dir():
            raise ModelSetupError(f"'{model}' is a language model, not a sentence encoder.", _ENCODER_HINT)
        return str(path), True
    path = Path(model).expanduser()
    if path.is_dir():
        return str(path), True
    if path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise ModelSetupError(f"the encoder '{model}' is a path, and there is no such folder.", _ENCODER_HINT)
    if _is_in_hub_cache(model):
        return model, True
    _require_hub_connection(model)
    return model, False


def _is_in_hub_cache(model: str) -> bool:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    repository = model if "/" in model else f"{DEFAULT_ORGANISATION}/{model}"
    try:
        return isinstance(try_to_load_from_cache(repository, "config.json"), str)
    except HFValidationError:
        raise ModelSetupError(f"the encoder '{model}' has no name that a model can have.", _ENCODER_HINT) from None


def _require_hub_connection(model: str) -> None:
    """The hub's own client goes on trying for more than a minute; this asks once whether anybody is there."""
    import httpx
    from huggingface_hub import constants

    mend = f"Fetch it where there is a network, or take the default: {_ENCODER_HINT}"
    if constants.HF_HUB_OFFLINE:
        raise ModelSetupError(f"the encoder '{model}' is not on this machine, and HF_HUB_OFFLINE is set.", mend)
    try:
        httpx.head(constants.ENDPOINT, timeout=HUB_CONNECT_TIMEOUT_S)
    except httpx.HTTPError as error:
        raise ModelSetupError(
            f"the encoder '{model}' is not on this machine, and the hub cannot be reached: {error}.", mend
        ) from None
