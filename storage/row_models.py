"""SQLModel classes of rows, for programs that read a database in sessions; auditor reads and writes by SQLAlchemy Core.

Importing SQLModel, and with it SQLAlchemy's ORM, takes a tenth of a second, so no command does.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from sqlalchemy import inspect
from sqlmodel import SQLModel

from auditor.storage.row_classes import METADATA, table_of


class Row(SQLModel):
    """Base of all rows."""

    metadata = METADATA
    model_config = {"defer_build": True}

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        """The row's columns: SQLModel shows the fields that it knows, which are those declared in a class."""
        return [(column.name, getattr(self, column.name)) for column in inspect(type(self)).columns]


@functools.cache
def row_class_of(record_class: type) -> type[SQLModel]:
    """The SQLModel class of the rows of a record, with its table; made by the first call.

    Raises:
        TypeError: the class has no declaration of its table.
    """
    table = table_of(record_class)
    name = f"{record_class.__name__}Row"
    namespace = {"__module__": __name__, "__doc__": record_class.__doc__, "__table__": table}
    row_class: type[SQLModel] = types.new_class(name, (Row,), {"table": True}, lambda body: body.update(namespace))
    return row_class
