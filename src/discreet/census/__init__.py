"""The data: schema, tables, reading, checking.

This room knows nothing of mechanisms, budgets or noise.
"""

from discreet.census.categories import (
    MISSING,
    categories,
    cells_per_area,
    listed_in,
    may_be_missing,
    table_categories,
)
from discreet.census.census import (
    SIMULATED,
    Census,
    Header,
    Origin,
    as_data,
    read_header,
    write_header,
)
from discreet.census.condition import COMBINERS, Condition, columns_of, to_expression
from discreet.census.consistency import kind_of
from discreet.census.declarations import (
    Cases,
    Computed,
    Level,
    MemberCount,
    MemberValue,
    Recode,
    Table,
    TableName,
    Variable,
)
from discreet.census.findings import Finding, Findings, InvalidCensus, Waiver, read_waivers
from discreet.census.ingest import IngestReport, ingest, read_census
from discreet.census.keys import key_columns, with_person_key
from discreet.census.layout import Layout, load_layout
from discreet.census.placing import check_placed
from discreet.census.provenance import (
    OF_HOUSEHOLD,
    OF_PERSON,
    OF_PERSON_IN_UNIT,
    OF_RECORD_IN_UNIT,
    Contribution,
    Dependence,
    chain_text,
    check_matched,
    dependences,
    made_from,
    needs,
    sources,
)
from discreet.census.records import person_columns, unit_columns, unit_records
from discreet.census.schema import Schema, load_schema, read_schema
from discreet.census.structure import check_structure
from discreet.census.validate import validate

__all__ = [
    "COMBINERS",
    "MISSING",
    "OF_HOUSEHOLD",
    "OF_PERSON",
    "OF_PERSON_IN_UNIT",
    "OF_RECORD_IN_UNIT",
    "SIMULATED",
    "Cases",
    "Census",
    "Computed",
    "Condition",
    "Contribution",
    "Dependence",
    "Finding",
    "Findings",
    "Header",
    "IngestReport",
    "InvalidCensus",
    "Layout",
    "Level",
    "MemberCount",
    "MemberValue",
    "Origin",
    "Recode",
    "Schema",
    "Table",
    "TableName",
    "Variable",
    "Waiver",
    "as_data",
    "categories",
    "cells_per_area",
    "chain_text",
    "check_matched",
    "check_placed",
    "check_structure",
    "columns_of",
    "dependences",
    "ingest",
    "key_columns",
    "kind_of",
    "listed_in",
    "load_layout",
    "load_schema",
    "made_from",
    "may_be_missing",
    "needs",
    "person_columns",
    "read_census",
    "read_header",
    "read_schema",
    "read_waivers",
    "sources",
    "table_categories",
    "to_expression",
    "unit_columns",
    "unit_records",
    "validate",
    "with_person_key",
    "write_header",
]
