"""Modules that take seconds to import, preloaded by the fork server."""

from auditor import bootstrap

bootstrap.prepare_environment()

import filelock  # noqa: E402, F401
import pycountry  # noqa: E402, F401
import scipy.special  # noqa: E402, F401
from litellm.litellm_core_utils import default_encoding  # noqa: E402, F401

from auditor.agents import background_consistency, graph, localization  # noqa: E402, F401
from auditor.cli import app, report, run, status  # noqa: E402, F401
from auditor.models import (  # noqa: E402, F401
    answer_schemas,
    batches,
    direct_completion,
    gateway,
    litellm_client,
    structured_reading,
)
from auditor.probes.logic import section, stage  # noqa: E402, F401
from auditor.probes.semantic import stage as semantic_stage  # noqa: E402, F401
from auditor.reports.data import build  # noqa: E402, F401
from auditor.reports.render import plain_text  # noqa: E402, F401
from auditor.reports.sections import run_summary  # noqa: E402, F401
from auditor.run import audit_runner, replay, telemetry  # noqa: E402, F401
from auditor.run.batches import batching_client  # noqa: E402, F401

litellm_client.load_litellm()
from litellm.proxy.openai_files_endpoints import common_utils  # noqa: E402, F401 - by litellm's first completion

structured_reading.parse_structured_answer(answer_schemas.MoralJudgement, "{}")  # loads instructor
