"""What a plan promises for one kind of neighbours, in figures and words."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.mechanisms.phsafe.accounting import Change
from discreet.spec import concentrated_to_approximate

CHANGES: dict[Change, str] = {
    "add-remove": "one person is added or removed (unbounded)",
    "replace": "one person is replaced by another (bounded)",
}


@dataclass(frozen=True)
class Promise:
    """What a run promises for one kind of neighbours, as published and counted tightly."""

    change: Change
    unit: str
    published: Fraction
    tight: Fraction
    delta: Fraction

    def epsilon(self, tight: bool = False) -> float:
        """Return epsilon at delta (Canonne, Kamath and Steinke 2020, Corollary 13)."""
        amount = self.tight if tight else self.published
        if self.unit == "epsilon":
            return float(amount)
        return float(concentrated_to_approximate(amount, self.delta, "tight").amount)

    def describe(self) -> list[str]:
        """Return the promise as lines of text."""
        at = "" if self.unit == "epsilon" else f" at delta {float(self.delta):g}"
        lines = [f"{CHANGES[self.change]}:"]
        for name, amount, tight in (
            ("published", self.published, False),
            ("tight (ours, proved here; never charged)", self.tight, True),
        ):
            told = f"  {name}: {self.unit} = {float(amount):.6f}"
            more = f", epsilon {self.epsilon(tight):.3f}{at}" if at else ""
            lines.append(told + more)
        return lines

    def as_data(self) -> dict[str, Any]:
        """Return the promise as plain data."""
        return {
            "neighbours": CHANGES[self.change],
            "unit": self.unit,
            "published": str(self.published),
            "published_decimal": float(self.published),
            "published_epsilon": self.epsilon(),
            "tight": str(self.tight),
            "tight_decimal": float(self.tight),
            "tight_epsilon": self.epsilon(tight=True),
            "tight_status": "ours, proved here; shown, never charged",
            "delta": str(self.delta),
        }
