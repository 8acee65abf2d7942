"""Which model of the user's is set beside which published one."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.errors import UsageError
from auditor.replications.presets import Paper


def match_models(paper: Paper, own_models: Sequence[str], pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The model of ours that is set beside each published model.

    Args:
        own_models: names of the audited models.
        pairs: a model of ours and a published one, as the user says; one of ours may be beside several. Models of equal
            names are set beside each other, too.

    Raises:
        UsageError: there is no such model of ours or no such published one, or a published model has two of ours.
    """
    published = {row.model for table in paper.tables for row in table.rows if row.model}
    own_by_published: dict[str, str] = {}
    for own_model, published_model in [(name, name) for name in own_models if name in published] + [*pairs]:
        _require_known(own_model, set(own_models), "audited")
        _require_known(published_model, published, "published")
        other = own_by_published.setdefault(published_model, own_model)
        if other != own_model:
            raise UsageError(
                f"--as: two models are beside '{published_model}': '{other}' and '{own_model}'.",
                "Leave one out, or rename the model that has the published name.",
            )
    return own_by_published


def _require_known(name: str, known: set[str], whose: str) -> None:
    """Raise UsageError if there is no model of this name."""
    if name not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise UsageError(f"--as: there is no {whose} model '{name}'.", f"The {whose} models are: {listed}.")
