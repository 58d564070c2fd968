"""Towns for tests of the mechanisms that pair by lists: counties, tenure, imputation."""

from dataclasses import replace

import narwhals as nw
import numpy as np

from discreet.census import Census
from discreet.engine import Engine
from discreet.mechanisms import mechanism
from towns import House, Town, make_town, town_census


def in_counties(town: Town, tracts: int) -> Town:
    """Return the town with so many tracts in each county."""
    blocks = []
    for state, tract, latitude, longitude in town.blocks:
        county = 1 + 2 * (int(tract[5:]) // tracts)
        blocks.append((state, f"{state}{county:03d}{tract[5:]}", latitude, longitude))
    return replace(town, blocks=tuple(blocks))


def owns(house: House) -> bool:
    return house.unit_id % 3 > 0


def wholly(house: House) -> bool:
    """Tell whose unit is imputed."""
    return house.unit_id % 11 == 0


def partly(house: House) -> bool:
    """Tell where all members but the householder are imputed, or the only member is."""
    return house.unit_id % 5 == 0


def imputed_members(house: House) -> int:
    if wholly(house):
        return house.size
    return max(house.size - 1, 1) if partly(house) else 0


def census_of(
    engine: Engine, town: Town, order: np.ndarray | None = None, flags: tuple = ("units", "persons")
) -> Census:
    """Return the town with tenure, and with flags of imputation in some tables."""
    census = town_census(engine, town, order)
    home = nw.col("kind") == "occupied"
    owner = nw.when(home & (nw.col("unit_id") % 3 > 0)).then(nw.lit("1"))
    tenant = nw.when(home & (nw.col("unit_id") % 3 == 0)).then(nw.lit("3"))
    units = census.table("units").with_columns(tenure=nw.coalesce(owner, tenant))
    persons = census.table("persons")
    if "units" in flags:
        unit = home & (nw.col("unit_id") % 11 == 0)
        units = units.with_columns(imputed=nw.when(unit).then(nw.lit("1")).otherwise(nw.lit("0")))
    if "persons" in flags:
        single = [house.unit_id for house in town.houses if house.size == 1]
        some = (nw.col("unit_id") % 5 == 0) & (
            (nw.col("relationship") != "20") | nw.col("unit_id").is_in(single)
        )
        person = some | (nw.col("unit_id") % 11 == 0)
        persons = persons.with_columns(
            imputed=nw.when(person).then(nw.lit("1")).otherwise(nw.lit("0"))
        )
    return replace(census, units=engine.materialise(units), persons=engine.materialise(persons))


def public_docs(census: Census, **parameters):
    return mechanism("public-docs-2010", census.schema, {"rate": "1/10", **parameters})


TOWNS = {
    "two states": in_counties(make_town(700, states=2, tracts=6, blocks=8, seed=1), 3),
    "few blocks": in_counties(make_town(300, tracts=4, blocks=2, seed=2), 2),
    "small": in_counties(make_town(80, tracts=4, blocks=3, seed=3), 2),
    "factors": in_counties(make_town(600, tracts=8, blocks=8, seed=11), 4),
}
