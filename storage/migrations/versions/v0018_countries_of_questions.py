"""Countries that the questions of the probe `semantic` are about."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("moral_question", schema=None) as batch_op:
        batch_op.add_column(sa.Column("country", WORDS, nullable=True))
