"""An encoder that cannot be loaded is found before the first request, and pickled weights are never loaded."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from auditor import run_audit
from auditor.config import AuditConfig
from auditor.errors import ModelSetupError
from auditor.models.weights import pull_weights
from tests.support.audit_configs import FOUR_CELLS, config
from tests.support.fake_server import FakeServer, answer


@pytest.fixture(scope="module", autouse=True)
def _needs_sentence_transformers() -> None:
    """Skip the module without the library; importing it during collection would take seconds in every worker."""
    pytest.importorskip("sentence_transformers", reason="the extra 'embeddings' is not installed")


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A copy of the built-in encoder's folder."""
    folder = tmp_path / "encoder"
    shutil.copytree(pull_weights("all-MiniLM-L6-v2"), folder)
    return folder


def audit_with(url: str, encoder: Path | str) -> AuditConfig:
    """An audit of one model that compares two samples of each answer by an encoder."""
    probes = {"direct": {"samples": 2}}
    return config(url, 1, survey=FOUR_CELLS, embedding={"model": str(encoder)}, probes=probes, judges=[])


class Exploit:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def change_file(folder: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    (folder / name).write_bytes(change((folder / name).read_bytes()))


def remove_files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).unlink()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut weights": lambda folder: change_file(folder, "model.safetensors", lambda content: content[:1000]),
    "no tokenizer": lambda folder: remove_files(folder, "tokenizer.json", "vocab.txt", "tokenizer_config.json"),
    "a broken config": lambda folder: change_file(folder, "config.json", lambda content: b"{"),
    "an unknown architecture": lambda folder: change_file(
        folder, "config.json", lambda content: json.dumps(json.loads(content) | {"model_type": "no-such"}).encode()
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_encoder_that_cannot_be_loaded_is_found_before_the_first_request(
    damage: str, encoder: Path, server: FakeServer, storage: str
) -> None:
    DAMAGES[damage](encoder)
    server.script = answer
    with pytest.raises(ModelSetupError, match=r"cannot be loaded|are damaged"):
        run_audit(audit_with(server.url, encoder), storage=storage)
    assert server.requests == []


def test_the_built_in_encoder_is_loaded_before_the_first_request_too(server: FakeServer, storage: str) -> None:
    pull_weights("all-MiniLM-L6-v2")
    server.script = answer
    broken = mock.patch("sentence_transformers.SentenceTransformer", side_effect=ImportError("torch is broken"))
    with broken, pytest.raises(ModelSetupError, match="torch is broken"):
        run_audit(audit_with(server.url, "all-MiniLM-L6-v2"), storage=storage)
    assert server.requests == []


@pytest.mark.parametrize("place", ["", "2_Dense"])
def test_pickled_weights_are_refused_in_one_sentence(
    place: str, encoder: Path, server: FakeServer, storage: str, tmp_path: Path
) -> None:
    folder = encoder / place
    folder.mkdir(exist_ok=True)
    if place:
        modules = json.loads((encoder / "modules.json").read_text())
        dense = {"idx": 3, "name": "3", "path": place, "type": "sentence_transformers.models.Dense"}
        (encoder / "modules.json").write_text(json.dumps([*modules, dense]))
    else:
        (encoder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Exploit(tmp_path / "exploited")))
    with pytest.raises(ModelSetupError) as refused:
        run_audit(audit_with(server.url, encoder), storage=storage)
    file = f"{place}/pytorch_model.bin" if place else "pytorch_model.bin"
    assert refused.value.message == (
        f"the encoder '{encoder}' has its weights in a pickled file ({file}), which could run code when it is loaded."
    )
    assert "safetensors" in (refused.value.how_to_fix or "")
    assert server.requests == []
    assert not (tmp_path / "exploited").exists()


def test_pickled_weights_of_a_language_model_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from auditor.models.continuation import load_continuation_scorer

    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Exploit(tmp_path / "exploited")))
    with pytest.raises(ModelSetupError, match="has its weights in a pickled file"):
        load_continuation_scorer(str(tmp_path))
    assert not (tmp_path / "exploited").exists()


def test_files_of_a_training_do_not_matter(encoder: Path) -> None:
    from auditor.models.embeddings import require_safe_weights

    for name in ("training_args.bin", "optimizer.pt", "pytorch_model.bin"):
        (encoder / name).write_bytes(b"")
    (encoder / "openvino").mkdir()
    (encoder / "openvino" / "openvino_model.bin").write_bytes(b"")
    require_safe_weights(encoder, "the encoder")


def test_runs_without_calls_load_no_encoder(server: FakeServer, storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server.script = answer
    audit = audit_with(server.url, "all-MiniLM-L6-v2")
    run_audit(audit, storage=storage)
    n_requests = len(server.requests)

    def refuse(name: str) -> None:
        raise AssertionError("the encoder was loaded")

    monkeypatch.setattr("auditor.models.embeddings.load_encoder", refuse)
    run_audit(audit, storage=storage)
    assert len(server.requests) == n_requests > 0
