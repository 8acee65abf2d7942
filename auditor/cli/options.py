"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

AuditArgument: TypeAlias = Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")]
StorageOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--storage", metavar="URL", help="Database, such as sqlite:///auditor.db (or set AUDITOR_STORAGE)."),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
PageFileOption: TypeAlias = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write a page (.html, .md or .txt).")
]
