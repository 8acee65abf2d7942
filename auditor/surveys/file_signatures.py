"""Recognise a file whose content does not match its suffix, by its first bytes."""

from __future__ import annotations

from pathlib import Path

from auditor.errors import ImportFileError

_UNPACK_HINT = "Unpack it, and use the file in it."
# First bytes of a file, name of its format, and how to fix the error.
SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet", "Unpack it; rename a spreadsheet to .xlsx."),
    (b"\x1f\x8b", "a gzip archive", "Add .gz to its name, as in scores.csv.gz."),
    (b"7z\xbc\xaf", "a 7z archive", _UNPACK_HINT),
    (b"Rar!", "a RAR archive", _UNPACK_HINT),
    (b"$FL", "an SPSS file", "Rename it to .sav."),
    (b"PAR1", "a Parquet file", "Rename it to .parquet."),
    (b"<stata_dta>", "a Stata file", "Rename it to .dta."),
    (b"RDX", "an R file", "Use the SPSS, Stata or CSV file."),
    (b"%PDF", "a PDF document", "Use the data file, not the documentation."),
    (b"\x89PNG", "a picture", "Use the data file."),
    (b"\xff\xd8\xff", "a picture", "Use the data file."),
    (b"\xd0\xcf\x11\xe0", "an old Office document", "Save the sheet as CSV."),
    (b"<!doctype html", "a web page", "Download the file itself; the site may require you to log in."),
    (b"<html", "a web page", "Download the file itself; the site may require you to log in."),
)


# Formats whose files begin with a signature, by the suffix of the file's name.
_FORMAT_BY_SUFFIX = {
    ".gz": "a gzip archive",
    ".parquet": "a Parquet file",
    ".sav": "an SPSS file",
    ".zsav": "an SPSS file",
    ".dta": "a Stata file",
    ".xlsx": "a ZIP archive or a spreadsheet",
}


def reject_other_formats(path: Path) -> None:
    """Raise an error if a file begins with the signature of another format than that of its suffix.

    Raises:
        ImportFileError: the file begins like one of another format, which the message names.
    """
    try:
        with open(path, "rb") as file:
            first_bytes = file.read(64).lstrip(b" \r\n\t").lower()
    except OSError:
        return  # the reader that is called next reports why the file cannot be opened
    expected_format = _FORMAT_BY_SUFFIX.get(path.suffix.lower())
    for signature, format_name, how_to_fix in SIGNATURES:
        if first_bytes.startswith(signature.lower()) and format_name != expected_format:
            raise ImportFileError(f"{path}: the suffix does not match the content, which is {format_name}.", how_to_fix)
