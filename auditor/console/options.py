"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from auditor.atomic_files import require_output
from auditor.console.output import print_message
from auditor.errors import StorageError, UsageError
from auditor.run import locate_audit, open_stored_database


def _parse_label_kind(value: str) -> str:
    """The value of a `LabelKind`, which traces have, or a probe declares.

    Raises:
        typer.BadParameter: there is no such kind.
    """
    from auditor.storage.probe_results import list_label_kinds  # loads the probes

    kinds = [kind.value for kind in list_label_kinds()]
    if value not in kinds:
        raise typer.BadParameter(f"'{value}' is not one of {', '.join(kinds)}.")
    return value


def label_kind_option(help_text: str) -> Any:
    """The option --kind of commands about people's labels."""
    return typer.Option("--kind", metavar="KIND", parser=_parse_label_kind, help=help_text)


AUDIT_HELP = "The audit's name, or its config file."
_AUDIT_STORAGE = "auditor.audit_storage"
"""Key of a command's context: the database of an audit that was named by its config's path."""
_AUDIT_CONFIG = "auditor.audit_config"
"""Key of a command's context: the path of the config that named its audit last."""


def select_audit(context: typer.Context, name: str) -> str:
    """The name of an audit that was given by name or config; without one, the most recent audit of the database.

    Where there are several, the chosen one is named on standard error.

    Raises:
        StorageError: no name was given, and there is no database, or no audit in it.
        ConfigError: the config cannot be used.
    """
    if context.resilient_parsing:
        return name
    return resolve_audit_name(context, name) or find_latest_audit(context.params.get("storage"))


def resolve_audit_name(context: typer.Context, name: str | None) -> str | None:
    """The name of an audit that was given by name, or by the path of its config, whose database is used then."""
    if name is None or not name or context.resilient_parsing:
        return name

    audit_name, location = locate_audit(name, context.params.get("storage"))
    if audit_name != name:
        context.meta[_AUDIT_CONFIG] = Path(name)
        _use_storage(context, location.url, name)
        if location.notice:
            print_message(location.notice)
    return audit_name


def resolve_target_names(context: typer.Context, names: list[str] | None) -> list[str] | None:
    """The names of audits, each with `:MODEL` or not, of which some may be paths of configs."""
    resolved: list[str] = []
    for name in names or ():
        audit, model = _split_target(name)
        resolved.append(f"{resolve_audit_name(context, audit)}{model}")
    return resolved or names


def _use_storage(context: typer.Context, url: str, config: str) -> None:
    """Let a command use the database of a config, unless it has the option --storage.

    Raises:
        UsageError: another config of this command has another database.
    """
    if context.meta.setdefault(_AUDIT_STORAGE, url) != url:
        raise UsageError(
            f"the results of {config} are in another database ({url}) than those of the audit before it.",
            "Name one database with --storage, to which all of them belong.",
        )


def _select_storage(context: typer.Context, url: str | None) -> str | None:
    """The value of --storage; without one, the database of the audit's config, if AUDIT is one. Audits come first."""
    selected: str | None = url or context.meta.get(_AUDIT_STORAGE)
    return selected


def select_thresholds(context: typer.Context, path: Path | None) -> Path | None:
    """The value of --thresholds; without one, the config that names the audit: its file may be newer than the run."""
    selected: Path | None = path or context.meta.get(_AUDIT_CONFIG)
    return selected


def find_latest_audit(storage: str | None) -> str:
    """Name of the only audit of a database, or of the one that was updated last, which is named on standard error.

    Raises:
        StorageError: there is no database, or no audit in it.
    """
    from auditor.storage import audits

    with open_stored_database(storage) as db:
        stored_audits = audits.load_audits(db)
        if not stored_audits:
            raise StorageError(f"the database {db.url} has no audit.", "Run one: auditor run CONFIG")
    latest_audit = max(stored_audits, key=lambda stored_audit: stored_audit.updated_at)
    if len(stored_audits) > 1:
        print_message(
            f"Audit: {latest_audit.name} (the most recent of {len(stored_audits)}; name another to choose it)"
        )
    return latest_audit.name


def select_audit_model(context: typer.Context, name: str) -> str:
    """As `select_audit`, for an argument that may name a model of the audit too, as AUDIT:MODEL."""
    audit, model = _split_target(name)
    return f"{select_audit(context, audit)}{model}"


def _split_target(text: str) -> tuple[str, str]:
    """AUDIT and `:MODEL`, or nothing; raises UsageError for a colon alone, as an unset variable of a script leaves."""
    audit, colon, model = text.partition(":")
    if colon and not model:
        raise UsageError(f"'{text}' names no model after the colon.", "Add one, or remove the colon for all models.")
    return audit, colon + model


def optional_audit(help_text: str) -> Any:
    """A command's argument AUDIT, which may be left out; see `select_audit`."""
    return typer.Argument(
        metavar="AUDIT", help=help_text, default_factory=str, show_default=False, callback=select_audit
    )


class OutputPath:
    """Parser of a path that a command writes: the type of all such options and arguments, and of no other ones.

    A path that can never be right is refused before the command starts, and pays for answers; `auditor.atomic_files`
    checks again when it writes.

    Args:
        replaces: names of kinds of `auditor.file_kinds` that the output may replace, besides pages and tables.
        is_folder: whether it is a folder, whose files are checked one by one when they are written.
    """

    __name__ = "path"

    def __init__(self, *replaces: str, is_folder: bool = False) -> None:
        self.replaces, self.is_folder = replaces, is_folder

    def __call__(self, text: str) -> Path:
        """The path; UsageError if it cannot be written, or is a file that is not replaced."""
        path = Path(text)
        require_output(path, self.replaces, is_folder=self.is_folder)
        return path


def resolve_output(output: Path | None, default_name: str) -> Path:
    """The path to write: the one that the user named, else the default one, which may not be a link.

    Raises:
        UsageError: the default one is a link: whoever made the folder may have chosen where it leads.
    """
    path = output or Path(default_name)
    if output is None and os.path.islink(path):  # False for a name that no file can have
        raise UsageError(
            f"{path}: is a link, which the default output does not follow.",
            f"Delete the link. Or, if {path.resolve()} may be replaced, name it: -o {path.resolve()}",
        )
    return path


def output_file(help_text: str = "Write to a file.", *names: str, metavar: str = "FILE", replaces: str = "") -> Any:
    """An option for a file to write, `-o` unless other names are given; `replaces` as in `OutputPath`."""
    parser = OutputPath(*filter(None, (replaces,)))
    return typer.Option(*(names or ("-o", "--output")), metavar=metavar, help=help_text, parser=parser)


def output_folder(help_text: str) -> Any:
    """The option `-o` for a folder to write."""
    return typer.Option("-o", "--output", metavar="DIR", help=help_text, parser=OutputPath(is_folder=True))


AuditArgument: TypeAlias = Annotated[
    str, optional_audit(f"{AUDIT_HELP.rstrip('.')}; the most recent audit if left out.")
]
AuditModelArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="AUDIT[:MODEL]",
        help=f"{AUDIT_HELP.rstrip('.')}; the most recent audit if left out. With :MODEL, only this model.",
        default_factory=str,
        show_default=False,
        callback=select_audit_model,
    ),
]
RequiredAuditArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="AUDIT", help=AUDIT_HELP, callback=resolve_audit_name)
]
ConfigArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="CONFIG", help="The audit's TOML or YAML file.")]
SetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as limits.budget_usd=5; may be repeated."),
]
LimitOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--limit",
        metavar="N",
        min=1,
        help="Ask about only N cells (a country and a topic), spread over countries and topics.",
    ),
]
StorageOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="URL",
        callback=_select_storage,
        help="Database, such as sqlite:///auditor.db (or set AUDITOR_STORAGE).",
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
UncorrectedOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--uncorrected", help="Show shares of VALID verdicts as the judges gave them, not corrected by people's labels."
    ),
]
PageFileOption: TypeAlias = Annotated[
    Path | None, output_file("Write the result as a page to this file (.html, .md or .txt).")
]


def split_names(option: str, names: str | None) -> list[str]:
    """The names in the value of an option, which separates them by commas; empty without the option.

    Raises:
        UsageError: the value has no name, as of an unset variable of a script; all would be taken.
    """
    parts = [name.strip() for name in (names or "").split(",") if name.strip()]
    if names is not None and not parts:
        raise UsageError(f"{option} names no model.", f"Add names, or leave out {option} for all models.")
    return parts


def list_overrides(settings: list[str] | None, limit: int | None) -> list[str]:
    """The settings of --set and --limit, as `load_config` takes them."""
    return [*(settings or ()), *([] if limit is None else [f"limits.max_cells={limit}"])]


# --- imports --------------------------------------------------------------------------------------------------------

NewAuditOption: TypeAlias = Annotated[str, typer.Option("--audit", metavar="NAME", help="Name of the new audit.")]
SurveyOption: TypeAlias = Annotated[
    str, typer.Option("--survey", metavar="S", help="The survey to compare with: a built-in one, or a file.")
]
RegionsOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--regions",
        metavar="G",
        help="Groups of countries: a built-in grouping, or a file with the columns country,region.",
    ),
]
CountryCodesOption: TypeAlias = Annotated[
    Literal["iso-3166-numeric"] | None,
    typer.Option(
        "--country-codes", help="What numbers in the column country mean; without it, a number stops the import."
    ),
]
StrictOption: TypeAlias = Annotated[
    bool, typer.Option("--strict", help="Stop if a row is about a country or topic that the survey does not have.")
]
