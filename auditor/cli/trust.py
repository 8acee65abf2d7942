"""The command `trust`: allow keys to go to the servers that a config names."""

from __future__ import annotations

from auditor.cli.options import ConfigArgument, SetOption, list_overrides
from auditor.cli.output import print_message


def trust(config: ConfigArgument, settings: SetOption = None) -> None:
    """Allow your keys to be sent to the servers that a config names.

    Read the configuration first: it may come from somebody else. Models need this permission only if they have an
    api_base: without one, a key is sent only to its provider's own servers. Credentials of this machine, which sign
    requests to Bedrock and Vertex AI without any key in the config, always need this permission. So do a PostgreSQL
    server and a Ray cluster that the config names.

    Example: auditor trust examples/local-server.toml
    """
    from auditor.config import load_config
    from auditor.config.trust import add_trusted_bindings, required_bindings, trust_file_path
    from auditor.storage.engine import remote_servers

    audit_config = load_config(config, list_overrides(settings, None))
    bindings = required_bindings(audit_config, remote_servers(audit_config.storage) if audit_config.storage else ())
    new_bindings = add_trusted_bindings(bindings)
    for binding in bindings:
        print_message(f"Allowed: {binding}{'' if binding in new_bindings else ' (already)'}")
    unchanged_message = (
        "Nothing new to allow." if bindings else "Nothing to allow: no key goes to a server that the config names."
    )
    print_message(f"Saved in {trust_file_path()}" if new_bindings else unchanged_message)
