"""Reports and databases in which models were asked otherwise than the configuration says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sqlalchemy import select, update

from auditor.domain import Purpose, Trace
from auditor.reports.data.report_schema import Report
from auditor.reports.data.requests import SamplingReport, SamplingSettingsRow
from auditor.storage.call_records import StoredAnswer
from auditor.storage.database import Database
from auditor.storage.row_classes import table_of

DEFAULT_LABEL = "openai’s default temperature"
"""Settings of a model whose server refuses the temperature."""


def refuse_temperature(report: Report, refusing: str, purpose: Literal["direct", "moral"] = "direct") -> Report:
    """A copy of the report in which one model was asked without the configured temperature."""
    rows = [
        SamplingSettingsRow(
            model=model.name,
            purpose=purpose,
            requested={"temperature": 0.7},
            sent=[{} if model.name == refusing else {"temperature": 0.7}],
            honoured=model.name != refusing,
            label=DEFAULT_LABEL if model.name == refusing else "temperature 0.7",
        )
        for model in report.audit.models
    ]
    sampling = SamplingReport(sampling_settings_differ=True, rows=rows)
    labels = sampling.labels(Purpose.DIRECT)
    consistency = [row.model_copy(update={"sampling": labels.get(row.model)}) for row in report.self_consistency]
    return report.model_copy(update={"sampling": sampling, "self_consistency": consistency})


def direct_keys(db: Database, model: str) -> list[str]:
    """Keys of a model's direct calls, in the order of its traces."""
    table = table_of(Trace).c
    with db.read() as connection:
        query = select(table.key).where(table.model == model, table.key.is_not(None))
        return list(connection.execute(query.order_by(table.country, table.topic, table.sample)).scalars())


async def change_answers(db: Database, keys: Iterable[str], **columns: str | int | None) -> None:
    """Change columns of the recorded answers with these keys."""
    table, changed_keys = table_of(StoredAnswer), list(keys)
    await db.writer.write(
        lambda connection: connection.execute(update(table).where(table.c.key.in_(changed_keys)).values(**columns))
    )
