"""Set two promises side by side: which one implies the other, if any.

A is at least as strong as B if every mechanism that satisfies A satisfies B (Bailie 2025,
section 2.4.1). That is certified by deriving B's flavor from A with the calculus and
comparing the two budgets only then; it is refuted by a witness. Budgets are never compared
alone: a number means nothing without the other four blocks.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from discreet.spec.comparison.cautions import Caution, cautions
from discreet.spec.comparison.certificate import Claims, Condition, conditions
from discreet.spec.comparison.facts import NOTHING_KNOWN, Facts
from discreet.spec.comparison.witness import Witness, refute
from discreet.spec.specification import Specification

Verdict = Literal["stronger", "weaker", "equivalent", "incomparable", "unknown"]


@dataclass(frozen=True)
class Implication:
    """Whether the first promise implies the second: all conditions hold, or a witness does."""

    conditions: tuple[Condition, ...]
    witness: Witness | None = None

    @property
    def certified(self) -> bool:
        """Tell whether the implication is proved."""
        return all(one.holds for one in self.conditions)


@dataclass(frozen=True)
class Comparison:
    """Two promises side by side."""

    names: tuple[str, str]
    forward: Implication
    backward: Implication
    warnings: tuple[Caution, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Return what is proved of the first promise in relation to the second."""
        if self.forward.certified:
            return "equivalent" if self.backward.certified else "stronger"
        if self.backward.certified:
            return "weaker"
        return "incomparable" if len(self.witnesses) == 2 else "unknown"

    @property
    def reasons(self) -> tuple[Condition, ...]:
        """Return all conditions that were checked, in both directions."""
        return (*self.forward.conditions, *self.backward.conditions)

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        """Return the witnesses found, at most one in each direction."""
        return tuple(w for w in (self.forward.witness, self.backward.witness) if w is not None)

    def describe(self) -> str:
        """Return the comparison in plain words."""
        a, b = self.names
        parts = [
            _VERDICTS[self.verdict].format(a=a, b=b),
            _told(a, b, self.forward),
            _told(b, a, self.backward),
        ]
        parts += [f"{one.id} {one.title}: {one.text}" for one in self.warnings]
        return "\n\n".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values, for files."""
        return {
            "names": list(self.names),
            "verdict": self.verdict,
            "reasons": {
                f"{one} implies {other}": [asdict(condition) for condition in found.conditions]
                for one, other, found in (
                    (*self.names, self.forward),
                    (*self.names[::-1], self.backward),
                )
            },
            "witnesses": [witness.as_dict() for witness in self.witnesses],
            "warnings": [asdict(one) for one in self.warnings],
        }


def compare(
    a: Specification,
    b: Specification,
    *,
    names: tuple[str, str] = ("A", "B"),
    touched: int | None = None,
    records: int | None = None,
    same_sizes: bool = False,
    copies: int | None = None,
    facts: tuple[Facts, Facts] = (NOTHING_KNOWN, NOTHING_KNOWN),
) -> Comparison:
    """Return whether `a` is stronger or weaker than `b`, with proofs, and cautions.

    "stronger" is meant as at least as strong; the witness, if any, shows that it is
    strictly so. "unknown" means that neither a proof nor a witness was found.

    Parameters
    ----------
    touched, records, same_sizes
        The factors between units that `change_unit` asks for; without them nothing is
        concluded across units.
    copies
        How often a contributor's record was copied at most, to go from records to
        contributors.
    facts
        What is known of each release beyond its blocks; used in the cautions only.
    """
    claims = Claims(touched, records, same_sizes, copies)
    ahead, back = conditions(a, b, names, claims), conditions(b, a, names[::-1], claims)
    forward, backward = Implication(ahead), Implication(back)
    if not forward.certified:
        forward = Implication(ahead, refute(a, b, names, "first"))
    if not backward.certified:
        backward = Implication(back, refute(b, a, names[::-1], "second"))
    warnings = cautions(a, b, names=names, facts=facts[0], other_facts=facts[1])
    return Comparison(names, forward, backward, warnings)


# -- in words --------------------------------------------------------------------------------

_VERDICTS: dict[Verdict, str] = {
    "stronger": "{a} is at least as strong as {b}: every mechanism satisfying {a} satisfies {b}.",
    "weaker": "{b} is at least as strong as {a}: every mechanism satisfying {b} satisfies {a}.",
    "equivalent": "{a} and {b} promise the same: the same mechanisms satisfy both.",
    "incomparable": "{a} and {b} are incomparable: each allows a mechanism that the other forbids. "
    "Their budgets must not be ranked.",
    "unknown": "It is not known which of {a} and {b} is stronger, if any: there is no proof in "
    "either direction, and no counter-example in both.",
}


def _told(one: str, other: str, found: Implication) -> str:
    answer = "yes" if found.certified else "no" if found.witness else "not shown"
    lines = [f"Does {one} imply {other}? {answer}."]
    lines += [
        f"  - {condition.name}: {'' if condition.holds else 'NOT SHOWN: '}{condition.text}"
        for condition in found.conditions
    ]
    if found.witness:
        lines.append("  A mechanism that satisfies the first and breaks the second:")
        lines += [f"    {line}" for line in found.witness.describe().splitlines()]
    return "\n".join(lines)
