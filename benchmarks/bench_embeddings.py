"""Embedding throughput: the program's encoder beside plain `encode` of the same weights, on the same texts.

    python benchmarks/bench_embeddings.py [--texts 600] [--turns 7]

The texts are of very different lengths and a third of them come twice, as samples of models do. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable

from turns import compare

MODEL = "all-MiniLM-L6-v2"


def measure_cpu_s(work: Callable[[], object]) -> float:
    """Run the work and return its CPU time in seconds, over all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


def draw_texts(n: int) -> list[str]:
    """Texts of very different lengths, a third of them twice."""
    rng = random.Random(0)
    texts = [" ".join(["People hold norms."] * rng.randint(1, 60)) + f" {i}" for i in range(n * 2 // 3)]
    return texts + rng.sample(texts, n - len(texts))


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=600)
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    # The environment must be set before numpy and sentence-transformers are imported.
    from auditor import bootstrap

    bootstrap.prepare_environment()
    import numpy as np
    from sentence_transformers import SentenceTransformer

    from auditor.models.embeddings import load_encoder
    from auditor.models.weights import pull_weights

    texts = draw_texts(arguments.texts)
    encoder, plain_encoder = load_encoder(MODEL), SentenceTransformer(str(pull_weights(MODEL)), device="cpu")
    vectors = encoder.encode(texts)
    plain_vectors = plain_encoder.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    turns = [
        (
            measure_cpu_s(lambda: load_encoder(MODEL).encode(texts)),
            measure_cpu_s(lambda: plain_encoder.encode(texts, normalize_embeddings=True, show_progress_bar=False)),
        )
        for _ in range(arguments.turns)
    ]
    encoder_s, plain_s = zip(*turns, strict=True)
    figures = {
        "texts": len(texts),
        "texts_per_cpu_s": len(texts) / min(encoder_s),
        "plain_texts_per_cpu_s": len(texts) / min(plain_s),
        **compare("cpu_ratio_to_plain", encoder_s, plain_s),
        "largest_difference": float(np.abs(vectors - plain_vectors).max()),
        "load": os.getloadavg()[0],
        "turns": turns,
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
