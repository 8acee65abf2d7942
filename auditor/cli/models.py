"""The commands `models list` and `models pull`: local models and their weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auditor.console.options import JsonOption
from auditor.console.output import print_json, print_message, print_table
from auditor.console.progress import show_download_bar
from auditor.models.weights import list_weights, pull_weights

models_app = typer.Typer(name="models", help="List and download local models.", no_args_is_help=True)


@models_app.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """List the local models, and whether they are downloaded.

    Example: auditor models list
    """
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
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `auditor models list`.")],
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Use a file that was downloaded already.")
    ] = None,
) -> None:
    """Download the weights of a local model.

    The files are stored in your cache folder, and their checksums are checked. An interrupted download is resumed.

    Example: auditor models pull smollm2-135m
    """
    with show_download_bar(name) as progress:
        path = pull_weights(name, source=source, progress=progress)
    print_message(f"{name}: {path}")
