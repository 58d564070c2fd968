"""What a simulated census of the US layout is like."""

from collections import Counter, defaultdict
from itertools import combinations

import pytest

from discreet.census import Census, validate, with_person_key
from discreet.engine import Engine
from discreet.simulate import describe, simulate

OWN_CHILD = {"25", "26", "27"}
RELATIVE = OWN_CHILD | {"28", "29", "30", "31", "32", "33"}


def derived(members):
    """Derive HHT, HHT2, CPLT and NPF by the words of the definitions, one by one."""
    relationships = [m["relationship"] for m in members]
    (householder,) = [m for m in members if m["relationship"] == "20"]
    female = householder["sex"] == "2"
    married = any(r in ("21", "23") for r in relationships)
    cohabiting = any(r in ("22", "24") for r in relationships)
    relatives = any(r in RELATIVE for r in relationships)
    own = any(m["relationship"] in OWN_CHILD and m["age"] < 18 for m in members)
    alone = len(members) == 1
    if married:
        hht = "1"
    elif relatives:
        hht = "3" if female else "2"
    elif alone:
        hht = "6" if female else "4"
    else:
        hht = "7" if female else "5"
    if married:
        hht2 = "01" if own else "02"
    elif cohabiting:
        hht2 = "03" if own else "04"
    else:
        codes = ["05", "06", "07", "08"] if female else ["09", "10", "11", "12"]
        hht2 = codes[0 if alone else 1 if own else 2 if relatives else 3]
    couples = {"21": "1", "23": "2", "22": "3", "24": "4"}
    cplt = next((couples[r] for r in relationships if r in couples), "5")
    family = sum(r in RELATIVE | {"20", "21", "23"} for r in relationships)
    return hht, hht2, cplt, family if family > 1 else 0


def test_household_types_follow_from_the_members(ask):
    members = defaultdict(list)
    sample = "(select unit_id from units where kind = 'occupied' and unit_id % 7 = 0)"
    rows = ask(
        f"select unit_id, relationship, age, sex from persons where unit_id in (from {sample})"
    )
    for unit, relationship, age, sex in rows:
        members[unit].append({"relationship": relationship, "age": age, "sex": sex})
    types = "household_type, household_type2, couple_type, family_size"
    units = ask(f"select unit_id, {types} from units where unit_id in (from {sample})")
    assert len(units) > 20_000
    wrong = [unit for unit, *found in units if tuple(found) != derived(members[unit])]
    assert wrong == []
    assert len({row[2] for row in units}) == 12, "every detailed type occurs"


def test_the_validator_finds_nothing(small):
    engine = Engine()
    findings = validate(Census.open(small, engine))
    assert findings.items == ()
    assert not findings.not_checked
    engine.close()


def test_sizes_are_those_of_the_profile(ask):
    assert abs(ask("select count(*) from persons")[0][0] / 640_000 - 1) < 0.05
    areas = "count(*), count(distinct tract), count(distinct county), count(distinct state)"
    assert ask(f"select {areas} from geography") == [(25_000, 190, 14, 1)]


def test_every_block_has_living_quarters_and_some_have_no_people(ask):
    empty = "select count(*) from geography anti join units using (block)"
    assert ask(empty) == [(0,)]
    assert ask("select count(*) from units anti join geography using (block)") == [(0,)]
    vacant = "select block from units group by block having count(*) filter (kind <> 'vacant') = 0"
    assert ask(f"select count(*) from ({vacant})")[0][0] > 50
    only_quarters = (
        "select block from units group by block having bool_and(kind = 'group_quarters')"
    )
    assert ask(f"select count(*) from ({only_quarters})")[0][0] > 5


def test_areas_nest_and_do_not_nest_as_they_should(ask):
    nested = (
        "left(block, 12) = block_group and left(block, 11) = tract and left(block, 5) = county "
        "and left(block, 2) = state and left(precinct, 5) = county "
        "and left(county_subdivision, 5) = county"
    )
    assert ask(f"select bool_and({nested}) from geography") == [(True,)]
    precincts = "select block_group from geography group by 1 having count(distinct precinct) > 1"
    assert ask(precincts) == []
    across = "select place from geography where place is not null group by 1"
    assert ask(f"{across} having count(distinct tract) > 1") != []
    assert ask("select avg((place is null)::int) from geography")[0][0] < 0.9
    assert {code for (code,) in ask("select distinct rural_urban from geography")} <= set(
        "123456789"
    )


def test_relationships_keep_to_possible_ages(ask):
    impossible = """
        (relationship between '20' and '24' and age < 15)
        or (relationship in ('25', '26', '27') and age > 89)
        or (relationship in ('29', '31') and age < 30)
        or (relationship = '30' and age > 74)
        or (relationship = '32' and (age < 15 or age > 89))
        or (relationship = '35' and age > 20)
    """
    assert ask(f"select count(*) from persons where {impossible}") == [(0,)]
    assert len(ask("select distinct relationship from persons")) == 19


def test_couples_and_their_children_are_possible(ask):
    """The limits the 2020 Census puts on householders, elderly members and own children."""
    joined = """
        (select p.*, u.couple_type, h.age as head_age, h.sex as head_sex from persons p
         join units u using (unit_id) join persons h using (unit_id)
         where h.relationship = '20')
    """
    own = "relationship in ('25', '26', '27')"
    impossible = f"""
        (couple_type <> '5' and head_age < 25 and age >= 75)
        or ({own} and head_sex = '1' and head_age >= 75 and age < 6)
        or ({own} and head_sex = '2' and head_age >= 75 and age < 18)
        or ({own} and head_sex = '2' and head_age >= 60 and age < 6)
        or ({own} and age > head_age - 15 and couple_type = '5')
    """
    assert ask(f"select count(*) from {joined} where {impossible}") == [(0,)]


def test_group_quarters_have_residents_of_possible_ages(ask):
    limits = {
        "('101', '102', '103', '104', '105')": (15, 115),
        "('106', '404', '601', '602')": (17, 65),
        "('201', '202', '203')": (0, 25),
        "('301')": (20, 115),
        "('405')": (3, 30),
        "('501')": (16, 65),
        "('801', '802')": (16, 115),
        "('900', '901')": (16, 75),
    }
    joined = "persons join units using (unit_id)"
    for types, (low, high) in limits.items():
        outside = f"gq_type in {types} and not age between {low} and {high}"
        assert ask(f"select count(*) from {joined} where {outside}") == [(0,)], types
    kinds = "bool_and((relationship = '37') = (gq_type < '500')), count(distinct gq_type)"
    institutional, types = ask(f"select {kinds} from {joined} where kind = 'group_quarters'")[0]
    assert institutional
    assert types > 18
    share = "avg((relationship >= '37')::int)"
    assert 0.02 < ask(f"select {share} from persons")[0][0] < 0.03


def test_detailed_groups_agree_with_the_race(ask):
    first_digits = {"1": 0, "3": 1, "5": 2, "6": 2, "4": 3, "7": 4, "8": 5}
    details = ", ".join(f"race_detail_{k}" for k in range(1, 7))
    sets = [set(c) for size in range(1, 7) for c in combinations(range(6), size)]
    rows = ask(f"select race, {details} from persons group by all")
    assert len(rows) > 120
    for race, *codes in rows:
        named = [code for code in codes if code is not None]
        assert codes == named + [None] * (6 - len(named)), "no gap between groups"
        assert {first_digits[code[0]] for code in named} == sets[int(race) - 1]
    assert len({row[0] for row in rows}) > 40
    assert ask("select bool_and((ethnicity_detail = '9950') = (hispanic = '1')) from persons") == [
        (True,)
    ]


def test_donors_are_reported_persons_nearby(ask):
    imputed = "avg((imputed = '1')::int), bool_and((imputed = '1') = (donor_id is not null))"
    share, donors = ask(f"select {imputed} from persons")[0]
    assert 0.02 < share < 0.04
    assert donors
    found = """
        select count(*), bool_and(d.imputed = '0'), bool_and(d.person_key <> p.person_key),
               bool_and(left(a.block, 5) = left(b.block, 5))
        from persons p join persons d on d.person_key = p.donor_id
        join units a on a.unit_id = p.unit_id join units b on b.unit_id = d.unit_id
    """
    count = ask("select count(*) from persons where imputed = '1'")[0][0]
    assert ask(found) == [(count, True, True, True)]
    clustered = """
        select stddev(rate) / avg(rate) from (select avg((p.imputed = '1')::int) rate
        from persons p join units using (unit_id) group by left(block, 11))
    """
    assert ask(clustered)[0][0] > 0.4, "rates differ between tracts"


def test_person_keys_are_those_of_the_census_room(small):
    engine = Engine()
    census = Census.open(small, engine)
    persons = census.table("persons")
    keyed = with_person_key(engine, persons.drop("person_key"), census.schema, "sim3")
    again = Counter(key for (key,) in engine.rows(keyed.select("person_key")))
    stored = Counter(key for (key,) in engine.rows(persons.select("person_key")))
    assert again == stored
    assert max(stored.values()) == 1
    engine.close()


def test_votes_are_for_known_precincts_and_no_more_than_adults(small, ask):
    votes = f"read_parquet('{small}/auxiliary/votes.parquet')"
    adults = """
        (select precinct, count(*) adults from persons join units using (unit_id)
         join geography using (block) where age >= 18 group by 1)
    """
    cast = f"(select precinct, sum(votes) votes from {votes} group by 1)"
    rows = ask(f"select adults, votes from {adults} full join {cast} using (precinct)")
    assert all(votes <= adults for adults, votes in rows)
    turnout = sum(votes for _, votes in rows) / sum(adults for adults, _ in rows)
    assert 0.42 < turnout < 0.48


def test_distributions_are_near_the_public_figures(small):
    """Two percentage points: the profile has the nation's mix, the model is a sketch of it."""
    rows = describe(small)
    assert len(rows) > 40
    for row in rows:
        if row.public is not None:
            assert abs(row.simulated - row.public) < 2.5, (row.topic, row.category)


def test_race_is_segregated(small):
    (entropy,) = [r.simulated for r in describe(small) if r.category == "mean entropy"]
    # The state as a whole has entropy 1.21; four states of 2010 lie between 0.43 and 1.00.
    assert 0.6 < entropy < 1.1


def test_neighbouring_tracts_are_alike(ask):
    """Shares of White persons in consecutive tracts (neighbours on the ground) correlate."""
    tracts = """
        (select left(block, 11) tract, avg((race = '01')::int) share
         from persons join units using (unit_id) group by 1)
    """
    pairs = f"select share, lag(share) over (order by tract) before from {tracts}"
    assert ask(f"select corr(share, before) from ({pairs})")[0][0] > 0.2


@pytest.mark.slow
def test_a_middle_sized_state(tmp_path, sql):
    summary = simulate("mid-state", tmp_path / "census", 2, processes=2)
    assert abs(summary.persons / 5_000_000 - 1) < 0.05
    assert summary.blocks == 165_000
    ask = sql(tmp_path / "census")
    assert ask("select count(distinct county) from geography") == [(67,)]
    shares = dict(ask("select race, count(*) / sum(count(*)) over () from persons group by race"))
    assert shares["01"] == pytest.approx(0.641, abs=0.02)
    assert shares["02"] == pytest.approx(0.258, abs=0.02)
    assert 0.45 < next(r.simulated for r in describe(tmp_path / "census") if r.public is None) < 0.9
