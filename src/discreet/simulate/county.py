"""Fill one county: blocks, units, persons, donors, votes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.compiled import compiled
from discreet.simulate.blocks import Blocks, draw_blocks
from discreet.simulate.derive import derive_households, find_donors, number_residents
from discreet.simulate.household import draw_housing, fill_households, fill_quarters
from discreet.simulate.model import load_model
from discreet.simulate.plan import Plan
from discreet.simulate.records import PERSON, QUARTERS, UNIT, Rows
from discreet.simulate.stream import stream

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class County:
    """Everything about one county; rows count within it."""

    number: int
    blocks: Blocks
    rural_urban: int
    units: Rows
    persons: Rows
    votes: Ints
    """Votes by precinct and candidate."""


def fill_county(plan: Plan, county: int, seed: int, profile: str) -> County:
    """Return one county of a planned state; it depends on no other county."""
    rng = stream(seed, profile, plan.state.code, "county", str(county))
    model = load_model()
    blocks = draw_blocks(rng, plan, county)
    quarters = _quarters(rng, plan, county, blocks, model.text["quarters"]["empty_block"])
    tract = blocks.tract
    rates = np.column_stack([plan.vacancy[tract], plan.imputation[tract], plan.mix.hispanic[tract]])
    housing = np.zeros(blocks.housing.sum(), UNIT)
    housing["block"] = np.repeat(np.arange(len(tract)), blocks.housing)
    in_households = draw_housing(rng, model.tables, housing, blocks.race, rates)
    units = np.concatenate([housing, quarters])
    persons = np.zeros(in_households + int(quarters["members"].sum()), PERSON)
    fill_households(rng, model.tables, units, persons, rates[:, 2].copy())
    residents = persons[in_households:]
    weight = blocks.housing / blocks.housing.sum()
    race, mean = weight @ blocks.race, weight @ rates[:, 1:]
    fill_quarters(rng, model.tables, model.quarters, units, residents, race, mean)
    derive_households(units, persons)
    number_residents(residents)
    if not find_donors(persons):
        units["imputed"], persons["imputed"] = 0, 0
    votes = _vote(rng, blocks.precinct, units["block"], persons)
    return County(county, blocks, int(plan.rural_urban[county]), units, persons, votes)


def _quarters(
    rng: np.random.Generator, plan: Plan, county: int, blocks: Blocks, alone: float
) -> Rows:
    """Return the county's group quarters as units; some get a block to themselves.

    That block's housing moves to the first block of the tract, which is never emptied.
    """
    chosen = np.flatnonzero(plan.facility_county == county)
    units = np.zeros(len(chosen), UNIT)
    units["kind"] = QUARTERS
    units["quarters"] = 1 + plan.facility_type[chosen]
    units["members"] = plan.facility_size[chosen]
    units["block"] = rng.integers(0, len(blocks.tract), len(chosen))
    moves = rng.random(len(chosen)) < alone
    for block in units["block"][moves]:
        first = np.searchsorted(blocks.tract, blocks.tract[block])
        if block != first:
            blocks.housing[first] += blocks.housing[block]
            blocks.housing[block] = 0
    return units


@compiled
def _adults(precinct: Ints, unit_block: npt.NDArray[np.int32], persons: Rows) -> Ints:
    """Return persons of 18 and over by precinct and race group."""
    counts = np.zeros((precinct.max(), 7), np.int64)
    for k in range(persons.size):
        if persons[k].age >= 18:
            row = precinct[unit_block[persons[k].unit]] - 1
            counts[row, min(persons[k].race, 6)] += 1
    return counts


def _vote(
    rng: np.random.Generator, precinct: Ints, unit_block: npt.NDArray[np.int32], persons: Rows
) -> Ints:
    """Return votes by precinct for candidates A and B: turnout and support by race."""
    text = load_model().text["votes"]
    adults = _adults(precinct, np.ascontiguousarray(unit_block), persons)
    turnout = rng.normal(text["turnout"], text["turnout_sd"], (len(adults), 1))
    voters = rng.binomial(adults, np.clip(turnout, 0.05, 0.95))
    support = np.array(text["support"])
    logit = np.log(support / (1 - support)) + text["county_sd"] * rng.standard_normal()
    for_a = rng.binomial(voters, 1 / (1 + np.exp(-logit)))
    return np.stack([for_a.sum(axis=1), (voters - for_a).sum(axis=1)], axis=1)
