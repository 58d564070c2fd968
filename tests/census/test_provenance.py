"""Every column knows what it depends on, through recodes, conditions, counts and lookups."""

import pytest

from discreet.census import (
    OF_HOUSEHOLD,
    OF_PERSON,
    OF_PERSON_IN_UNIT,
    OF_RECORD_IN_UNIT,
    Contribution,
    Dependence,
    Schema,
    chain_text,
    dependences,
)
from discreet.errors import BadInput

CODES = {"codes": ["a", "b"], "required": True}
ANY = {"any": [{"soil": ["a"]}, {"tenure": ["b"]}]}
GROUPS = {"low": ["a"], "high": ["b"]}
SCHEMA = Schema.model_validate(
    {
        "name": "odd",
        "title": "An odd country",
        "spine": [{"name": "land"}, {"name": "plot"}],
        "geography": {"soil": CODES, "crowd": {**CODES, "confidential": True}},
        "kinds": {"occupied": ["home"]},
        "units": {
            "kind": {"codes": ["home"], "required": True},
            "tenure": CODES,
            "rank": {**CODES, "from_others": True},
            "type": {"codes": ["low", "high"], "derive": "eldest"},
        },
        "persons": {"sex": CODES, "score": {**CODES, "from_others": True}},
        "computed_units": {
            "size": {"members": {}},
            "ladies": {"members": {"sex": ["a"]}},
            "rich_ladies": {"members": {"lives": ["low"]}},
            "eldest": {"member": {"sex": ["a"]}, "take": "sex"},
            "few": {"of": "ladies", "bins": {"low": [0, 1], "high": [2, None]}},
            "busy": {"of": "crowd", "groups": GROUPS},
            "either": {"cases": [{"when": ANY, "then": "x"}]},
            "taken": {"cases": [{"when": {"kind": ["home"]}, "take": "busy"}], "otherwise": "low"},
        },
        "computed_persons": {
            "lives": {"of": "tenure", "groups": GROUPS},
            "where": {"of": "soil", "groups": GROUPS},
            "own": {"cases": [{"when": {"not": {"sex": ["a"]}}, "then": "x"}], "otherwise": "y"},
        },
    }
)  # fmt: skip

D = Dependence
OF_UNITS = {
    "tenure": {D.RECORD},
    "land": {D.PUBLIC},
    "soil": {D.PUBLIC},
    "crowd": {D.CONFIDENTIAL},
    "rank": {D.OTHERS},
    "size": {D.MEMBERS},
    "ladies": {D.MEMBERS},
    "few": {D.MEMBERS},
    "eldest": {D.MEMBERS},
    "type": {D.RECORD, D.MEMBERS},
    "rich_ladies": {D.MEMBERS, D.RECORD},
    "busy": {D.CONFIDENTIAL},
    "taken": {D.RECORD, D.CONFIDENTIAL},
    "either": {D.RECORD, D.PUBLIC},
}
OF_PERSONS = {
    "sex": {D.RECORD},
    "own": {D.RECORD},
    "score": {D.OTHERS},
    "tenure": {D.UNIT},
    "lives": {D.UNIT},
    "where": {D.PUBLIC},
    "size": {D.MEMBERS},
    "few": {D.MEMBERS},
    "type": {D.UNIT, D.MEMBERS},
    "rich_ladies": {D.MEMBERS, D.UNIT},
    "busy": {D.CONFIDENTIAL},
    "either": {D.UNIT, D.PUBLIC},
}


@pytest.mark.parametrize("column", OF_UNITS)
def test_a_column_seen_from_units(column):
    assert set(dependences(SCHEMA, column, "units")) == OF_UNITS[column]


@pytest.mark.parametrize("column", OF_PERSONS)
def test_a_column_seen_from_persons(column):
    assert set(dependences(SCHEMA, column, "persons")) == OF_PERSONS[column]


def test_the_chain_leads_from_the_column_to_what_it_depends_on():
    found = dependences(SCHEMA, "taken", "units")
    told = chain_text(found[D.CONFIDENTIAL])
    assert told == "units.taken from units.busy from geography.crowd"


#: What each kind of contribution refuses of the columns above.
REFUSED = {
    "household": (OF_HOUSEHOLD, "units", {"crowd", "rank", "busy", "taken"}),
    "person": (
        OF_PERSON, "persons",
        {"score", "tenure", "lives", "size", "few", "type", "rich_ladies", "busy", "either"},
    ),
    "person in a unit": (
        OF_PERSON_IN_UNIT, "persons", {"score", "size", "few", "type", "rich_ladies", "busy"},
    ),
    "record in a unit": (OF_RECORD_IN_UNIT, "persons", {"score", "busy"}),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_a_contribution_refuses_whatever_it_does_not_tolerate(kind):
    contribution, place, expected = REFUSED[kind]
    columns = OF_UNITS if place == "units" else OF_PERSONS
    refused = {column for column in columns if refuses(contribution, place, column)}
    assert refused == expected


def refuses(contribution: Contribution, place: str, column: str) -> bool:
    try:
        contribution.check(SCHEMA, place, [column], "a table")
    except BadInput:
        return True
    return False


def test_the_gravest_reason_is_given():
    says = r"a table: 'taken' .*confidential geography .*units.busy from geography.crowd"
    with pytest.raises(BadInput, match=says):
        OF_PERSON.check(SCHEMA, "persons", ["taken"], "a table")


def test_geography_made_from_records_is_confidential():
    data = SCHEMA.model_dump(by_alias=True)
    data["geography"]["soil"]["from_others"] = True
    with pytest.raises(ValueError, match=r"geography.soil.from_others: .* mark it `confidential`"):
        Schema.model_validate(data)
