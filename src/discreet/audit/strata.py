"""Swapping on a census, stratum by stratum: what can be lost, and what is disclosed anyway.

Sizes, held records and swapped values of a stratum are its margins, and the margins are
invariants of the swap: published exactly, whatever is drawn. Every figure here is a
function of them, so none tells more than the invariants do. A stratum whose margins
admit one table only is disclosed fully by them: its loss is 0 because nothing is left to
protect.

The loss of a stratum is known in three ways: it is disclosed; it is small enough to be
enumerated; or a lower bound meets the sharpened upper bound, as in most large strata with
varied records (see `psa.can_all_move`). Otherwise only the bounds are given.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf
from typing import Any

import narwhals as nw
import numpy as np

from discreet.census import Census
from discreet.engine import Engine, Frame
from discreet.errors import BadInput
from discreet.mechanisms import swapping
from discreet.spec import WHOLE, psa

#: Strata of at most so many records are enumerated: about a second for all their kinds.
ENUMERATED = 6

DISCLOSED, BY_ENUMERATION, BY_BOUNDS, UNKNOWN = "disclosed", "enumerated", "bounds meet", "unknown"

FIGURES = (
    "stratum_size",
    "distinct_records",
    "distinct_values",
    "theorem_1",
    "sharpened",
    "loss",
    "loss_known",
)

FUNCTIONS_OF_INVARIANTS = (
    "all figures are functions of the invariants of the swap; they hold given that these are "
    "published exactly, and only if rate and variables were fixed without looking at the data"
)

#: What budgets and losses here are per, and what is published exactly beside them.
PROMISE: dict[str, Any] = {
    "unit": "household record",
    "input_premetric": "hamming-of-multisets",
    "output_premetric": "multiplicative",
    "invariants": [
        "in every stratum, the number of households with each complete record",
        "in every stratum, the number of households with each swapped value",
    ],
}
PER = "per {unit} ({input_premetric}; {output_premetric})".format(**PROMISE)
GIVEN = f"given exact publication of: {'; '.join(PROMISE['invariants'])}"


@dataclass(frozen=True)
class StrataAudit:
    """What swapping a census can lose.

    `table` has one row per stratum: the area and the matching variables, `stratum_size`,
    `distinct_records` (held) and `distinct_values`, `theorem_1` and `sharpened` (budgets of
    that stratum), `loss` (missing where unknown) and `loss_known` (how). The loss of the census
    is the largest of a stratum: between `loss_at_least` and `loss_at_most`.
    """

    rate: Fraction
    households: int
    strata: int
    disclosed_households: int
    disclosed_strata: int
    largest_stratum: int
    largest_open_stratum: int
    known_households: int
    loss_at_least: float
    loss_at_most: float
    table: Frame = field(repr=False, compare=False)

    @property
    def disclosed_share(self) -> float:
        """Return the share of households in strata that the invariants disclose fully."""
        return self.disclosed_households / self.households if self.households else 0.0

    def as_data(self) -> dict[str, Any]:
        """Return the totals as plain data."""
        return {
            "rate": str(self.rate),
            "households": self.households,
            "strata": self.strata,
            "disclosed_households": self.disclosed_households,
            "disclosed_strata": self.disclosed_strata,
            "disclosed_share": self.disclosed_share,
            "largest_stratum": self.largest_stratum,
            "largest_open_stratum": self.largest_open_stratum,
            "theorem_1": psa.theorem_1(self.largest_open_stratum, self.rate).value,
            "sharpened": psa.sharpened(self.largest_open_stratum, self.rate).value,
            "known_households": self.known_households,
            "loss_at_least": self.loss_at_least,
            "loss_at_most": self.loss_at_most,
            **PROMISE,
            "note": FUNCTIONS_OF_INVARIANTS,
        }

    def describe(self) -> list[str]:
        """Return the totals in plain lines; what is at most, budgets too, is rounded up."""
        b = self.largest_open_stratum
        published, sharpened = psa.theorem_1(b, self.rate), psa.sharpened(b, self.rate)
        return [
            f"{self.households:,} households in {self.strata:,} strata, rate {float(self.rate):g}",
            f"the invariants alone disclose {self.disclosed_strata:,} strata with "
            f"{self.disclosed_households:,} households ({self.disclosed_share:.2%}) fully; "
            "a loss of 0 there means no protection",
            f"largest stratum {self.largest_stratum:,}, largest in which something can change "
            f"{self.largest_open_stratum:,}: epsilon {_up(published.upper_bound())} by Theorem 1, "
            f"{_up(sharpened.upper_bound())} by the sharpened bound ({psa.SHARPENED}), "
            f"{PER}, {GIVEN}",
            f"the loss is between {_down(self.loss_at_least)} and {_up(self.loss_at_most)}, {PER}; "
            f"it is known exactly for the strata of {self.known_households:,} households",
            FUNCTIONS_OF_INVARIANTS,
        ]


def _up(value: Fraction | float | None) -> str:
    return "infinite" if value is None or value == inf else f"{ceil(value * 10**4) / 10**4:.4f}"


def _down(value: float) -> str:
    return "infinite" if value == inf else f"{floor(value * 10**4) / 10**4:.4f}"


def audit_strata(mechanism: swapping.PermutationSwapping, census: Census) -> StrataAudit:
    """Return what `mechanism` can lose on `census`, in every stratum and altogether."""
    mechanism.check_records(census)
    if mechanism.records != "units":
        raise BadInput("strata are audited for swaps of units only, not of persons.")
    engine, rate = census.engine, mechanism.rate
    households = engine.materialise(mechanism.swapped_records(census))
    held = engine.materialise(_margin(households, "held"))
    placed = engine.materialise(_margin(households, "value"))
    counted = engine.materialise(
        _shape(held, "record")
        .join(_shape(placed, "value"), on="label")
        .rename({"record_total": "stratum_size"})
    )
    judged = _judged(engine, rate, counted, _kinds(engine, rate, counted, held, placed))
    area = [] if mechanism.within == WHOLE else [mechanism.within]
    columns = [*area, *mechanism.match]
    named = households.group_by("label").agg(unit_id=nw.col("unit_id").min())
    named = named.join(census.frame("units", ["unit_id", *columns]), on="unit_id", how="inner")
    table = engine.materialise(named.join(judged, on="label").select(*columns, *FIGURES))
    return _totals(engine, rate, table)


def _margin(households: Frame, column: str) -> Frame:
    """Return `label, count`: one row per stratum and value of `column`."""
    counts = households.group_by("label", column).agg(count=nw.len().cast(nw.Int64))
    return counts.select("label", "count")


def _shape(margin: Frame, what: str) -> Frame:
    """Return per stratum its size, and how many values there are, are single, and the largest."""
    return (
        margin.with_columns(single=(nw.col("count") == 1).cast(nw.Int64))
        .group_by("label")
        .agg(
            nw.len().cast(nw.Int64).alias(f"distinct_{what}s"),
            nw.col("count").max().alias(f"{what}_largest"),
            nw.col("single").sum().cast(nw.Int64).alias(f"{what}_single"),
            nw.col("count").sum().cast(nw.Int64).alias(f"{what}_total"),
        )
    )


def _kinds(engine: Engine, rate: Fraction, counted: Frame, held: Frame, placed: Frame) -> Frame:
    """Return `label, loss, known` of the small open strata; equal margins are worked once."""
    small = counted.filter(
        nw.col("stratum_size") <= ENUMERATED,
        nw.col("distinct_records") > 1,
        nw.col("distinct_values") > 1,
    ).select("label")
    texts = []
    for margin, name in ((held, "holding"), (placed, "swapping")):
        rows = margin.join(small, on="label", how="inner")
        digits = rows.select("label", text=nw.col("count").cast(nw.String))
        texts.append(engine.join_text(digits, "label", "text", name))
    margins = engine.materialise(texts[0].join(texts[1], on="label", how="inner"))
    kinds = engine.rows(engine.distinct(margins.select("holding", "swapping")))
    losses = [_small_loss(*sorted(map(_counts, kind)), rate) for kind in kinds]
    known = engine.from_numpy(
        {
            "holding": np.array([kind[0] for kind in kinds], dtype=object),
            "swapping": np.array([kind[1] for kind in kinds], dtype=object),
            "small_loss": np.array([loss for loss, _ in losses], dtype=np.float64),
            "small_known": np.array([how for _, how in losses], dtype=object),
        }
        if kinds
        else {"holding": _NONE, "swapping": _NONE, "small_loss": _ZERO, "small_known": _NONE}
    )
    joined = margins.join(known, on=["holding", "swapping"], how="inner")
    return joined.select("label", "small_loss", "small_known")


# A frame needs a row to know its columns; this one matches no stratum.
_NONE, _ZERO = np.array([""], dtype=object), np.array([0.0])


def _counts(text: str) -> tuple[int, ...]:
    """Return the counts of a margin written as by `Engine.join_text`, smallest first."""
    return tuple(sorted(map(int, text.split(";"))))


@lru_cache(maxsize=4096)
def _small_loss(
    holding: tuple[int, ...], swapping: tuple[int, ...], rate: Fraction
) -> tuple[float, str]:
    """Return the loss of a small open stratum and how it is known."""
    bound = psa.sharpened(sum(holding), rate)
    if not psa.lower_bound(holding, swapping, rate) < bound:
        return bound.value, BY_BOUNDS
    return psa.exact_loss(holding, swapping, rate).value, BY_ENUMERATION


def _judged(engine: Engine, rate: Fraction, counted: Frame, kinds: Frame) -> Frame:
    """Add budgets, loss and how it is known to the counts of the strata."""
    sizes = [int(row[0]) for row in engine.rows(engine.distinct(counted.select("stratum_size")))]
    budgets = engine.from_numpy(_budgets(sizes, rate))
    judged = counted.join(budgets, on="stratum_size", how="inner").join(
        kinds, on="label", how="left"
    )
    disclosed = (nw.col("distinct_records") == 1) | (nw.col("distinct_values") == 1)
    # Two single values on both sides, and largest counts that add to at most half the size.
    varied = (
        (nw.col("meets") == 1)
        & (nw.col("record_single") >= 2)
        & (nw.col("value_single") >= 2)
        & (2 * (nw.col("record_largest") + nw.col("value_largest")) <= nw.col("stratum_size"))
    )
    large = nw.col("small_known").is_null()
    by_bounds = nw.when(varied).then(nw.col("sharpened"))  # missing otherwise
    loss = nw.when(large).then(by_bounds).otherwise(nw.col("small_loss"))
    by_size = nw.when(varied).then(nw.lit(BY_BOUNDS)).otherwise(nw.lit(UNKNOWN))
    how = nw.when(large).then(by_size).otherwise(nw.col("small_known"))
    return judged.with_columns(
        loss_known=nw.when(disclosed).then(nw.lit(DISCLOSED)).otherwise(how),
        loss=nw.when(disclosed).then(nw.lit(0.0)).otherwise(loss),
        theorem_1=nw.when(disclosed).then(nw.lit(0.0)).otherwise(nw.col("theorem_1")),
        sharpened=nw.when(disclosed).then(nw.lit(0.0)).otherwise(nw.col("sharpened")),
    )


def _budgets(sizes: Iterable[int], rate: Fraction) -> dict[str, Any]:
    """Return both budgets for each size, and whether varied strata attain the sharpened one."""
    listed = sorted(sizes) or [0]
    counting = [size if size >= 2 else 0 for size in listed]
    # The attained term, d(b)/d(b-2) / o^2, is the larger one up to the best rate.
    best = [Fraction(psa.sharpened_best_rate(size)) if size >= 4 else 0 for size in counting]
    return {
        "stratum_size": np.array(listed, dtype=np.int64),
        "theorem_1": np.array([psa.theorem_1(size, rate).value for size in counting]),
        "sharpened": np.array([psa.sharpened(size, rate).value for size in counting]),
        "meets": np.array([int(rate < limit) for limit in best], dtype=np.int64),
    }


def _totals(engine: Engine, rate: Fraction, table: Frame) -> StrataAudit:
    """Return the audit with its totals."""
    rows = engine.rows(
        table.group_by("loss_known").agg(
            strata=nw.len().cast(nw.Int64),
            households=nw.col("stratum_size").sum().cast(nw.Int64),
            largest=nw.col("stratum_size").max(),
            loss=nw.col("loss").max(),
            sharpened=nw.col("sharpened").max(),
        )
    )
    found = {row[0]: row[1:] for row in rows}
    open_strata = [row for how, row in found.items() if how != DISCLOSED]
    at_least = max((row[3] for row in open_strata if row[3] is not None), default=0.0)
    unknown = found.get(UNKNOWN, (0, 0, 0, 0.0, 0.0))
    disclosed = found.get(DISCLOSED, (0, 0, 0, 0.0, 0.0))
    households = sum(row[1] for row in found.values())
    return StrataAudit(
        rate=rate,
        households=households,
        strata=sum(row[0] for row in found.values()),
        disclosed_households=disclosed[1],
        disclosed_strata=disclosed[0],
        largest_stratum=psa.largest_stratum(row[2] for row in found.values()),
        largest_open_stratum=psa.largest_stratum(row[2] for row in open_strata),
        known_households=households - unknown[1],
        loss_at_least=at_least,
        loss_at_most=max(at_least, unknown[4]),
        table=table,
    )
