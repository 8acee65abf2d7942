"""Time the vectorised metrics beside straightforward loops and networkx in the same run, and check that they agree.

    python benchmarks/bench_metrics.py [--scale 1.0]

Prints JSON: for each measure the seconds of both, their ratio, and the largest difference between their results. The
slow side does a part of the work (`slow_share`) and its time is scaled up; --scale 0.05 makes a quick run of all.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from auditor.metrics.cycles import minimum_feedback_arcs
from auditor.metrics.pairs_ranking import rank_with_pairs, run_ranking
from auditor.metrics.preference import acyclic_mask, draw_subsets, preference_graph, transitivity
from auditor.metrics.semantic import semantic_graph_entropies

T = TypeVar("T")
Figures = dict[str, float | int | bool]


def timed(work: Callable[[], T], repeats: int = 1) -> tuple[float, T]:
    """The shortest of some runs, in seconds, and the result of the last."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def peak_mb(work: Callable[[], object]) -> float:
    """The most memory that Python and numpy held during the work, above what they held before."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def entropy_by_loops(rows: NDArray[np.float64], alpha: float = 10.0) -> float:
    """SaGE of one question, a pair at a time."""
    n = len(rows)
    cosine = {}
    for i in range(n):
        for j in range(i + 1, n):
            cosine[i, j] = cosine[j, i] = float(rows[i] @ rows[j] / (np.linalg.norm(rows[i]) * np.linalg.norm(rows[j])))
    weight: list[float] = [sum(max(cosine[i, j], 0.0) for j in range(n) if j != i) ** alpha for i in range(n)]
    p = [w / sum(weight) for w in weight]
    entropy = -sum(x * math.log(x) for x in p if x > 0)
    return sum(cosine.values()) / (n * (n - 1)) * entropy / math.log(n)


def semantic(scale: float) -> Figures:
    questions = max(20, round(10_000 * scale))
    rows = np.random.default_rng(0).normal(0.2, 1, (questions, 5, 384)).astype(np.float32)
    part = rows[: max(10, questions // 20)].astype(float)
    fast, values = timed(lambda: semantic_graph_entropies(rows), 3)
    slow, reference = timed(lambda: np.array([entropy_by_loops(group) for group in part]))
    slow *= questions / len(part)
    return {
        "questions": questions,
        "seconds": fast,
        "loop_seconds": slow,
        "slow_share": len(part) / questions,
        "ratio": slow / fast,
        "largest_difference": float(np.abs(values[: len(part)] - reference).max()),
        "peak_mb": peak_mb(lambda: semantic_graph_entropies(rows)),
    }


def answers(n: int, unknown: float) -> NDArray[np.float64]:
    """Random answers on n items, a share of the questions without one."""
    rng = np.random.default_rng(1)
    return np.where(rng.random((n, n)) < unknown, np.nan, rng.integers(0, 2, (n, n)))


def subsets_beside_networkx(n: int, unknown: float, scale: float) -> Figures:
    values = answers(n, unknown)
    m = max(20, round(1000 * scale))
    graph, subsets = preference_graph(values), draw_subsets(n, 5, m, np.random.default_rng(0))

    def by_networkx() -> list[bool]:
        whole = nx.from_numpy_array(graph, create_using=nx.DiGraph)
        return [bool(nx.is_directed_acyclic_graph(whole.subgraph(subset))) for subset in subsets.tolist()]

    fast, _ = timed(lambda: transitivity(values, k=5, max_subsets=m), 5)
    slow, reference = timed(by_networkx)
    return {
        "items": n,
        "subsets": m,
        "seconds": fast,
        "networkx_seconds": slow,
        "ratio": slow / fast,
        "equal": bool((acyclic_mask(graph, subsets) == reference).all()),
        "peak_mb": peak_mb(lambda: transitivity(values, k=5, max_subsets=m)),
    }


def reversals() -> Figures:
    """Fewest reversals of 20 random items, exactly; and a bound for 200."""
    exact_seconds, exact = timed(lambda: minimum_feedback_arcs(preference_graph(answers(20, 0.0))))
    seconds, rough = timed(lambda: minimum_feedback_arcs(preference_graph(answers(200, 0.0))))
    return {
        "exact_items": 20,
        "exact_seconds": exact_seconds,
        "exact": exact.exact,
        "arcs": len(exact.arcs),
        "bound_items": 200,
        "bound_seconds": seconds,
        "upper_bound": len(rough.arcs),
        "lower_bound": rough.lower_bound,
    }


def merge_sort() -> Figures:
    """Questions that PairS asks, beside all pairs."""
    strength = np.random.default_rng(2).permutation(100)
    seconds, found = timed(
        lambda: run_ranking(rank_with_pairs(range(100)), lambda qs: [float(strength[i] > strength[j]) for i, j in qs])
    )
    return {
        "items": 100,
        "seconds": seconds,
        "questions": found.asked,
        "all_pairs": 4950,
        "of_n_log2_n": found.asked / (100 * math.log2(100)),
        "right": [int(strength[item]) for item in found.order] == list(range(99, -1, -1)),
    }


def main() -> None:
    """Run all and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size, in (0, 1]")
    scale = parser.parse_args().scale
    figures = {
        "semantic_graph_entropy": semantic(scale),
        "transitivity_200": subsets_beside_networkx(200, 0.0, scale),
        "transitivity_200_partial": subsets_beside_networkx(200, 0.4, scale),
        "transitivity_1000": subsets_beside_networkx(1000, 0.0, scale),
        "minimum_feedback_arcs": reversals(),
        "pairs": merge_sort(),
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
