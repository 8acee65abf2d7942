"""Read archives and Parquet files, which may unpack to more than the memory of this computer.

What is unpacked is counted while it is read, within the limits of `auditor.input_files`: `check_archive` measures a ZIP
archive before a library reads it, and `iterate_parquet` reads the rows of a Parquet file.
"""

from __future__ import annotations

import io
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from auditor.errors import AuditorError
from auditor.input_files import (
    BLOCK_BYTES,
    check_unpacked_size,
    format_bytes,
    get_limits,
    make_limit_error,
    require_columns,
)
from auditor.lazy_imports import import_when_used
from auditor.text_safety import truncate_text

if not TYPE_CHECKING:
    np = import_when_used("numpy")
    pa = import_when_used("pyarrow")
    pc = import_when_used("pyarrow.compute")
    pq = import_when_used("pyarrow.parquet")
    zipfile = import_when_used("zipfile")
    zstandard = import_when_used("zstandard")
else:
    import zipfile

    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import zstandard

PARQUET_BATCH_ROWS, PARQUET_SLICE_ROWS = 1_000, 100
ZSTANDARD_METHOD = 93
"""Number of the compression method Zstandard in ZIP archives; Inspect AI writes it."""


def check_archive(
    path: Path,
    error_class: type[AuditorError],
    format_name: str = "ZIP archive",
    is_streamed: Callable[[str], bool] = lambda name: False,
) -> None:
    """Check that a ZIP archive can be unpacked within the limits, before a library does that.

    Every member is unpacked once and only counted, since the sizes that an archive states need not be true.

    Args:
        format_name: what the archive should be, for error messages.
        is_streamed: whether the member of a name is read in parts; any other one is read whole.

    Raises:
        AuditorError: of class `error_class`: no ZIP archive, too many members, or larger than a limit.
    """
    limits = get_limits()
    how_to_fix = "Check that it is complete."
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if len(members) > limits.members:
                problem = f"has more than {limits.members:,} files in it"
                raise make_limit_error(str(path), problem, len(members), limits.members, error_class)
            total, packed = 0, path.stat().st_size
            check_unpacked_size(str(path), sum(member.file_size for member in members), packed, error_class)
            for member in members:
                is_whole, size = not is_streamed(member.filename), 0
                for n_bytes in _count_member(file, member):
                    size, total = size + n_bytes, total + n_bytes
                    if is_whole and size > limits.member_bytes:
                        problem = f"has a file of more than {format_bytes(limits.member_bytes)} in it"
                        raise make_limit_error(str(path), problem, size, limits.member_bytes, error_class)
                    check_unpacked_size(str(path), total, packed, error_class)
                if size != member.file_size:
                    raise error_class(f"{path}: states a wrong size of a file in it.", how_to_fix)
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, NotImplementedError) as error:
        reason = str(error).rstrip(".")
        raise error_class(f"{path}: is not a valid {format_name}: {reason}.", how_to_fix) from None


def _count_member(file: BinaryIO, member: zipfile.ZipInfo) -> Iterator[int]:
    """Unpack a member of a ZIP archive and yield the sizes of its parts; their sum may differ from the stated size.

    Raises:
        ValueError: it is encrypted, or packed by a method that is not known.
    """
    if member.flag_bits & 1:
        raise ValueError("a file in it is encrypted")
    file.seek(member.header_offset)
    header = file.read(zipfile.sizeFileHeader)  # type: ignore[attr-defined]  # 30 bytes, then the name and extra fields
    file.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), io.SEEK_CUR)
    packed = io.BytesIO(file.read(member.compress_size))
    if member.compress_type == zipfile.ZIP_STORED:
        yield member.compress_size
    elif member.compress_type == zipfile.ZIP_DEFLATED:
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        while block := unpacker.unconsumed_tail or packed.read(BLOCK_BYTES):
            yield len(unpacker.decompress(block, BLOCK_BYTES))
        yield len(unpacker.flush())
    elif member.compress_type == ZSTANDARD_METHOD:
        try:
            with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as stream:
                while block := stream.read(BLOCK_BYTES):
                    yield len(block)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None
    else:
        raise ValueError(f"a file in it is packed by the unknown method {member.compress_type}")


def read_parquet_columns(path: Path, error_class: type[AuditorError]) -> list[str]:
    """The names of the columns of a Parquet file, as stored in the file.

    Raises:
        AuditorError: of class `error_class`: not a Parquet file, too many columns, or two of one name.
    """
    with _report_parquet_errors(path, error_class):
        names: list[str] = pq.read_schema(path).names
    require_columns(names, str(path), error_class)
    if duplicate := next((name for name, n in Counter(names).items() if n > 1), None):
        raise error_class(
            f"{path}: the column '{truncate_text(duplicate)}' occurs twice.", "Remove one of the columns."
        )
    return names


def shorten_floats(values: Any, bits: int = 32) -> list[float]:
    """Numbers that were stored in few bits as programs show them: 0.1, where the exact value is 0.10000000149011612."""
    return [float(text) for text in np.asarray(values, f"float{bits}").astype(str)]


def iterate_parquet(
    path: Path, error_class: type[AuditorError], columns: Collection[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file.

    Args:
        columns: read only these columns; None for all.

    Raises:
        AuditorError: of class `error_class`: not a Parquet file, or larger than a limit.
    """
    selected = [name for name in read_parquet_columns(path, error_class) if columns is None or name in columns]
    with _report_parquet_errors(path, error_class):
        packed, n_bytes = path.stat().st_size, 0
        with pq.ParquetFile(path) as file:
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            check_unpacked_size(str(path), sum(group.total_byte_size for group in groups), packed, error_class)
            schema = file.schema_arrow
        # As dictionaries, texts that are repeated are in memory once.
        texts = [name for name in selected if pa.types.is_string(schema.field(name).type)]
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            for batch in file.iter_batches(PARQUET_BATCH_ROWS, columns=selected):
                n_bytes += sum(map(_measure_column, batch.columns))
                check_unpacked_size(str(path), n_bytes, packed, error_class)
                batch = pa.RecordBatch.from_arrays(list(map(_shorten_column, batch.columns)), batch.schema.names)
                for start in range(0, batch.num_rows, PARQUET_SLICE_ROWS):  # of long texts, few are in memory at once
                    yield from batch.slice(start, PARQUET_SLICE_ROWS).to_pylist()


@contextmanager
def _report_parquet_errors(path: Path, error_class: type[AuditorError]) -> Iterator[None]:
    """Raise an error of class `error_class` for what pyarrow raises within the context, but for texts not in UTF-8."""
    try:
        yield
    except UnicodeDecodeError:
        raise
    except (pa.ArrowException, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split()).rstrip(".")[:200]
        raise error_class(f"{path}: is not valid Parquet: {reason}.", "Check that the file is complete.") from None


def _shorten_column(column: Any) -> Any:
    """A column of a pyarrow RecordBatch, with floats of 32 or 16 bits as `shorten_floats` reads them."""
    if not pa.types.is_floating(column.type) or column.type.bit_width == 64:
        return column
    values = shorten_floats(column.to_numpy(zero_copy_only=False), column.type.bit_width)
    return pa.array(values, mask=column.is_null().to_numpy(zero_copy_only=False))


def _measure_column(column: Any) -> int:
    """Bytes of a column of a pyarrow RecordBatch if repeated texts of its dictionary were written out."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
    return (pc.sum(lengths).as_py() or 0) + len(column)
