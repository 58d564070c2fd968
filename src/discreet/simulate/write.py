"""Turn the simulator's small numbers into the text codes of a census, and write Parquet.

Codes become text inside the engine, from short lists: `list[number]`, typed as an
enumeration because Parquet then stores the list once and the numbers as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.engine import Engine, Frame
from discreet.simulate.county import County
from discreet.simulate.model import load_model
from discreet.simulate.race import DETAILS
from discreet.simulate.records import OCCUPIED

Array = npt.NDArray[Any]

_RELATIONSHIPS = [str(code) for code in range(20, 39)]
_RACES = [f"{code:02d}" for code in range(1, 64)]
_PERSON_FIELDS = (
    *("unit", "age", "sex", "race", "hispanic", "relationship"),
    *("origin", "ethnicity", "imputed", "ordinal"),
)
_UNIT_FIELDS = (
    *("kind", "vacancy", "quarters", "tenure", "imputed"),
    *("household_type", "household_type2", "couple_type", "family_size"),
)
#: The related-to code as a place in its list.
_RELATED = "(relationship - 20)"


def _listed(codes: Iterable[str | None]) -> str:
    return "[" + ", ".join("NULL" if c is None else f"'{c}'" for c in codes) + "]"


def coded(codes: Sequence[str | None], number: str) -> str:
    """Return SQL for the code in place `number` (from zero) of a list, None for missing."""
    distinct = ", ".join(f"'{c}'" for c in dict.fromkeys(c for c in codes if c is not None))
    return f"list_extract(cast({_listed(codes)} as enum({distinct})[]), {number} + 1)"


def _text(codes: Sequence[str], number: str) -> str:
    """Return SQL for plain text in place `number` (from zero) of a list."""
    return f"list_extract({_listed(codes)}, {number} + 1)"


def _joined(left: Sequence[str], right: Sequence[str]) -> list[str]:
    return [f"{a}|{b}" for a in left for b in right]


def _ethnicities() -> list[str]:
    text = load_model().text
    return [text["not_hispanic"], *text["hispanic_detail"]]


@dataclass(frozen=True)
class Part:
    """Where a run of counties goes: their state, first unit number, key and three files."""

    state: str
    first_unit: int
    key: str
    geography: Path
    units: Path
    persons: Path


def write_part(engine: Engine, part: Part, counties: Sequence[County]) -> None:
    """Write geography, units and persons of some counties of a state."""
    with engine.lend(_block_numbers(counties)) as numbers:
        engine.write_parquet(_geography(engine, numbers), part.geography)
    units = _stack([county.units for county in counties], _UNIT_FIELDS)
    units["unit"] = np.arange(sum(len(county.units) for county in counties))
    units["block"] = np.concatenate([c.blocks.code[c.units["block"]] for c in counties])
    with engine.lend(units) as numbers:
        engine.write_parquet(_units(engine, numbers, part), part.units)
    persons = _stack([county.persons for county in counties], _PERSON_FIELDS)
    before = np.cumsum([0, *(len(county.units) for county in counties)], dtype=np.int32)
    persons["unit"] += np.repeat(before[:-1], [len(county.persons) for county in counties])
    persons["donor_id"] = _donor_keys(engine, part, counties, persons)
    with engine.lend(persons) as numbers:
        engine.write_parquet(_persons(engine, numbers, part), part.persons)


def _donor_keys(
    engine: Engine, part: Part, counties: Sequence[County], persons: Mapping[str, Array]
) -> Array:
    """Return the person key of every imputed person's donor, zero for the others."""
    donor, before = [], 0
    for county in counties:
        rows = county.persons["donor"]
        donor.append(np.where(rows >= 0, rows + before, -1))
        before += len(rows)
    of = np.concatenate(donor)
    imputed = np.flatnonzero(of >= 0)
    donors, place = np.unique(of[imputed], return_inverse=True)
    found = np.zeros(before, dtype=np.int64)
    if len(donors):
        numbers = {name: persons[name][donors] for name in _PERSON_FIELDS}
        numbers["row"] = np.arange(len(donors))
        with engine.lend(numbers) as frame:
            keys = engine.to_numpy(_keyed(engine, frame, part, {"row": "row"}))
        found[imputed] = keys["person_key"][np.argsort(keys["row"])][place]
    return found


def _keyed(engine: Engine, frame: Frame, part: Part, columns: Mapping[str, str]) -> Frame:
    """Return `columns` and the person key of the same records.

    The hashed text is the one of `census.with_person_key`, put together from fewer pieces:
    columns that stand side by side are looked up already joined by bars, and the ordinal is
    known. A test compares the two.
    """
    sexes, hispanic = ["1", "2"], ["1", "2"]
    pieces = {
        "_unit": f"unit + {part.first_unit}",
        "_age": "age",
        "_race": _text(_joined(sexes, _RACES), "sex * 63 + race"),
        "_related": _text(_joined(hispanic, _RELATIONSHIPS), f"hispanic * 19 + {_RELATED}"),
        "_groups": _text(load_model().origins.key_text(), "origin"),
        "_flags": _text(_joined(_ethnicities(), ["0", "1"]), "ethnicity * 2 + imputed"),
        "_ordinal": "ordinal",
    }
    projected = engine.project(frame, {**columns, **pieces})
    keyed = engine.order_key(projected, list(pieces), part.key, "person_key")
    return keyed.drop(*pieces)


def _persons(engine: Engine, numbers: Frame, part: Part) -> Frame:
    groups = load_model().origins
    columns = {
        "unit_id": f"cast(unit + {part.first_unit} as bigint)",
        "age": "cast(age as smallint)",
        "sex": coded("12", "sex"),
        "race": coded(_RACES, "race"),
        "hispanic": coded("12", "hispanic"),
        "relationship": coded(_RELATIONSHIPS, _RELATED),
        **{f"race_detail_{k}": coded(groups.column(k), "origin") for k in range(1, DETAILS + 1)},
        "ethnicity_detail": coded(_ethnicities(), "ethnicity"),
        "imputed": coded("01", "imputed"),
        "donor_id": "nullif(donor_id, 0)",
    }
    keyed = _keyed(engine, numbers, part, columns)
    return keyed.select("unit_id", "person_key", *list(columns)[1:])


def _units(engine: Engine, numbers: Frame, part: Part) -> Frame:
    detailed = [f"{code:02d}" for code in range(1, 13)]
    columns = {
        "unit_id": f"cast(unit + {part.first_unit} as bigint)",
        # Quicker than padding: only the states 01 to 09 lack a digit.
        "block": f"'{'0' if part.state < '10' else ''}' || cast(block as varchar)",
        "kind": coded(["occupied", "vacant", "group_quarters"], "kind"),
        "vacancy": coded([None, *"1234567"], "vacancy"),
        "gq_type": coded([None, *load_model().quarters_codes], "quarters"),
        "tenure": coded([None, *"1234"], "tenure"),
        "household_type": coded([None, *"1234567"], "household_type"),
        "household_type2": coded([None, *detailed], "household_type2"),
        "couple_type": coded([None, *"12345"], "couple_type"),
        "family_size": f"case when kind = {OCCUPIED} then cast(family_size as smallint) end",
        "imputed": coded("01", "imputed"),
    }
    return engine.project(numbers, columns)


def _stack(rows: Sequence[Array], fields: Iterable[str]) -> dict[str, Array]:
    return {name: np.concatenate([part[name] for part in rows]) for name in fields}


def _block_numbers(counties: Sequence[County]) -> dict[str, Array]:
    blocks = [county.blocks for county in counties]
    names = ("code", "place", "subdivision", "precinct")
    numbers = {name: np.concatenate([getattr(b, name) for b in blocks]) for name in names}
    point = np.round(np.concatenate([b.point for b in blocks]), 6)
    numbers["latitude"], numbers["longitude"] = point[:, 0].copy(), point[:, 1].copy()
    rural_urban = [county.rural_urban for county in counties]
    numbers["rural_urban"] = np.repeat(rural_urban, [len(b.code) for b in blocks])
    return numbers


def _padded(number: str, width: int) -> str:
    return f"lpad(cast({number} as varchar), {width}, '0')"


def _geography(engine: Engine, numbers: Frame) -> Frame:
    digits = {"state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 15}
    code = {name: f"substr({_padded('code', 15)}, 1, {length})" for name, length in digits.items()}
    return engine.project(
        numbers,
        {
            **code,
            "place": f"case when place > 0 then {code['state']} || {_padded('place', 5)} end",
            "county_subdivision": f"{code['county']} || {_padded('subdivision', 5)}",
            "precinct": f"{code['county']} || '-' || {_padded('precinct', 4)}",
            "latitude": "latitude",
            "longitude": "longitude",
            "rural_urban": "cast(rural_urban as varchar)",
        },
    )


def votes_frame(engine: Engine, counties: Sequence[tuple[int, Array]]) -> Frame:
    """Return votes by precinct and candidate, from (county code, votes) of each county."""
    numbers = {
        "county": np.concatenate([np.full(votes.size, code) for code, votes in counties]),
        "precinct": np.concatenate([np.repeat(np.arange(len(v)) + 1, 2) for _, v in counties]),
        "candidate": np.concatenate([np.tile([0, 1], len(v)) for _, v in counties]),
        "votes": np.concatenate([v.ravel() for _, v in counties]),
    }
    columns = {
        "precinct": f"{_padded('county', 5)} || '-' || {_padded('precinct', 4)}",
        "candidate": coded("AB", "candidate"),
        "votes": "votes",
    }
    return engine.project(engine.from_numpy(numbers), columns)
