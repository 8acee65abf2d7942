from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.errors import ModelSetupError
from auditor.models import embeddings
from auditor.models.continuation import load_continuation_scorer
from auditor.models.embeddings import MAX_TEXT_CHARS, SentenceEncoder, check_encoder, load_encoder

WORDS = "the people of this country think that divorce is wrong and that a promise must be kept "


def cosine(encoder: SentenceEncoder, left: str, right: str) -> float:
    a, b = encoder.encode([left, right])
    return float(a @ b)


def test_vectors_are_unit_and_in_the_order_of_the_texts(encoder: SentenceEncoder) -> None:
    texts = ["Divorce is wrong.", "A longer text about the price of bread in the market of the town.", "Yes", ""]
    vectors = encoder.encode(texts)
    assert vectors.shape == (4, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(encoder.encode(texts[::-1])[::-1], vectors, atol=1e-6)


def test_an_encoder_and_a_model_are_not_loaded_at_once(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sentence_transformers
    import transformers

    held: list[bool] = []

    def record(*_: object, **__: object) -> None:
        held.append(embeddings.loading_lock.locked())
        raise OSError("not loaded")

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", record)
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", record)
    with pytest.raises(ModelSetupError, match="not loaded"):
        load_encoder(str(minilm))
    with pytest.raises(ModelSetupError, match="not loaded"):
        load_continuation_scorer("no-model.gguf")
    assert held == [True, True]
    assert not embeddings.loading_lock.locked()


def test_vectors_equal_those_of_sentence_transformers(encoder: SentenceEncoder, minilm: Path) -> None:
    from sentence_transformers import SentenceTransformer

    texts = ["Divorce is wrong.", "Abortion can never be justified.", WORDS]
    expected = SentenceTransformer(str(minilm)).encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-6)


def test_similar_meanings_are_closer_than_unrelated_texts(encoder: SentenceEncoder) -> None:
    similar_score = cosine(encoder, "People there accept divorce.", "Divorce is acceptable to them.")
    unrelated_score = cosine(encoder, "People there accept divorce.", "The train leaves at noon.")
    assert similar_score > 0.6 > 0.2 > unrelated_score


def test_equal_texts_have_equal_vectors(encoder: SentenceEncoder) -> None:
    vectors = encoder.encode(["a", WORDS * 20, "a", "b", WORDS * 20])
    assert (vectors[0] == vectors[2]).all()
    assert (vectors[1] == vectors[4]).all()


def test_no_texts_give_an_empty_array(encoder: SentenceEncoder) -> None:
    assert encoder.encode([]).shape == (0, 384)


def test_the_end_of_a_long_text_changes_its_vector(encoder: SentenceEncoder) -> None:
    """A plain encoder truncates at 256 tokens, so these two texts would have the same vector."""
    first, second = WORDS * 20 + "It is always acceptable. " * 30, WORDS * 20 + "The train leaves at noon. " * 30
    assert cosine(encoder, first, second) < 0.95
    truncated_vectors = encoder._model.encode([first, second], normalize_embeddings=True)
    assert truncated_vectors[0] @ truncated_vectors[1] > 0.9999


def test_a_long_text_has_the_mean_of_its_pieces(encoder: SentenceEncoder) -> None:
    text = WORDS * 40
    pieces = encoder._split_text(text)
    assert "".join(pieces) == text
    mean = encoder.encode(pieces).mean(axis=0)
    np.testing.assert_allclose(encoder.encode([text])[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_a_text_of_megabytes_is_encoded_by_its_beginning_and_its_end(
    encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded_texts: list[str] = []

    def encode_short(texts: list[str]) -> NDArray[np.float32]:
        encoded_texts.extend(texts)
        return np.ones((len(texts), 384), dtype=np.float32)

    monkeypatch.setattr(encoder, "_encode_pieces", encode_short)
    long_text, fitting_text = "Beginning. " + WORDS * 30_000 + "The end.", (WORDS * 3000)[:MAX_TEXT_CHARS]
    encoder.encode([long_text])
    assert sum(map(len, encoded_texts)) <= MAX_TEXT_CHARS < len(long_text)
    assert encoded_texts[0].startswith("Beginning. ")
    assert encoded_texts[-1].endswith("The end.")
    encoded_texts.clear()
    encoder.encode([fitting_text])
    assert "".join(encoded_texts) == fitting_text


@pytest.mark.parametrize(
    "text",
    [WORDS * 100, "word" * 5000, "ab" * 700 + " " + WORDS * 30, "🙂愛" * 2000, "a b " * 3000, "\n".join(["x"] * 2000)],
    ids=["prose", "one word", "long words", "no spaces", "short words", "lines"],
)
def test_every_piece_fits_the_token_limit(encoder: SentenceEncoder, text: str) -> None:
    pieces = encoder._split_text(text)
    assert "".join(pieces) == text
    tokenizer = encoder._model.tokenizer
    assert max(len(ids) for ids in tokenizer(pieces, truncation=False, verbose=False)["input_ids"]) <= 256


def test_a_text_that_just_fits_is_one_piece(encoder: SentenceEncoder) -> None:
    fitting_text = "a " * 254  # 254 tokens and the two special tokens are 256
    assert encoder._split_text(fitting_text) == [fitting_text]
    assert len(encoder._split_text(fitting_text + "a")) == 2


def test_the_revision_is_that_of_the_weights(encoder: SentenceEncoder, minilm: Path) -> None:
    reloaded_encoder = load_encoder(str(minilm))
    assert reloaded_encoder.revision == encoder.revision
    assert len(encoder.revision) == 64
    state_dict = reloaded_encoder._model[0].state_dict()
    next(iter(state_dict.values())).add_(1e-3)
    del reloaded_encoder.revision
    assert reloaded_encoder.revision != encoder.revision


OFFLINE_PROGRAM = """
import socket, sys
asked = []
def refuse(*args, **kwargs):
    asked.append(args[0])
    raise socket.gaierror("no look-ups here")
socket.getaddrinfo = refuse
from auditor.models.embeddings import check_encoder, load_encoder
check_encoder("all-MiniLM-L6-v2")
heavy = {"torch", "transformers", "sentence_transformers"} & set(sys.modules)
assert not heavy, heavy
assert load_encoder("all-MiniLM-L6-v2").encode(["hello"]).shape == (1, 384)
assert not asked, asked
"""


def test_checking_loads_no_heavy_library_and_loading_looks_up_no_address_and_prints_nothing(minilm: Path) -> None:
    del minilm
    completed = subprocess.run([sys.executable, "-c", OFFLINE_PROGRAM], capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "", "")


def test_an_uncached_model_fails_at_once_when_the_hub_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    for lookup in (check_encoder, load_encoder):
        with pytest.raises(ModelSetupError, match="'org/none' is not on this machine, and the Hugging Face Hub"):
            lookup("org/none")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelSetupError, match="HF_HUB_OFFLINE is set"):
        load_encoder("org/none")


@pytest.mark.parametrize(
    ("model", "words"),
    [("./no/such/folder", "is a path to a folder that does not exist"),
     ("/no/such/folder", "is a path to a folder that does not exist"), ("not a name", "not a valid model name"),
     ("smollm2-135m", "is a language model")],
)  # fmt: skip
def test_a_name_that_is_no_encoder_is_refused(smollm2: Path, model: str, words: str) -> None:
    del smollm2
    with pytest.raises(ModelSetupError, match=words):
        check_encoder(model)


def test_a_folder_without_an_encoder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelSetupError, match="cannot be loaded"):
        load_encoder(str(tmp_path))


def test_missing_weights_are_an_error_with_the_command_to_fetch_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_CACHE", str(tmp_path))
    with pytest.raises(ModelSetupError, match="auditor models pull all-MiniLM-L6-v2"):
        check_encoder("all-MiniLM-L6-v2")


def test_an_error_about_the_weights_of_bertscore_names_their_setting(tmp_path: Path) -> None:
    with pytest.raises(ModelSetupError, match=r"the model of BERTScore '.*none' .*does not exist") as caught:
        check_encoder(str(tmp_path / "none"), "model of BERTScore")
    assert "Set bertscore_model to a folder" in caught.value.how_to_fix


def test_a_missing_package_is_an_error_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ModelSetupError, match=r"Install torch.*pip install 'auditor\[embeddings\]'"):
        load_encoder("all-MiniLM-L6-v2")


def test_an_encoder_without_a_token_limit_does_not_split_texts() -> None:
    class Unlimited:
        max_seq_length = None
        tokenizer = object()

    assert embeddings.SentenceEncoder(Unlimited(), "static")._split_text("word " * 9999) == ["word " * 9999]


def test_a_thread_computes_on_all_cores_or_leaves_one(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("os.cpu_count", lambda: 4)

    def count_threads() -> list[int]:
        counts = []
        for all_cores in (False, True, False):
            embeddings.use_cores(all_cores=all_cores)
            counts.append(torch.get_num_threads())
        return counts

    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(1) as executor:
            assert executor.submit(count_threads).result() == [3, 4, 3]
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("n_cores", "n_texts", "n_threads", "n_each"),
    [(1, 70, 1, 1), (2, 70, 2, 1), (2, 32, 1, 2), (3, 33, 2, 1), (8, 130, 4, 2)],
)
def test_batches_are_encoded_by_threads_that_share_the_cores(
    encoder: SentenceEncoder,
    monkeypatch: pytest.MonkeyPatch,
    n_cores: int,
    n_texts: int,
    n_threads: int,
    n_each: int,
) -> None:
    torch = pytest.importorskip("torch")
    texts = [f"{i} words " * (1 + i % 3) for i in range(n_texts)]
    uses: list[tuple[object, int, int]] = []
    encode_batches = embeddings._encode_batches

    def record_use(model: object, share: list[str]) -> NDArray[np.float32]:
        uses.append((model, torch.get_num_threads(), len(share)))
        return encode_batches(model, share)

    def encode() -> NDArray[np.float32]:
        torch.set_num_threads(n_cores)
        return encoder.encode(texts)

    expected_vectors = np.concatenate([encoder.encode(texts[i : i + 20]) for i in range(0, n_texts, 20)])
    monkeypatch.setattr(embeddings, "_encode_batches", record_use)
    with ThreadPoolExecutor(1) as executor:
        vectors = executor.submit(encode).result()
    assert np.abs(vectors - expected_vectors).max() < 1e-5
    assert len({id(model) for model, _, _ in uses}) == len(uses) == n_threads
    assert {cores for _, cores, _ in uses} == {n_each}
    assert sum(n for _, _, n in uses) == n_texts
    weights = {id(weight) for model, _, _ in uses for weight in model.parameters()}  # type: ignore[attr-defined]
    assert len(weights) == len(list(encoder._model.parameters()))
