"""All studies, in the order of docs/coverage.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import partial

from benchmarks.coverage.agreement_figures import AGREEMENT_STUDY, SENTENCE_STUDIES
from benchmarks.coverage.bound_figures import BOUND_STUDY
from benchmarks.coverage.culture_figures import CULTURE_STUDY
from benchmarks.coverage.figures import Design, Figure, Study, World
from benchmarks.coverage.harder_figures import HARDER_STUDY, THESE_COUNTRIES_STUDY
from benchmarks.coverage.item_figures import ITEM_STUDY
from benchmarks.coverage.judge_figures import ITEM_JUDGE_STUDY, JUDGE_STUDY
from benchmarks.coverage.label_figures import LABEL_STUDY
from benchmarks.coverage.memory_figures import MEMORY_STUDY, RECITAL_STUDIES
from benchmarks.coverage.model_figures import MODEL_STUDY
from benchmarks.coverage.obedience_figures import OBEDIENCE_STUDY
from benchmarks.coverage.opinion_figures import GAP_STUDY, OPINION_STUDY
from benchmarks.coverage.pair_figures import PAIR_STUDY
from benchmarks.coverage.paper_statements import PAPER_STUDIES
from benchmarks.coverage.place_figures import PLACE_STUDY
from benchmarks.coverage.planted import PlantedResult, PlantedStudy, measure_plant
from benchmarks.coverage.planted_studies import PLANTED_STUDIES
from benchmarks.coverage.pressure_figures import PRESSURE_PLANTS, PRESSURE_STUDY
from benchmarks.coverage.ranking_figures import RANKING_STUDY
from benchmarks.coverage.reasoning_figures import REASONING_PLANTS, REASONING_STUDY, SHARE_OF_CELLS_STUDY
from benchmarks.coverage.results import Rows
from benchmarks.coverage.rule import Summary
from benchmarks.coverage.run_figures import RUN_STUDIES, RUN_STUDY
from benchmarks.coverage.runner import Result, measure
from benchmarks.coverage.score_figures import SCORE_STUDY
from benchmarks.coverage.sentence_figures import SentenceResult, measure_sentences
from benchmarks.coverage.set_figures import SET_STUDY
from benchmarks.coverage.share_figures import SHARE_STUDY
from benchmarks.coverage.similarity_figures import SIMILARITY_PLANTS, SIMILARITY_STUDY
from benchmarks.coverage.validity_figures import VALIDITY_STUDY
from benchmarks.coverage.verdict_figures import ITEM_VERDICT_STUDY, VERDICT_STUDY
from benchmarks.coverage.wording_figures import WORDING_STUDY
from benchmarks.coverage.worlds.preference_worlds import SetDesign, SetWorld
from benchmarks.coverage.worlds.real_tables import ResampledTable
from benchmarks.coverage.worlds.sentence_worlds import SENTENCE_WORLDS, SentenceWorld

PROBE_PLANTS = (*RECITAL_STUDIES, *PRESSURE_PLANTS, *REASONING_PLANTS)
"""Of the probes in folders of the program."""
PLANTED = "planted"
"""First part of the keys of planted faults."""
SENTENCES = "sentences"
"""First part of the keys of worlds of sentences."""
STUDIES = (
    SCORE_STUDY,
    AGREEMENT_STUDY,
    HARDER_STUDY,
    THESE_COUNTRIES_STUDY,
    PLACE_STUDY,
    BOUND_STUDY,
    RANKING_STUDY,
    SHARE_STUDY,
    SIMILARITY_STUDY,
    VERDICT_STUDY,
    ITEM_VERDICT_STUDY,
    JUDGE_STUDY,
    ITEM_JUDGE_STUDY,
    LABEL_STUDY,
    OBEDIENCE_STUDY,
    ITEM_STUDY,
    SET_STUDY,
    MODEL_STUDY,
    OPINION_STUDY,
    GAP_STUDY,
    CULTURE_STUDY,
    VALIDITY_STUDY,
    PAIR_STUDY,
    WORDING_STUDY,
    RUN_STUDY,
    MEMORY_STUDY,
    PRESSURE_STUDY,
    REASONING_STUDY,
    SHARE_OF_CELLS_STUDY,
)


@dataclass(frozen=True, slots=True)
class Job:
    """What one process measures at a time: a world and design of a study, or a planted fault and design.

    Attributes:
        module: the module whose sources the results rest on.
        cost: the larger, the longer it takes.
    """

    module: str
    cost: int
    measure: Callable[[], list[Result] | list[PlantedResult] | list[SentenceResult]]


def list_jobs() -> dict[str, Job]:
    """All jobs by a key, but for those that are not measurable."""
    jobs = {
        f"{study.name}/{world.name}/{design.label}": Job(
            study.module, design.smaller_side, partial(measure, study, world, design, study.checkpoints)
        )
        for study in STUDIES
        for world in study.worlds
        for design in study.designs
        if is_measurable(world, design)
    }
    return (
        jobs
        | {
            f"{PLANTED}/{study.name}/{plant}/{design.label}": Job(
                study.module, design.smaller_side, partial(_measure_plant, study, plant, design)
            )
            for study in (
                *PLANTED_STUDIES,
                *SENTENCE_STUDIES,
                *PAPER_STUDIES,
                *RUN_STUDIES,
                *SIMILARITY_PLANTS,
                *PROBE_PLANTS,
            )
            for plant in study.scenarios
            for design in study.designs
        }
        | {
            f"{SENTENCES}/{world.name}": Job(
                measure_sentences.__module__, len(world.models), partial(_measure_world, world)
            )
            for world in SENTENCE_WORLDS
        }
    )


def _measure_world(world: SentenceWorld) -> list[SentenceResult]:
    return [measure_sentences(world)]


def _measure_plant(study: PlantedStudy, plant: str, design: Design) -> list[PlantedResult]:
    return [measure_plant(study, plant, design)]


def measure_job(key: str) -> Rows:
    """Measure one job. Processes exchange its key in `list_jobs`: functions cannot be pickled."""
    return [asdict(result) for result in list_jobs()[key].measure()]


def measure_jobs(keys: Iterable[str], n_processes: int) -> Iterator[tuple[str, Rows]]:
    """Measure several jobs side by side, in the order in which they end."""
    with ProcessPoolExecutor(n_processes) as executor:
        key_by_future = {executor.submit(measure_job, key): key for key in keys}
        for future in as_completed(key_by_future):
            yield key_by_future[future], future.result()


def to_results(rows_by_key: Mapping[str, Rows]) -> tuple[list[Result], list[PlantedResult]]:
    """The results of studies, and those of planted faults, from stored rows."""
    results, planted = [], []
    for key, rows in rows_by_key.items():
        for row in rows if not key.startswith(f"{SENTENCES}/") else ():
            if key.startswith(f"{PLANTED}/"):
                planted.append(PlantedResult(**row))
            else:
                naive = None if row["naive"] is None else Summary(**row["naive"])
                results.append(Result(**{**row, "summary": Summary(**row["summary"]), "naive": naive}))
    return results, planted


def to_sentence_results(rows_by_key: Mapping[str, Rows]) -> list[SentenceResult]:
    """The results on sentences, from stored rows."""
    return [
        SentenceResult(**row) for key, rows in rows_by_key.items() if key.startswith(f"{SENTENCES}/") for row in rows
    ]


def is_measurable(world: World, design: Design) -> bool:
    """Whether a world can be drawn and has a truth: a world of a real table needs its file."""
    if isinstance(world, SetWorld) and isinstance(design, SetDesign):
        return world.has_truth(design)
    return not isinstance(world, ResampledTable) or world.path is not None


def figures_by_key(studies: Iterable[Study] = STUDIES) -> dict[str, Figure]:
    """The figures of all studies, some of which are in two: over countries and topics, and over items.

    Raises:
        ValueError: two figures have one key.
    """
    figures: dict[str, Figure] = {}
    for study in studies:
        for figure in study.figures:
            if figures.setdefault(figure.key, figure) is not figure:
                raise ValueError(f"two figures are called {figure.key!r}")
    return figures
