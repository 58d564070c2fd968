"""Small TopDown runs: short strategies, a generator without noise, one call that runs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from discreet.census import Census
from discreet.mechanisms import make_draw, mechanism, protect, publish_draw
from discreet.noise import Randomness
from worlds import columns

FACILITIES = [
    "correctional",
    "juvenile",
    "nursing",
    "other institutional",
    "college",
    "military",
    "other noninstitutional",
]


class Silent:
    """Randomness whose words are all zero: every noise drawn from it is 0."""

    mode = "trial"

    def words(self, purpose, keys, start, length) -> np.ndarray:
        return np.zeros(int(length.sum()), dtype=np.uint64)


def levels_of(queries: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return levels that share the budget evenly, each asking its queries."""
    share = str(Fraction(1, len(queries)))
    return [{"level": name, "share": share, "queries": asked} for name, asked in queries.items()]


#: The 2016 cells of the redistricting file with few queries, on a spine of four levels.
PERSONS = {
    "name": "few-persons",
    "title": "Persons, few queries",
    "count": "persons",
    "rho": "2",
    "axes": [
        {"name": "hhgq", "column": "gq_major", "missing": "household"},
        {"name": "votingage", "column": "voting_age"},
        {"name": "hispanic", "column": "hispanic"},
        {"name": "cenrace", "column": "race"},
    ],
    "zeros": [{"hhgq": ["nursing"], "votingage": ["under 18"]}],
    "total": "state",
    "quarters": {"axis": "hhgq", "at_least_one": FACILITIES},
    "total_first": ["county"],
    "rounding": ["total", "hhgq", "hhgq*hispanic*cenrace"],
    "levels": levels_of(
        {
            "state": {"detailed": 1},
            "county": {"total": "1/2", "detailed": "1/2"},
            "tract": {"hispanic": "1/4", "detailed": "3/4"},
            "block": {"detailed": 1},
        }
    ),
}

UNITS = {
    "name": "few-units",
    "title": "Housing units, few levels",
    "count": "units",
    "where": {"kind": ["vacant", "occupied"]},
    "rho": "1/4",
    "axes": [
        {"name": "h1", "column": "kind", "groups": {"vacant": ["vacant"], "occupied": ["occupied"]}}
    ],
    "total": "block",
    "levels": levels_of({name: {"detailed": 1} for name in ("state", "county", "tract", "block")}),
}

#: Persons by quarters and voting age at two levels: what runs fastest.
LEAST = {
    **PERSONS,
    "name": "least-persons",
    "axes": PERSONS["axes"][:2],
    "total_first": [],
    "rounding": ["total", "hhgq"],
    "levels": levels_of({"state": {"detailed": 1}, "block": {"total": "1/4", "detailed": "3/4"}}),
}

LEAST_UNITS = {
    **UNITS,
    "name": "least-units",
    "levels": levels_of({"state": {"detailed": 1}, "block": {"detailed": 1}}),
}

#: The same for the profile register-country.
COUNTRY = {
    "persons": {
        "name": "least-country",
        "title": "Persons of a register by dwelling and sex",
        "count": "persons",
        "rho": "2",
        "axes": [
            {
                "name": "dwelling",
                "column": "kind",
                "groups": {"household": ["occupied", "vacant"], "institution": ["institution"]},
            },
            {"name": "sex", "column": "sex"},
        ],
        "total": "region",
        "quarters": {"axis": "dwelling", "at_least_one": ["institution"]},
        "rounding": ["total", "dwelling"],
        "levels": levels_of({"region": {"detailed": 1}, "cell": {"detailed": 1}}),
    },
    "units": {
        **LEAST_UNITS,
        "name": "least-dwellings",
        "total": "cell",
        "levels": levels_of({"region": {"detailed": 1}, "cell": {"detailed": 1}}),
    },
}

BOTH = {"persons": PERSONS, "units": UNITS}
FEWEST = {"persons": LEAST, "units": LEAST_UNITS}


def topdown(census: Census, **parameters):
    """Return the mechanism for a census; persons and units by the short strategies."""
    return mechanism("topdown", census.schema, parameters or BOTH)


def run(census: Census, rng: Randomness, out: Path, threads: int = 1, **parameters) -> Census:
    """Return the protected records."""
    return protect(topdown(census, **parameters), census, rng, out, threads).microdata(
        census.engine
    )


def drawn(census: Census, rng: Randomness, folder: Path, **parameters) -> Path:
    """Return the folder of a draw."""
    return make_draw(topdown(census, **parameters), census, rng, folder, "design")


def published(census: Census, draw: Path, out: Path) -> Census:
    """Return the records of a draw."""
    return publish_draw(draw, out, census.engine).microdata(census.engine)


def shuffled(census: Census, seed: int) -> Census:
    """Return the census with its rows in another order."""
    engine, dice = census.engine, np.random.default_rng(seed)
    moved = {}
    for name in ("geography", "units", "persons"):
        names = census.table(name).collect_schema().names()
        rows = engine.rows(census.table(name))
        rows = [rows[place] for place in dice.permutation(len(rows))]
        whole = {column for column, value in zip(names, rows[0], strict=True) if is_whole(value)}
        moved[name] = engine.from_numpy(columns(rows, names, whole))
    return replace(census, **moved)


def is_whole(value: object) -> bool:
    return isinstance(value, int)
