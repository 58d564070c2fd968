"""Twenty ways to be misled by a promise, or by two side by side, and what to say then.

After Bailie, Gong and Meng (sections 5.3 and 5.4) and Bailie (2025, section 4.3): each is
a way to make a budget look small without protecting anybody more. A caution is said when
the blocks call for it, or facts that no block knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

from discreet.spec.budget import Exactly, LogRational, rounded_up
from discreet.spec.comparison.amounts import is_finite
from discreet.spec.comparison.contrasts import CONTRASTS, listed
from discreet.spec.comparison.facts import NOTHING_KNOWN, Facts, Side
from discreet.spec.invariants import MarginalTable
from discreet.spec.numbers import root_up
from discreet.spec.specification import Specification


@dataclass(frozen=True)
class Caution:
    """One thing to keep in mind, with its numbers filled in."""

    id: str
    title: str
    text: str


def cautions(
    specification: Specification,
    other: Specification | None = None,
    *,
    names: tuple[str, str] = ("A", "B"),
    facts: Facts = NOTHING_KNOWN,
    other_facts: Facts = NOTHING_KNOWN,
) -> tuple[Caution, ...]:
    """Return what to keep in mind about one promise, or about two side by side."""
    sides = [Side(names[0], specification, facts)]
    if other is not None:
        sides.append(Side(names[1], other, other_facts))
    said = []
    for id_, title, single in _SINGLE:
        texts = [text for side in sides if (text := single(side))]
        if other is not None and id_ in CONTRASTS:
            texts += CONTRASTS[id_](*sides)
        if texts:
            said.append(Caution(id_, title, " ".join(dict.fromkeys(texts))))
    return tuple(said)


def _nothing(side: Side) -> str:
    return ""


# -- W1 to W4: who, and where -------------------------------------------------------------------


def _before(side: Side) -> str:
    domain = side.spec.domain
    if domain.stage == "raw" and not domain.steps:
        return ""
    steps = ", ".join(domain.steps) or ("sampling" if domain.stage == "sampled" else "editing")
    text = f"The budget of {side.name} protects data after {steps}; earlier data have no promise"
    if side.facts.stability is None:
        if not side.extends:
            return f"{text}, and none follows: a step there may be no neighbour here."
        return f"{text} unless a stability factor c is given: then c{side.square} times as much."
    return f"{text} but, with stability {side.facts.stability}, {side.times(side.facts.stability)}."


def _disclosed(side: Side) -> str:
    texts = []
    if side.facts.disclosed_strata:
        share = side.facts.disclosed_share
        part = f" ({float(share):.2%} of the records)" if share is not None else ""
        texts.append(
            f"{side.facts.disclosed_strata} strata{part} are fully disclosed by the invariants of "
            f"{side.name} alone; a budget of 0 there means no protection."
        )
    finest = side.spec.domain.spine[-1:]
    whole = tuple(
        one
        for one in side.spec.multiverse.invariants
        if isinstance(one, MarginalTable) and one.whole_record and (one.level,) == finest
    )
    if whole:
        texts.append(f"{side.name} publishes exactly, and does not protect: {listed(whole)}.")
    return " ".join(texts)


# -- W5 to W7: what one step is -----------------------------------------------------------------


def _larger_group(side: Side) -> str:
    most = side.facts.records_per_unit
    if most is None:
        return ""
    return (
        f"The unit of {side.name} is one {side.spec.input_premetric.unit}; a group of up to {most} "
        f"of them together has {side.times(most)}."
    )


def _fictitious(side: Side) -> str:
    premetric, domain, copies = side.spec.input_premetric, side.spec.domain, side.facts.copies
    copied = any("imput" in step or "dupl" in step for step in domain.steps)
    if premetric.counts == "contributors" or not (copies or copied or domain.stage == "edited"):
        return ""
    text = f"The unit of {side.name} is a {premetric.unit} record after imputation;"
    if copies is None and not side.extends:
        return f"{text} of a contributor copied even once nothing is promised."
    if copies is None:
        return f"{text} a contributor copied k times has (1 + k){side.square} times the budget."
    return f"{text} a contributor copied {copies} times has {side.times(1 + copies)}."


# -- W8 to W11: how -----------------------------------------------------------------------------


def _large_delta(side: Side) -> str:
    delta, units = side.spec.output_premetric.delta, side.facts.units
    if delta is None or units is None or delta * units < 1:
        return ""
    return (
        f"delta = {float(delta):g} of {side.name} is not negligible for N = {units:,}: it is "
        f"{float(delta * units):g} / N."
    )


def _both_scales(side: Side) -> str:
    amount = side.spec.budget.amount
    if side.spec.budget.unit != "rho2" or not isinstance(amount, LogRational | Exactly):
        return ""
    square = amount.upper_bound()
    return f"{side.name}: rho^2 = {rounded_up(square)}, rho = {rounded_up(root_up(square))}."


def _fewer_events(side: Side) -> str:
    how = side.facts.reduced_events
    return f"The loss of {side.name} was computed on fewer events: {how}." if how else ""


# -- W12 to W14: design and releases --------------------------------------------------------------


def _design(side: Side) -> str:
    chosen = ", ".join(side.facts.chosen_from_data)
    if not chosen:
        return ""
    return (
        f"The design of {side.name} depends on the data ({chosen}); the stated budget does not "
        f"cover that choice. A constant that happens to be the true answer would have no loss."
    )


def _covered(side: Side) -> str:
    products = ", ".join(side.facts.products)
    if not products:
        return ""
    return (
        f"The budget of {side.name} covers only: {products}. Every other release from the same "
        f"data adds to it; what is computed from these products does not."
    )


def _shared(side: Side) -> str:
    what = side.facts.shared_randomness
    if not what:
        return ""
    return (
        f"{side.name} shares randomness with other releases ({what}): no composition rule "
        f"applies, the joint law is needed."
    )


# -- W15 to W20: how much, and what it means --------------------------------------------------


def _two_rates(side: Side) -> str:
    size, rates = side.facts.largest_stratum, side.facts.rates
    if size is None or size < 2 or len(rates) < 2:
        return ""
    shown = " and ".join(
        f"{float(rate):.3%} (moving {_moved(float(rate), size):.3%} of a stratum of {size:,})"
        for rate in rates
    )
    best = sqrt(size + 1) / (sqrt(size + 1) + 1)
    return (
        f"The budget of {side.name} has two rates: {shown}. A rate near 1 is not more private "
        f"than {best:.3%}, where the bound is least."
    )


def _moved(rate: float, size: int) -> float:
    """Return the probability that a record moves: one alone is never selected."""
    others = (1 - rate) ** (size - 1)
    return rate * (1 - others) / (1 - size * rate * others)


def _upper_bound(side: Side) -> str:
    sharper = side.facts.sharper
    if "Theorem 1" not in side.spec.budget.source and sharper is None:
        return ""
    text = (
        f"{side.spec.budget.describe()} of {side.name} is an upper bound on the loss, not the loss"
    )
    if sharper is None:
        return f"{text}, which may be far smaller."
    return f"{text}; {sharper[0]}: {rounded_up(sharper[1])}."


def _unreachable(side: Side) -> str:
    amount = side.spec.budget.amount
    why = side.facts.capped or ("" if is_finite(amount) else side.spec.budget.describe())
    if not why:
        return ""
    return f"The pure loss of {side.name} is infinite, because some outputs cannot occur: {why}."


def _meaning(side: Side) -> str:
    if not is_finite(side.spec.budget.amount):
        return ""
    return (
        "A budget bounds relative disclosure, not absolute: what an attacker learns beyond "
        "what the release would tell without this unit's data. Statements about odds need an "
        "attacker who knows all else; nothing is said about how often a reconstruction succeeds."
    )


def _look_alike(side: Side) -> str:
    procedure = side.facts.stands_for
    if not procedure:
        return ""
    return (
        f"{side.spec.budget.describe()} describes {side.name}, a stand-in for {procedure}, and not "
        f"that procedure itself. Targeted, capped, pairwise or adaptive swaps have no such budget."
    )


_SINGLE: tuple[tuple[str, str, Callable[[Side], str]], ...] = (
    ("W1", "domain", _before),
    ("W2", "more invariants, smaller budget", _nothing),
    ("W3", "invariants that are not nested", _nothing),
    ("W4", "universes of one data set", _disclosed),
    ("W5", "unit", _larger_group),
    ("W6", "fictitious unit", _fictitious),
    ("W7", "bounded against unbounded", _nothing),
    ("W8", "output premetric", _nothing),
    ("W9", "delta", _large_delta),
    ("W10", "rho^2 is what Bun and Steinke call rho", _both_scales),
    ("W11", "events", _fewer_events),
    ("W12", "design that depends on the data", _design),
    ("W13", "later releases", _covered),
    ("W14", "randomness that is not fresh", _shared),
    ("W15", "size of strata", _nothing),
    ("W16", "two rates", _two_rates),
    ("W17", "bound against loss", _upper_bound),
    ("W18", "outputs that cannot occur", _unreachable),
    ("W19", "meaning", _meaning),
    ("W20", "look-alike", _look_alike),
)
