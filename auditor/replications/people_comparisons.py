"""People's comparisons behind a published table: imported as audits, and repaired. No model is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from auditor.errors import UsageError
from auditor.experiments.declaration import ExperimentContext
from auditor.imports.published.rows import PEOPLE_JUDGE
from auditor.metrics.preference_repair import RatingMethod
from auditor.probes.logic.comparison_imports import import_comparisons
from auditor.probes.logic.repair import repair_comparisons
from auditor.probes.logic.repair_stages import summarize_stages

ALL_SETS = "all"


def import_people_comparisons(files: Mapping[str, Path], storage: str | None, max_sets: int | None = None) -> None:
    """Store people's comparisons as audits. Earlier imports of the same names are replaced.

    Args:
        files: by name of the audit.
        storage: URL of the database.
        max_sets: largest number of sets of each file, drawn at random; None keeps all.

    Raises:
        ImportFileError, UsageError: see `import_comparisons`.
    """
    for audit_name, file in files.items():
        import_comparisons(file, audit=audit_name, storage=storage, max_sets=max_sets)


def measure_repair(
    context: ExperimentContext,
    audit: str,
    *,
    noise: float,
    k: int,
    seed: int,
    method: RatingMethod,
    max_sets: int | None = None,
) -> dict[str, Any]:
    """Measure people's comparisons at every stage of REPAIR, as `auditor logic repair --noise` does.

    Args:
        noise: share of the comparisons that are reversed first, in [0, 1].
        k: number of items in the subsets that are checked for cycles.
        seed: of the noise and of the samples.
        method: of rating the items.
        max_sets: largest number of sets with which the comparisons were imported; None for all.

    Returns:
        The options, `drawn` (which sets of the file, in words), `sets` (number of item sets) and `stages`, a
        `StageSummary` for each stage.

    Raises:
        StorageError, UsageError: see `repair_comparisons`.
    """
    with context.open_database() as db, explain_missing_people():
        repaired = repair_comparisons(db, audit, PEOPLE_JUDGE, noise=noise, seed=seed, method=method)
    return {
        "noise": noise,
        "k": k,
        "seed": seed,
        "method": method,
        "drawn": ALL_SETS if max_sets is None or len(repaired) < max_sets else f"at most {max_sets}, drawn at random",
        "sets": len(repaired),
        "stages": summarize_stages(repaired, k=k, seed=seed),
    }


@contextmanager
def explain_missing_people() -> Iterator[None]:
    """Add to a UsageError which judge the comparisons must be of."""
    try:
        yield
    except UsageError as error:
        how_to_fix = f"{error.how_to_fix} The column `judge` of the file must read '{PEOPLE_JUDGE}'."
        raise UsageError(error.message, how_to_fix) from None
