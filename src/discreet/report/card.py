"""One page about one promise: who, where, what, how, how much, and what is not protected.

The page is a function of the specification (and of the catalog entry it stands in, if any).
Nothing on it is typed in: budgets are told by the specification itself, other ways to
tell them come from the conversions of `discreet.spec`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import discreet
from discreet.files import write_text
from discreet.report import words
from discreet.report.curves import Figure
from discreet.report.template import fill
from discreet.spec import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    Caution,
    Exactly,
    LogRational,
    NoConversion,
    NoFiniteBudget,
    OutputPremetric,
    Specification,
    approximate,
    catalog,
    convert,
)

#: The delta at which the 2020 census tells its budgets.
DELTA = Fraction(1, 10**10)

#: Exact amounts longer than this are told by their size only.
LONGEST = 48


@dataclass(frozen=True)
class Told:
    """The same promise in another output premetric: weaker, and never to be added to the first.

    The amount is made from the budget by the rule that `source` names; `status` is that of
    the rule and the budget together. Nobody need have printed it.
    """

    how: str
    amount: str
    source: str
    status: str


def write_card(
    specification: Specification,
    path: Path,
    *,
    title: str,
    entry: catalog.CatalogEntry | None = None,
    cautions: Sequence[Caution] = (),
    figures: Sequence[Figure] = (),
    distance: int | None = None,
    mode: int = 0o644,
) -> Path:
    """Write the card of a specification as one HTML file that needs nothing else.

    `mode` says who may read it: the specification of a trial is for its owner only.
    """
    page = card(
        specification,
        title=title,
        entry=entry,
        cautions=cautions,
        figures=figures,
        distance=distance,
    )
    write_text(path, page, mode)
    return path


def card(
    specification: Specification,
    *,
    title: str,
    entry: catalog.CatalogEntry | None = None,
    cautions: Sequence[Caution] = (),
    figures: Sequence[Figure] = (),
    distance: int | None = None,
) -> str:
    """Return the card of a specification as HTML.

    Parameters
    ----------
    specification
        The promise.
    title
        What the promise is about.
    entry
        The catalog entry it belongs to: adds what it covers, other accountings and sources.
    cautions
        What to beware of, from `discreet.spec.comparison.cautions`.
    figures
        Pictures from `discreet.report.curves`.
    distance
        The smallest distance between two different data sets of a universe. If not given,
        it is 2 for the swaps of the catalog, where tables with equal margins differ in at
        least two records, and 1 for everything else.
    """
    if distance is None:
        distance = 2 if entry is not None and entry.largest_stratum is not None else 1
    return fill(
        "card.html",
        {"sentence": words.sentence, "squares": squares},
        title=title,
        specification=specification,
        promise=words.promise(specification),
        exactly=exactly(specification),
        told=other_ways(specification, distance),
        unprotected=specification.unprotected(),
        entry=entry,
        cautions=cautions,
        figures=figures,
        finite=not isinstance(specification.budget.amount, NoFiniteBudget),
        version=discreet.__version__,
        as_data=json.dumps(specification.model_dump(mode="json"), indent=2),
    )


def exactly(specification: Specification) -> str:
    """Return the exact form of the amount, or nothing if it has none or is too long to read."""
    amount = specification.budget.amount
    if isinstance(amount, Exactly):
        text = str(amount.of)
    elif isinstance(amount, LogRational):
        text = f"ln({amount.of})" if amount.times == 1 else f"{amount.times} × ln({amount.of})"
    else:
        return ""
    return text if len(text) <= LONGEST else ""


def other_ways(specification: Specification, distance: int = 1) -> list[Told]:
    """Return the promise told in the output premetrics it implies, by each known conversion."""
    budget = specification.budget
    if not isinstance(budget.amount, LogRational | Exactly):
        return []
    told: list[Told | None] = []
    if specification.output_premetric == NORMALISED_RENYI:
        told.append(
            Told(
                "rho, the number per unit of distance",
                _root(budget.amount.upper_bound()),
                "derived: square root of rho^2",
                budget.status,
            )
        )
        how = f"epsilon at delta = {float(DELTA):g}"
        for method, name in (("published", "formula in use"), ("tight", "tight")):
            told.append(_told(specification, approximate(DELTA), f"{how}, {name}", method, 1))
    elif specification.output_premetric == MULTIPLICATIVE:
        told.append(_told(specification, NORMALISED_RENYI, "rho^2, usual", "published", 1))
        told.append(_told(specification, NORMALISED_RENYI, "rho^2, tight", "tight", 1))
        if distance > 1:
            how = f"rho^2, tight, data sets at least {distance} apart"
            told.append(_told(specification, NORMALISED_RENYI, how, "tight", distance))
    return [one for one in told if one is not None]


def _told(
    specification: Specification, to: OutputPremetric, how: str, method: str, distance: int
) -> Told | None:
    try:
        found = convert(
            specification, to, "tight" if method == "tight" else "published", distance
        ).budget
    except NoConversion:
        return None
    source = found.source.removeprefix(f"{specification.budget.source}; ")
    return Told(how, found.describe().rpartition("= ")[2], f"derived by {source}", found.status)


def _root(value: Fraction) -> str:
    """Return the square root with four decimals, rounded up."""
    steps = math.isqrt(max(math.ceil(value * 10**8) - 1, 0)) + (value > 0)
    return f"{steps // 10**4}.{steps % 10**4:04d}"


def squares(text: str) -> str:
    """Return the text with squares as they are read.

    >>> squares("rho^2 = epsilon^2 / 2")
    'rho² = epsilon² / 2'
    """
    return text.replace("^2", "²")
