"""The command `graph`: the steps of an audit as a diagram."""

from __future__ import annotations

from typing import Annotated

import typer

from auditor.console.output import print_data


def graph(
    xray: Annotated[bool, typer.Option("--xray", help="Show the steps inside branches too.")] = False,
) -> None:
    """Print the steps of an audit as a Mermaid diagram.

    Example: auditor graph > graph.mmd
    """
    from auditor import bootstrap

    bootstrap.prepare_environment()
    from auditor.agents.graph import draw_mermaid

    print_data(draw_mermaid(xray=xray))
