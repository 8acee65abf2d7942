"""Setup commands: init, trust, doctor, models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli.options import JsonOption, StorageOption
from auditor.cli.output import print_data, print_json, print_message, print_table

if TYPE_CHECKING:
    from auditor.config.providers import ProviderSetup

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
    provider: Annotated[
        str | None, typer.Option(metavar="NAME", help="Provider of the models, such as openai, anthropic or ollama.")
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option("--model", metavar="NAME", help="A model to audit; may be repeated.")
    ] = None,
    judges: Annotated[
        list[str] | None,
        typer.Option("--judge", metavar="NAME", help="A judge; may be repeated. Without one, the models are peers."),
    ] = None,
    judge_provider: Annotated[
        str | None, typer.Option(metavar="NAME", help="Provider of the judges, if it is another one.")
    ] = None,
    api_base: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of the models' server, if it is not the usual one.")
    ] = None,
) -> None:
    """Write a configuration to start from; without a provider, it runs as it is, with local models.

    Example: auditor init my-audit.toml --provider anthropic --model claude-sonnet-4-5 --judge claude-haiku-4-5
    """
    from auditor.atomic_files import write_atomically
    from auditor.cli import starter_config
    from auditor.errors import UsageError

    if file.exists() and not force:
        raise UsageError(f"{file} exists already.", "Name another file, or use --force to replace it.")
    if not file.parent.is_dir():
        raise UsageError(f"the folder {file.parent} does not exist.", "Make it first.")
    if provider is None and (models or judges or judge_provider or api_base):
        raise UsageError("no provider is named.", "Add it, as in --provider openai")
    if provider is None:
        write_atomically(starter_config.read_starter(), file)
        _print_set_keys()
        print_message(f"Wrote {file}. Next: auditor doctor {file}, then auditor run {file}")
        return
    setup = starter_config.find_provider(provider)
    judge_setup = starter_config.find_provider(judge_provider) if judge_provider else setup
    text = starter_config.build_provider_config(models or [], judges or [], setup, judge_setup, api_base)
    write_atomically(text, file)
    _print_next_steps(file, [setup, judge_setup] if judges else [setup])


def _print_next_steps(file: Path, setups: Sequence[ProviderSetup]) -> None:
    """Print the providers' notes, and the commands that lead to a run; names of variables only, no values."""
    from auditor.cli.starter_config import list_unset_variables, needs_trust

    for note in dict.fromkeys(setup.notes for setup in setups if setup.notes):
        print_message(note)
    commands = [f"export {name}=…" for name in list_unset_variables(setups)]
    commands += [f"auditor trust {file}"] if any(map(needs_trust, setups)) else []
    commands += [f"auditor doctor {file} --ping", f"auditor run {file}"]
    print_message(f"Wrote {file}. Next: {', then '.join(commands)}")


def _print_set_keys() -> None:
    """Name the providers whose key is in the environment, and the option that uses one of them."""
    from auditor.cli.starter_config import list_set_keys

    if set_keys := list_set_keys():
        names = ", ".join(f"{variable} ({provider.name})" for provider, variable in set_keys)
        print_message(
            f"Keys that are set: {names}. To use one: auditor init --provider {set_keys[0][0].name} --model …"
        )


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
    ping: Annotated[
        bool,
        typer.Option("--ping", help="Ask each model of CONFIG one question; says first what that costs at most."),
    ] = False,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check each thing that a run needs, and say how to fix what is missing. No model is asked anything without --ping.

    With --ping, each model gets one question, and a table shows what its server accepts, its latency and its price.
    This takes at most five requests for each model; nothing is stored. Given the name of an audit, it checks the
    records of that audit, as `auditor verify` does.

    Example: auditor doctor examples/quickstart.toml
    """
    from auditor.cli.audit_checks import is_audit_name
    from auditor.cli.verification import verify
    from auditor.errors import UsageError

    if ping and config is None:
        raise UsageError("--ping needs a config.", "Name it: auditor doctor CONFIG --ping")
    if roles:
        from auditor.storage.roles import build_roles_sql

        print_data(build_roles_sql())
        return
    if upgrade:
        from auditor.run import resolve_storage_url
        from auditor.run.storage_upgrade import upgrade_storage

        print_message(str(upgrade_storage(resolve_storage_url(storage)) or "The database has this version's tables."))
    if config is not None and not ping and is_audit_name(config, storage):
        verify(str(config), storage=storage, as_json=as_json)
        return
    _print_doctor_checks(config, storage, ping=ping, as_json=as_json)


def _print_doctor_checks(config: Path | None, storage: str | None, *, ping: bool, as_json: bool) -> None:
    """Print the checks and, with `ping`, what the models answer; exits with 1 if a check or a model failed."""
    from auditor.cli.audit_checks import run_doctor_checks
    from auditor.cli.ping import ping_config, pings_to_json, print_pings

    checks = run_doctor_checks(config, storage)
    has_failed = any(check.state == "FAIL" for check in checks)
    if not as_json:
        print_table(
            ["", "check", "state", "how to fix"],
            [[check.state, check.name, check.found, check.mend] for check in checks],
        )
    json_document: object = [check._asdict() for check in checks]
    if ping and config is not None:
        plan, results = ping_config(config)
        has_failed = has_failed or any(result.state == "FAIL" for result in results)
        json_document = {"checks": json_document, **pings_to_json(plan, results)}
        if not as_json:
            print_pings(results)
    if as_json:
        print_json(json_document)
    if has_failed:
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
