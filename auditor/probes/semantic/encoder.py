"""The text encoder that compares answers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from auditor.config.probe_section import ProbeEncoder
from auditor.probes.semantic.settings import SemanticProbe

if TYPE_CHECKING:
    from auditor.agents.run_context import TextEncoder
    from auditor.config import AuditConfig


def find_encoder(config: AuditConfig) -> ProbeEncoder | None:
    """Find the encoder; None if nothing is to be encoded. Its check includes the packages of other measures."""
    probe = config.probes.find(SemanticProbe)
    if probe is None or probe.paraphrases == 0:
        return None
    name = probe.encoder or config.embedding.model

    def check() -> None:
        from auditor.models.embeddings import check_encoders  # loads httpx (0.2 s)
        from auditor.models.text_similarity import check_similarity_packages

        check_encoders(name, probe.used_bertscore_model)
        check_similarity_packages(probe.rivals)

    @functools.cache
    def load() -> TextEncoder:
        from auditor.models.embeddings import load_encoder

        return load_encoder(name)

    return ProbeEncoder(name, check, load)
