"""Make the rows of Tables 2 to 5 from the catalog and the accountant of swapping."""

from __future__ import annotations

from dataclasses import replace
from math import log, sqrt

from discreet.errors import BadInput
from discreet.spec import catalog, psa
from discreet.spec.catalog import Figure
from discreet.spec.convert import convert, finite
from discreet.spec.outputs import approximate
from discreet.spec.specification import Specification
from discreet.spec.tables.table import DELTA, PublishedTable, Row, rounds_to


def table(number: int) -> PublishedTable:
    """Return a table, 2 to 5, recomputed."""
    makers = {2: _table_2, 3: _table_3, 4: _table_4, 5: _table_5}
    if type(number) is not int or number not in makers:  # 2.0 is a number of no table
        raise BadInput("only Tables 2 to 5 have budgets to recompute. Give one of these numbers.")
    return makers[number]()


def _table_2() -> PublishedTable:
    rows = _swap_rows("psa-1940-massachusetts", "Table 2", "")
    return PublishedTable(
        2,
        "Swap rate and budget, 1940 census of Massachusetts.",
        tuple(rows),
        (*_swap_rows("psa-2010", "Section 3.5", "2010-like, "), *_figure_2()),
    )


def _table_3() -> PublishedTable:
    parts = {
        "PL, household": "topdown-pl-units",
        "PL, person": "topdown-pl-persons",
        "DHC, household": "topdown-dhc-units",
        "DHC, person": "topdown-dhc-persons",
        "Total": "topdown",
    }
    rows = [row for label, name in parts.items() for row in _rows(name, "Table 3", label)]
    theorem = [
        *_rows("topdown-pl", "Theorem 2", "PL"),
        *_rows("topdown", "Theorem 2", "PL and DHC"),
    ]
    return PublishedTable(
        3,
        "Budgets of the parts of the TopDown Algorithm; epsilon at delta = 1e-10.",
        tuple(rows),
        tuple(theorem),
        ("The total adds rho^2; the epsilons do not add.",),
    )


def _table_4() -> PublishedTable:
    systems = {
        "TopDown": "topdown",
        "SafeTab-P": "safetab-p",
        "SafeTab-H": "safetab-h",
        "PHSafe": "phsafe",
        "Overall, to date": "das-2020",
    }
    rows = [row for label, name in systems.items() for row in _rows(name, "Table 4", label)]
    swaps = sorted(_table_5().rows, key=lambda row: row.recomputed)
    for row, label in ((swaps[0], "Swapping, smallest"), (swaps[-1], "Swapping, largest")):
        rows.append(replace(row, label=label, where="Table 4"))
    return PublishedTable(
        4,
        "Promises of 2020, and of swapping instead; epsilon of TopDown and Overall at "
        "delta = 1e-10.",
        tuple(rows),
        tuple(_rows("das-2020", "Section 5.2", "Overall, contributor copied once")),
        (
            "Budgets of different promises are not comparable: see what each is a budget of.",
            "Overall is at least, to date, for the products listed in the catalog.",
        ),
    )


def _table_5() -> PublishedTable:
    schemes = (
        ("state, county", "psa-2020-state-county"),
        ("state x size, county", "psa-2020-state-size-county"),
        ("county, tract", "psa-2020-county-tract"),
        ("county x size, tract", "psa-2020-county-size-tract"),
        ("block group, block", "psa-2020-block-group-block"),
        ("block group x size, block", "psa-2020-block-group-size-block"),
    )
    rows = [row for label, name in schemes for row in _swap_rows(name, "Table 5", f"{label}, ")]
    return PublishedTable(
        5,
        "Swapping the 2020 census: matched on, exchanged, swap rate, largest stratum b.",
        tuple(rows),
        (),
        ("Finer strata have smaller budgets because more is published exactly.",),
    )


# -- rows ---------------------------------------------------------------------------------------


def _rows(name: str, where: str, label: str) -> list[Row]:
    """Return the figures of a system that a place prints, in the order of the catalog."""
    figures = [one for one in catalog.entry(name).printed if one.where == where]
    return [_row(name, one, label) for one in figures]


def _row(name: str, figure: Figure, label: str) -> Row:
    told = catalog.accounting(name, figure.accounting)
    before = catalog.accounting(name, figure.accounting, figures="unrounded")
    known = before.budget.amount != told.budget.amount
    recomputed = _value(told, figure.quantity)
    unrounded = _value(before, figure.quantity) if known else None
    needs, why = None, ""
    if figure.quantity == "epsilon" and not rounds_to(recomputed, figure.value):
        needs = _needed(figure)
        why = _because(told, figure, needs, unrounded)
    elif unrounded is not None and not rounds_to(unrounded, figure.value):
        why = f"the printed figure comes from rounded ones; before rounding it is {unrounded:.4f}."
    return Row(
        label=label,
        where=figure.where,
        quantity=figure.quantity,
        printed=figure.value,
        recomputed=recomputed,
        unrounded=unrounded,
        needs=needs,
        why=why,
        entry=name,
        specification=told,
    )


def _value(told: Specification, quantity: str) -> float:
    """Return the budget as a number: rho^2 itself, or the epsilon it is converted to."""
    if quantity == "epsilon" and told.output_premetric.name == "normalised-renyi":
        told = convert(told, approximate(DELTA))
    return float(finite(told.budget).upper_bound())


def _needed(figure: Figure) -> tuple[float, float]:
    """Return the smallest and largest rho^2 whose epsilon rounds to the printed one.

    Solves epsilon = rho^2 + 2 rho sqrt(ln(1/delta)) for rho.
    """
    root = sqrt(-log(DELTA))
    low, high = (figure.number + sign * figure.half_a_digit for sign in (-1, 1))
    return (sqrt(root**2 + low) - root) ** 2, (sqrt(root**2 + high) - root) ** 2


def _because(
    told: Specification, figure: Figure, needs: tuple[float, float], unrounded: float | None
) -> str:
    shown = f"{_value(told, 'rho2'):.2f}"
    text = (
        f"rho^2 is printed to two decimals; epsilon = {figure.value} needs rho^2 in "
        f"[{needs[0]:.4f}, {needs[1]:.4f}]"
    )
    if any(rounds_to(end, shown) for end in needs):
        text += f", which rounds to the printed {shown}"
    if unrounded is not None and rounds_to(unrounded, figure.value):
        text += "; rho^2 before rounding gives the printed epsilon"
    return f"{text}."


def _swap_rows(name: str, where: str, before: str) -> list[Row]:
    """Return the budgets of a swap at its published rates."""
    entry = catalog.entry(name)
    rows = []
    for figure in entry.printed:
        if figure.where != where or figure.rate is None:
            continue
        told = catalog.specification(name, rate=figure.rate)
        rows.append(
            Row(
                label=f"{before}{float(figure.rate):.0%}, b = {entry.largest_stratum:,}",
                where=where,
                quantity="epsilon",
                printed=figure.value,
                recomputed=_value(told, "epsilon"),
                entry=name,
                specification=told,
                rate=figure.rate,
                largest_stratum=entry.largest_stratum,
            )
        )
    return rows


def _figure_2() -> list[Row]:
    """Return the figures that the text on Figure 2 gives (section 3.6), as printed there."""
    rows, where = [], "Section 3.6"
    for b, epsilon, rate in ((10, "1.20", "77"), (10**6, "6.91", "99.9")):
        smallest, best = psa.minimum_epsilon(b), 100 * psa.best_rate(b)
        rows.append(Row(f"smallest budget, b = {b:,}", where, "epsilon", epsilon, smallest))
        rows.append(Row(f"its rate, b = {b:,}", where, "percent", rate, best))
    low, high = (100 * rate for rate in psa.rates_for(3, 10))
    why = f"{high:.3f} rounds to {high:.1f}; the printed figure is cut off."
    rows.append(Row("lower rate, b = 10, epsilon = 3", where, "percent", "35.4", low))
    rows.append(Row("higher rate, b = 10, epsilon = 3", where, "percent", "95.2", high, why=why))
    return rows
