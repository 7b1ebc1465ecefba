"""Our own tables, in Airflow's database but apart from Airflow's: prefix ``elastic_``, no foreign keys.

They hold only what neither the cluster nor Airflow knows: reservations, decisions, what was learnt, who leads, and what
was paid for whom.
The migrations must describe the very same tables; a test compares them.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Float, Index, Integer, MetaData, String, Text
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

__all__ = [
    "Base",
    "DecisionRow",
    "LeaderRow",
    "LedgerNodeRow",
    "LedgerRow",
    "LedgerRunRow",
    "ProfileRow",
    "ReservationRow",
    "StatusRow",
    "metadata",
]

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Documents are text that only we read: the same on every database. MySQL's TEXT ends at 64 KiB.
_Document = Text().with_variant(LONGTEXT(), "mysql")
_Name = String(250)
_NodeUid = String(253)
_Number = BigInteger().with_variant(Integer(), "sqlite")


class Base(DeclarativeBase):
    """Base of our tables, on metadata of their own."""

    metadata = metadata


class LeaderRow(Base):
    """Who may act. ``token`` grows with each new leader and fences off the writes of those before."""

    __tablename__ = "elastic_leader"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    holder: Mapped[str] = mapped_column(_Name, nullable=False)
    token: Mapped[int] = mapped_column(BigInteger, nullable=False)
    renewed_at: Mapped[float] = mapped_column(Float(53), nullable=False)
    expires_at: Mapped[float] = mapped_column(Float(53), nullable=False)


class StatusRow(Base):
    """The document that the controller published last."""

    __tablename__ = "elastic_status"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    saved_at: Mapped[float] = mapped_column(Float(53), nullable=False)
    document: Mapped[str] = mapped_column(_Document, nullable=False)


class ProfileRow(Base):
    """What was learnt of tasks and node pools."""

    __tablename__ = "elastic_profile"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    saved_at: Mapped[float] = mapped_column(Float(53), nullable=False)
    document: Mapped[str] = mapped_column(_Document, nullable=False)


class DecisionRow(Base):
    """One decision or refusal, for the page, the commands and whoever asks later."""

    __tablename__ = "elastic_decision"
    __table_args__ = (Index("ix_elastic_decision_about", "about"),)

    id: Mapped[int] = mapped_column(_Number, primary_key=True, autoincrement=True)
    at: Mapped[float] = mapped_column(Float(53), nullable=False)
    kind: Mapped[str] = mapped_column(String(32), nullable=False)
    about: Mapped[str] = mapped_column(String(500), nullable=False)
    code: Mapped[str] = mapped_column(String(64), nullable=False)
    sentence: Mapped[str] = mapped_column(Text, nullable=False)
    applied: Mapped[bool] = mapped_column(Boolean, nullable=False)


class ReservationRow(Base):
    """Warm capacity and its owner, as of the last plan."""

    __tablename__ = "elastic_reservation"

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    dag_id: Mapped[str] = mapped_column(_Name, nullable=False)
    run_id: Mapped[str] = mapped_column(_Name, nullable=False)
    node_pool: Mapped[str] = mapped_column(_Name, nullable=False)
    nodes: Mapped[int] = mapped_column(Integer, nullable=False)
    state: Mapped[str] = mapped_column(String(16), nullable=False)
    needed_at: Mapped[float] = mapped_column(Float(53), nullable=False)
    until_at: Mapped[float] = mapped_column(Float(53), nullable=False)
    ask_at: Mapped[float] = mapped_column(Float(53), nullable=False)
    asked_at: Mapped[float | None] = mapped_column(Float(53), nullable=True)
    expires_at: Mapped[float] = mapped_column(Float(53), nullable=False)
    warm_nodes: Mapped[int] = mapped_column(Integer, nullable=False)
    changed_at: Mapped[float] = mapped_column(Float(53), nullable=False)
    why: Mapped[str] = mapped_column(Text, nullable=False)


class LedgerRow(Base):
    """What a node's time was for, summed up: one row for each node, use, run and task."""

    __tablename__ = "elastic_ledger"
    __table_args__ = (
        Index("ix_elastic_ledger_dag_id", "dag_id", "run_id"),
        Index("ix_elastic_ledger_last_ms", "last_ms"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    node_uid: Mapped[str] = mapped_column(_NodeUid, nullable=False)
    node_pool: Mapped[str] = mapped_column(_Name, nullable=False)
    use: Mapped[str] = mapped_column(String(16), nullable=False)
    dag_id: Mapped[str] = mapped_column(_Name, nullable=False)
    run_id: Mapped[str] = mapped_column(_Name, nullable=False)
    task_id: Mapped[str] = mapped_column(_Name, nullable=False)
    node_ms: Mapped[int] = mapped_column(BigInteger, nullable=False)
    cost: Mapped[float] = mapped_column(Float(53), nullable=False)
    last_ms: Mapped[int] = mapped_column(BigInteger, nullable=False)


class LedgerNodeRow(Base):
    """A node's life as it is paid for. ``accounted_ms`` says how far ``elastic_ledger`` has charged it."""

    __tablename__ = "elastic_ledger_node"
    __table_args__ = (Index("ix_elastic_ledger_node_ended_ms", "ended_ms"),)

    uid: Mapped[str] = mapped_column(_NodeUid, primary_key=True)
    name: Mapped[str] = mapped_column(_NodeUid, nullable=False)
    node_pool: Mapped[str] = mapped_column(_Name, nullable=False)
    price_per_node_hour: Mapped[float] = mapped_column(Float(53), nullable=False)
    started_ms: Mapped[int] = mapped_column(BigInteger, nullable=False)
    accounted_ms: Mapped[int] = mapped_column(BigInteger, nullable=False)
    ended_ms: Mapped[int | None] = mapped_column(BigInteger, nullable=True)


class LedgerRunRow(Base):
    """What a run asked for, got and waited for."""

    __tablename__ = "elastic_ledger_run"
    __table_args__ = (
        Index("ix_elastic_ledger_run_dag_id", "dag_id", "run_id"),
        Index("ix_elastic_ledger_run_last_ms", "last_ms"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    dag_id: Mapped[str] = mapped_column(_Name, nullable=False)
    run_id: Mapped[str] = mapped_column(_Name, nullable=False)
    asked_nodes: Mapped[int] = mapped_column(Integer, nullable=False)
    granted_nodes: Mapped[int] = mapped_column(Integer, nullable=False)
    waits: Mapped[int] = mapped_column(Integer, nullable=False)
    waited_ms: Mapped[int] = mapped_column(BigInteger, nullable=False)
    longest_wait_ms: Mapped[int] = mapped_column(BigInteger, nullable=False)
    waits_until_ms: Mapped[int] = mapped_column(BigInteger, nullable=False)
    preemptions: Mapped[int] = mapped_column(Integer, nullable=False)
    first_ms: Mapped[int] = mapped_column(BigInteger, nullable=False)
    last_ms: Mapped[int] = mapped_column(BigInteger, nullable=False)
