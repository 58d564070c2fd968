"""Every refusal of every mechanism: parameters, what is wrong with the census, and what is said."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw

from discreet.census import Census, Schema, as_data
from discreet.engine import Engine
from phsafe.homes import Home, Person, census_of
from topdown.runs import LEAST, LEAST_UNITS, PERSONS, UNITS, levels_of
from worlds import us_census

Change = Callable[[Census], Census]


@dataclass(frozen=True)
class Refusal:
    """A run that must be refused: `changes` are made to the census, one after the other."""

    mechanism: str
    parameters: dict[str, Any]
    says: str
    changes: tuple[Change, ...] = ()
    world: Callable[[Engine], Census] = field(default=lambda engine: us_census(engine, HOUSEHOLDS))

    def census(self, engine: Engine) -> Census:
        census = self.world(engine)
        for change in self.changes:
            census = change(census)
        return census


HOUSEHOLDS = [
    (0, "1", [(40, "1", "01")]),
    (1, "1", [(70, "2", "02")]),
    (1, "1", [(25, "1", "04")]),
    (2, "1", [(33, "1", "01")]),
    (0, "3", [(40, "1", "01"), (38, "2", "02")]),
    (2, "3", [(51, "2", "06"), (9, "1", "06")]),
]

# -- changes --------------------------------------------------------------------------------------


def schema_with(**parts: Any) -> Change:
    """Return a change of the schema: entries of its parts are added or replaced."""

    def change(census: Census) -> Census:
        data = as_data(census.schema)
        for part, more in parts.items():
            if isinstance(more, list):
                data[part] = [*data[part], *more]
            else:
                data[part] = merged(data.get(part, {}), more)
        return replace(census, schema=Schema(**data))

    return change


def merged(old: dict, more: dict) -> dict:
    both = copy.deepcopy(old)
    for key, value in more.items():
        known = isinstance(both.get(key), dict) and isinstance(value, dict)
        both[key] = merged(both[key], value) if known else value
    return both


def having(table: str, column: str, when: nw.Expr, value: object) -> Change:
    """Return a change of a value for some rows; a column that is not there is added."""

    def change(census: Census) -> Census:
        frame = census.table(table)
        there = frame.collect_schema()
        dtype = there.get(column, nw.String if isinstance(value, str) else nw.Int64)
        old = nw.col(column) if column in there else nw.lit(None, dtype=dtype)
        chosen = nw.when(when).then(nw.lit(value, dtype=dtype)).otherwise(old)
        return replace(census, **{table: frame.with_columns(chosen.alias(column))})

    return change


def without(table: str, *columns: str) -> Change:
    return lambda census: replace(census, **{table: census.table(table).drop(*columns)})


def only_rows(table: str, when: nw.Expr) -> Change:
    return lambda census: replace(census, **{table: census.table(table).filter(when)})


def twice(table: str) -> Change:
    def change(census: Census) -> Census:
        frame = census.table(table)
        return replace(census, **{table: nw.concat([frame, frame.head(1)])})

    return change


def unlinked(census: Census) -> Census:
    homes = census.units.select("unit_id", "block")
    persons = census.persons.join(homes, on="unit_id", how="left").drop("unit_id")
    return replace(census, persons=persons)


ALWAYS = ~nw.col("block").is_null()
OCCUPIED, QUARTERS = nw.col("kind") == "occupied", nw.col("kind") == "group_quarters"
FIRST = nw.col("block").str.ends_with("000")
CROWD = {"number": "integer", "min": 0, "max": 99, "confidential": True}
CONFIDENTIAL = schema_with(
    geography={"crowd": CROWD},
    computed_units={"zone": {"of": "crowd", "bins": {"few": [0, 9], "many": [10, None]}}},
    tables=[{"name": "Z", "title": "z", "count": "units", "by": ["zone"], "levels": ["county"]}],
)
RURAL = {"when": {"rural_urban": ["9"], "tenure": ["1"]}, "then": "yes"}
PLACED = (schema_with(computed_units={"rural": {"cases": [RURAL], "otherwise": "no"}}),)
SECRET = (CONFIDENTIAL, having("geography", "crowd", ALWAYS, 12))


def shell(**more: Any) -> Change:
    given = {"name": "X", "title": "x", "count": "persons", "levels": ["county"], **more}
    return schema_with(tables=[given])


# -- structure: whatever the mechanism -------------------------------------------------------------

PSA = {"rate": "1/2", "match": ["size"], "within": "county"}


def structure() -> Iterator[tuple[str, Refusal]]:
    def broken(says: str, *changes: Change) -> Refusal:
        return Refusal("permutation-swapping", PSA, says, changes)

    yield "a unit twice", broken("units: 1 rows repeat a unit_id", twice("units"))
    yield "a block twice", broken("geography: 1 rows repeat a block", twice("geography"))
    yield "no area", broken("geography.tract: 1 rows", having("geography", "tract", FIRST, None))
    yield "no kind", broken("units.kind: is missing", without("units", "kind"))
    yield "a kind of its own", broken("a kind the schema", having("units", "kind", QUARTERS, "x"))
    yield (
        "a lost unit",
        broken("units: 1 rows name a block", only_rows("geography", ~FIRST), one_unit_left),
    )
    yield "a lost person", broken("rows name a unit_id", only_rows("units", nw.col("unit_id") > 1))
    yield "no units", broken("no units table", lambda census: replace(census, units=None))
    yield "text for numbers", broken("persons.age: does not have the type", age_as_text)
    yield "no such mechanism", Refusal("swapping", PSA, "no mechanism 'swapping'")
    yield "nowhere", broken("neither unit_id nor block", without("persons", "unit_id"))


def age_as_text(census: Census) -> Census:
    return replace(census, persons=census.persons.with_columns(nw.col("age").cast(nw.String)))


def one_unit_left(census: Census) -> Census:
    """Keep one unit in the block that is gone."""
    kept = census.units.filter(~FIRST | (nw.col("unit_id") == 1))
    homes = kept.select("unit_id")
    return replace(census, units=kept, persons=census.persons.join(homes, on="unit_id", how="semi"))


# -- noisy tables ---------------------------------------------------------------------------------


def noisy_tables() -> Iterator[tuple[str, Refusal]]:
    def query(table: str, level: str = "county", share: str = "1") -> dict:
        return {"table": table, "level": level, "share": share}

    def refused(says: str, *changes: Change, queries: list[dict] | None = None, **more) -> Refusal:
        given = {"noise": "gaussian", "budget": "1", "queries": queries or [query("X")], **more}
        return Refusal("noisy-tables", given, says, changes)

    yield "no such table", refused("no table 'H44'", queries=[query("H44")])
    yield "no such level", refused("no level 'conty'", queries=[query("H4", "conty")])
    both = [query("H4", share="1/2"), query("P1", share="1/2")]
    yield "units and persons", refused("count the same", queries=both)
    yield "one twice", refused("asked for twice", queries=[query("H4", share="1/2")] * 2)
    yield "half", refused("add up to exactly 1", queries=[query("H4", share="1/2")])
    yield "no noise", refused("sigma2", queries=[query("H4")], budget="1000000")
    yield "of the household", refused("depends on the unit of the person", queries=[query("P5")])
    yield "confidential", refused("confidential geography", *SECRET, queries=[query("Z")])
    yield "no areas", refused("no areas of level 'place'", queries=[query("H4", "place")])
    yield "no column", refused("no column", NO_RACE, queries=[query("H11")])
    yield "no finite list", refused("no finite list", shell(count="units", by=["size"]))
    yield "an unknown code", refused("does not list", shell(by=["sex"]), SEX_X)
    yield "a missing code", refused("no value of 'sex'", shell(by=["sex"]), NO_SEX)
    named = {"sex": {"codes": {"missing": "Not known"}, "missing": True}}
    yield (
        "called missing",
        refused("called 'missing'", schema_with(persons=named), shell(by=["sex"])),
    )


NO_RACE = without("persons", "race")
SEX_X = having("persons", "sex", nw.col("age") == 9, "x")
NO_SEX = having("persons", "sex", nw.col("age") == 9, None)


# -- swapping -------------------------------------------------------------------------------------


def permutation() -> Iterator[tuple[str, Refusal]]:
    def refused(says: str, *changes: Change, **more: Any) -> Refusal:
        return Refusal("permutation-swapping", {**PSA, **more}, says, changes)

    persons = {"records": "persons", "swap": ["sex"], "match": []}
    yield "rate of 1", refused("strictly between 0 and 1", rate="1")
    yield "a rate too fine", refused("denominator below", rate=f"1/{2**62}")
    yield "nothing to swap", refused("name the variables of persons", records="persons")
    yield "no such variable", refused("is no variable of units", swap=["sizes"])
    yield "a variable twice", refused("names a variable twice", swap=["tenure", "tenure"])
    yield "within the block", refused("within must be a level above block", within="block")
    yield "no such column", refused("units have no column 'ages'", match=["ages"])
    yield "a column twice", refused("names a column twice", match=["size", "size"])
    made = refused("made from a variable that is swapped", swap=["tenure"], match=["owner"])
    yield "matched on what is swapped", made
    yield "matched on the place", refused("changes with the place", *PLACED, match=["rural"])
    yield "matched on a secret", refused("confidential geography", *SECRET, match=["zone"])
    yield "tabulated by a secret", refused("confidential geography", *SECRET, table=["zone"])
    yield "no link", refused("have no link to units", unlinked)
    nobody = refused("has no\\s+persons table", lambda c: replace(c, persons=None), **persons)
    yield "no persons", nobody
    yield "a derived value", refused("no column units.household_type", swap=["household_type"])
    yield "a table without a column", refused("no column units.imputed", table=["imputed"])
    gone = only_rows("units", ~OCCUPIED)
    lived = only_rows("persons", nw.col("unit_id") > 9_000_000)
    yield "nobody to swap", refused("no occupied unit to swap", gone, lived)
    apart = having("units", "imputed", ALWAYS, "0")
    yield "all alone", refused("alone in their stratum", apart, numbered, match=["serial"])
    yield "all the same", refused("have the same", apart, within="state", swap=["imputed"])


def numbered(census: Census) -> Census:
    """Give every unit a number of its own."""
    serial = {"serial": {"number": "integer", "min": 0, "max": 99_999_999}}
    known = schema_with(units=serial)(census)
    return replace(known, units=census.units.with_columns(serial=nw.col("unit_id")))


def pairs() -> Iterator[tuple[str, Refusal]]:
    near = {"rate": "1/2", "within": "county", "leave": "block"}
    docs = {"rate": "1/2", "match": ["size"], "near": [], "unique_area": "county"}
    record = {
        "rate": "1/2",
        "within": "state",
        "hierarchy": ["block"],
        "similar": [["size"]],
        "risk_variables": ["race_group"],
    }

    def targeted(says: str, *changes: Change, **more: Any) -> Refusal:
        return Refusal("targeted-swapping", {**near, **more}, says, changes)

    def public(says: str, *changes: Change, **more: Any) -> Refusal:
        return Refusal("public-docs-2010", {**docs, **more}, says, changes)

    def by_record(says: str, *changes: Change, **more: Any) -> Refusal:
        return Refusal("record-swapping", {**record, **more}, says, changes)

    yield "rate of 0", targeted("strictly between 0 and 1", rate="0")
    yield "no level", targeted("must be one of the levels", within="ward")
    yield "no flag", targeted("units have no column 'sizes'", flags=["sizes"])
    yield "a flag twice", targeted("names a column twice", flags=["size", "size"])
    yield "a secret flag", targeted("confidential geography", *SECRET, flags=["zone"])
    yield "no preset", targeted("there is none called", preset="secret")
    tier = {"share": "1", "chance": "1"}
    yield "tiers without an end", targeted("the last takes the rest", tiers=[tier, tier])
    less = [{"share": "-1", "chance": "1"}, {"chance": "1"}]
    yield "less than nobody", targeted("a share must not be negative", tiers=less)
    yield "more than sure", targeted("a chance must lie", tiers=[{"chance": "2"}])
    yield "no chance", targeted("give some tier a chance", tiers=[{"chance": "0"}])
    yield "pairs without a link", targeted("have no link to units", unlinked)
    yield "flags that are not there", targeted("no column persons.race", NO_RACE)
    lost = without("geography", "latitude")
    yield "no points", targeted("geography.latitude is missing: partners", lost)
    far = having("geography", "latitude", FIRST, 99.0)
    yield "a point off the Earth", targeted("lies outside -90", far)
    gone = having("geography", "latitude", FIRST, None)
    yield "a block without a point", targeted("latitude is missing for blocks", gone)
    homes = only_rows("units", ~OCCUPIED), only_rows("persons", nw.col("unit_id") > 9_000_000)
    yield "no homes", targeted("has no occupied unit", *homes)
    yield "no partner", targeted("no household has a possible partner", numbered, match=["serial"])
    yield "too low a rate", targeted("may swap a single pair", rate="1/1000")
    none = [{"share": "1000", "chance": "0"}, {"chance": "1"}]
    yield "nobody chosen", targeted("no household can be chosen", tiers=none)
    yield "near in a wrong order", public("from the smallest to the", near=["county", "tract"])
    yield "imputed nowhere", public("have a column 'guessed'", imputed={"guessed": ["1"]})
    yield "imputed otherwise", public("has no such code", imputed={"imputed": ["9"]})
    yield "a factor beyond all", public("less than or equal to", unique_race="1e400")
    yield "no race", public("no column persons.race", NO_RACE)
    yield "hierarchy upwards", by_record("from the largest", hierarchy=["block", "tract"])
    yield "leave given", by_record("leave it out", leave="tract")
    yield "no profile", by_record("at least one profile", similar=[])
    shared = [["size", "tract"], ["county"]]
    yield "a level in all", by_record("all profiles keep pairs inside one county", similar=shared)
    apart = [["adults", "minors"], ["size"]]
    yield "no weakest profile", by_record("must follow from each of the others", similar=apart)
    yield "match given", by_record("the weakest of the profiles", match=["tenure"])
    yield "no such risk", by_record("have no column 'colour'", risk_variables=["colour"])
    yield "a risk twice", by_record("names a column twice", risk_variables=["sex", "sex"])
    yield "no risk there", by_record("no column persons.race", NO_RACE)


# -- TopDown --------------------------------------------------------------------------------------

TENURE = {"name": "ten", "column": "tenure", "missing": "none"}
SEX = {"name": "sex", "column": "sex"}
PLAIN = {
    **LEAST,
    "axes": [SEX],
    "zeros": [],
    "quarters": None,
    "rounding": ["total"],
    "levels": levels_of({"state": {"detailed": 1}, "block": {"detailed": 1}}),
}
HOMES = {**LEAST_UNITS, "where": {}, "axes": [{"name": "kind", "column": "kind"}]}


def topdown() -> Iterator[tuple[str, Refusal]]:
    def refused(says: str, *changes: Change, **parameters: Any) -> Refusal:
        return Refusal("topdown", parameters, says, changes)

    def people(says: str, *changes: Change, **more: Any) -> Refusal:
        return refused(says, *changes, persons={**PLAIN, **more})

    def homes(says: str, *changes: Change, **more: Any) -> Refusal:
        return refused(says, *changes, units={**HOMES, **more})

    yield from (
        ("no strategy", refused("name a strategy")),
        ("no such strategy", refused("comes with discreet", persons="own.yaml")),
        ("a strategy of units", refused("counts units", persons=UNITS)),
        ("no such root", refused("no level 'ward'", persons=PLAIN, root="ward")),
        ("a root too low", refused("cannot start at", persons=PERSONS, root="county")),
        ("tables nowhere", refused("tables: no level", persons=PLAIN, tables=["ward"])),
        ("other tables", refused("only the cells", persons=PLAIN, tables=["county"])),
    )
    both = {"persons": PERSONS, "units": UNITS, "tables": ["place"]}
    yield "no area for tables", refused("no areas of level 'place'", **both)
    yield from _strategies(people)
    yield from _axes(people, homes)
    yield from _exact(refused, people, homes)
    yield from _records(refused, people, homes)
    yield from _counts(refused, people)


Maker = Callable[..., Refusal]


def _strategies(people: Maker) -> Iterator[tuple[str, Refusal]]:
    one = {"state": {"detailed": 1}}
    half = levels_of({"state": {"detailed": "1/2"}, "block": {"detailed": 1}})
    total = levels_of({"state": {"total": 1}, "block": {"detailed": 1}})
    query = levels_of({"state": {"detailed": "1/2", "race": "1/2"}, "block": {"detailed": 1}})
    same = levels_of({"state": {"detailed": "1/2", "sex": "1/2"}, "block": {"detailed": 1}})
    again = {"women": {"of": "sex", "groups": {"women": ["2"], "men": ["1"]}}}
    names = levels_of({"state": {"detailed": "1/2", "women*sex": "1/2"}, "block": {"detailed": 1}})
    yield from (
        ("a part left", people("do not add up to exactly 1", levels=half)),
        ("no cells", people("must measure `detailed`", levels=total)),
        ("no such query", people("is no axis or recode", levels=query)),
        ("one query twice", people("under two names", levels=same)),
        ("one axis twice", people("names one axis twice", recodes=again, levels=names)),
        ("no block", people("must end at the smallest level", levels=levels_of(one), total=None)),
        ("a value twice", people("a value is given twice", axes=[GROUPED])),
        ("a name twice", people("is taken", axes=[SEX, {**SEX, "column": "voting_age"}])),
        ("missing is a group", people("names a group", axes=[{**GROUPS, "missing": "all"}])),
        ("no such total", people("total: no level", total="ward")),
    )
    upside = levels_of(
        {"tract": {"detailed": 1}, "county": {"detailed": 1}, "block": {"detailed": 1}}
    )
    yield "upside down", people("not in the order of the spine", levels=upside, total=None)
    ward = levels_of({"ward": {"detailed": 1}, "block": {"detailed": 1}})
    yield "no such level", people("has no level 'ward'", levels=ward, total=None)
    yield "noise beyond reach", people("sigma2", rho="1/1000000000")


GROUPED = {"name": "sex", "column": "sex", "groups": {"a": ["1", "2"], "b": ["2"]}}
GROUPS = {"name": "sex", "column": "sex", "groups": {"all": ["1", "2"]}}


def _axes(people: Maker, homes: Maker) -> Iterator[tuple[str, Refusal]]:
    odd = {"name": "sex", "column": "sex", "groups": {"a": ["1", "2"], "b": ["3"]}}
    part = {"name": "sex", "column": "sex", "groups": {"a": ["1"]}}
    size = {"name": "size", "column": "size_class"}
    large = [{"name": f"a{n}", "column": column} for n, column in enumerate(LARGE)]
    women = {"women": {"of": "sex", "groups": {"women": ["2"]}}}
    empty = {"women": {"of": "sex", "groups": {"women": ["2"], "men": ["1"], "no": []}}}
    chain = ["total", "sex", "voting_age"]
    two = [SEX, {"name": "voting_age", "column": "voting_age"}]
    yield from (
        ("no such column", people("persons have no column", axes=[{**SEX, "column": "colour"}])),
        ("no such value", people("sex has no '3'", axes=[odd])),
        ("values left out", people("leave out values", axes=[part])),
        ("missing without a name", homes("may be missing", axes=[{**TENURE, "missing": None}])),
        ("missing with a taken name", people("is taken by", axes=[{**SEX, "missing": "1"}])),
        (
            "of the geography",
            people("belongs to the geography", axes=[{**SEX, "column": "county"}]),
        ),
        ("of other members", people("depends on the members of the unit", axes=[size])),
        ("a secret", homes("confidential geography", *SECRET, where={"zone": ["few"]})),
        ("too many cells", people("cells, more than", axes=large)),
        ("an empty group", people("a group is empty", recodes=empty)),
        ("no partition", people("does not cover every category", recodes=women)),
        ("no such zero", people("sex has no '3'", zeros=[{"sex": ["3"]}])),
        ("no such axis", people("no axis 'age'", zeros=[{"age": ["1"]}])),
        ("no chain", people("does not subdivide", axes=two, rounding=chain)),
        ("no such code", people("has no such code", where={"sex": ["3"]})),
    )


LARGE = ("race", "age", "relationship", "age_group", "race_group", "voting_age", "sex")


def _exact(refused: Maker, people: Maker, homes: Maker) -> Iterator[tuple[str, Refusal]]:
    by_sex = {"quarters": {"axis": "sex"}, "rounding": ["total", "sex"]}
    by_tenure = {
        "axes": [TENURE, SEX],
        "quarters": {"axis": "ten"},
        "rounding": ["total", "ten"],
    }
    kinds = {"name": "kind", "column": "kind"}
    by_kind = {"axes": [kinds, SEX], "quarters": {"axis": "kind"}, "rounding": ["total", "kind"]}
    vacant = {**LEAST, "quarters": {"axis": "hhgq", "at_least_one": ["household"]}}
    men = {**LEAST, "where": {"sex": ["1"]}}
    held = {"hold": [{"query": "grouped", "level": "state"}]}
    ages = {"name": "voting_age", "column": "voting_age"}
    # Men are adults and women are not, and how many there are of each is exact: they differ.
    crossed = [
        {"sex": ["1"], "voting_age": ["under 18"]},
        {"sex": ["2"], "voting_age": ["18 and over"]},
    ]
    both = [{"query": "sex", "level": "state"}, {"query": "voting_age", "level": "state"}]
    contradictory = people(
        "no counts satisfy all", axes=[SEX, ages], zeros=crossed, hold=both, total=None
    )
    yield "held statistics that exclude each other", contradictory
    grouped = {"grouped": {"of": "sex", "groups": {"all": ["1", "2"]}}}
    cell = {**LEAST, "zeros": [{"hhgq": ["nursing"]}]}
    yield from (
        ("a condition of no list", people("must list the values", where={"not": {"sex": ["1"]}})),
        ("held groups", people("must be of whole", recodes=grouped, **held)),
        ("quarters of persons", people("must be an axis of persons", **by_sex)),
        ("quarters by tenure", people("which is not declared", **by_tenure)),
        ("quarters by occupancy", people("must tell housing units", **by_kind)),
        ("vacant quarters", refused("counts vacant units", persons=vacant)),
        ("some residents", refused("persons are limited by", persons=men)),
        ("residents without a cell", refused("leaves no cell", persons=cell)),
    )
    wide = {**HOMES, "axes": [{"name": "h", "column": "kind", "groups": {"all": KINDS}}]}
    yield "units of any kind", refused("of several kinds or of none", units=wide)
    nobody = {**HOMES, "where": {"kind": ["occupied"], "tenure": ["4"]}}
    yield "nobody counted", refused("no block holds anything that is counted", units=nobody)
    whole = [{**HOMES["levels"][0], "level": "all"}, HOMES["levels"][1]]
    rooted = {**nobody, "levels": whole}
    yield "nobody in the whole", refused("no block holds anything", units=rooted)


KINDS = ["occupied", "vacant", "group_quarters"]


def _records(refused: Maker, people: Maker, homes: Maker) -> Iterator[tuple[str, Refusal]]:
    """Yield strategies whose records could not be written."""
    named = {"name": "sex", "column": "voting_age", "groups": {"all": ["under 18", "18 and over"]}}
    sexes = [{"name": "who", "column": "sex"}, named]
    area = {"name": "value", "column": "sex", "groups": {"all": ["1", "2"]}}
    kind = {"name": "kind", "column": "tenure", "missing": "none"}
    limited = {"kind": ["occupied", "vacant"]}
    clash = {"name": "gq_major", "column": "tenure", "missing": "none"}
    taken = {**LEAST_UNITS, "axes": [*LEAST_UNITS["axes"], clash]}
    yield from (
        ("two axes of one name", people("two of them would be the column 'sex'", axes=sexes)),
        ("a taken name", people("the name is taken by the model", axes=[area])),
        ("a kind that is none", homes("would be the kind", axes=[kind], where=limited)),
        ("quarters of one name", refused("types of quarters", persons=LEAST, units=taken)),
    )
    several = schema_with(
        units={"kind": {"codes": {"barracks": {"label": "Barracks"}}}},
        kinds={"collective": ["group_quarters", "barracks"]},
    )
    groups = {"home": ["occupied", "vacant"], "other": ["group_quarters", "barracks"]}
    lives = {
        "axes": [{"name": "lives", "column": "kind", "groups": groups}, SEX],
        "quarters": {"axis": "lives"},
        "rounding": ["total", "lives"],
    }
    both = {"persons": {**PLAIN, **lives}, "units": LEAST_UNITS}
    yield "quarters of several kinds", refused("may be of several kinds", several, **both)


def _counts(refused: Maker, people: Maker) -> Iterator[tuple[str, Refusal]]:
    """Yield censuses that a strategy does not fit."""
    empty = only_rows("units", nw.col("unit_id") < 0), only_rows("persons", nw.col("unit_id") < 0)
    nested = having("geography", "tract", FIRST, "50003000100")
    levels = levels_of({n: {"detailed": 1} for n in ("county", "tract", "block")})
    least = {**LEAST, "total": "block"}
    gone = only_rows("persons", nw.col("relationship") != "37")
    alone = only_rows("units", ~(FIRST | nw.col("block").str.ends_with("001")) & QUARTERS)
    there = only_rows("persons", nw.col("unit_id") > 9_000_000)
    nobody = (alone, there, gone)
    no_units = lambda census: replace(unlinked(census), units=None)  # noqa: E731
    unknown = "does not list"
    yield from (
        ("no units at all", refused("has no units", no_units, units=HOMES)),
        (
            "no quarters at all",
            refused("no block holds anything that is counted", *empty, persons=LEAST),
        ),
        ("areas that cross", people("do not nest", nested, crossed, levels=levels, total=None)),
        ("a code of no cell", people(unknown, SEX_X)),
        ("no code", people("no value of 'sex'", NO_SEX)),
        ("types of homes", refused("not collective", TYPED, persons=LEAST)),
        ("quarters of no type", refused("have no value", UNTYPED, persons=LEAST)),
        ("fewer than quarters", refused("fewer residents", *nobody, persons=least)),
    )


def crossed(census: Census) -> Census:
    """Put the first block into another county, and a tract that another block of that has."""
    county = nw.when(FIRST).then(nw.lit("50003")).otherwise(nw.col("county"))
    tract = nw.lit("50001000100")
    return replace(census, geography=census.geography.with_columns(county=county, tract=tract))


TYPED = having("units", "gq_type", OCCUPIED, "301")
UNTYPED = having("units", "gq_type", QUARTERS, None)


# -- PHSafe ---------------------------------------------------------------------------------------

FAMILY = Home(1, (Person(40, "20"), Person(38, "21", sex="2"), Person(9, "25")))


def phsafe() -> Iterator[tuple[str, Refusal]]:
    us = {"configuration": "us-2020", "states": ["50"]}

    def refused(
        says: str, *changes: Change, homes: tuple[Home, ...] = (FAMILY,), **more
    ) -> Refusal:
        given = {**us, **more}
        return Refusal("phsafe", given, says, changes, lambda engine: census_of(engine, homes))

    def only(table: str) -> dict:
        """Return budgets of one table alone."""
        from discreet.mechanisms.phsafe import load_configuration

        levels = load_configuration("us-2020").budgets
        return {
            name: {level: ("1" if name == table else "0") for level in known}
            for name, known in levels.items()
        }

    two = (Person(40, "20"), Person(41, "20"))
    crowd = Home(1, two, types=("5", "12", "5"))
    derived = schema_with(
        computed_persons={
            "origin": {"cases": [{"when": {"size": {"min": 5}}, "then": "1"}], "otherwise": "2"}
        },
        persons={"hispanic": {"derive": "origin"}},
    )
    secret = schema_with(
        geography={"crowd": CROWD},
        computed_units={
            "lives": {"cases": [{"when": {"crowd": {"min": 9}}, "then": "1"}], "otherwise": "3"}
        },
        units={"tenure": {"derive": "lives"}},
    )
    yield from (
        ("no list of states", refused("write a list of codes", states="50")),
        ("no state", refused("name at least one state", states=[])),
        ("states as numbers", refused("write codes as texts", states=[50])),
        ("one budget", refused("give a budget for each level", budgets={"PH2": 0})),
        ("unknown table", refused("no table 'PH9'", budgets={"PH9": {"usa_*": "1"}})),
        ("Puerto Rico", refused("is the account of", states=["72"])),
        ("no configuration", refused("name one that comes with discreet", configuration="own")),
        ("nothing measured", refused("all are 0", budgets=only("none"))),
        ("too much noise", refused("budgets.PH7", budgets={"PH7": {"usa_*": "1e-12"}})),
        ("not the person's", refused("depends on the members of the unit", derived)),
        ("a secret tenure", refused("confidential geography", secret)),
        ("another schema", refused("the tables need the column", no_couples)),
        ("other kinds", refused("other kinds of housing", other_kinds)),
        ("persons without homes", refused("must name the unit", unlinked)),
        ("no such state there", refused("has no block in 44", states=["44"])),
        ("a state that is none", refused("codes of states are none", STATE_99)),
        ("two householders", refused("exactly one householder", homes=(crowd,))),
        ("persons in a vacant unit", refused("live in a vacant unit", VACANT)),
        ("no age", refused("is missing or not legal", NO_AGE, budgets=only("PH3"))),
        ("no tenure", refused("has no tenure", NO_TENURE)),
        ("no race", refused("in no population group", RACE_99)),
    )
    pr = {"configuration": "pr-2020", "states": ["72"]}
    usa = {"PH7": {"usa_*": "1"}}
    yield "a nation of Puerto Rico", refused("no nation level", **pr, budgets=usa)


def no_couples(census: Census) -> Census:
    data = as_data(census.schema)
    for name in ("couple_type", "derived_couple_type"):
        data["units"].pop(name, None)
        data["computed_units"].pop(name, None)
    data["rules"] = []
    return replace(census, schema=Schema(**data), units=census.units.drop("couple_type"))


def other_kinds(census: Census) -> Census:
    return schema_with(
        units={"kind": {"codes": {"boat": {"label": "Boat"}}}},
        kinds={"vacant": ["vacant", "boat"]},
    )(census)


STATE_99 = having("geography", "state", ALWAYS, "99")
NO_AGE = having("persons", "age", nw.col("age") == 9, None)
NO_TENURE = having("units", "tenure", OCCUPIED, None)
RACE_99 = having("persons", "race", nw.col("relationship") == "20", "99")
VACANT = having("units", "kind", OCCUPIED, "vacant")

ROOMS = (structure, noisy_tables, permutation, pairs, topdown, phsafe)
REFUSALS = {f"{room.__name__}: {why}": one for room in ROOMS for why, one in room()}

#: A run of every mechanism that is not refused.
GOOD = {
    "permutation-swapping": PSA,
    "targeted-swapping": {"rate": "1/2", "within": "county", "leave": "block"},
    "public-docs-2010": {"rate": "1/2", "match": ["size"], "near": [], "unique_area": "county"},
    "record-swapping": {
        "rate": "1/2",
        "within": "state",
        "hierarchy": ["block"],
        "similar": [["size"]],
        "risk_variables": ["race_group"],
    },
    "noisy-tables": {
        "noise": "gaussian",
        "budget": "1",
        "queries": [{"table": "H4", "level": "county", "share": "1"}],
    },
    "topdown": {"persons": LEAST},
    "phsafe": {"configuration": "us-2020", "states": ["50"]},
}
