"""The tables of the Supplemental DHC file of 2020 (S-DHC), as data.

Only *basis* cells are counted; totals and subtotals are their sums. A person table counts
persons after its two filters, joined to their housing unit; a unit table counts housing
units. Conditions list the values that a column may have.

After Sexton et al. (2024), PHSafe: Disclosure Avoidance for the 2020 Census Supplemental
Demographic and Housing Characteristics File; the cell numbers are those of its shells.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from discreet.config import suggest
from discreet.errors import BadInput
from discreet.products.sdhc.groups import LEVELS, Condition

OWN_CHILD = ("25", "26", "27")
FAMILY = ("20", "21", "23", *OWN_CHILD, "28", "29", "30", "31", "32", "33")
HOUSEHOLDER = "20"

UNDER_18 = range(18)
ADULT = range(18, 116)


# -- tables ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """A basis cell."""

    label: str
    where: Condition


@dataclass(frozen=True)
class Aggregate:
    """A total or subtotal: the sum of these basis cells."""

    label: str
    parts: tuple[int, ...]


@dataclass(frozen=True)
class Shell:
    """A measured table.

    Attributes
    ----------
    race_of
        Whose race and Hispanic origin tell the population group; None: no groups.
    persons, units
        The filters of persons (before truncation) and of units (before the join).
    rule
        What is wrong with a record that passes the filters and lies in no cell.
    """

    name: str
    title: str
    counts: Literal["persons", "units"]
    race_of: Literal["person", "householder"] | None
    cells: Mapping[int, Cell]
    persons: Condition = field(default_factory=dict)
    units: Condition = field(default_factory=dict)
    aggregates: Mapping[int, Aggregate] = field(default_factory=dict)
    rule: str = ""

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the population group levels the table is published at."""
        grouped = self.race_of is not None
        return tuple(name for name in LEVELS if grouped or name.endswith("_*"))

    @property
    def columns(self) -> frozenset[str]:
        """Return the columns of persons and units that filters and cells look at."""
        conditions = [self.persons, self.units, *(cell.where for cell in self.cells.values())]
        return frozenset(name for where in conditions for name in where)

    @property
    def column(self) -> str:
        """Return the name of the column of cell numbers in published files."""
        return cell_column(self.name)


def cell_column(table: str) -> str:
    """Return the name of the column of cell numbers in the published files of a table."""
    return f"{table.upper()}_DATA_CELL"


def _by_age() -> dict[int, Cell]:
    return {2: Cell("Under 18", {"age": UNDER_18}), 3: Cell("18 and over", {"age": ADULT})}


_BOTH = {1: Aggregate("Total", (2, 3))}
_AGE = "the age is missing or out of range"
_TENURE = "an occupied housing unit has no tenure"
_HOUSEHOLD = {"kind": ("occupied",)}
_FAMILY_HOUSEHOLD = {"household_type": ("1", "2", "3")}


def _couples() -> dict[int, Cell]:
    """Return the cells of PH2: household type first, then couple type."""
    married, cohabiting = ("01", "02"), ("03", "04")
    pairs = {"household_type2": married}, {"household_type2": cohabiting}
    return {
        3: Cell("Opposite-sex married couple", {**pairs[0], "couple_type": ("1",)}),
        4: Cell("Same-sex married couple", {**pairs[0], "couple_type": ("2",)}),
        6: Cell("Opposite-sex cohabiting couple", {**pairs[1], "couple_type": ("3",)}),
        7: Cell("Same-sex cohabiting couple", {**pairs[1], "couple_type": ("4",)}),
        9: Cell("Male householder alone", {"household_type2": ("09",)}),
        10: Cell("Male householder with others", {"household_type2": ("10", "11", "12")}),
        12: Cell("Female householder alone", {"household_type2": ("05",)}),
        13: Cell("Female householder with others", {"household_type2": ("06", "07", "08")}),
    }


#: Household types with own children under 18, in the order of the shells.
_PARENTS = {
    "Married couple": "01",
    "Cohabiting couple": "03",
    "Male householder, no spouse or partner": "10",
    "Female householder, no spouse or partner": "06",
}


def _children() -> dict[int, Cell]:
    """Return the cells of PH3: own children by household type, then others."""
    cells = {
        2: Cell(
            "Householder, spouse, partner or nonrelative",
            {"relationship": ("20", "21", "22", "23", "24", "34", "35", "36")},
        )
    }
    for number, (label, code) in enumerate(_PARENTS.items(), start=4):
        own = {"relationship": OWN_CHILD, "household_type2": (code,)}
        cells[number] = Cell(f"Own child, {label}", own)
    cells[9] = Cell("Grandchild", {"relationship": ("30",)})
    cells[10] = Cell("Other relative", {"relationship": ("28", "29", "31", "32", "33")})
    return cells


def _ages_of_children() -> dict[int, Cell]:
    """Return the cells of PH6: household type by age of the child."""
    bands = {"0-3": range(4), "4-5": range(4, 6), "6-11": range(6, 12), "12-17": range(12, 18)}
    cells = {}
    for place, (label, code) in enumerate(_PARENTS.items()):
        for step, (band, ages) in enumerate(bands.items()):
            where: Condition = {"household_type2": (code,), "age": ages}
            cells[5 * place + 3 + step] = Cell(f"{label}, {band}", where)
    return cells


_PH2, _PH3, _PH6 = _couples(), _children(), _ages_of_children()

_LIST = [
    Shell(
        name="PH1_num",
        title="Persons in households by age",
        counts="persons",
        race_of="householder",
        cells=_by_age(),
        aggregates=_BOTH,
        rule=_AGE,
    ),
    Shell(
        name="PH1_denom",
        title="Households",
        counts="units",
        race_of="householder",
        units=_HOUSEHOLD,
        cells={1: Cell("Households", {})},
    ),
    Shell(
        name="PH2",
        title="Persons in households by type of household",
        counts="persons",
        race_of=None,
        cells=_PH2,
        aggregates={
            2: Aggregate("Married couple", (3, 4)),
            5: Aggregate("Cohabiting couple", (6, 7)),
            8: Aggregate("Male householder, no spouse or partner", (9, 10)),
            11: Aggregate("Female householder, no spouse or partner", (12, 13)),
            1: Aggregate("Total", tuple(_PH2)),
        },
        rule="household type and couple type are missing or disagree",
    ),
    Shell(
        name="PH3",
        title="Persons under 18 in households by relationship and type of household",
        counts="persons",
        race_of="person",
        persons={"age": UNDER_18},
        cells=_PH3,
        aggregates={
            3: Aggregate("Own child", (4, 5, 6, 7)),
            8: Aggregate("Other relatives", (9, 10)),
            1: Aggregate("Total", tuple(_PH3)),
        },
        rule="an own child under 18 lives in a household without own children, or the "
        "relationship is not one of a household",
    ),
    Shell(
        name="PH4",
        title="Persons in families by age",
        counts="persons",
        race_of="householder",
        persons={"relationship": FAMILY},
        units=_FAMILY_HOUSEHOLD,
        cells=_by_age(),
        aggregates=_BOTH,
        rule=_AGE,
    ),
    Shell(
        name="PH5_denom",
        title="Families",
        counts="units",
        race_of="householder",
        units={**_HOUSEHOLD, **_FAMILY_HOUSEHOLD},
        cells={1: Cell("Families", {})},
    ),
    Shell(
        name="PH6",
        title="Own children under 18 by type of family and age",
        counts="persons",
        race_of=None,
        persons={"relationship": OWN_CHILD, "age": UNDER_18},
        cells=_PH6,
        aggregates={
            **{
                5 * place + 2: Aggregate(label, tuple(range(5 * place + 3, 5 * place + 7)))
                for place, label in enumerate(_PARENTS)
            },
            1: Aggregate("Total", tuple(_PH6)),
        },
        rule="an own child under 18 lives in a household without own children",
    ),
    Shell(
        name="PH7",
        title="Persons in households by tenure",
        counts="persons",
        race_of="householder",
        cells={
            2: Cell("Owned with a mortgage or a loan", {"tenure": ("1",)}),
            3: Cell("Owned free and clear", {"tenure": ("2",)}),
            4: Cell("Rented or without payment", {"tenure": ("3", "4")}),
        },
        aggregates={1: Aggregate("Total", (2, 3, 4))},
        rule=_TENURE,
    ),
    Shell(
        name="PH8_denom",
        title="Occupied housing units by tenure",
        counts="units",
        race_of="householder",
        units=_HOUSEHOLD,
        cells={
            2: Cell("Owner", {"tenure": ("1", "2")}),
            3: Cell("Renter", {"tenure": ("3", "4")}),
        },
        aggregates=_BOTH,
        rule=_TENURE,
    ),
]

#: The nine measured tables.
SHELLS: Mapping[str, Shell] = MappingProxyType({shell.name: shell for shell in _LIST})


@dataclass(frozen=True)
class Derived:
    """A table that follows from the noisy numbers of another: each cell a sum of its cells."""

    name: str
    title: str
    source: str
    cells: Mapping[int, tuple[int, ...]]

    @property
    def column(self) -> str:
        """Return the name of the column of cell numbers in published files."""
        return cell_column(self.name)


#: Two numerators that cost nothing.
DERIVED: Mapping[str, Derived] = MappingProxyType(
    {
        "PH5_num": Derived("PH5_num", "Persons in families by age", "PH4", {2: (2,), 3: (3,)}),
        "PH8_num": Derived("PH8_num", "Persons by owner and renter", "PH7", {2: (2, 3), 3: (4,)}),
    }
)


def truncated_tables() -> tuple[str, ...]:
    """Return the tables that have a truncation threshold: those that count persons."""
    return tuple(name for name, shell in SHELLS.items() if shell.counts == "persons")


def shell_of(table: str) -> Shell:
    """Return a measured table by name."""
    if table not in SHELLS:
        raise BadInput(f"no table '{table}'.{hint(table, SHELLS)}")
    return SHELLS[table]


def hint(name: str, known: Collection[str]) -> str:
    """Return what to write instead: averages such as PH8 come from tables of other names."""
    derived = [made.source for made in DERIVED.values() if f"{made.name}_".startswith(f"{name}_")]
    measured = [table for table in SHELLS if table.startswith(f"{name}_")]
    sources = [table for table in (*derived, *measured) if table in known]
    return f" It comes from {' and '.join(sources)}." if sources else suggest(name, known)
