"""Recognise a file whose content does not match its suffix, by its first bytes."""

from __future__ import annotations

from pathlib import Path

from auditor.errors import ImportFileError

_UNPACK_HINT, _UTF8_HINT = "Unpack it, and use the file in it.", "Save it as UTF-8."
_SPSS_HINT = "Rename it to .sav, and import it with `auditor surveys import`."
# First bytes of a file, name of its format, and how to fix the error.
SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet", "Unpack it, or save the sheet as CSV."),
    (b"\x1f\x8b", "a gzip archive", _UNPACK_HINT),
    (b"7z\xbc\xaf", "a 7z archive", _UNPACK_HINT),
    (b"Rar!", "a RAR archive", _UNPACK_HINT),
    (b"$FL", "an SPSS file", _SPSS_HINT),
    (b"PAR1", "a Parquet file", "Rename it to .parquet."),
    (b"<stata_dta>", "a Stata file", "Use the SPSS or the CSV file."),
    (b"RDX", "an R file", "Use the SPSS or the CSV file."),
    (b"%PDF", "a PDF document", "Use the data file, not the documentation."),
    (b"\x89PNG", "a picture", "Use the data file."),
    (b"\xff\xd8\xff", "a picture", "Use the data file."),
    (b"\xd0\xcf\x11\xe0", "an old Office document", "Save the sheet as CSV."),
    (b"\xff\xfe", "text in UTF-16", _UTF8_HINT),
    (b"\xfe\xff", "text in UTF-16", _UTF8_HINT),
    (b"<!doctype html", "a web page", "Download the file itself; the site may require you to log in."),
    (b"<html", "a web page", "Download the file itself; the site may require you to log in."),
)


def reject_other_formats(path: Path, expected_format: str) -> None:
    """Raise an error if a file begins with the signature of another format.

    Args:
        expected_format: the expected format, as named in `SIGNATURES`; its own signature is accepted.

    Raises:
        ImportFileError: the file begins like one of another format, which the message names.
    """
    try:
        with open(path, "rb") as file:
            first_bytes = file.read(64).lstrip(b" \r\n\t").lower()
    except OSError:
        return  # the reader that is called next reports why the file cannot be opened
    for signature, format_name, how_to_fix in SIGNATURES:
        if first_bytes.startswith(signature.lower()) and format_name != expected_format:
            raise ImportFileError(f"{path}: the suffix does not match the content, which is {format_name}.", how_to_fix)
