"""The race mix of tracts: segregated, and alike among neighbours.

A multinomial logit with White as reference: intercept + county effect + tract effect,
and in each block a block effect. Part of the tract effect is a smooth random field
(`field.py`). Intercepts are solved so that the
*persons* of the state come out with the given mix. Ours; checked numerically.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.simulate.field import smooth_field
from discreet.simulate.household import draw_housing, fill_households
from discreet.simulate.model import load_model
from discreet.simulate.records import PERSON, UNIT
from discreet.simulate.stream import stream

Floats = npt.NDArray[np.float64]

#: Block effects tried per tract when solving intercepts.
TRIALS = 6
#: Households simulated per race to learn how many persons of which race they hold.
PILOT = 6_000


class Household(NamedTuple):
    """Expected members of a household by race of householder."""

    persons: Floats
    """Persons by race of householder (rows) and race of person (columns)."""
    hispanic: Floats
    """Hispanic persons by race of householder and by whether the householder is Hispanic."""


class Mix(NamedTuple):
    """The race mix of a state's tracts."""

    logit: Floats
    """Logits by tract and race, before block effects."""
    hispanic: Floats
    """Shift of the Hispanic logit by tract."""
    household_size: float
    """Expected persons per household."""


def race_group(code: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the group 0 to 6 (6: two or more) of race codes counted from zero."""
    return np.minimum(code, 6).astype(np.uint8)


@functools.cache
def expected_household() -> Household:
    """Learn from a pilot, the same for every seed, what a household holds.

    Householders are of every race in turn; each such household is weighted alike.
    """
    tables = load_model().tables
    rng = stream(0, "pilot")
    units = np.zeros(7 * PILOT, UNIT)
    units["block"] = np.arange(len(units)) % 7
    only = np.cumsum(np.eye(7), axis=1)
    persons = np.zeros(draw_housing(rng, tables, units, only, np.zeros((7, 3))), PERSON)
    # Every other householder Hispanic: both cases are learned equally well.
    units["hispanic"] = np.arange(len(units)) // 7 % 2
    fill_households(rng, tables, units, persons, np.zeros(7))
    home = units[persons["unit"]]
    by_race = home["race"] * 7 + race_group(persons["race"])
    cell = (home["race"] * 2 + home["hispanic"])[persons["hispanic"] == 1]
    return Household(
        np.bincount(by_race, minlength=49).reshape(7, 7) / PILOT,
        np.bincount(cell, minlength=14).reshape(7, 2) / (PILOT / 2),
    )


def softmax(logit: Floats) -> Floats:
    """Return shares along the last axis."""
    shares: Floats = np.exp(logit - logit.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares


def draw_mix(
    rng: np.random.Generator,
    points: Floats,
    county: npt.NDArray[np.int64],
    weight: Floats,
    race: Floats,
    hispanic: float,
) -> Mix:
    """Return the race mix of tracts at `points`; `race` and `hispanic` are shares of persons."""
    text = load_model().text["segregation"]
    scale = np.array(text["scale"], dtype=np.float64)
    smooth = text["smooth"]
    tract = smooth * smooth_field(rng, points, text["length"], 7)
    tract += np.sqrt(1 - smooth**2) * rng.standard_normal(tract.shape)
    effect = text["county"] * rng.standard_normal((county.max() + 1, 7))[county]
    logit = scale * (effect + text["tract"] * tract)
    trials = scale * text["block"] * rng.standard_normal((len(points), TRIALS, 7))
    intercept, by_tract = _solve(logit, trials, weight, race)
    held = expected_household()
    shift = load_model().text["hispanic"]["tract"] * rng.standard_normal(len(points))
    shift += _solve_hispanic(by_tract, weight, shift, hispanic, held)
    size = float(weight @ by_tract @ held.persons.sum(axis=1) / weight.sum())
    return Mix(logit + intercept, shift, size)


def _solve(logit: Floats, trials: Floats, weight: Floats, race: Floats) -> tuple[Floats, Floats]:
    """Return intercepts that give persons the mix `race`, and the householders' mix by tract."""
    target = np.maximum(race, 1e-5) / np.maximum(race, 1e-5).sum()
    persons = expected_household().persons
    intercept = np.log(target / target[0])
    by_tract = np.zeros_like(logit)
    for _ in range(80):
        by_tract = softmax(logit[:, None, :] + trials + intercept).mean(axis=1)
        found = weight @ by_tract @ persons
        ratio = np.log(target) - np.log(found / found.sum())
        # A group that other groups' households already hold cannot go below that.
        intercept = np.maximum(intercept + 1.3 * (ratio - ratio[0]), -14.0)
        if np.abs(ratio).max() < 1e-3:
            break
    return intercept, by_tract


def _solve_hispanic(
    by_tract: Floats, weight: Floats, effect: Floats, share: float, held: Household
) -> float:
    """Return the shift of the logit at which `share` of persons are Hispanic (bisection)."""
    logit = load_model().tables.hispanic_logit
    total = float((weight @ by_tract @ held.persons).sum())
    low, high = -8.0, 8.0
    for _ in range(40):
        middle = (low + high) / 2
        flag = 1 / (1 + np.exp(-(logit + middle + effect[:, None])))
        count = flag * held.hispanic[:, 1] + (1 - flag) * held.hispanic[:, 0]
        if float((weight @ (by_tract * count)).sum()) < share * total:
            low = middle
        else:
            high = middle
    return (low + high) / 2
