"""Small promises that several tests of specifications are made from."""

from fractions import Fraction

from discreet.spec import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    Budget,
    Domain,
    Exactly,
    LogRational,
    MarginalTable,
    Multiverse,
    Specification,
    hamming_of_multisets,
)

CENSUS = Domain(
    records="units with their members",
    schema_name="us-decennial",
    stage="edited",
    steps=("editing", "imputation"),
    spine=("nation", "state", "county", "tract", "block_group", "block"),
    kinds=("occupied", "vacant", "group_quarters"),
)

#: Answers as they were given, with nothing done to them.
RAW = CENSUS.model_copy(update={"stage": "raw", "steps": ()})


def table(of, level, by=(), kinds=(), name="", whole=False):
    """Return a table of counts."""
    return MarginalTable(
        name=name or f"{of} by {level}",
        of=of,
        by=by,
        level=level,
        where={"kind": list(kinds)} if kinds else {},
        whole_record=whole,
    )


ALL_UNITS = table("units", "all")
ALL_PERSONS = table("persons", "all")


def promise(
    amount,
    *,
    output=None,
    unit="person",
    premetric=None,
    invariants=(),
    domain=CENSUS,
    status="published",
    source="somebody",
):
    """Return a promise; a logarithm is a pure budget, a rational one rho^2 if not said."""
    if output is None:
        output = MULTIPLICATIVE if isinstance(amount, LogRational) else NORMALISED_RENYI
    return Specification(
        domain=domain,
        multiverse=Multiverse(invariants=tuple(invariants)),
        input_premetric=premetric or hamming_of_multisets(unit),
        output_premetric=output,
        budget=Budget(unit=output.properties.unit, amount=amount, source=source, status=status),
    )


def pure(ratio, **blocks):
    """Return a promise of epsilon = ln(ratio)."""
    return promise(LogRational(of=Fraction(ratio)), output=MULTIPLICATIVE, **blocks)


def concentrated(rho2, **blocks):
    """Return a promise of rho^2."""
    return promise(Exactly(of=rho2), output=NORMALISED_RENYI, **blocks)


def permuting(ratio, *invariants):
    """Return the promise of swapping households (Bailie, Gong and Meng, Theorem 1)."""
    source = "Bailie, Gong and Meng, Theorem 1"
    return pure(ratio, unit="household", source=source, invariants=invariants)


def swapping(ratio=Fraction(264_332 * 99)):
    """Return the promise of swapping all units with members: by size, within states."""
    kinds = ("occupied", "group_quarters")
    return permuting(
        ratio,
        table("units", "state", ("size",), kinds, "records of units", whole=True),
        table("units", "block", ("size",), kinds, "units by size"),
    )


def swapping_of_households(ratio=Fraction(264_332 * 99)):
    """Return the promise of swapping occupied units only: all others stay as they are."""
    fixed = ("vacant", "group_quarters")
    return permuting(
        ratio,
        table("units", "county", ("size",), ("occupied",), "household records", whole=True),
        table("units", "block", ("size",), ("occupied",), "households by size"),
        table("units", "block", (), fixed, "other units with their residents", whole=True),
    )


def topdown(rho2="15.29"):
    """Return the promise of the TopDown Algorithm (Bailie, Gong and Meng, Theorem 2)."""
    return concentrated(
        rho2,
        invariants=(
            table("persons", "state", name="state population"),
            table("units", "block", (), ("occupied", "vacant"), "housing units"),
            table("units", "block", ("gq_type",), ("group_quarters",), "group quarters"),
        ),
    )
