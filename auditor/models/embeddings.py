"""Sentence embeddings, and where the weights of encoders are; the only importer of sentence-transformers."""

from __future__ import annotations

import copy
import functools
import hashlib
import importlib.util
import itertools
import json
import math
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import httpx
import numpy as np

from auditor import bootstrap
from auditor.config.value_checks import DEFAULT_ENCODER
from auditor.errors import ModelSetupError
from auditor.lazy_imports import import_when_used
from auditor.models import weights
from auditor.models.weights import KNOWN_WEIGHTS
from auditor.text_safety import truncate_middle

if TYPE_CHECKING:
    from numpy.typing import NDArray

if not TYPE_CHECKING:
    huggingface_hub = import_when_used("huggingface_hub")
    constants = import_when_used("huggingface_hub.constants")
    errors = import_when_used("huggingface_hub.errors")
    sentence_transformers = import_when_used("sentence_transformers")
    torch = import_when_used("torch")
    logging = import_when_used("transformers.utils.logging")
else:
    import huggingface_hub
    import sentence_transformers
    import torch
    from huggingface_hub import constants, errors
    from transformers.utils import logging


HUB_CONNECT_TIMEOUT_S = 3.0
DEFAULT_ORGANISATION = "sentence-transformers"
EncoderUse = Literal["encoder", "model of BERTScore"]
PICKLED_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
"""Ends of the names of files with pickled weights."""
TRAINING_FILES = frozenset({"training_args.bin", "optimizer.pt", "optimizer.bin", "scheduler.pt", "rng_state.pth"})
"""Files of a training that no model is loaded from."""
HINTS: Mapping[EncoderUse, str] = {
    "encoder": f"Use a sentence-transformers model or a folder that contains one; the default is {DEFAULT_ENCODER}.",
    "model of BERTScore": "Set bertscore_model to a folder with bert-base-uncased, or to its name.",
}
"""How to fix an encoder that cannot be used."""


def locate_encoder(model: str, use: EncoderUse = "encoder") -> tuple[str, bool]:
    """Return the folder or hub name to load a model from, and whether all of it is on this machine.

    Raises:
        ModelSetupError: there is no such folder, or the model must be downloaded and the hub cannot be reached.
    """
    if model in KNOWN_WEIGHTS:
        path = weights.locate_weights(model)
        if not path.is_dir():
            raise ModelSetupError(f"'{model}' is a language model, not a sentence encoder.", HINTS[use])
        return str(path), True
    path = Path(model).expanduser()
    if path.is_dir():
        return str(path), True
    if path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise ModelSetupError(f"the {use} '{model}' is a path to a folder that does not exist.", HINTS[use])
    if _is_in_hub_cache(model, use):
        return model, True
    _require_hub_connection(model, use)
    return model, False


def require_safe_weights(source: str | Path, description: str) -> None:
    """Refuse a folder whose weights are pickled, which would let the file run code.

    Args:
        source: a folder; the name of a model on the hub is not checked, and its pickled files are never loaded.
        description: names the model in the error, such as "the encoder 'my-model'".

    Raises:
        ModelSetupError: a folder of the model has weights, and none of them as safetensors or GGUF.
    """
    folder = Path(source)
    if not folder.is_dir():
        return
    for module_folder in [folder, *_module_folders(folder)]:
        names = sorted(path.name for path in module_folder.glob("*") if path.is_file())
        pickled = [name for name in names if name.endswith(PICKLED_SUFFIXES) and name not in TRAINING_FILES]
        if pickled and not any(name.endswith((".safetensors", ".gguf")) for name in names):
            raise pickled_weights_error(description, str((module_folder / pickled[0]).relative_to(folder)))


def pickled_weights_error(description: str, file: str) -> ModelSetupError:
    """The error for weights that are in no other form than a pickled file."""
    return ModelSetupError(
        f"{description} has its weights in a pickled file ({file}), which could run code when it is loaded.",
        "Save the model again in the format safetensors, as save_pretrained does by default, or use another one.",
    )


def _module_folders(folder: Path) -> list[Path]:
    """Folders of the modules of a sentence encoder; none if it lists none."""
    try:
        modules = json.loads((folder / "modules.json").read_bytes())
        return [folder / str(module["path"]) for module in modules if module.get("path")]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []


def _is_in_hub_cache(model: str, use: EncoderUse) -> bool:
    """Whether the hub's cache on this machine has the model; ModelSetupError if the hub allows no such name."""
    repository = model if "/" in model else f"{DEFAULT_ORGANISATION}/{model}"
    try:
        # The path of the cached file as a string; another type if it is not in the cache.
        return isinstance(huggingface_hub.try_to_load_from_cache(repository, "config.json"), str)
    except errors.HFValidationError:
        raise ModelSetupError(f"the {use} '{model}' is not a valid model name.", HINTS[use]) from None


def _require_hub_connection(model: str, use: EncoderUse) -> None:
    """Raise ModelSetupError if the hub cannot be reached.

    One short request: the hub's own client would retry for more than a minute.
    """
    how_to_fix = f"Download it on a machine with a network. {HINTS[use]}"
    if constants.HF_HUB_OFFLINE:
        raise ModelSetupError(f"the {use} '{model}' is not on this machine, and HF_HUB_OFFLINE is set.", how_to_fix)
    try:
        httpx.head(constants.ENDPOINT, timeout=HUB_CONNECT_TIMEOUT_S)
    except httpx.HTTPError as error:
        raise ModelSetupError(
            f"the {use} '{model}' is not on this machine, and the Hugging Face Hub cannot be reached: {error}.",
            how_to_fix,
        ) from None


ENCODER_BATCH_SIZE = 32
MAX_ENCODING_THREADS = 4
"""Each has the memory of a batch of its own; with more cores, each uses several."""
PROBE_TEXTS, MAX_PROBE_SIMILARITY = ("A cat sleeps on the sofa.", "Taxes pay for schools and roads."), 0.999
"""Texts whose vectors must differ, and their highest similarity: an encoder also loads without its tokenizer."""
MAX_TEXT_CHARS = 100_000
"""Longer texts are encoded without their middle: encoding a text of 1 MB takes minutes on a CPU."""


class SentenceEncoder:
    """A loaded sentence-transformers model.

    Attributes:
        name: the name or folder that was given to `load_encoder`.
    """

    def __init__(self, model: Any, name: str) -> None:
        """Store a loaded `SentenceTransformer` and the name it was loaded by."""
        self._model = model
        self.name = name

    @functools.cached_property
    def revision(self) -> str:
        """SHA-256 of the names and values of all loaded weights, in hex."""
        digest = hashlib.sha256()
        for weight_name, tensor in sorted(self._model.state_dict().items()):
            digest.update(weight_name.encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens that the encoder's tokenizer knows."""
        return len(self._model.tokenizer)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode texts as unit vectors.

        A text that is longer than the encoder's limit is split into pieces of about equal length, and its vector is
        the mean of theirs, scaled to length 1. Nothing is cut off, except that a text of more than `MAX_TEXT_CHARS`
        characters is encoded without its middle. Equal texts get equal vectors; other texts in the same call can change
        a vector by about 1e-7.

        Returns:
            Shape (number of texts, dimensions), each row of length 1.
        """
        unique_texts = list(dict.fromkeys(texts))
        if not unique_texts:
            return np.zeros((0, self._model.get_embedding_dimension() or 0), dtype=np.float32)
        pieces_by_text = [self._split_text(truncate_middle(text, MAX_TEXT_CHARS)) for text in unique_texts]
        piece_vectors = self._encode_pieces(list(itertools.chain.from_iterable(pieces_by_text)))
        # Row of each text's first piece in `piece_vectors`; the rows from there to the next text's first are added up.
        first_piece_rows = np.cumsum([0, *map(len, pieces_by_text[:-1])])
        text_vectors = np.add.reduceat(piece_vectors, first_piece_rows, axis=0)
        text_vectors = _normalize_rows(text_vectors)
        row_by_text = {text: i for i, text in enumerate(unique_texts)}
        return text_vectors[[row_by_text[text] for text in texts]]

    def encode_tokens(self, text: str) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Encode a text token by token in the last layer; a long text is split into pieces, and nothing is cut off.

        Returns:
            Unit vectors, shape (tokens, dimensions), and a mask, shape (tokens,): True for tokens of the text, False
            for the special tokens that the encoder adds to each piece.
        """
        vectors_by_piece, word_masks = [], []
        for piece in self._split_text(text):
            tensor = self._model.encode([piece], output_value="token_embeddings", show_progress_bar=False)[0]
            token_vectors = np.asarray(tensor.detach().cpu().float(), dtype=np.float32)
            # One entry per token, 1 for a special token.
            special_tokens_mask = self._model.tokenizer.get_special_tokens_mask(
                self._model.tokenizer(piece, truncation=True, max_length=len(token_vectors))["input_ids"],
                already_has_special_tokens=True,
            )
            vectors_by_piece.append(token_vectors)
            word_masks.append(~np.asarray(special_tokens_mask, dtype=np.bool_)[: len(token_vectors)])
        return _normalize_rows(np.concatenate(vectors_by_piece)), np.concatenate(word_masks)

    def encode_layer(self, text: str, layer: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Encode a text token by token in a hidden layer, as the package bert-score does.

        Unlike `encode_tokens`, tokens above the encoder's limit are cut off, as in that package.

        Args:
            text: white space at its ends is ignored.
            layer: number of the layer, from 1; 0 are the input embeddings.

        Returns:
            As `encode_tokens`.

        Raises:
            ModelSetupError: the encoder has fewer layers.
        """
        network = getattr(self._model[0], "auto_model", None)
        n_layers = 0 if network is None else network.config.num_hidden_layers
        if network is None or n_layers < layer:
            raise ModelSetupError(
                f"'{self.name}' has {n_layers} layers, but layer {layer} is needed.",
                "Use the weights of bert-base-uncased, which have 12.",
            )
        max_tokens = min(self._model.tokenizer.model_max_length, network.config.max_position_embeddings)
        tokens = self._model.tokenizer(
            text.strip(), truncation=True, max_length=max_tokens, return_special_tokens_mask=True, return_tensors="pt"
        ).to(network.device)
        is_word = tokens.pop("special_tokens_mask")[0].cpu().numpy() == 0
        with torch.inference_mode():
            hidden_states = network(**tokens, output_hidden_states=True).hidden_states
        return _normalize_rows(hidden_states[layer][0].cpu().float().numpy()), is_word

    def _encode_pieces(self, texts: list[str]) -> NDArray[np.float32]:
        """Unit vectors of texts that are within the encoder's limit, shape (texts, dimensions).

        On a processor, the cores that `use_cores` allows encode batches of their own: on two cores this took 5% less
        time, and less CPU time, than dividing each batch between them.
        """
        n_cores = torch.get_num_threads() if self._model.device.type == "cpu" else 1
        n_threads = min(n_cores, MAX_ENCODING_THREADS, math.ceil(len(texts) / ENCODER_BATCH_SIZE))
        if n_threads == 1:
            return _encode_batches(self._model, texts)
        # Texts of about the same length are in one batch, so that little is padded.
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        batches = [order[i : i + ENCODER_BATCH_SIZE] for i in range(0, len(order), ENCODER_BATCH_SIZE)]
        rows_by_thread = [list(itertools.chain.from_iterable(batches[i::n_threads])) for i in range(n_threads)]
        cores_each = n_cores // n_threads
        with ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(cores_each,)) as pool:
            texts_by_thread = [[texts[row] for row in rows] for rows in rows_by_thread]
            vectors = np.concatenate(list(pool.map(_encode_batches, self._model_copies, texts_by_thread)))
        return vectors[np.argsort(np.concatenate(rows_by_thread))]

    @functools.cached_property
    def _model_copies(self) -> list[Any]:
        """Copies of the model with the same weights in memory: a tokenizer must not be used by two threads at once."""
        weights = {id(weight): weight for weight in self._model.parameters()}
        return [copy.deepcopy(self._model, dict(weights)) for _ in range(MAX_ENCODING_THREADS)]

    def _split_text(self, text: str) -> list[str]:
        """Split a text between words into few pieces of about equal length, none longer than the encoder's limit."""
        n_pieces = self._piece_count(text)
        if n_pieces < 2 or len(text) < 2:
            return [text]
        cuts = [_word_start(text, len(text) * i // n_pieces) for i in range(1, n_pieces)]
        bounds = sorted({0, *cuts, len(text)})
        # No word starts inside the text: it is cut in the middle.
        if len(bounds) < 3:
            bounds = [0, len(text) // 2, len(text)]
        return [piece for start, end in itertools.pairwise(bounds) for piece in self._split_text(text[start:end])]

    def _piece_count(self, text: str) -> int:
        """Number of pieces that a text needs: its tokens divided by those that fit in, rounded up; 1 if unlimited."""
        max_tokens = self._max_text_tokens
        # Tokenizing is skipped for short texts: with most tokenizers a token covers at least one character.
        if math.isinf(max_tokens) or len(text) <= max_tokens:
            return 1
        return math.ceil(len(self._model.tokenizer(text, **_UNTRUNCATED)["input_ids"]) / max_tokens)

    @functools.cached_property
    def _max_text_tokens(self) -> float:
        """Tokens of a text that fit into the encoder besides its special tokens and prompt; infinite if unlimited."""
        max_seq_tokens, tokenizer = self._model.max_seq_length, self._model.tokenizer
        if not max_seq_tokens or math.isinf(max_seq_tokens) or not hasattr(tokenizer, "num_special_tokens_to_add"):
            return math.inf
        prompt = self._model.prompts.get(self._model.default_prompt_name or "") or ""
        n_overhead_tokens = tokenizer.num_special_tokens_to_add() + len(tokenizer(prompt, **_UNTRUNCATED)["input_ids"])
        return max(1.0, float(max_seq_tokens - n_overhead_tokens))


def _encode_batches(model: Any, texts: list[str]) -> NDArray[np.float32]:
    """Unit vectors of texts, shape (texts, dimensions); sentence-transformers sorts them by length."""
    vectors = model.encode(texts, batch_size=ENCODER_BATCH_SIZE, show_progress_bar=False, normalize_embeddings=True)
    return np.asarray(vectors, dtype=np.float32)


def _normalize_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors scaled to length 1, shape (vectors, dimensions); a vector of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit_vectors: NDArray[np.float32] = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit_vectors


_UNTRUNCATED = {"add_special_tokens": False, "truncation": False, "verbose": False}


def _word_start(text: str, position: int) -> int:
    """Index of the start of the word at a position; the position itself if no space is in the 50 characters before."""
    space_index = text.rfind(" ", max(0, position - 50), position)
    return space_index + 1 if space_index >= 0 else position


# --- loading ----------------------------------------------------------------------------------------------------


def check_encoder(model: str, use: EncoderUse = "encoder") -> None:
    """Check that an encoder is on this machine or can be downloaded, and that its weights are safe, without loading it.

    Args:
        use: what it is for, which errors name.

    Raises:
        ModelSetupError: sentence-transformers is not installed, the model is neither on this machine nor can be
            downloaded, or its weights are pickled.
    """
    _require_sentence_transformers()
    source, _ = locate_encoder(model, use)
    require_safe_weights(source, f"the {use} '{model}'")


def check_encoders(encoder: str, bertscore_model: str) -> None:
    """Check the encoder that compares answers, and the weights of the measure `bertscore_bert_base` unless empty.

    Raises:
        ModelSetupError: see `check_encoder`.
    """
    check_encoder(encoder)
    if bertscore_model:
        check_encoder(bertscore_model, "model of BERTScore")


loading_lock = threading.Lock()
"""Held while transformers loads a model: it changes torch meanwhile, and another model could get no weights."""


def load_encoder(model: str) -> SentenceEncoder:
    """Load a sentence encoder, without network access if it is on this machine.

    Args:
        model: `all-MiniLM-L6-v2`, a folder that holds a sentence-transformers model, or such a model's name on the
            Hugging Face hub.

    Raises:
        ModelSetupError: sentence-transformers is not installed, the model is neither on this machine nor can be
            downloaded, or it cannot be loaded.
    """
    _require_sentence_transformers()
    source, is_local = locate_encoder(model)
    description = f"the encoder '{model}'"
    require_safe_weights(source, description)
    bootstrap.prepare_environment()

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    use_cores(all_cores=False)
    try:
        with loading_lock:
            loaded = sentence_transformers.SentenceTransformer(
                source, local_files_only=is_local, model_kwargs={"use_safetensors": True}
            )
    except Exception as error:  # noqa: BLE001 - the libraries raise errors of any class for a damaged file
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        if "safetensors" in reason and "does not appear to have a file" in reason:
            raise pickled_weights_error(description, "on the Hugging Face Hub") from None
        raise ModelSetupError(f"{description} cannot be loaded: {reason}", HINTS["encoder"]) from None
    encoder = SentenceEncoder(loaded, model)
    first, second = encoder.encode(PROBE_TEXTS)
    if not float(first @ second) < MAX_PROBE_SIMILARITY:  # also if it is nan
        raise ModelSetupError(
            f"{description} gives different texts the same vector: its tokenizer or its weights are damaged.",
            HINTS["encoder"],
        )
    return encoder


def use_cores(*, all_cores: bool) -> None:
    """Let encoders compute on all cores in the calling thread, or on all but one, which is left to the event loop.

    torch keeps the number for each thread: one that has computed before does not follow another's change.
    """
    if "torch" in sys.modules:
        n_cores = os.cpu_count() or 1
        torch.set_num_threads(n_cores if all_cores else max(1, n_cores - 1))


def _require_sentence_transformers() -> None:
    """Raise ModelSetupError if sentence-transformers is not installed."""
    if not importlib.util.find_spec("sentence_transformers"):
        raise ModelSetupError(
            "sentence embeddings need the package sentence-transformers.",
            "Install torch for your machine, then run `pip install 'auditor[embeddings]'`. Without self-consistency: "
            'embedding = { model = "none" }',
        )
