"""The command `trust`: allow keys to go to the servers that a config names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.config import load_config
from auditor.config.credential_hosts import display_host, is_loopback
from auditor.config.providers import describe_owner
from auditor.config.trust import (
    add_trusted_bindings,
    list_new_bindings,
    model_bindings,
    required_bindings,
    trust_file_path,
)
from auditor.console.options import ConfigArgument, SetOption, list_overrides
from auditor.console.output import can_ask, print_message
from auditor.errors import UsageError
from auditor.storage.engine import remote_servers

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.config.credential_hosts import CredentialBinding


def trust(
    config: ConfigArgument,
    confirmed: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    settings: SetOption = None,
) -> None:
    """Allow your keys to be sent to the servers that a config names.

    Read the configuration first: it may come from somebody else. Each key is shown with the server that would get it,
    and whether that is one of the provider's own; then you are asked. Models need this permission only if they have an
    api_base: without one, a key is sent only to its provider's own servers. Credentials of this machine, which sign
    requests to Bedrock and Vertex AI without any key in the config, always need this permission. So do a PostgreSQL
    server, a Ray cluster and a monitoring server for texts that the config names.

    Example: auditor trust examples/local-server.toml --yes
    """
    audit_config = load_config(config, list_overrides(settings, None))
    bindings = required_bindings(audit_config, remote_servers(audit_config.storage) if audit_config.storage else ())
    new_bindings = list_new_bindings(bindings)
    for line in _describe_bindings(audit_config, new_bindings):
        print_message(line)
    if new_bindings and not confirmed:
        if not can_ask():
            raise UsageError("trust asks for confirmation, but there is no terminal.", "Add --yes to allow this.")
        if not typer.confirm("Allow this?", err=True):
            print_message("Nothing was allowed.")
            raise typer.Exit(1)
    add_trusted_bindings(bindings)
    for binding in bindings:
        print_message(f"Allowed: {binding}{'' if binding in new_bindings else ' (already)'}")
    unchanged_message = (
        "Nothing new to allow." if bindings else "Nothing to allow: no key goes to a server that the config names."
    )
    print_message(f"Saved in {trust_file_path()}" if new_bindings else unchanged_message)


def _describe_bindings(config: AuditConfig, bindings: list[CredentialBinding]) -> Iterator[str]:
    """Yield a line for each binding: what would be sent to which host, and whose server that is."""
    models = {binding: model for model in config.models_by_name.values() for binding in model_bindings(model)}
    for binding in bindings:
        model = models.get(binding)
        host = display_host(model.api_base) if model is not None and model.api_base else binding.host
        owner = f": {describe_owner(binding.host, model.provider)}" if model is not None else ""
        is_plain = binding.scheme == "http" and not is_loopback(binding.host)
        yield f"Would be sent: {binding.key} to {host}{owner}{', not encrypted (http)' if is_plain else ''}"
