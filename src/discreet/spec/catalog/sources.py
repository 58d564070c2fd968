"""What stands behind the figures of the catalog: printed, rounded, or made from others."""

from __future__ import annotations

from fractions import Fraction

from discreet.spec.budget import DERIVED, Exactly
from discreet.spec.catalog.entry import Composed, Stated
from discreet.spec.catalog.files import system
from discreet.spec.specification import Specification


def derived(source: str) -> str:
    """Return the source of a figure made from others: theirs, each once.

    >>> derived("one; derived from one; two")
    'derived from one; two'
    """
    return DERIVED + once(source)


def once(source: str) -> str:
    """Return each source once, without a mark of what was derived."""
    return "; ".join(dict.fromkeys(one.removeprefix(DERIVED) for one in source.split("; ")))


def is_printed(name: str, specification: Specification) -> bool:
    """Tell whether a rho^2 is a figure printed for the system itself."""
    amount = specification.budget.amount
    return isinstance(amount, Exactly) and any(
        one.quantity == "rho2" and one.accounting is None and Fraction(one.value) == amount.of
        for one in system(name).printed
    )


def rounding_notes(name: str) -> tuple[str, ...]:
    """Return which printed figures of a system, or of its parts, are rounded, and from what."""
    basis = system(name).basis
    if isinstance(basis, Composed):
        return tuple(note for part in basis.parts for note in rounding_notes(part))
    if not isinstance(basis, Stated) or basis.unrounded is None:
        return ()
    told = basis.budget.describe()
    return (f"{told} of {name} is as printed; {float(basis.unrounded.of):.6f} before rounding.",)
