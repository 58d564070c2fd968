"""A published table with its figures recomputed: rows, plain data and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from textwrap import fill
from typing import Any, Literal

from discreet.spec.specification import Specification

#: What the Census Bureau and the paper convert rho^2 at.
DELTA = Fraction(1, 10**10)

#: Printed figures are rounded to the nearest, so those beside them are too.
TO_NEAREST = (
    "Recomputed figures are rounded to the nearest here, to stand beside printed ones; elsewhere "
    "budgets are rounded up."
)

Quantity = Literal["rho2", "epsilon", "percent"]

_SYMBOLS: dict[Quantity, str] = {"rho2": "rho^2", "epsilon": "epsilon", "percent": "rate, %"}


@dataclass(frozen=True)
class Row:
    """One figure, printed and recomputed.

    `unrounded` is the figure from budgets before they were rounded for print, `why` says
    what lies behind a disagreement, `needs` the rho^2 that would give the printed epsilon.
    """

    label: str
    where: str
    quantity: Quantity
    printed: str
    recomputed: float
    unrounded: float | None = None
    needs: tuple[float, float] | None = None
    why: str = ""
    entry: str = ""
    specification: Specification | None = None
    rate: Fraction | None = None
    largest_stratum: int | None = None

    @property
    def difference(self) -> float:
        """Return recomputed less printed."""
        return self.recomputed - float(self.printed)

    @property
    def agrees(self) -> bool:
        """Tell whether the recomputed figure rounds to the printed one."""
        return rounds_to(self.recomputed, self.printed)

    @property
    def agrees_unrounded(self) -> bool | None:
        """Tell the same of the figure before rounding, if it is known."""
        return None if self.unrounded is None else rounds_to(self.unrounded, self.printed)

    def as_dict(self) -> dict[str, Any]:
        """Return the row as plain data, the promise in short beside the budget."""
        data = {
            "label": self.label,
            "where": self.where,
            "quantity": self.quantity,
            "printed": float(self.printed),
            "printed_text": self.printed,
            "recomputed": self.recomputed,
            "difference": self.difference,
            "agrees": self.agrees,
            "unrounded": self.unrounded,
            "agrees_unrounded": self.agrees_unrounded,
            "needs_rho2": None if self.needs is None else list(self.needs),
            "explanation": self.why,
        }
        if self.rate is not None:
            data["rate"] = float(self.rate)
        if self.largest_stratum is not None:
            data["largest_stratum"] = self.largest_stratum
        if self.specification is not None:
            told = self.specification
            data["entry"] = self.entry
            data["unit"] = told.input_premetric.per
            data["input_premetric"] = told.input_premetric.name
            data["output_premetric"] = told.output_premetric.name
            data["invariants"] = [one.name for one in told.multiverse.invariants]
        return data


@dataclass(frozen=True)
class PublishedTable:
    """A published table with its figures recomputed."""

    number: int
    title: str
    rows: tuple[Row, ...]
    in_text: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the table as plain data."""
        return {
            "table": self.number,
            "title": self.title,
            "source": "Bailie, Gong and Meng, A Refreshment Stirred, Not Shaken",
            "delta": float(DELTA),
            "rows": [row.as_dict() for row in self.rows],
            "in_text": [row.as_dict() for row in self.in_text],
            "notes": [*self.notes, TO_NEAREST],
        }

    def describe(self) -> str:
        """Return the table as text; promises are spelled out under it."""
        lines = [f"Table {self.number}. {self.title}", "", *_columns(self.rows)]
        if self.in_text:
            lines += ["", "In the text beside it:", *_columns(self.in_text)]
        both = (*self.rows, *self.in_text)
        reasons = [f"{r.label}, {_SYMBOLS[r.quantity]}: {r.why}" for r in both if r.why]
        if reasons:
            lines += ["", "Where they differ:", *map(_wrapped, reasons)]
        lines += ["", "What the budgets are budgets of:", *map(_wrapped, _promises(both))]
        return "\n".join([*lines, *(f"\n{note}" for note in (*self.notes, TO_NEAREST))])


def rounds_to(value: float, printed: str) -> bool:
    """Tell whether a number rounds to a printed one, at the decimals that are printed."""
    half = 0.5 * 10.0 ** int(Decimal(printed).as_tuple().exponent)
    # A budget that lies exactly between two numbers may have been rounded either way.
    return abs(value - float(printed)) <= half * (1 + 1e-9)


def _columns(rows: Sequence[Row]) -> list[str]:
    """Return the rows as lines of aligned columns."""
    cells: list[tuple[str, ...]] = [
        ("", "", "printed", "recomputed", "agrees", "before rounding", "agrees")
    ]
    for row in rows:
        exact = "" if row.unrounded is None else f"{row.unrounded:.4f}"
        cells.append(
            (
                row.label,
                _SYMBOLS[row.quantity],
                row.printed,
                f"{row.recomputed:.4f}",
                "yes" if row.agrees else "no",
                exact,
                {None: "", True: "yes", False: "no"}[row.agrees_unrounded],
            )
        )
    if not any(row.unrounded is not None for row in rows):
        cells = [line[:5] for line in cells]
    widths = [max(len(line[k]) for line in cells) for k in range(len(cells[0]))]
    return [_line(line, widths) for line in cells]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return one line: two columns of text, then numbers aligned on the right."""
    padded = [
        cell.ljust(width) if k < 2 else cell.rjust(width)
        for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"  {'  '.join(padded)}".rstrip()


def _promises(rows: Sequence[Row]) -> list[str]:
    """Return per promise what its budget belongs to; equal promises are told once."""
    told: dict[str, list[str]] = {}
    for row in rows:
        if row.specification is None:
            continue
        spec = row.specification
        exact = "; ".join(one.describe() for one in spec.multiverse.invariants) or "nothing"
        text = (
            f"per {spec.input_premetric.per} ({spec.input_premetric.name}; "
            f"{spec.output_premetric.name}), with exact publication of: {exact}"
        )
        names = told.setdefault(text, [])
        if row.entry not in names:
            names.append(row.entry)
    return [f"{', '.join(names)}: {text}" for text, names in told.items()]


def _wrapped(text: str) -> str:
    return fill(text, 100, initial_indent="  ", subsequent_indent="    ")
