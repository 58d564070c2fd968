"""The blocks of a county: codes, points, race mix, and the areas they lie in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.compiled import compiled
from discreet.simulate.mixture import softmax
from discreet.simulate.model import load_model
from discreet.simulate.plan import Plan

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Block groups in a tract; more only where block numbers would run out of digits.
BLOCK_GROUPS = 3


@dataclass(frozen=True)
class Blocks:
    """The blocks of one county. Areas count from one; zero means in none."""

    code: Ints
    """GEOID as a number of 15 digits."""
    tract: Ints
    """Index of the tract in the plan."""
    point: Floats
    housing: Ints
    race: Floats
    """Cumulative shares of the householder's race, by block."""
    place: Ints
    subdivision: Ints
    precinct: Ints


def draw_blocks(rng: np.random.Generator, plan: Plan, county: int) -> Blocks:
    """Return the blocks of a county."""
    tracts = plan.tracts_of(county)
    count = plan.blocks[tracts]
    tract = np.repeat(np.arange(tracts.start, tracts.stop), count)
    place_in_tract = np.arange(len(tract)) - np.repeat(np.cumsum(count) - count, count)
    number = _numbers(place_in_tract, np.repeat(count, count))
    full_tract = (int(plan.state.code) * 1000 + 2 * county + 1) * 1_000_000
    full_tract = full_tract + 100 * plan.tract_number[tract]
    sd = max(0.004, 0.015 / np.sqrt(1 + len(count) / 20))
    point = plan.point[tract] + sd * rng.standard_normal((len(tract), 2))
    return Blocks(
        code=full_tract * 10_000 + number,
        tract=tract,
        point=point,
        housing=_housing(rng, plan.housing[tracts], count),
        race=_race(rng, plan, tract),
        place=_place(point, plan.place),
        subdivision=1 + _subdivision(rng, point, plan.point[tracts]),
        precinct=1 + _precinct(rng, tract, number),
    )


def _numbers(place: Ints, count: Ints) -> Ints:
    """Return block numbers: the digit of the block group, then a running number."""
    groups = np.maximum(BLOCK_GROUPS, -(-count // 900))
    digit = place * groups // count
    first = -(-digit * count // groups)
    return (digit + 1) * 1000 + place - first


def _housing(rng: np.random.Generator, units: Ints, count: Ints) -> Ints:
    """Return housing units per block: one, and the others by lognormal weights."""
    parts = []
    for total, blocks in zip(units, count, strict=True):
        weight = rng.lognormal(0, 1, blocks)
        parts.append(1 + rng.multinomial(total - blocks, weight / weight.sum()))
    return np.concatenate(parts)


def _race(rng: np.random.Generator, plan: Plan, tract: Ints) -> Floats:
    text = load_model().text["segregation"]
    effect = text["block"] * np.array(text["scale"]) * rng.standard_normal((len(tract), 7))
    shares = np.cumsum(softmax(plan.mix.logit[tract] + effect), axis=1)
    shares[:, -1] = 1.0
    return shares


@compiled
def _nearest(point: Floats, centre: Floats, radius: Floats) -> Ints:
    """Return the nearest centre within its radius for each point, or -1."""
    found = np.full(point.shape[0], -1, np.int64)
    for i in range(point.shape[0]):
        best = np.inf
        for k in range(centre.shape[0]):
            north, east = point[i, 0] - centre[k, 0], point[i, 1] - centre[k, 1]
            distance = north * north + east * east
            if distance < best and distance <= radius[k] * radius[k]:
                best = distance
                found[i] = k
    return found


def _place(point: Floats, places: Floats) -> Ints:
    """Return the place (from one, as numbered in the state) of each block, or zero."""
    low, high = point.min(axis=0), point.max(axis=0)
    reach = places[:, 2:]
    near = np.all((places[:, :2] >= low - reach) & (places[:, :2] <= high + reach), axis=1)
    index = np.flatnonzero(near)
    found = _nearest(point, np.ascontiguousarray(places[near, :2]), places[near, 2].copy())
    return np.where(found >= 0, np.append(index, -1)[found] + 1, 0)


def _subdivision(rng: np.random.Generator, point: Floats, tract_point: Floats) -> Ints:
    """Return the county subdivision: nearest of a few centres, about one for four tracts."""
    count = min(max(1, len(tract_point) // 4), 30)
    centre = tract_point[rng.permutation(len(tract_point))[:count]]
    return _nearest(point, np.ascontiguousarray(centre), np.full(count, np.inf))


def _precinct(rng: np.random.Generator, tract: Ints, number: Ints) -> Ints:
    """Return the precinct: three to six block groups next to each other in the list."""
    group_key = tract * 10 + number // 1000
    group = np.cumsum(np.diff(group_key, prepend=group_key[0]) != 0)
    last = np.cumsum(rng.integers(3, 7, group[-1] // 3 + 1))
    return np.searchsorted(last, group, side="right")
