"""The ledger: what each node's time was for, the nodes' lives, and what each run asked for, got and waited for.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def _name(name: str, length: int = 250) -> sa.Column:
    return sa.Column(name, sa.String(length), nullable=False)


def _ms(name: str, *, nullable: bool = False) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), nullable=nullable)


def _count(name: str) -> sa.Column:
    return sa.Column(name, sa.Integer(), nullable=False)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "elastic_ledger",
        _name("id", 32),
        _name("node_uid", 253),
        _name("node_pool"),
        _name("use", 16),
        _name("dag_id"),
        _name("run_id"),
        _name("task_id"),
        _ms("node_ms"),
        sa.Column("cost", sa.Float(53), nullable=False),
        _ms("last_ms"),
        sa.PrimaryKeyConstraint("id", name="pk_elastic_ledger"),
    )
    op.create_index("ix_elastic_ledger_dag_id", "elastic_ledger", ["dag_id", "run_id"])
    op.create_index("ix_elastic_ledger_last_ms", "elastic_ledger", ["last_ms"])
    op.create_table(
        "elastic_ledger_node",
        _name("uid", 253),
        _name("name", 253),
        _name("node_pool"),
        sa.Column("price_per_node_hour", sa.Float(53), nullable=False),
        _ms("started_ms"),
        _ms("accounted_ms"),
        _ms("ended_ms", nullable=True),
        sa.PrimaryKeyConstraint("uid", name="pk_elastic_ledger_node"),
    )
    op.create_index("ix_elastic_ledger_node_ended_ms", "elastic_ledger_node", ["ended_ms"])
    op.create_table(
        "elastic_ledger_run",
        _name("id", 32),
        _name("dag_id"),
        _name("run_id"),
        _count("asked_nodes"),
        _count("granted_nodes"),
        _count("waits"),
        _ms("waited_ms"),
        _ms("longest_wait_ms"),
        _ms("waits_until_ms"),
        _count("preemptions"),
        _ms("first_ms"),
        _ms("last_ms"),
        sa.PrimaryKeyConstraint("id", name="pk_elastic_ledger_run"),
    )
    op.create_index("ix_elastic_ledger_run_dag_id", "elastic_ledger_run", ["dag_id", "run_id"])
    op.create_index("ix_elastic_ledger_run_last_ms", "elastic_ledger_run", ["last_ms"])


def downgrade() -> None:
    """Drop the tables: what was paid for whom is lost."""
    for name in ("elastic_ledger_run", "elastic_ledger_node", "elastic_ledger"):
        op.drop_table(name)
