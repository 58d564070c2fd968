"""Plan a state: counties, tracts, how many blocks and housing units each has, facilities.

Everything here is small (tracts, not blocks). Counties are then filled one by one, each
from its own stream of random numbers, in any order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.simulate.mixture import Mix, draw_mix
from discreet.simulate.model import load_model
from discreet.simulate.profile import State
from discreet.simulate.stream import stream

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Degrees between county centres; every county fills one cell of a jittered grid.
CELL = 0.45


@dataclass(frozen=True)
class Plan:
    """A state before anybody lives in it. Tracts are in the order of their counties."""

    state: State
    counties: int
    tract_county: Ints
    tract_number: Ints
    """Tract number within its county: 1, 2, ..."""
    point: Floats
    """Latitude and longitude of tracts."""
    blocks: Ints
    housing: Ints
    vacancy: Floats
    imputation: Floats
    mix: Mix
    place: Floats
    """Centres and radius of places: latitude, longitude, degrees."""
    facility_county: Ints
    facility_type: Ints
    facility_size: Ints
    rural_urban: Ints

    def tracts_of(self, county: int) -> slice:
        """Return the tracts of a county."""
        first, last = np.searchsorted(self.tract_county, [county, county + 1])
        return slice(int(first), int(last))


def plan_state(state: State, seed: int, profile: str, quarters_size: float = 1.0) -> Plan:
    """Return the plan of a state, a function of its facts, the profile's name and the seed."""
    rng = stream(seed, profile, state.code, "plan")
    text = load_model().text
    tracts_per_county = _spread(rng, state.tracts, state.counties, 1.0, least=1)
    county = np.repeat(np.arange(state.counties), tracts_per_county)
    point = _points(rng, state, county)
    blocks = _spread(rng, state.blocks, state.tracts, 0.6, least=4)
    weight = rng.lognormal(0, 0.35, state.tracts)
    race = np.array(state.race) / sum(state.race)
    mix = draw_mix(rng, point, county, weight, race, state.hispanic / 100)
    share = text["quarters"]["share"]
    households = state.persons * (1 - share) / mix.household_size
    units = max(int(households / (1 - text["vacancy"]["share"])), state.blocks)
    housing = blocks + rng.multinomial(units - state.blocks, weight / weight.sum())
    facilities = _facilities(rng, state, share, quarters_size, tracts_per_county)
    return Plan(
        state=state,
        counties=state.counties,
        tract_county=county,
        tract_number=np.arange(state.tracts) - np.searchsorted(county, county) + 1,
        point=point,
        blocks=blocks,
        housing=housing,
        vacancy=_rates(rng, text["vacancy"]["share"], text["vacancy"]["spread"], housing, 0.8),
        imputation=_rates(
            rng, text["imputation"]["households"], text["imputation"]["spread"], housing, 0.5
        ),
        mix=mix,
        place=_places(rng, point, county),
        facility_county=facilities[0],
        facility_type=facilities[1],
        facility_size=facilities[2],
        rural_urban=_rural_urban(tracts_per_county),
    )


def _spread(rng: np.random.Generator, total: int, over: int, sd: float, least: int) -> Ints:
    """Return whole numbers adding up to `total`, at least `least` each, lognormal weights."""
    weight = rng.lognormal(0, sd, over)
    spread: Ints = least + rng.multinomial(total - least * over, weight / weight.sum())
    return spread


def _points(rng: np.random.Generator, state: State, county: Ints) -> Floats:
    """Return tract points: half of a county's tracts in a town, half around it.

    Within a county tracts run in strips from south to north, so that neighbours in the
    list are neighbours on the ground.
    """
    side = int(np.ceil(np.sqrt(state.counties)))
    grid = np.stack(np.divmod(np.arange(state.counties), side), axis=1) - (side - 1) / 2
    centre = CELL * (grid + rng.uniform(-0.2, 0.2, grid.shape))
    centre += np.array([state.latitude, state.longitude])
    town = rng.random(len(county)) < 0.5
    sd = np.where(town, 0.035, 0.11)[:, None]
    point: Floats = centre[county] + sd * rng.standard_normal((len(county), 2))
    strip = np.floor(point[:, 0] / 0.05)
    eastward = np.where(strip % 2 == 0, point[:, 1], -point[:, 1])
    return point[np.lexsort((eastward, strip, county))]


def _rates(rng: np.random.Generator, mean: float, sd: float, weight: Ints, most: float) -> Floats:
    """Return rates of tracts: lognormal around `mean`, weighted mean exactly there or below."""
    rate = rng.lognormal(0, sd, len(weight))
    rate *= mean * weight.sum() / (rate @ weight)
    return np.minimum(rate, most)


def _facilities(
    rng: np.random.Generator, state: State, share: float, quarters_size: float, tracts: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return county, type and size of every group-quarters facility."""
    quarters, spread = load_model().quarters, load_model().text["quarters"]["spread"]
    mean = np.maximum(quarters.mean_size * quarters_size, 1.5)
    expected = state.persons * share * quarters.residents / mean
    count = np.floor(expected + rng.random(len(expected))).astype(np.int64)
    kind = np.repeat(np.arange(len(count)), count)
    size = mean[kind] * rng.lognormal(-(spread**2) / 2, spread, len(kind))
    wanted = state.persons * share
    if size.sum() > 0:
        # Few facilities hold many residents; scale sizes so that the share comes out.
        size *= np.clip(wanted / size.sum(), 0.5, 2.0)
    county = rng.choice(len(tracts), len(kind), p=tracts / tracts.sum())
    order = np.argsort(county, kind="stable")
    whole = np.maximum(1, np.rint(size)).astype(np.int64)
    return county[order].astype(np.int64), kind[order], whole[order]


def _places(rng: np.random.Generator, point: Floats, county: Ints) -> Floats:
    """Return places: about one for three tracts, centred on a tract, some across county lines."""
    chosen = np.flatnonzero(rng.random(len(point)) < 1 / 3)
    radius = 0.012 * rng.lognormal(0, 0.5, len(chosen))
    return np.column_stack([point[chosen], radius])


def _rural_urban(tracts: Ints) -> Ints:
    """Return a code 1 (large metropolitan) to 9 (rural) by the number of tracts."""
    limits = np.array([250, 60, 25, 18, 13, 9, 6, 3])
    codes: Ints = 1 + (tracts[:, None] < limits).sum(axis=1)
    return codes
