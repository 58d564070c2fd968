"""The data: schema, tables, reading, checking.

This room knows nothing of mechanisms, budgets or noise.
"""

from discreet.census.census import SIMULATED, Census, Header, Origin, as_data, write_header
from discreet.census.condition import Condition, columns_of, to_expression
from discreet.census.keys import key_columns, with_person_key
from discreet.census.records import person_columns, unit_columns, unit_records
from discreet.census.schema import Schema, Table, TableName, Variable, load_schema, read_schema

__all__ = [
    "SIMULATED",
    "Census",
    "Condition",
    "Header",
    "Origin",
    "Schema",
    "Table",
    "TableName",
    "Variable",
    "as_data",
    "columns_of",
    "key_columns",
    "load_schema",
    "person_columns",
    "read_schema",
    "to_expression",
    "unit_columns",
    "unit_records",
    "with_person_key",
    "write_header",
]
