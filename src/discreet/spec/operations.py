"""What may be done to one promise, and what comes out: the calculus apart from composition.

Each operation checks its conditions and refuses with the reason where one fails. Factors
that no rule knows are arguments: they are never guessed, and the result says them.

Bailie, Gong and Meng (Propositions 1 to 5) and Bailie (2025, chapter 2) unless said
otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.errors import BadInput
from discreet.spec.budget import (
    Budget,
    Exactly,
    LogRational,
    Status,
    weakest,
)
from discreet.spec.convert import finite
from discreet.spec.domain import Domain
from discreet.spec.inputs import ROWS, InputPremetric
from discreet.spec.invariants import Invariant
from discreet.spec.multiverse import Multiverse, determined
from discreet.spec.numbers import exp_up
from discreet.spec.outputs import MULTIPLICATIVE, OutputPremetric
from discreet.spec.specification import Specification

INVARIANTS_ARE_FREE = "Bailie, Gong and Meng, Proposition 1"


class NotAllowed(BadInput):
    """An operation on a promise has no theorem behind it here, and why."""


def post_process(specification: Specification) -> Specification:
    """Return what is promised after any function of the output that does not look at the data.

    The promise stays, if the output premetric never grows under functions of the output
    (Bailie 2025, Proposition 2.5.4). The function may be random with fresh randomness.
    """
    if not specification.output_premetric.properties.post_processing:
        raise NotAllowed(
            f"a function of the output may increase the output premetric "
            f"{specification.output_premetric.name}: no promise survives post-processing."
        )
    return specification


def release_of_invariants(specification: Specification) -> Specification:
    """Return the promise of publishing the invariants themselves: it costs nothing.

    They are constant in every universe (Bailie, Gong and Meng, Proposition 1).
    """
    output = specification.output_premetric
    if output.name == "approximate":
        output = MULTIPLICATIVE  # with a delta of its own, it would not be free
    unit = specification.budget.unit
    nothing = LogRational(of=Fraction(1)) if unit == "epsilon" else Exactly(of=Fraction(0))
    budget = Budget(
        unit=unit,
        amount=nothing,
        source=INVARIANTS_ARE_FREE,
        status="published",
    )
    return specification.model_copy(update={"budget": budget, "output_premetric": output})


def refine(specification: Specification, multiverse: Multiverse) -> Specification:
    """Return the promise with further invariants: weaker, at the same budget.

    Bailie, Gong and Meng, Proposition 5. Refused unless every invariant in force is shown
    to be a function of the new ones: invariants cannot be taken away.
    """
    missing = multiverse.undetermined(specification.multiverse, specification.domain)
    if missing:
        raise NotAllowed(
            f"not shown to be a refinement: {'; '.join(one.name for one in missing)} may vary "
            f"inside the new universes, about which nothing is promised."
        )
    return specification.model_copy(update={"multiverse": multiverse})


def parallel(parts: Sequence[Specification]) -> Specification:
    """Return the promise of mechanisms working on separate parts of one data set.

    The distance must be the sum of the distances of the parts on every universe, that is,
    no record may move from one part to another: the parts' sizes or memberships are
    invariant. Then the largest budget holds for all (used in the proof of Theorem 1 of
    Bailie, Gong and Meng).
    """
    if not parts:
        raise NotAllowed("no parts.")
    first = parts[0]
    if any(part.flavor() != first.flavor() for part in parts):
        raise NotAllowed(
            "the parts promise different flavors: bring them to one domain, multiverse, input "
            "and output premetric first."
        )
    if first.output_premetric.properties.product not in ("sum", "root-of-squares"):
        raise NotAllowed(
            f"no rule for separate parts under the output premetric {first.output_premetric.name}."
        )
    if first.input_premetric.name == "neighbours":
        raise NotAllowed(
            "data sets may differ in several parts at once; of neighbours only one pair at a "
            "time is promised anything. State the budget per unit of a distance."
        )
    largest = max(parts, key=lambda part: finite(part.budget).upper_bound())
    text = "each record stays in its part, in every data set that is compared"
    texts = (*(c for part in parts for c in part.budget.conditions), text)
    budget = largest.budget.model_copy(
        update={
            "conditions": tuple(dict.fromkeys(texts)),
            "status": weakest([part.budget.status for part in parts]),
        }
    )
    return largest.model_copy(update={"budget": budget})


def group(specification: Specification, size: int) -> Specification:
    """Return the promise for `size` units changing together.

    Budgets per unit of distance grow by the factor `size`, rho^2 by its square. A promise
    about neighbours alone needs a metric output premetric and paths that stay in one
    universe (Bailie 2025, appendix A.4); for approximate differential privacy delta grows
    too, by (exp(k e) - 1)/(exp(e) - 1) (Dwork and Roth 2014).
    """
    if size < 1 or size != int(size):
        raise NotAllowed("a group has a whole number of members, at least one.")
    if size == 1:
        return specification
    premetric, output = specification.input_premetric, specification.output_premetric
    text = f"told for {size} {premetric.unit}s changing together"
    unit = f"group of {size} {premetric.unit}s"
    grouped = premetric.told(unit=unit)
    update: dict[str, object] = {"input_premetric": grouped}
    if premetric.name == "neighbours":
        _check_paths(specification)
        if output.name == "approximate":
            update["output_premetric"] = _grouped_delta(specification, size)
    if output.name == "trade-off":
        raise NotAllowed("the budget of a trade-off function is a function, not a number.")
    update["budget"] = specification.budget.scaled(size, text)
    return specification.model_copy(update=update)


def _check_paths(specification: Specification) -> None:
    if specification.multiverse.invariants:
        raise NotAllowed(
            "a path of neighbours may leave the universe, where nothing is promised: with "
            "invariants, only a budget per unit of distance extends to groups."
        )
    output = specification.output_premetric
    if not output.properties.metric and output.name != "approximate":
        raise NotAllowed(
            f"{output.name} is no metric: steps along a path of neighbours do not add up."
        )


def _grouped_delta(specification: Specification, size: int) -> OutputPremetric:
    epsilon = finite(specification.budget).upper_bound()
    delta = specification.output_premetric.delta or Fraction(0)
    factor = Fraction(size)
    if epsilon > 0:
        one = exp_up(epsilon)
        factor = sum((one**k for k in range(size)), Fraction(0))
    if delta * factor >= 1:
        raise NotAllowed("delta of the group is 1 or more: nothing is promised.")
    return specification.output_premetric.model_copy(update={"delta": delta * factor})


# -- other premetrics and units ---------------------------------------------------------------

#: d_to is at least this times d_from wherever d_from is finite, and infinite elsewhere too.
_AT_LEAST = {
    ("symmetric-difference", "hamming-of-multisets"): Fraction(1, 2),
    ("symmetric-difference", "deletions"): Fraction(1),
    ("hamming-of-multisets", "hamming"): Fraction(1),
    ("deletions", "hamming"): Fraction(1, 2),
    ("symmetric-difference", "hamming"): Fraction(1, 2),
}


def change_premetric(
    specification: Specification,
    to: InputPremetric,
    factor: Fraction | None = None,
    because: str = "",
) -> Specification:
    """Return the promise per unit of another input premetric: `factor` times the budget.

    `factor` is a number u with d_old <= u d_new on every universe (Bailie 2025,
    Proposition 2.4.15). It is known for the common pairs; otherwise give it and say why.
    From unbounded to bounded it is 2, since one changed record is one removed and one
    added; a mechanism may do better by its own proof.
    """
    origin = specification.input_premetric
    if origin == to:
        return specification
    if factor is None:
        if (origin.unit, origin.counts) != (to.unit, to.counts):
            raise NotAllowed("the unit changes too: use change_unit, with its factor.")
        factor, because = _known_factor(specification, to)
    elif not because:
        raise NotAllowed("a factor of your own needs a reason, which is kept with the budget.")
    if factor <= 0:
        raise NotAllowed("the factor must be positive.")
    change = "" if origin.name == to.name else f" from {origin.name} to {to.name}"
    text = f"factor {factor}{change}: {because}"
    budget = specification.budget.scaled(factor, text)
    return specification.model_copy(update={"input_premetric": to, "budget": budget})


def _known_factor(specification: Specification, to: InputPremetric) -> tuple[Fraction, str]:
    origin = specification.input_premetric
    if to.name == "neighbours" and to.base == origin:
        return Fraction(to.within), "only pairs at this distance are kept"
    pair = (origin.name, to.name)
    if pair in _AT_LEAST:
        return 1 / _AT_LEAST[pair], "holds for all data sets"
    if pair == ("hamming-of-multisets", "symmetric-difference") and _sizes_fixed(specification):
        return Fraction(1, 2), "the number of records is an invariant"
    if origin.properties.bounded and not to.properties.bounded:
        raise NotAllowed(
            "a bounded promise says nothing about data sets of different size: it does not "
            "extend to adding and removing records."
        )
    raise NotAllowed(
        f"no factor between {origin.name} and {to.name} is known: give one, with its reason."
    )


def _sizes_fixed(specification: Specification) -> bool:
    """Tell whether the number of records is shown to be an invariant."""
    known = specification.input_premetric.unit in ROWS
    return known and not specification.hidden_invariants()


def change_unit(
    specification: Specification,
    unit: str,
    *,
    touched: int | None = None,
    records: int | None = None,
    same_sizes: bool = False,
) -> Specification:
    """Return the promise told per unit of another resolution.

    From coarse to fine (households to persons) the factor is `touched`: how many coarse
    records a change of one fine record can alter. It is 1 only if a person cannot move
    to another household, and otherwise 2, which is the default. From fine to coarse the
    factor is `records`, the most fine records in a coarse one; under a bounded premetric
    that fails where sizes vary, unless they are invariant (`same_sizes`).
    """
    origin = specification.input_premetric
    to = origin.told(unit=unit)
    if origin.unit == unit:
        return specification
    if to.finer_than(origin):
        if records is not None:
            raise NotAllowed(f"{unit} is finer than {origin.unit}: give `touched`, not `records`.")
        most = 2 if touched is None else touched
        # Where records are added and removed, an altered record counts twice.
        factor = most if origin.properties.bounded else 2 * most
        text = (
            f"one {unit}, whose record names its {origin.unit}, alters at most {most} "
            f"{origin.unit} record(s)"
        )
    elif origin.finer_than(to):
        if records is None or touched is not None:
            raise NotAllowed(
                f"{unit} is coarser than {origin.unit}: give `records`, the most in one."
            )
        if origin.properties.bounded and not same_sizes:
            raise NotAllowed(
                f"a changed {unit} may have more {origin.unit}s than before, and a bounded "
                f"promise says nothing about that: make sizes invariant and say `same_sizes`."
            )
        factor, text = records, f"one {unit} has at most {records} {origin.unit} records"
    else:
        raise NotAllowed(f"no order between {origin.unit} and {unit} is known.")
    if factor < 1:
        raise NotAllowed("the factor must be at least 1.")
    _check_still_neighbours(origin, factor)
    if origin.properties.bounded and origin.unit not in ROWS:
        raise NotAllowed(
            f"the number of {origin.unit}s is fixed by what is compared, and no invariant can say "
            f"so for the new unit: use a premetric that adds and removes records."
        )
    told = change_premetric(specification, to, Fraction(factor), text)
    # What the old premetric kept fixed without saying so must now be said.
    hidden = Multiverse(invariants=specification.hidden_invariants())
    together = specification.multiverse.common_refinement(hidden)
    return told.model_copy(update={"multiverse": together})


def _check_still_neighbours(origin: InputPremetric, factor: int) -> None:
    if origin.name == "neighbours" and factor > 1:
        raise NotAllowed(
            f"data sets one step apart may be {factor} records apart, farther than neighbours, "
            f"and are promised nothing: state the budget per unit of a distance."
        )


def to_contributors(specification: Specification, copies: int) -> Specification:
    """Return the promise to a contributor whose record was copied at most `copies` times.

    Imputation copies records, so one person's answers may stand in 1 + copies of them
    (Bailie, Gong and Meng, section 5.2). Who is chosen as donor may also depend on
    answers; that effect is not covered, and the result says so.
    """
    origin = specification.input_premetric
    if origin.counts == "contributors":
        raise NotAllowed("the promise is told per contributor already.")
    if copies < 0:
        raise NotAllowed("copies must not be negative.")
    text = (
        f"a contributor stands behind at most {1 + copies} records; that answers may change who "
        f"is chosen as a donor is not covered"
    )
    _check_still_neighbours(origin, 1 + copies)
    to = origin.told(counts="contributors")
    return change_premetric(specification, to, Fraction(1 + copies), text)


# -- before the mechanism ---------------------------------------------------------------------


def preprocess(
    specification: Specification,
    domain: Domain,
    stability: Fraction,
    because: str,
    premetric: InputPremetric | None = None,
    multiverse: Multiverse | None = None,
) -> Specification:
    """Return what is promised about data before a deterministic step f.

    With d(f(x), f(x')) <= stability d(x, x') the budget grows by that factor, rho^2 by its
    square (McSherry 2009). Universes are pulled back: data sets x, x' are compared if f(x)
    and f(x') agree on the invariants. `multiverse` says that with invariants of the earlier
    data, which must fix those of f(x); it is needed wherever there are any.
    """
    given = (domain, stability, because, premetric, multiverse)
    return _before(specification, given, "published")


def chain(
    specification: Specification,
    domain: Domain,
    stability: Fraction,
    because: str,
    premetric: InputPremetric | None = None,
    multiverse: Multiverse | None = None,
) -> Specification:
    """Return what is promised about data before a random step, by the later mechanism alone.

    Ours, proved here: if x and x' can be coupled so that the step leaves them surely at
    most `stability` times as far apart and in one universe, the two laws of the output are
    mixtures of pairs that near, and a quasi-convex output premetric is no larger for a
    mixture. The step's own promise holds as well, by post-processing.
    """
    if not specification.output_premetric.properties.quasi_convex:
        raise NotAllowed(
            f"mixtures may be farther apart under {specification.output_premetric.name}."
        )
    given = (domain, stability, because, premetric, multiverse)
    return _before(specification, given, "proved here")


def _before(
    specification: Specification,
    given: tuple[Domain, Fraction, str, InputPremetric | None, Multiverse | None],
    status: Status,
) -> Specification:
    domain, stability, because, premetric, multiverse = given
    if stability <= 0:
        raise NotAllowed("the stability factor must be positive.")
    if not because:
        raise NotAllowed("a stability factor needs a reason, which is kept with the budget.")
    if specification.input_premetric.name == "neighbours" and stability != 1:
        raise NotAllowed(
            "data sets that become farther apart than neighbours are promised nothing: state "
            "the budget per unit of a distance, or use `group` first."
        )
    if specification.multiverse.invariants and multiverse is None:
        raise NotAllowed(
            "the invariants are statistics of the data after the step: say which statistics of "
            "the earlier data fix them (`multiverse`)."
        )
    budget = specification.budget.scaled(stability, f"stability {stability}: {because}")
    if budget.status == "published":
        budget = budget.model_copy(update={"status": status})
    update: dict[str, object] = {"domain": domain, "budget": budget}
    update["multiverse"] = multiverse or specification.multiverse
    if premetric is not None:
        update["input_premetric"] = premetric
    return specification.model_copy(update=update)


# -- what a statistic costs -------------------------------------------------------------------


def costs_nothing(statistic: Invariant, specification: Specification) -> bool:
    """Tell whether a statistic is shown to be free: a function of the effective invariants.

    Anything that varies inside a universe at a finite distance costs more than nothing if
    the output premetric is a metric, and a deterministic statistic then costs infinitely
    much if disjoint laws are infinitely far apart (Bailie, Gong and Meng, Propositions 1
    and 2). False means "not shown".
    """
    known = specification.effective_invariants()
    return determined(statistic, known, specification.domain)
