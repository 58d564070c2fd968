"""Say numbers, codes and promises in plain words."""

from __future__ import annotations

import math

from discreet.census import Schema, Table
from discreet.spec import (
    MULTIPLICATIVE,
    FunctionOfUniverse,
    Invariant,
    LogRational,
    MarginalTable,
    NoFiniteBudget,
    Specification,
)


def count(value: float) -> str:
    """Return a whole number with separators.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{round(value):,}"


def decimal(value: float) -> str:
    """Return a number with as many digits as it deserves; only a true zero is shown as 0.

    >>> [decimal(v) for v in (0, 0.004, 0.25, 3.14159, 31.4, -1234.5)]
    ['0', '<0.01', '0.25', '3.1', '31', '−1,234']
    """
    size, sign = abs(value), "−" if value < 0 else ""
    if size == 0:
        return "0"
    if size < 0.01:
        return f"{sign}<0.01" if not sign else ">−0.01"
    digits = 2 if size < 1 else 1 if size < 10 else 0
    return f"{sign}{size:,.{digits}f}"


def signed(value: float) -> str:
    """Return a number with its sign; zero has none.

    >>> [signed(v) for v in (0, 2.0, -0.5)]
    ['0', '+2.0', '−0.50']
    """
    return f"+{decimal(value)}" if value > 0 else decimal(value)


def axis(value: float) -> str:
    """Return a number as it stands at an axis that has both signs.

    >>> [axis(v) for v in (0, 1000, -0.0125, 0.30000000004)]
    ['0', '+1k', '−0.0125', '+0.3']
    """
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return sign + short(abs(value))


def short(value: float) -> str:
    """Return a round number in few signs.

    >>> [short(v) for v in (0, 100, 10000, 2000000)]
    ['0', '100', '10k', '2M']
    """
    for size, name in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:.3g}{name}"
    return f"{value:.3g}"


def whole_signed(value: int) -> str:
    """Return a difference of counts with its sign.

    >>> [whole_signed(v) for v in (0, 1234, -5)]
    ['0', '+1,234', '−5']
    """
    return f"{value:+,}".replace("-", "−") if value else "0"


def fine_signed(value: float) -> str:
    """Return a small change with three digits.

    >>> [fine_signed(v) for v in (0.01234, -0.5, 0.0)]
    ['+0.012', '−0.500', '0']
    """
    return f"{value:+.3f}".replace("-", "−") if value else "0"


def percent(share: float) -> str:
    """Return a share as a percentage; neither 0 nor 100 unless it is exactly that.

    >>> [percent(s) for s in (0, 0.0001, 0.123, 0.9999, 1)]
    ['0 %', '<0.1 %', '12.3 %', '>99.9 %', '100 %']
    """
    if share <= 0:
        return "0 %"
    if share < 0.001:
        return "<0.1 %"
    if 0.999 < share < 1:
        return ">99.9 %"
    return f"{100 * share:.1f} %" if share < 1 else f"{100 * share:.0f} %"


def plain(name: str) -> str:
    """Return a column's or a mechanism's name as words."""
    return name.replace("_", " ").replace("-", " ")


def sentence(text: str) -> str:
    """Return the text with a capital at its start, and the rest as it is."""
    return text[:1].upper() + text[1:]


def level_title(schema: Schema, level: str) -> str:
    """Return what the areas of a level are called."""
    titles = {area.name: area.title for area in [*schema.spine, *schema.areas]}
    return (titles.get(level) or plain(level)).lower()


def code_label(schema: Schema, table: Table, column: str, value: str | None) -> str:
    """Return the label of a code; a recode names its groups itself or by a code above."""
    if value is None:
        return "not stated"
    home = schema.home(column, table.count)
    if home is None:
        return value
    source = getattr(schema.computed(home).get(column), "of", column)
    known = schema.home(source, table.count)
    variable = None if known is None else schema.variables(known).get(source)
    codes = variable.codes if variable is not None else None
    return codes[value].label if codes and value in codes else value


def invariant_words(schema: Schema, invariant: Invariant) -> str:
    """Return an invariant as a phrase, kinds of units by their labels."""
    if not isinstance(invariant, MarginalTable):
        return invariant.describe()
    codes = schema.units["kind"].codes or {}
    named = [codes[kind].label.lower() for kind in invariant.where.get("kind", ()) if kind in codes]
    rows = f"{invariant.of} ({', '.join(named)})" if named else invariant.of
    by = f" by {', '.join(plain(name) for name in invariant.by)}" if invariant.by else ""
    where = f"in every {level_title(schema, invariant.level)}"
    if invariant.whole_record:
        return f"the complete records of {rows}{by}, {where}"
    return f"the number of {rows}{by}, {where}"


def promise(specification: Specification) -> str:
    """Return the promise in one or two sentences."""
    amount, premetric = specification.budget.amount, specification.input_premetric
    if isinstance(amount, NoFiniteBudget):
        return f"No finite budget exists for this method, so nothing is promised: {amount.reason}."
    start = "Take two data sets that agree on everything published exactly. "
    if not specification.effective_invariants():
        start = "Take any two data sets. "
    each = f"For each {premetric.per} in which they differ, "
    if premetric.name == "neighbours":
        each = f"If they are neighbours ({premetric.definition}), "
    factor = _factor(specification)
    if factor is not None:
        return (
            f"{start}{each}any particular release is at most {factor} times as likely under the "
            f"one as under the other."
        )
    title = specification.output_premetric.properties.title
    return (
        f"{start}{each}the laws of the release under the two are at most "
        f"{specification.budget.describe()} apart ({title})."
    )


def _factor(specification: Specification) -> str | None:
    """Return by how much probabilities may differ, rounded up, if that is what is promised."""
    amount = specification.budget.amount
    if specification.output_premetric != MULTIPLICATIVE or isinstance(amount, FunctionOfUniverse):
        return None
    if isinstance(amount, LogRational) and amount.times == 1:
        return count(math.ceil(amount.of))
    if isinstance(amount, NoFiniteBudget) or amount.value() > 40:
        return None
    return count(math.ceil(math.exp(amount.value()) * (1 + 1e-9)))
