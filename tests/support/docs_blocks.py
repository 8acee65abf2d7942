"""The configurations and programs in the documentation, prepared to be run as a reader would.

A fragment is merged into a small audit of three scripted models, together with the page's earlier fragments of the
same audit. Models are replaced by scripted ones on a loopback port; nothing else of a block is changed.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from auditor.config import REPLAY
from auditor.config.providers import OPENAI, provider_of
from auditor.domain.terms import split_model_id
from tests.support.audit_configs import KEY_VARIABLE
from tests.support.docs_workspace import COUNTRIES, ROOT, TOPICS

Table = dict[str, Any]

NO_AUDIT = {
    'theme = "auditor-light"': "settings of the terminal app: tests/project/test_docs.py loads them",
    '"""How often does a model keep': "the module of that package",
    "[build-system]": "a package with a probe: tests/e2e/test_probe_plugin.py follows the page",
    "# An audit with the probe alone": "an audit of that package: tests/e2e/test_probe_plugin.py follows the page",
    "# The experiment: ": "parts of a preset: tests/replications/test_paper_files.py compares them with the example",
    "title = ": "a mapping of a survey's columns: tests/project/test_docs_surveys.py loads it",
}
"""Why a block is not run, by the beginning of its first line."""
PROVIDER_PAGE = "providers.md"
PROVIDER_REASON = "an entry of one model: tests/providers/test_render_docs.py compares it with the one that is tested"
ESTIMATE_ONLY_SECTIONS = {"telemetry", "run"}
"""Sections that name a collector or a cluster that does not exist here: these audits are only estimated."""


class Block(NamedTuple):
    """A block of a page with its first line number; `before` are the page's earlier blocks of that language."""

    page: str
    line: int
    text: str
    before: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def skip_reason(self) -> str:
        reason = next((reason for beginning, reason in NO_AUDIT.items() if self.text.startswith(beginning)), "")
        return PROVIDER_REASON if self.page == PROVIDER_PAGE else reason


def blocks(page: Path, language: str) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    earlier_blocks: list[str] = []
    for match in re.finditer(rf"^```{language}[^\n]*\n(.*?)^```", text, re.S | re.M):
        yield Block(page.name, text.count("\n", 0, match.start()) + 1, match[1], tuple(earlier_blocks))
        earlier_blocks.append(match[1])


def configs(block: Block, url: str) -> Iterator[Table]:
    """Yield the audits that a block describes: one, or one per line if it shows the same key several times."""
    try:
        tables = [tomllib.loads(block.text)]
    except tomllib.TOMLDecodeError:
        tables = [tomllib.loads(line) for line in block.text.splitlines()]
    earlier: Table = {}
    is_logic_panel = block.page == "logic.md" and "panel" in tables[0]
    for text in block.before[:1] if is_logic_panel else ():  # the weights of judges refer to the page's first block
        earlier = merged(earlier, tomllib.loads(text))
    if tables[0].get("name", "").startswith("simulated"):  # runs as it is
        yield from tables
        return
    for number, table in enumerate(tables):
        full_config = merged(merged(_base(table), earlier), table)
        full_config["name"] = f"{block.page.split('.')[0]}-{block.line}-{number}"
        yield _with_scripted_endpoint(full_config, url)


def merged(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> Table:
    """Merge two tables recursively; the second's values take precedence."""
    merged_table = dict(base)
    for key, value in overrides.items():
        base_value = merged_table.get(key)
        merged_table[key] = (
            merged(base_value, value) if isinstance(base_value, dict) and isinstance(value, dict) else value
        )
    return merged_table


def _base(shown: Table) -> Table:
    base: Table = {
        "survey": {"source": "wvs7-sample", "countries": list(COUNTRIES), "topics": list(TOPICS[:1])},
        "embedding": {"model": "none"},
        "models": [{"name": name, "model": f"openai/{name}"} for name in ("gpt", "mine", "third")],
        "probes": {"direct": {"samples": 1}, "review": {"traces": 1}},
    }
    if "task" in shown:
        del base["survey"]
    if "semantic" in shown.get("probes", {}) and "models" in shown:  # a whole configuration, with no survey
        return {"embedding": {"model": "letters"}}
    if shown.get("survey", {}).get("source") == "my_wvs.csv":
        base["survey"] = {"countries": ["Germany", "Nigeria"], "topics": list(TOPICS[:1])}
    panel = shown.get("panel", {})
    if "weights" in panel:  # keep only the judges with weights
        base["models"] = [m for m in base["models"] if m["name"] in panel["weights"]]
    for i in range(panel.get("judges_per_trace", 0)):  # more models are needed than judges per trace
        base["models"].append({"name": f"more-{i}", "model": f"openai/more-{i}"})
        base["survey"] |= {"countries": COUNTRIES[:1], "topics": TOPICS[:2]}
    return base


def _with_scripted_endpoint(table: Table, url: str) -> Table:
    scripted_endpoint = {"api_base": url, "api_key": f"os.environ/{KEY_VARIABLE}", "price": {"input": 0, "output": 0}}
    for models in (table.get("models"), table.get("judges")):
        for model in models if isinstance(models, list) else ():
            if provider_of(model["model"]) is REPLAY:
                continue
            model.update(scripted_endpoint | {"model": OPENAI.model_id(split_model_id(model["model"])[1])})
    return table


def write_block_files(folder: Path) -> None:
    shutil.copy(ROOT / "prompts" / "en" / "review.md", folder / "stern.md")
    items = [f"q{i},Is {i} an even number?,{'no' if i % 2 else 'yes'},yes|no" for i in range(4)]
    (folder / "items.csv").write_text("\n".join(["id,question,truth,options", *items]), encoding="utf-8")
    figures = "country,topic,wave,statistic,value,decimals\nJapan,divorce,2013,percent,37,0\n"
    (folder / "published.csv").write_text(figures, encoding="utf-8")
    duck = ["The duck crossed the road.", "The duck did not cross the road.", "The animal crossed the road."]
    answers = [f"duck,What did the duck do?,{i},{text}" for i, text in enumerate(duck, 1)]
    (folder / "duck.csv").write_text("\n".join(["question_id,question,sample,answer", *answers]), encoding="utf-8")
    for name, question in (("problems", "What is {} + 1?"), ("reviews", "How good is film number {}?")):
        rows = [f"q{i},{question.format(i)},{i + 1}" for i in range(4)]
        (folder / f"{name}.csv").write_text("\n".join(["id,question,truth", *rows]), encoding="utf-8")
    events = [{"context": "a story", "item": event, "text": event} for event in ("arrives", "eats", "leaves")]
    label = {"context": "a story", "item_a": "arrives", "item_b": "leaves", "decision": "A"}
    for name, records in (("events", events), ("summeval", events), ("labels", [label])):
        lines = [json.dumps(record) for record in records]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
