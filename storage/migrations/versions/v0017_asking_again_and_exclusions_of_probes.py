"""Questions of probes that were asked again, and exclusions of the answers of one probe."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("comparison", schema=None) as batch_op:
        batch_op.add_column(sa.Column("repeat_key", WORDS, nullable=True))
        batch_op.add_column(sa.Column("first_outcome", WORDS, nullable=True))

    with op.batch_alter_table("contrast", schema=None) as batch_op:
        batch_op.add_column(sa.Column("repeat_key", WORDS, nullable=True))
        batch_op.add_column(sa.Column("swapped_repeat_key", WORDS, nullable=True))
        batch_op.add_column(sa.Column("first_outcome", WORDS, nullable=True))

    with op.batch_alter_table("exclusion", schema=None) as batch_op:
        batch_op.add_column(sa.Column("probe", WORDS, nullable=True))

    with op.batch_alter_table("moral_answer", schema=None) as batch_op:
        batch_op.add_column(sa.Column("repeat_key", WORDS, nullable=True))
        batch_op.add_column(sa.Column("first_outcome", WORDS, nullable=True))
        batch_op.add_column(sa.Column("rot_repeat_key", WORDS, nullable=True))
        batch_op.add_column(sa.Column("rot_first_outcome", WORDS, nullable=True))

    with op.batch_alter_table("moral_verdict", schema=None) as batch_op:
        batch_op.add_column(sa.Column("repeat_key", WORDS, nullable=True))
        batch_op.add_column(sa.Column("first_outcome", WORDS, nullable=True))

    with op.batch_alter_table("opinion", schema=None) as batch_op:
        batch_op.add_column(sa.Column("repeat_key", WORDS, nullable=True))
        batch_op.add_column(sa.Column("first_outcome", WORDS, nullable=True))

    with op.batch_alter_table("probe_result", schema=None) as batch_op:
        batch_op.add_column(sa.Column("repeat_key", WORDS, nullable=True))
        batch_op.add_column(sa.Column("first_outcome", WORDS, nullable=True))
