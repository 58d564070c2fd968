"""What TopDown promises: its invariants and its budget, derived from the strategy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.census import COMBINERS, Recode, Schema
from discreet.errors import BadInput
from discreet.mechanisms.domain import domain_of
from discreet.mechanisms.topdown.histogram import Histogram
from discreet.mechanisms.topdown.strategy import Strategy
from discreet.noise import DiscreteGaussian
from discreet.spec import (
    NORMALISED_RENYI,
    Budget,
    Exactly,
    MarginalTable,
    Multiverse,
    Specification,
    compose,
    hamming_of_multisets,
)

SOURCE = "Canonne, Kamath and Steinke 2020, Theorem 4; Abowd et al. 2022, section 4"


def promise(strategies: list[Strategy], schema: Schema) -> Specification:
    """Return the promise of all measurements together, per person if persons are measured."""
    parts = [_promise(strategy, schema) for strategy in strategies]
    # As in Bailie, Gong and Meng, Table 3: a person alters one unit record. The specification
    # says so among its conditions; somebody who moves alters two.
    return compose(parts, touched=1).specification


def _promise(strategy: Strategy, schema: Schema) -> Specification:
    return Specification(
        domain=domain_of(schema),
        multiverse=Multiverse(invariants=tuple(invariants(strategy, schema))),
        input_premetric=hamming_of_multisets(
            "person" if strategy.count == "persons" else "household"
        ),
        output_premetric=NORMALISED_RENYI,
        budget=Budget(
            unit="rho2", amount=Exactly(of=spent(strategy)), source=SOURCE, status="published"
        ),
    )


def spent(strategy: Strategy) -> Fraction:
    """Return the budget of the noise that is really drawn, from its own parameters.

    Replacing a record changes two cells of each histogram on the path of its old and its
    new area by one each, so the squared L2 distance is 2 in every query of every level;
    rho^2 = 2 / (2 sigma^2). A record that moves changes one row at each of two nodes, at
    half that cost each. A node that stands for levels below it has the sum of their shares,
    and those are not measured: the shares on every path add up to the same (`spine.bypass`
    checks it), so half of two paths costs as much as one.
    """
    parts = (
        1 / strategy.sigma2(measured.level, query)
        for measured in strategy.levels
        for query in measured.queries
    )
    return sum(parts, Fraction(0))


def invariants(strategy: Strategy, schema: Schema) -> list[MarginalTable]:
    """Return the statistics that are published exactly."""
    found = []
    if strategy.total is not None:
        found.append(_total(strategy, schema))
    if strategy.quarters is not None:
        found += _quarters(schema, strategy.axis(strategy.quarters.axis).column)
    for held in strategy.hold:
        columns = [_column(strategy, factor, held.query) for factor in strategy.factors(held.query)]
        found.append(
            MarginalTable(
                name=f"{strategy.count} by {', '.join(columns) or 'nothing'} per {held.level}",
                of=strategy.count,
                where=_where(strategy),
                by=tuple(columns),
                level=held.level,
            )
        )
    return [one for place, one in enumerate(found) if one not in found[:place]]


def _total(strategy: Strategy, schema: Schema) -> MarginalTable:
    where, level = _where(strategy), strategy.total or schema.block
    # By kind and nothing else: a further condition makes it another statistic.
    housing = set(where) == {"kind"} and set(where["kind"]) == set(_housing(schema))
    if strategy.count == "units" and housing and level == schema.block:
        return _housing_units(schema)
    what = f"{level} population" if strategy.count == "persons" else f"units counted per {level}"
    return MarginalTable(name=what, of=strategy.count, where=where, level=level)


def _housing(schema: Schema) -> list[str]:
    return [*schema.kinds.occupied, *schema.kinds.vacant]


def _housing_units(schema: Schema) -> MarginalTable:
    return MarginalTable(
        name=f"housing units per {schema.block}",
        of="units",
        where={"kind": _housing(schema)},
        level=schema.block,
    )


def _quarters(schema: Schema, column: str) -> list[MarginalTable]:
    """Return the counts of housing units, and of collective quarters by type."""
    # The kind tells nothing more where there is only one.
    by = () if column == "kind" and len(schema.kinds.collective) == 1 else (column,)
    return [
        _housing_units(schema),
        MarginalTable(
            name=f"occupied group quarters by type per {schema.block}",
            of="units",
            where={"kind": list(schema.kinds.collective)},
            by=by,
            level=schema.block,
        ),
    ]


def _where(strategy: Strategy) -> dict[str, list[str]]:
    """Return the universe as plain lists, which is all that an invariant can say."""
    for entry, values in strategy.where.items():
        if entry in COMBINERS or not isinstance(values, list):
            raise BadInput(
                f"strategy {strategy.name}: `where` must list the values of each column, so that "
                f"the exact statistics can be stated; '{entry}' does not. Write a list of codes, "
                f"or add a computed column to the schema."
            )
    return {column: [str(value) for value in values] for column, values in strategy.where.items()}


def _column(strategy: Strategy, factor: str, query: str) -> str:
    if factor in strategy.recodes or strategy.axis(factor).groups is not None:
        raise BadInput(
            f"hold: query '{query}' uses groups of values; exact statistics must be of whole "
            f"columns. Add a computed column to the schema and make it an axis."
        )
    return strategy.axis(factor).column


def check_quarters(histogram: Histogram) -> None:
    """Refuse quarters whose exact counts are others than those the invariants declare.

    Declared are housing units, occupied and vacant together, and collective units by type. So
    the axis must be `kind`, or a column that by the schema only collective units have.
    """
    strategy, schema = histogram.strategy, histogram.schema
    if strategy.quarters is None:
        return
    scale = histogram.scale(strategy.quarters.axis)
    if scale.column != "kind":
        if not _of_collective(schema, scale.column):
            raise BadInput(
                f"quarters: '{scale.name}' would make the units of every {schema.block} by "
                f"{scale.column} exact, which is not declared. Use an axis of `kind`, or of a "
                f"column that the schema keeps for collective units (`only`)."
            )
        return
    housing = {scale.place_of.get(kind) for kind in _housing(schema)}
    collective = [scale.place_of.get(kind) for kind in schema.kinds.collective]
    if len(housing) != 1 or housing & set(collective):
        raise BadInput(
            f"quarters: '{strategy.quarters.axis}' must tell housing units, occupied and vacant "
            f"together, from collective quarters."
        )


def _of_collective(schema: Schema, column: str) -> bool:
    """Tell whether by the schema only collective units have a value in a column of units."""
    variable, computed = schema.units.get(column), schema.computed_units.get(column)
    if variable is not None:
        kinds = (variable.only or {}).get("kind", [])
        return bool(kinds) and set(_listed(kinds)) <= set(schema.kinds.collective)
    # A group for the rest might take in units that have no value.
    if isinstance(computed, Recode) and computed.otherwise is None:
        return _of_collective(schema, computed.of)
    return False


def _listed(codes: Any) -> list[str]:
    return [str(code) for code in (codes if isinstance(codes, list) else [codes])]


def check_at_least_one(histogram: Histogram) -> None:
    """Refuse categories of quarters of which some unit holds nobody who is counted."""
    strategy, schema = histogram.strategy, histogram.schema
    if strategy.quarters is None or not strategy.quarters.at_least_one:
        return
    scale = histogram.scale(strategy.quarters.axis)
    other = set(strategy.where) - {"kind", scale.column}
    if other:
        raise BadInput(
            f"at_least_one: persons are limited by {', '.join(sorted(other))} (`where`), and a "
            f"unit may hold only others. Leave `at_least_one` or `where` out."
        )
    # Units without a type are housing units.
    values = schema.kinds.vacant if scale.column == "kind" else [None] * bool(schema.kinds.vacant)
    vacant = {scale.place_of.get(value) for value in values}
    for category in strategy.quarters.at_least_one:
        place = scale.categories.index(category)
        if place in vacant:
            raise BadInput(
                f"at_least_one: '{category}' counts vacant units, too, and these hold nobody. "
                f"List categories of occupied quarters only."
            )
        if histogram.zeros[histogram.group_of == place].all():
            raise BadInput(f"at_least_one: `zeros` leaves no cell for residents of '{category}'.")


def check_noise(strategy: Strategy) -> None:
    """Refuse a budget that asks for noise nothing can draw.

    A node has the share of its level, or that of a run of levels down to at most the last if
    they have only children. Noise of the runs in between lies between these two.
    """
    shares = [measured.share for measured in strategy.levels]
    for place, measured in enumerate(strategy.levels):
        for query in measured.queries:
            for share in (measured.share, sum(shares[place:], Fraction(0))):
                try:
                    DiscreteGaussian(strategy.sigma2(measured.level, query, share))
                except BadInput as reason:
                    raise BadInput(
                        f"strategy {strategy.name}, {measured.level}, query '{query}': {reason}"
                    ) from None
