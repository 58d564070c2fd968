"""Whatever a mechanism's check lets pass can be drawn and published: nothing is found out later."""

from dataclasses import replace
from pathlib import Path

import narwhals as nw
import pytest

from discreet.census import Census, Schema, as_data, check_structure
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import Mechanism, make_draw, mechanism, publish_draw
from discreet.noise import trial
from discreet.products import check_invariants
from mechanisms.test_conformance import CASES, Case
from topdown.runs import shuffled
from worlds import folder_bytes

MORE = {
    "psa-with-a-table": Case(
        "permutation-swapping",
        {"rate": "1/2", "match": [], "within": "county", "table": ["size"]},
        "us",
    ),
    "psa-with-an-optional-column": Case(
        "permutation-swapping",
        {"rate": "1/2", "match": [], "within": "county", "table": ["imputed"]},
        "us",
    ),
    "psa-of-a-derived-variable": Case(
        "permutation-swapping",
        {"rate": "1/2", "match": [], "within": "county", "swap": ["household_type"]},
        "us",
    ),
    "targeted-unmatched": Case(
        "targeted-swapping",
        {"rate": "1/2", "match": [], "within": "county", "leave": "block"},
        "us",
    ),
    "public-docs-unmatched": Case(
        "public-docs-2010",
        {"rate": "1/2", "match": [], "near": [], "unique_area": "county"},
        "us",
    ),
}
#: One case for each way of drawing.
FEW = [
    *("psa-us", "psa-tenure", "psa-persons", "targeted-us", "public-docs", "record"),
    *("noisy-us", "topdown-us", "phsafe"),
]
ALL = {name: CASES[name] for name in FEW} | MORE


def without(table: str, *columns: str):
    def change(census: Census) -> Census:
        present = census.table(table).collect_schema().names()
        return replace(
            census, **{table: census.table(table).drop(*(c for c in columns if c in present))}
        )

    return change


def unlinked(census: Census) -> Census:
    block = census.schema.block
    homes = census.units.select("unit_id", block)
    persons = census.persons.join(homes, on="unit_id", how="left").drop("unit_id")
    return replace(census, persons=persons)


#: What a census may lack.
LACKS = {
    "nothing": lambda census: census,
    "persons": lambda census: replace(census, persons=None),
    "units": lambda census: replace(census, units=None),
    "the link": unlinked,
    "the link and units": lambda census: replace(unlinked(census), units=None),
    "rows": lambda c: replace(c, units=c.units.head(0), persons=c.persons.head(0)),
    "rows of persons": lambda census: replace(census, persons=census.persons.head(0)),
    "points": without("geography", "latitude", "longitude"),
    "types": without("units", "tenure", "gq_type", "vacancy"),
    "kinds": without("units", "kind"),
    "sex": without("persons", "sex"),
    "race": without("persons", "race", "citizenship"),
    "age": without("persons", "age"),
    "relations": without("persons", "relationship", "household_role"),
    "keys": without("persons", "person_key"),
}


def released(made: Mechanism, census: Census, folder: Path) -> Path:
    """Draw and publish; return the release."""
    draw = make_draw(made, census, trial(1), folder / "draw", "design")
    specification = made.specify(made.facts(census))
    if (draw / "microdata").exists():
        drawn = Census.open(draw / "microdata", census.engine)
        assert not any(check_invariants(specification, census, drawn).values())
    return publish_draw(draw, folder / "out").folder


@pytest.mark.filterwarnings("ignore:rows of region type USA")
@pytest.mark.parametrize("name", ALL)
def test_whatever_a_census_lacks_it_is_refused_by_the_check_or_drawn_from(name, tmp_path):
    case, engine = ALL[name], Engine(threads=1)
    base, drawn = case.census(engine), 0
    for lacking, change in LACKS.items():
        made, census = case.mechanism(base), change(base)
        try:
            check_structure(census)
            made.check(census)
            made.specify(made.facts(census))
        except BadInput:
            continue
        released(made, census, tmp_path / lacking)
        drawn += 1
    # These two need a column that the census of the tests never has.
    assert drawn or name in ("psa-with-an-optional-column", "psa-of-a-derived-variable")


# -- names ------------------------------------------------------------------------------------

#: Words that mechanisms might call columns of their own.
WORDS = [
    *("record", "text", "unit_text", "fresh_id", "is_given", "given_block", "members", "cell"),
    *("node", "code", "number", "target", "one", "other", "targets", "alike", "found", "wholly"),
    *("label", "held", "listed", "stratum", "place", "rows", "key", "share", "level", "detailed"),
]


def with_words(census: Census) -> Census:
    """Return the census with variables of all these names, of units and of persons."""
    data = as_data(census.schema)
    words = [word for word in WORDS if word not in census.schema.area_names]
    for table in ("units", "persons"):
        data[table] |= {word: {"codes": ["a", "b"]} for word in words}
    shell = {"title": "x", "count": "units", "levels": [census.schema.levels[0]]}
    data["tables"].append({"name": "WORDS", **shell, "by": words[:6]})
    data["tables"].append({"name": "CELLS", **shell, "by": words[6:12]})
    same = dict.fromkeys(words, nw.lit("a"))
    changed = {
        table: census.engine.materialise(census.table(table).with_columns(**same))
        for table in ("units", "persons")
    }
    return replace(census, schema=Schema(**data), **changed)


def using(case: Case, census: Census) -> dict:
    """Return the parameters of a case, with words as columns wherever they may be given."""
    given, words = dict(case.parameters), [w for w in WORDS if w in census.schema.units]
    if given.get("records") == "persons":
        return given | {"match": words}
    if case.name in ("permutation-swapping", "public-docs-2010"):
        given["match"] = [*given.get("match", ()), *words]
    if case.name == "targeted-swapping":
        given |= {"match": ["size", *words], "flags": words}
    if case.name == "record-swapping":
        given |= {"similar": [["size", *words]], "risk_variables": words}
    if case.name == "noisy-tables":
        level = census.schema.levels[0]
        names = ("WORDS", "CELLS")
        given["queries"] = [{"table": name, "level": level, "share": "1/2"} for name in names]
    if case.name == "topdown":
        for table in ("persons", "units"):
            axes = [{"name": word, "column": word} for word in words[9:12]]
            given[table] = {**given[table], "axes": [*given[table]["axes"], *axes]}
    return given


@pytest.mark.filterwarnings("ignore:rows of region type USA")
@pytest.mark.parametrize("name", FEW)
def test_a_variable_may_have_any_name_and_order_tells_nothing(name, tmp_path):
    """A column of a mechanism's own in its place would stop a draw, or the sorting of records."""
    case = CASES[name]
    census = with_words(case.census(Engine(threads=1)))
    parameters, found = using(case, census), []
    for number, one in enumerate((census, shuffled(census, 3))):
        made = mechanism(case.name, census.schema, parameters)
        made.check(one)
        found.append(folder_bytes(released(made, one, tmp_path / str(number))))
    for files in found:
        del files["release.yaml"]  # names the draw by a salted hash
    assert found[0] == found[1]


# -- what only one mechanism does -----------------------------------------------------------------


def test_units_alone_are_matched_on_public_geography(tmp_path):
    """Units without persons are packed into numbers, which know nothing of their area."""
    case = CASES["psa-us"]
    base = case.census(Engine(threads=1))
    data = as_data(base.schema)
    data["computed_units"]["rural"] = {"of": "rural_urban", "roll_up": True}
    census = replace(
        base,
        schema=Schema(**data),
        persons=None,
        geography=base.geography.with_columns(rural_urban=nw.lit("1")),
    )
    parameters = {"rate": "1/2", "match": ["rural"], "within": "county"}
    made = mechanism("permutation-swapping", census.schema, parameters)
    made.check(census)
    released(made, census, tmp_path)
