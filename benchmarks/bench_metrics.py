"""How much faster the metrics are than a straightforward loop that gives the same numbers.

    python benchmarks/bench_metrics.py [--questions 10000] [--repeats 3]

Prints JSON, an entry a metric: seconds, seconds of the loop on the same data in the same run, their ratio, and the
largest difference between the two results. networkx and statsmodels, which do the looping, come with the dev extra.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import tracemalloc
from collections.abc import Callable
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.inter_rater import fleiss_kappa as kappa_of_statsmodels

from auditor.metrics import fleiss_kappa, self_consistencies, semantic_graph_entropies, transitivity
from auditor.metrics.preference import draw_subsets, relation

Floats = NDArray[np.float64]


def timed(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The shortest of several runs, in seconds: the others were disturbed by something else."""
    seconds, result = math.inf, None
    for _ in range(repeats):
        began = time.perf_counter()
        result = call()
        seconds = min(seconds, time.perf_counter() - began)
    return seconds, result


def entry(fast: Callable[[], Any], loop: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Both ways on the same data."""
    seconds, got = timed(fast, repeats)
    loop_seconds, want = timed(loop, 1)
    difference = float(np.abs(np.asarray(got, dtype=float) - np.asarray(want, dtype=float)).max())
    return {
        "seconds": round(seconds, 4),
        "loop_seconds": round(loop_seconds, 4),
        "ratio": round(loop_seconds / seconds, 1),
        "largest_difference": difference,
    }


def cosines(rows: Floats) -> list[float]:
    """Pair by pair, the lower one first."""
    lengths = [math.sqrt(float(row @ row)) for row in rows]
    return [float(rows[i] @ rows[j]) / lengths[i] / lengths[j] for i, j in combinations(range(len(rows)), 2)]


def sage(rows: Floats, alpha: float = 10.0) -> float:
    """The formulas of SaGE as they stand."""
    n, pairs = len(rows), cosines(rows)
    f = [0.0] * n
    for (i, j), s in zip(combinations(range(n), 2), pairs, strict=True):
        f[i] += max(s, 0.0)
        f[j] += max(s, 0.0)
    total = sum(x**alpha for x in f)
    entropy = -sum(x**alpha / total * math.log(x**alpha / total) for x in f if x > 0)
    return float(sum(pairs) / len(pairs) * entropy / math.log(n))


def acyclic_share(graph: nx.DiGraph[int], subsets: NDArray[np.intp]) -> float:
    """networkx's search for a cycle, one subset at a time."""
    fine = [bool(nx.is_directed_acyclic_graph(graph.subgraph(map(int, subset)))) for subset in subsets]
    return sum(fine) / len(fine)


def tournament(n: int, seed: int) -> Floats:
    """An order, a third of whose answers are flipped; both orders of showing a pair alike."""
    flips = np.random.default_rng(seed).random((n, n)) < 1 / 3
    upper = np.triu(~flips, 1)
    return np.asarray(upper + np.tril(~upper.T, -1), dtype=float)


def transitivity_entry(repeats: int) -> dict[str, float]:
    """200 items, and what 1,000 take."""
    preferences, k, m = tournament(200, 0), 5, 1000
    graph = nx.from_numpy_array(relation(preferences), create_using=nx.DiGraph)
    subsets = draw_subsets(200, k, m, np.random.default_rng(0))
    measured = entry(
        lambda: transitivity(preferences, k, m, seed=0).value, lambda: acyclic_share(graph, subsets), repeats
    )
    large = tournament(1000, 1)
    seconds, _ = timed(lambda: transitivity(large, k, m), repeats)
    tracemalloc.start()
    transitivity(large, k, m)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return measured | {"thousand_items_seconds": round(seconds, 4), "thousand_items_peak_mb": round(peak / 1e6, 1)}


def kappa_interval_of_a_loop(counts: Floats, replicates: int, seed: int) -> tuple[float, float]:
    """The bootstrap over items, a resample at a time."""
    rng, values = np.random.default_rng(seed), np.empty(replicates)
    for i in range(replicates):
        values[i] = kappa_of_statsmodels(counts[rng.integers(0, len(counts), len(counts))])
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def kappa_entry(repeats: int) -> dict[str, float]:
    """Fleiss' kappa of 5,000 items and 7 raters with its interval; the two draw different resamples."""
    rng = np.random.default_rng(3)
    valid = rng.binomial(7, np.where(rng.random(5000) < 0.7, 0.9, 0.2))
    counts = np.stack([valid, 7 - valid], axis=1).astype(float)

    def interval() -> tuple[float | None, float | None]:
        got = fleiss_kappa(counts, replicates=2000)
        return got.ci_low, got.ci_high

    return entry(interval, lambda: kappa_interval_of_a_loop(counts, 2000, 0), repeats)


def main() -> None:
    """Measure all, print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(options.questions, 1, 384)) + rng.normal(size=(options.questions, 5, 384))
    results = {
        "semantic_graph_entropy": entry(
            lambda: semantic_graph_entropies(rows), lambda: [sage(r) for r in rows], options.repeats
        ),
        "self_consistency": entry(
            lambda: self_consistencies(rows), lambda: [np.mean(cosines(r)) for r in rows], options.repeats
        ),
        "transitivity": transitivity_entry(options.repeats),
        "fleiss_kappa_with_interval": kappa_entry(options.repeats),
    }
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
