"""Made-up files in the layout of the scores that the predecessor of EvalMORAAL released."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

COUNTRIES = ("Andorra", "Brazil", "Canada", "Germany", "Japan", "Kenya")
TOPICS = ("divorce", "abortion", "avoiding a fare", "bribery", "gambling")
SLOPES = {"gpt2": 0.8, "facebook_opt-125m": 0.0, "google_gemma-2-9b-it": -0.6}


def write_released(
    folder: Path, models: Sequence[str], name: str = "results_{model}_WVS.csv", score: str = "normalized"
) -> Path:
    """Write a file for each model, with scores that follow people's by the model's slope; returns the folder.

    Args:
        name: of the files; `score` is their column with scores.
    """
    subfolder = folder / "data" / "results_per_model"
    subfolder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(5)
    people = {(country, topic): rng.uniform(-1, 1) for country in (*COUNTRIES, "universal") for topic in TOPICS}
    for model in models:
        slope = SLOPES.get(model, 0.5)
        lines = [f"country,topic,wvs_score,log_prob_diff,{score},corr_overall,pvalue"]
        for (country, topic), value in people.items():
            if country != "universal" or "gpt3" in name:
                lines.append(f"{country},{topic},{value},0.1,{slope * value + 0.2 * rng.uniform(-1, 1)},0.5,0.01")
        (subfolder / name.replace("{model}", model)).write_text("\n".join(lines), encoding="utf-8")
    return folder
