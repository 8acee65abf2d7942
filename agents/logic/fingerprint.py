"""What determines the answers of the probe `logic`, besides the configuration."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from auditor.config import AuditConfig
from auditor.prompts import load_prompt
from auditor.prompts.comparison_wording import load_comparison_wording


def list_fingerprint_inputs(config: AuditConfig, languages: Sequence[str]) -> list[object]:
    """What determines the comparisons besides the config: prompts, wording, and the hash of a file of items.

    The hash is None if the items are not from a file.

    Args:
        config: the audit's configuration.
        languages: codes of the languages that questions may be in.
    """
    probe = config.probes.logic
    assert probe is not None
    template = "logic.letter" if probe.answer == "probability" else f"logic.{'cot' if probe.cot else 'structured'}"
    prompts = [load_prompt(template, language) for language in languages]
    prompt_texts = [
        [prompt.system, prompt.user, load_comparison_wording(prompt.language).model_dump(mode="json")]
        for prompt in prompts
    ]
    file = Path(probe.items)
    return [prompt_texts, hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None]
