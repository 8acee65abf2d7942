"""Options that several commands take."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Storage: TypeAlias = Annotated[
    str | None,
    typer.Option("--storage", metavar="URL", help="Database, such as sqlite:///auditor.db (or set AUDITOR_STORAGE)."),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
