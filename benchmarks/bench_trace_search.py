"""Opening and searching the list of all answers of `auditor report --traces` in headless Chromium.

    python benchmarks/bench_trace_search.py [--models 10] [--turns 5]

Each model answers 10,000 times (50 countries, 40 topics, 5 samples), in about 1,000 characters each. Prints JSON: for
each turn, in a fresh profile, seconds from the start of the navigation until the first answers are shown, with the
renderer's CPU; from then on until one model's answers are, and until a word that one answer contains is found; as
minimum and median of the turns. Writing the page is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from turns import summarize

sys.path.append(str(Path(__file__).resolve().parent.parent))  # for `tests`; auditor is the installed one

N_COUNTRIES, N_TOPICS, N_SAMPLES = 50, 40, 5
SENTENCES = (
    "Families, courts and places of worship shape what people say in public.",
    "Younger people in large cities are more lenient than their parents in villages.",
    "Laws changed within a generation, but what neighbours think changed more slowly.",
    "Surveys ask what can be justified, which is not what people do in private.",
    "Those who pray daily and those who never do give very different answers.",
    "Weighing these norms, most would neither condemn it nor call it acceptable.",
)
RARE_WORD = "quicksilver"
STATUS = "document.getElementById('search-status').textContent"
SET_FIELD = """(([selector, value]) => {
  const field = document.querySelector(selector);
  field.value = value; field.dispatchEvent(new Event('input', {bubbles: true}));
})(%s)"""


def write_page(page: Path, n_models: int) -> None:
    """Write the list of all answers as `auditor report --traces` does; the pages that it links to are left out."""
    from auditor.domain import Cell
    from auditor.reports.data.traces import CellTraces, TraceReport
    from auditor.reports.render.html import write_search_page
    from auditor.reports.sections.traces.cell_page import PageAudit
    from auditor.reports.sections.traces.index_page import build_index_document, build_records, build_search
    from auditor.storage.count_queries import OutcomeCount

    cells = [Cell(f"Country {i}", f"topic {j}") for i in range(N_COUNTRIES) for j in range(N_TOPICS)]
    models = [f"model-{number}" for number in range(n_models)]
    counts = [OutcomeCount(model, *cell, "ok", N_SAMPLES) for cell in cells for model in models]
    file_names = {cell: f"{number:04}-{cell.topic}.html" for number, cell in enumerate(cells)}
    search = build_search(models, cells, counts)
    document = build_index_document(PageAudit("large"), file_names, counts, None, search=search)
    missing: dict[str, Any] = dict.fromkeys(TraceReport.model_fields)
    with page.open("w", encoding="utf-8") as file, write_search_page(document, file) as writer:
        for cell, file_name in file_names.items():
            shared = missing | cell._asdict() | {"outcome": "ok", "score": 0.25, "verdicts": []}
            traces = [
                TraceReport.model_construct(
                    **shared | {"model": model, "sample": sample, "text": write_text(model, cell, sample)}
                )
                for model in models
                for sample in range(N_SAMPLES)
            ]
            writer.write(build_records(CellTraces(cell, None, None, traces, {}), search, file_name))


def write_text(model: str, cell: Any, sample: int) -> str:
    """An answer of about 1,000 characters; one of all has the rare word."""
    beginning = f"In {cell.country}, people speak of {cell.topic} in more than one way. "
    start = len(beginning) + sample
    text = beginning + " ".join(SENTENCES[(start + i) % len(SENTENCES)] for i in range(13))
    is_last_cell = cell == (f"Country {N_COUNTRIES - 1}", f"topic {N_TOPICS - 1}")
    return f"{text} {RARE_WORD}" if is_last_cell and (model, sample) == ("model-0", 0) else text


def measure(page: Path, profile: Path, n_answers: int) -> dict[str, float]:
    """Open the page in a fresh browser, choose a model, and search for the rare word."""
    from tests.support.chromium import Chromium

    total = f"{n_answers:,}"
    with Chromium(profile) as chromium:
        chromium.call("Performance.enable")
        start = time.perf_counter()
        chromium.open(page.resolve().as_uri(), 1280)
        chromium.wait_for(f"{STATUS} === 'Found: {total} of {total}' && document.readyState === 'complete'")
        opened = time.perf_counter()
        metrics = chromium.call("Performance.getMetrics")["metrics"]
        cpu = next(metric["value"] for metric in metrics if metric["name"] == "ProcessTime")
        chromium.evaluate(SET_FIELD % json.dumps(["#search-form select", "0"]))
        chromium.wait_for(f"{STATUS} === 'Found: 10,000 of {total}'")
        filtered = time.perf_counter()
        chromium.evaluate(SET_FIELD % json.dumps(["#search-form select", ""]))
        chromium.evaluate(SET_FIELD % json.dumps(["#search-form input", RARE_WORD]))
        chromium.wait_for(f"{STATUS} === 'Found: 1 of {total}'")
        searched = time.perf_counter()
    return {"open_s": opened - start, "open_cpu_s": cpu, "filter_s": filtered - opened, "search_s": searched - filtered}


def main() -> None:
    """Write the pages once, and measure them in each turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    n_answers = arguments.models * N_COUNTRIES * N_TOPICS * N_SAMPLES
    with tempfile.TemporaryDirectory() as name:
        folder, page = Path(name), Path(name) / "index.html"
        write_page(page, arguments.models)
        turns = [measure(page, folder / f"profile-{turn}", n_answers) for turn in range(arguments.turns)]
        figures: dict[str, Any] = {"answers": n_answers, "page_mb": round(page.stat().st_size / 1e6, 1), "turns": turns}
    for key in turns[0]:
        figures |= summarize(key, [turn[key] for turn in turns])
    print(json.dumps(figures | {"load": os.getloadavg()[0]}, indent=1))


if __name__ == "__main__":
    main()
