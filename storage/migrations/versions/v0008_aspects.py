"""Judges' ratings of aspects as one JSON object, so that another aspect needs no migration."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

LONG = sa.Text().with_variant(sa.String(collation="C"), "postgresql")
OLD_COLUMNS = ("cultural_accuracy", "logical_consistency", "score_fit")
"""In alphabetical order, since the keys of canonical JSON are sorted."""


def upgrade() -> None:
    with op.batch_alter_table("verdict") as table:
        table.add_column(sa.Column("aspects", LONG, nullable=True))
    # Each rated aspect becomes `,"name":true` or `,"name":false`; substr drops the first comma.
    members = " || ".join(
        f"""CASE WHEN {name} THEN ',"{name}":true' WHEN NOT {name} THEN ',"{name}":false' ELSE '' END"""
        for name in OLD_COLUMNS
    )
    op.get_bind().exec_driver_sql(f"UPDATE verdict SET aspects = '{{' || substr({members}, 2) || '}}'")
    with op.batch_alter_table("verdict") as table:
        table.alter_column("aspects", existing_type=LONG, nullable=False)
        for name in OLD_COLUMNS:
            table.drop_column(name)
