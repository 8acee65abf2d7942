"""All studies, in the order of docs/coverage.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

from benchmarks.coverage.figures import Design, Figure, Study, World
from benchmarks.coverage.runner import Result, measure
from benchmarks.coverage.score_figures import SCORE_STUDY
from benchmarks.coverage.share_figures import SHARE_STUDY
from benchmarks.coverage.verdict_figures import VERDICT_STUDY
from benchmarks.coverage.worlds.real_tables import ResampledTable

Job = tuple[Study, World, Design]
STUDIES = (SCORE_STUDY, SHARE_STUDY, VERDICT_STUDY)


def list_jobs(studies: Iterable[Study] = STUDIES) -> dict[str, Job]:
    """Each world and design of each study, by a key; worlds whose real table is absent are left out."""
    return {
        f"{study.name}/{world.name}/{design.label}": (study, world, design)
        for study in studies
        for world in study.worlds
        if is_present(world)
        for design in study.designs
    }


def measure_job(key: str) -> list[Result]:
    """Measure one world and design. Processes exchange its key in `list_jobs`: functions cannot be pickled."""
    return measure(*list_jobs()[key])


def measure_jobs(keys: Iterable[str], n_processes: int) -> Iterator[tuple[str, list[Result]]]:
    """Measure several worlds and designs side by side, in the order in which they end."""
    with ProcessPoolExecutor(n_processes) as executor:
        key_by_future = {executor.submit(measure_job, key): key for key in keys}
        for future in as_completed(key_by_future):
            yield key_by_future[future], future.result()


def is_present(world: World) -> bool:
    """Whether a world can be drawn: a world of a real table needs its file."""
    return not isinstance(world, ResampledTable) or world.path is not None


def figures_by_key(studies: Iterable[Study] = STUDIES) -> dict[str, Figure]:
    """The figures of all studies.

    Raises:
        ValueError: two figures have one key.
    """
    figures: dict[str, Figure] = {}
    for study in studies:
        for figure in study.figures:
            if figure.key in figures:
                raise ValueError(f"two figures are called {figure.key!r}")
            figures[figure.key] = figure
    return figures
