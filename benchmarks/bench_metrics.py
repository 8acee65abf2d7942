"""Time the vectorised metrics beside straightforward loops and networkx in the same run, and check that they agree.

    python benchmarks/bench_metrics.py [--scale 1.0] [--turns 7]

Prints JSON: for each measure the seconds of both, the ratio of the minima, the median of the turns' ratios, and the
largest difference between their results. The slow side does a part of the work (`slow_share`) and its time is scaled
up; --scale 0.05 makes a quick run of all.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, TypeVar

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from turns import compare

from auditor.metrics.answers.semantic import semantic_graph_entropies
from auditor.metrics.logic.consistency import preference_graph
from auditor.metrics.logic.cycles import minimum_feedback_arcs
from auditor.metrics.logic.pairs import rank_with_pairs, run_ranking
from auditor.metrics.logic.transitivity import acyclic_mask, draw_subsets, transitivity

T = TypeVar("T")
Figures = dict[str, float | int | bool]


def time_work(work: Callable[[], T], repeats: int = 1) -> tuple[float, T]:
    """Run the work `repeats` times; return the shortest time in seconds, and what the last run returned."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        returned = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), returned


def measure_peak_mb(work: Callable[[], object]) -> float:
    """Peak memory in MB that Python and numpy allocated during the work."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def entropy_by_loops(rows: NDArray[np.float64], alpha: float = 10.0) -> float:
    """Semantic graph entropy (SaGE) of one question, one pair of answers at a time; `rows` are embeddings."""
    n = len(rows)
    cosine = {}
    for i in range(n):
        for j in range(i + 1, n):
            cosine[i, j] = cosine[j, i] = float(rows[i] @ rows[j] / (np.linalg.norm(rows[i]) * np.linalg.norm(rows[j])))
    weight: list[float] = [sum(max(cosine[i, j], 0.0) for j in range(n) if j != i) ** alpha for i in range(n)]
    probabilities = [w / sum(weight) for w in weight]
    entropy = -sum(probability * math.log(probability) for probability in probabilities if probability > 0)
    return sum(cosine.values()) / (n * (n - 1)) * entropy / math.log(n)


def measure_semantic_entropy(scale: float) -> Figures:
    """Time the vectorised SaGE against loops, on 10,000 x `scale` questions of five answers each."""
    questions = max(20, round(10_000 * scale))
    embeddings = np.random.default_rng(0).normal(0.2, 1, (questions, 5, 384)).astype(np.float32)
    loop_rows = embeddings[: max(10, questions // 20)].astype(float)
    seconds, entropies = time_work(lambda: semantic_graph_entropies(embeddings), 3)
    loop_seconds, loop_entropies = time_work(lambda: np.array([entropy_by_loops(group) for group in loop_rows]))
    loop_seconds *= questions / len(loop_rows)
    return {
        "questions": questions,
        "seconds": seconds,
        "loop_seconds": loop_seconds,
        "slow_share": len(loop_rows) / questions,
        "largest_difference": float(np.abs(entropies[: len(loop_rows)] - loop_entropies).max()),
        "peak_mb": measure_peak_mb(lambda: semantic_graph_entropies(embeddings)),
    }


def draw_answers(n: int, unknown: float) -> NDArray[np.float64]:
    """Draw random comparisons of n items, shape (n, n), of 0 and 1; a share `unknown` of them is nan."""
    rng = np.random.default_rng(1)
    return np.where(rng.random((n, n)) < unknown, np.nan, rng.integers(0, 2, (n, n)))


def compare_with_networkx(n: int, unknown: float, scale: float) -> Figures:
    """Time transitivity of n items against networkx, on the same random subsets of five items."""
    answers = draw_answers(n, unknown)
    n_subsets = max(20, round(1000 * scale))
    graph, subsets = preference_graph(answers), draw_subsets(n, 5, n_subsets, np.random.default_rng(0))

    def by_networkx() -> list[bool]:
        digraph = nx.from_numpy_array(graph, create_using=nx.DiGraph)
        return [bool(nx.is_directed_acyclic_graph(digraph.subgraph(subset))) for subset in subsets.tolist()]

    seconds, _ = time_work(lambda: transitivity(answers, k=5, max_subsets=n_subsets), 5)
    networkx_seconds, acyclic = time_work(by_networkx)
    return {
        "items": n,
        "subsets": n_subsets,
        "seconds": seconds,
        "networkx_seconds": networkx_seconds,
        "equal": bool((acyclic_mask(graph, subsets) == acyclic).all()),
        "peak_mb": measure_peak_mb(lambda: transitivity(answers, k=5, max_subsets=n_subsets)),
    }


def measure_feedback_arcs() -> Figures:
    """Time the minimum feedback arc set of 20 random items, which is exact, and of 200, which is a bound."""
    exact_seconds, exact = time_work(lambda: minimum_feedback_arcs(preference_graph(draw_answers(20, 0.0))))
    seconds, bound = time_work(lambda: minimum_feedback_arcs(preference_graph(draw_answers(200, 0.0))))
    return {
        "exact_items": 20,
        "exact_seconds": exact_seconds,
        "exact": exact.exact,
        "arcs": len(exact.arcs),
        "bound_items": 200,
        "bound_seconds": seconds,
        "upper_bound": len(bound.arcs),
        "lower_bound": bound.lower_bound,
    }


def measure_pairs_ranking() -> Figures:
    """Count the questions that PairS asks to rank 100 items, compared with all pairs."""
    strengths = np.random.default_rng(2).permutation(100)
    seconds, ranking = time_work(
        lambda: run_ranking(
            rank_with_pairs(range(100)), lambda pairs: [float(strengths[i] > strengths[j]) for i, j in pairs]
        )
    )
    return {
        "items": 100,
        "seconds": seconds,
        "questions": ranking.asked,
        "all_pairs": 4950,
        "of_n_log2_n": ranking.asked / (100 * math.log2(100)),
        "right": [int(strengths[item]) for item in ranking.order] == list(range(99, -1, -1)),
    }


def repeat(measure: Callable[[], Figures], slow_key: str, n_turns: int) -> dict[str, Any]:
    """Measure in turns: the figures of the last turn, the ratio of the slow side to the fast one, and all turns."""
    turns = [measure() for _ in range(n_turns)]
    slow_s, fast_s = ([float(turn[key]) for turn in turns] for key in (slow_key, "seconds"))
    return turns[-1] | compare("ratio", slow_s, fast_s) | {"turns": {slow_key: slow_s, "seconds": fast_s}}


def main() -> None:
    """Run all and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size, in (0, 1]")
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    scale, n_turns = arguments.scale, arguments.turns
    figures = {
        "semantic_graph_entropy": repeat(lambda: measure_semantic_entropy(scale), "loop_seconds", n_turns),
        "transitivity_200": repeat(lambda: compare_with_networkx(200, 0.0, scale), "networkx_seconds", n_turns),
        "transitivity_200_partial": repeat(lambda: compare_with_networkx(200, 0.4, scale), "networkx_seconds", n_turns),
        "transitivity_1000": repeat(lambda: compare_with_networkx(1000, 0.0, scale), "networkx_seconds", n_turns),
        "minimum_feedback_arcs": measure_feedback_arcs(),
        "pairs": measure_pairs_ranking(),
        "load": os.getloadavg()[0],
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
