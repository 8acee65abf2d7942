"""Modules that take seconds to import, preloaded by the fork server."""

from auditor import bootstrap

bootstrap.prepare_environment()

from litellm.litellm_core_utils import default_encoding  # noqa: E402, F401

from auditor.agents import graph_runner, rephrasing  # noqa: E402, F401
from auditor.cli import app, progress  # noqa: E402, F401
from auditor.models import answer_schemas, batches, gateway, litellm_client, structured_reading  # noqa: E402, F401
from auditor.reports.data import build  # noqa: E402, F401
from auditor.reports.sections import run_summary  # noqa: E402, F401
from auditor.run import audit_runner, replay, telemetry  # noqa: E402, F401

litellm_client.load_litellm()
structured_reading.parse_structured_answer(answer_schemas.MoralJudgement, "{}")  # loads instructor
