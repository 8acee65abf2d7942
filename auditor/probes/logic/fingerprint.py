"""What determines the answers of the probe `logic`, besides the configuration."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from auditor.config import AuditConfig
from auditor.probes.logic.comparison_wording import load_comparison_wording, load_english_criteria
from auditor.probes.logic.question_forms import list_templates
from auditor.probes.logic.settings import LogicProbe
from auditor.prompts import load_prompt


def list_fingerprint_inputs(config: AuditConfig, languages: Sequence[str]) -> list[object]:
    """What determines the comparisons besides the config: prompts, wording, and the hashes of the files.

    The hash of the file of items is None if they are not from a file. That of people's labels, which are stored with
    the comparisons, is there only with such a file.

    Args:
        config: the audit's configuration.
        languages: codes of the languages that questions may be in.
    """
    probe = config.probes.get(LogicProbe)
    prompts = [load_prompt(template, language) for template in list_templates(probe) for language in languages]
    prompt_texts: list[object] = [
        [prompt.system, prompt.user, load_comparison_wording(prompt.language).model_dump(mode="json")]
        for prompt in prompts
    ]
    if (criterion := load_english_criteria().get(probe.relation)) is not None:
        prompt_texts.append(criterion.model_dump(mode="json"))
    hashes = [_hash_file(Path(file)) for file in (probe.items, probe.people) if file is not None]
    return [prompt_texts, *hashes]


def _hash_file(file: Path) -> str | None:
    """SHA-256 of a file's content; None if there is no such file."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
