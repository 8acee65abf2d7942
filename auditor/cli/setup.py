"""Setup commands: init, trust, doctor, models."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from auditor.cli.options import JsonOption, StorageOption
from auditor.cli.output import print_data, print_json, print_message, print_table

models_app = typer.Typer(name="models", help="Local models: list them, fetch their weights.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the command-line app."""
    app.command()(init)
    app.command()(doctor)
    app.command()(trust)
    app.add_typer(models_app)


def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="Where to write it.")] = Path("audit.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a configuration to start from; it runs as it is.

    Example: auditor init my-audit.toml
    """
    from auditor.atomic_files import write_atomically
    from auditor.errors import UsageError

    if file.exists() and not force:
        raise UsageError(f"{file} exists already.", "Name another file, or use --force to replace it.")
    if not file.parent.is_dir():
        raise UsageError(f"the folder {file.parent} does not exist.", "Make it first.")
    write_atomically((resources.files("auditor.cli") / "starter.toml").read_text(encoding="utf-8"), file)
    print_message(f"Wrote {file}. Next: auditor doctor {file}, then auditor run {file}")


def trust(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The audit whose servers may have its keys.")],
) -> None:
    """Allow the keys that a config names to go to the servers that it names; read it first.

    Only keys with an api_base need this: without one, a key goes to its provider's own servers. Credentials of this
    machine, which sign requests to Bedrock and Vertex AI without any key in the config, need it always. So do a
    PostgreSQL server and a Ray cluster that the config names.

    Example: auditor trust examples/local-server.toml
    """
    from auditor.config import load_config
    from auditor.config.trust import add_trusted_bindings, required_bindings, trust_file_path
    from auditor.storage.engine import remote_servers

    audit_config = load_config(config)
    bindings = required_bindings(audit_config, remote_servers(audit_config.storage) if audit_config.storage else ())
    new_bindings = add_trusted_bindings(bindings)
    for binding in bindings:
        print_message(f"Allowed: {binding}{'' if binding in new_bindings else ' (as before)'}")
    unchanged_message = (
        "No new line is needed." if bindings else "Nothing to allow: no key goes to a server that the config names."
    )
    print_message(f"Written to {trust_file_path()}" if new_bindings else unchanged_message)


def doctor(
    config: Annotated[
        Path | None,
        typer.Argument(metavar="[CONFIG|AUDIT]", help="What this audit needs too; of one that was run, its records."),
    ] = None,
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="Bring a database of an older version up to date; a file is copied first.")
    ] = False,
    roles: Annotated[
        bool, typer.Option("--roles", help="Print SQL that makes the roles of a team's server, and end.")
    ] = False,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check each thing that a run needs, and say how to mend what is missing. No model is asked anything.

    Given the name of an audit that was run, it proves that its records add up, as `auditor verify` does.

    Example: auditor doctor examples/quickstart.toml
    """
    from auditor.cli.audit_checks import is_audit_name, run_doctor_checks
    from auditor.cli.verification import verify

    if roles:
        from auditor.storage.roles import build_roles_sql

        print_data(build_roles_sql())
        return
    if upgrade:
        from auditor.run import resolve_storage_url
        from auditor.run.storage_upgrade import upgrade_storage

        print_message(str(upgrade_storage(resolve_storage_url(storage)) or "The database has this version's tables."))
    if config is not None and is_audit_name(config, storage):
        verify(str(config), storage=storage, as_json=as_json)
        return
    checks = run_doctor_checks(config, storage)
    if as_json:
        print_json([check._asdict() for check in checks])
    else:
        print_table(
            ["", "check", "found", "mend"], [[check.state, check.name, check.found, check.mend] for check in checks]
        )
    if any(check.state == "FAIL" for check in checks):
        raise typer.Exit(1)


@models_app.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """List the local models and whether their weights are here.

    Example: auditor models list
    """
    from auditor.models.weights import list_weights

    model_rows = [
        {
            "name": status.weights.name,
            "about": status.weights.description,
            "license": status.weights.license,
            "bytes": status.weights.size_bytes,
            "state": status.state.value,
            "path": str(status.path),
        }
        for status in list_weights()
    ]
    if as_json:
        print_json(model_rows)
        return
    rows = [
        [model["name"], model["about"], model["license"], f"{int(str(model['bytes'])) / 1e6:.0f} MB", model["state"]]
        for model in model_rows
    ]
    print_table(["model", "what it is", "license", "size", "weights"], rows)


@models_app.command("pull")
def pull_model(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A model of `auditor models list`.")],
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Take it from a file fetched by hand.")
    ] = None,
) -> None:
    """Fetch a local model's weights into the user cache, check them, and go on where it stopped.

    Example: auditor models pull smollm2-135m
    """
    from auditor.cli.progress import show_download_bar
    from auditor.models.weights import pull_weights

    with show_download_bar(name) as progress:
        path = pull_weights(name, source=source, progress=progress)
    print_message(f"{name}: {path}")
