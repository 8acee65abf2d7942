"""What names an audit's questions, and what it was run on."""

from __future__ import annotations

import hashlib
import platform
from importlib import metadata
from pathlib import Path

from auditor.config import AuditConfig
from auditor.domain import ENGLISH, LANGUAGES, canonical_hash

RECORDED_PACKAGES = (
    "litellm",
    "instructor",
    "langgraph",
    "sentence-transformers",
    "torch",
    "xllamacpp",
    "numpy",
    "scipy",
)
SEMANTIC_PROMPTS = (
    *("answer.structured", "answer.text", "rule.structured", "rule.text", "paraphrase", "consistency", "contradiction"),
)


def fingerprint(config: AuditConfig) -> str:
    """Names everything that decides an audit's calls and how they are read: config, prompts and program.

    Raises:
        ConfigError: a judge's own prompt cannot be used.
    """
    from auditor.agents.call_builders import load_review_prompt
    from auditor.prompts import load_prompt

    folders = sorted(LANGUAGES) if config.languages != (ENGLISH,) else [ENGLISH]
    if config.task is None:
        asked, review = ["direct"], ["review", "review.shorter", "review.guess", "review.rewrite"]
    else:
        asked = [f"task.{kind}" for kind in ("choice", "number", "score", "words")]
        review = ["review.task", "review.shorter"]
    repair = f"repair.{'task.' if config.task else ''}{config.direct.mode}"
    prompts = [load_prompt(f"{name}.{config.direct.mode}", f) for name in asked for f in folders]
    prompts += [load_prompt(repair)] if config.direct.repair else []
    prompts += [load_prompt(name) for name in review]
    prompts += [load_review_prompt(judge, for_task=config.task is not None) for judge in config.judge_models]
    if config.probes.semantic:
        prompts += [load_prompt(f"semantic.{name}") for name in SEMANTIC_PROMPTS]
    told = [[p.id, p.system, p.user] for p in prompts]
    return canonical_hash(
        [config.hash, metadata.version("auditor"), told, *_logprob_inputs(config), *_comparison_inputs(config, folders)]
    )


def _logprob_inputs(config: AuditConfig) -> list[object]:
    """What decides the log-probabilities, beside the config."""
    from auditor.prompts import load_prompt
    from auditor.prompts.sentence_pairs import load_sentence_pairs

    return (
        [load_sentence_pairs().model_dump(mode="json"), load_prompt("logprob.choice").user]
        if config.probes.logprob
        else []
    )


def _comparison_inputs(config: AuditConfig, folders: list[str]) -> list[object]:
    """What decides the comparisons, beside the config: their words, and the file of items where there is one."""
    from auditor.prompts import load_prompt
    from auditor.prompts.comparison_wording import load_comparison_wording

    probe = config.probes.logic
    if probe is None:
        return []
    template = "logic.letter" if probe.answer == "probability" else f"logic.{'cot' if probe.cot else 'structured'}"
    prompts = [load_prompt(template, f) for f in folders]
    told = [[p.system, p.user, load_comparison_wording(p.language).model_dump(mode="json")] for p in prompts]
    file = Path(probe.items)
    return [told, hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None]


def describe_environment() -> dict[str, str]:
    """Versions of what has a part in the result."""
    found = {"auditor": metadata.version("auditor")}
    found |= {"python": platform.python_version(), "platform": platform.platform()}
    for name in RECORDED_PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
