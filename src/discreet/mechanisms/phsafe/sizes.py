"""What truncation leaves out, from how many households have how many persons.

The sizes of households are facts about people. A plan that looks at the confidential
census is part of the mechanism and costs budget, so their source must be declared: public
figures, an earlier census that is public, or figures measured with noise and charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from discreet.config import Strict, parse
from discreet.files import FORMAT_VERSION, check_format, read_yaml
from discreet.products import sdhc
from discreet.spec import Rational

Source = Literal["public", "earlier-census", "noised"]
Histogram = dict[
    Annotated[int, Field(ge=0, le=100_000)], Annotated[float, Field(ge=0, allow_inf_nan=False)]
]

#: The tables whose persons each histogram counts.
TABLES: dict[str, tuple[str, ...]] = {
    "persons": ("PH1_num", "PH2", "PH7"),
    "under_18": ("PH3",),
    "family_members": ("PH4",),
    "own_children": ("PH6",),
}

NO_SOURCE = (
    "say where the sizes come from. `public`, `earlier-census`, or `noised` (measured with "
    "noise on the same persons, and charged with `rho`)"
)


class Sizes(Strict):
    """Households by the number of persons that a table counts, and where that comes from.

    Parameters
    ----------
    source
        "public", "earlier-census" or "noised".
    citation
        What was published where.
    rho
        What noised sizes cost, for one person added or removed; only with "noised".
    persons, under_18, family_members, own_children
        For each number of such persons how many households, or which part of them.
    """

    format_version: int = FORMAT_VERSION
    source: Source | None = None
    citation: str = ""
    rho: Annotated[Rational, Field(gt=0)] | None = None
    persons: Histogram = Field(default_factory=dict)
    under_18: Histogram = Field(default_factory=dict)
    family_members: Histogram = Field(default_factory=dict)
    own_children: Histogram = Field(default_factory=dict)

    @model_validator(mode="after")
    def _declared(self) -> Sizes:
        if self.source is None:
            raise ValueError(f"source: {NO_SOURCE}")
        if not self.citation.strip():
            raise ValueError("citation: name the publication, table or run the sizes are from")
        if (self.rho is None) == (self.source == "noised"):
            raise ValueError("rho: what noised sizes cost, needed with `noised` and only there")
        given = [name for name in TABLES if getattr(self, name)]
        if not given:
            raise ValueError(f"give at least one of: {', '.join(TABLES)}")
        for name in given:
            if sum(size * many for size, many in getattr(self, name).items()) <= 0:
                raise ValueError(f"{name}: there are no persons in it")
        return self

    def describe(self) -> list[str]:
        """Return where the sizes come from."""
        charged = "" if self.rho is None else f"; charged above with rho^2 = {float(self.rho):g}"
        return [f"truncation, from sizes that are {self.source} ({self.citation}{charged}):"]

    def source_as_data(self) -> dict[str, Any]:
        """Return where the sizes come from, as plain data."""
        rho = None if self.rho is None else str(self.rho)
        return {"source": self.source, "citation": self.citation, "rho2": rho}


@dataclass(frozen=True)
class Bias:
    """What a threshold leaves out of one table."""

    table: str
    threshold: int
    lost: float
    cut: float
    mean: float
    kept: float

    def describe(self) -> str:
        """Return the bias as a line of text."""
        return (
            f"  {self.table:<9} at most {self.threshold:>3}: {self.lost:.4%} of persons left out, "
            f"{self.cut:.4%} of households cut, mean {self.mean:.4f} becomes {self.kept:.4f}"
        )

    def as_data(self) -> dict[str, Any]:
        """Return the bias as plain data."""
        return {
            "table": self.table,
            "threshold": self.threshold,
            "share_of_persons_left_out": self.lost,
            "share_of_households_cut": self.cut,
            "mean_size": self.mean,
            "mean_size_kept": self.kept,
        }


def load_sizes(source: str | Path | Mapping[str, Any]) -> Sizes:
    """Return sizes from a YAML file, or given as a mapping."""
    if isinstance(source, Mapping):
        content: Any = {"format_version": FORMAT_VERSION, **source}
        return parse(Sizes, check_format(content, "sizes"), "sizes")
    path = Path(source)
    return parse(Sizes, check_format(read_yaml(path), path.name), path.name)


def truncation_bias(sizes: Sizes, thresholds: Mapping[str, int]) -> tuple[Bias, ...]:
    """Return what is left out of every table with a threshold whose sizes are given.

    With c_h households of h persons a threshold t leaves out sum c_h max(h - t, 0) persons:
    the noise has mean 0, so this is the whole bias of the table's total. Households without
    such persons are no part of the means.
    """
    found = []
    for table in filter(thresholds.__contains__, sdhc.truncated_tables()):
        given = getattr(sizes, histogram_of(table))
        histogram = {size: many for size, many in given.items() if size > 0}
        if histogram:
            found.append(_bias(table, thresholds[table], histogram))
    return tuple(found)


def without_sizes(sizes: Sizes, thresholds: Mapping[str, int]) -> dict[str, str]:
    """Return the tables whose sizes are not given, with the key that would give them."""
    wanted = {name: histogram_of(name) for name in sdhc.truncated_tables() if name in thresholds}
    return {table: key for table, key in wanted.items() if not getattr(sizes, key)}


def histogram_of(table: str) -> str:
    """Return the key of the histogram of the persons that a table counts."""
    (name,) = (name for name, tables in TABLES.items() if table in tables)
    return name


def _bias(table: str, threshold: int, histogram: Mapping[int, float]) -> Bias:
    exact = {size: Fraction(many) for size, many in histogram.items()}
    households = sum(exact.values(), Fraction(0))
    persons = sum((size * many for size, many in exact.items()), Fraction(0))
    kept = sum((min(size, threshold) * many for size, many in exact.items()), Fraction(0))
    cut = sum((many for size, many in exact.items() if size > threshold), Fraction(0))
    return Bias(
        table,
        threshold,
        lost=float((persons - kept) / persons),
        cut=float(cut / households),
        mean=float(persons / households),
        kept=float(kept / households),
    )
