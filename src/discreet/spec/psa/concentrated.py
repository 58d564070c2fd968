"""Swapping under zero-concentrated differential privacy: rho^2 from a pure budget.

A pair of laws with |ln P/Q| <= t is a post-processing of randomised response (Kairouz, Oh
and Viswanath 2015), whose Renyi divergence of order a is ln[cosh((a-1/2)t)/cosh(t/2)]/(a-1).
As ln cosh(t sqrt(v)) is concave in v, it is at most a t tanh(t/2) (ours, proved here; Bun
and Steinke 2016 have a t^2/2). A budget must hold at every distance d: rho^2 d^2 >= t tanh(t/2)
with t = epsilon d, that is rho^2 >= epsilon tanh(epsilon d/2)/d, which falls with d.
In a universe of swapping the smallest distance is 2. Hence

    rho^2 <= (epsilon/2) tanh(epsilon),      beside the usual epsilon^2/2.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import inf, tanh

from discreet.spec.psa.amount import LogAmount, rounded_up

RHO2 = "ours, proved here"


def rho2(epsilon: float) -> float:
    """Return (epsilon/2) tanh(epsilon), for display; `rho2_upper` is safe.

    >>> round(rho2(18.2883), 4)
    9.1441
    """
    return epsilon / 2 * tanh(epsilon)


def rho2_loose(epsilon: float) -> float:
    """Return epsilon^2/2 (Bun and Steinke 2016, Proposition 1.4)."""
    return inf if epsilon == inf else epsilon**2 / 2


def rho2_upper(budget: LogAmount) -> Fraction | None:
    """Return a rational that is at least rho^2, by less than 2e-15; None if infinite."""
    epsilon = budget.upper_bound()
    if epsilon is None:
        return None
    with localcontext(prec=40):
        decay = (Decimal(-2 * epsilon.numerator) / epsilon.denominator).exp()
        # Rounding decay down makes tanh = (1 - decay)/(1 + decay) larger.
        low = max(Fraction(0), Fraction(decay) - Fraction(1, 10**35))
    return rounded_up(epsilon / 2 * (1 - low) / (1 + low))


def rho2_loose_upper(budget: LogAmount) -> Fraction | None:
    """Return a rational that is at least epsilon^2/2; None if infinite."""
    epsilon = budget.upper_bound()
    return None if epsilon is None else rounded_up(epsilon**2 / 2)
