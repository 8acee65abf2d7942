"""Loaders of the text encoders that a config needs, which check at once whether the encoders can be used."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from auditor.config import AuditConfig

if TYPE_CHECKING:
    from auditor.agents.run_context import TextEncoder

NO_ENCODER = "none"
"""Name in the config that stands for no encoder."""


def semantic_encoder_loader(config: AuditConfig) -> Callable[[], TextEncoder] | None:
    """A function that loads the text encoder of the probe `semantic` once; None if nothing is to be encoded.

    Whether the encoder and the packages of other similarity measures (`rivals`) can be used is checked at once.

    Raises:
        AuditorError: they cannot be used.
    """
    probe = config.probes.semantic
    if probe is None or probe.paraphrases == 0:
        return None
    from auditor.models.embeddings import check_encoders, load_encoder  # loads httpx (0.2 s)
    from auditor.models.text_similarity import check_similarity_packages  # for this probe only

    encoder_name = probe.encoder or config.embedding.model
    check_encoders(encoder_name, probe.used_bertscore_model)
    check_similarity_packages(probe.rivals)
    return functools.cache(lambda: load_encoder(encoder_name))


def direct_encoder_loader(config: AuditConfig) -> Callable[[], TextEncoder] | None:
    """A function that loads the text encoder that compares direct answers; None if no answers are compared.

    None is needed without the direct probe, with fewer than two samples per cell, or with the model "none". Whether
    the encoder can be used is checked at once.

    Raises:
        AuditorError: it cannot be used.
    """
    if config.embedding.model == NO_ENCODER or config.probes.direct is None or config.direct.samples < 2:
        return None
    from auditor.models.embeddings import check_encoder, load_encoder  # loads httpx (0.2 s)

    check_encoder(config.embedding.model)
    return functools.partial(load_encoder, config.embedding.model)
