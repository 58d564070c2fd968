"""The tables counted a second time: rows and loops, from the definitions of the codes."""

from __future__ import annotations

from collections import Counter, defaultdict

from discreet.census import Census

#: (table, level) -> (region, iteration code, cell) -> count
Plain = dict[tuple[str, str], Counter]

FAMILY = {"20", "21", "23", "25", "26", "27", "28", "29", "30", "31", "32", "33"}


def read(census: Census) -> tuple[list[dict], list[dict]]:
    """Return the rows of units (with their state) and of persons."""
    engine = census.engine
    tables = []
    for frame in (census.geography, census.units, census.persons):
        names = frame.collect_schema().names()
        tables.append([dict(zip(names, row, strict=True)) for row in engine.rows(frame)])
    geography, units, persons = tables
    state_of = {row["block"]: row["state"] for row in geography}
    for unit in units:
        unit["state"] = state_of[unit["block"]]
    return units, persons


def iterations(race: str, hispanic: str, group: str) -> list[str]:
    if group == "*":
        return ["*"]
    if group == "A-G":
        return ["ABCDEF"[int(race) - 1]] if int(race) <= 6 else ["G"]
    if hispanic == "2":
        return ["H"]
    return ["I"] if race == "01" else []


def tabulate(census: Census, tau: dict[str, int], states: set[str]) -> Plain:
    """Return the counts of every cell that is not empty."""
    units, persons = read(census)
    members = defaultdict(list)
    for person in persons:
        members[person["unit_id"]].append(person)
    found: Plain = defaultdict(Counter)
    for unit in units:
        if unit["kind"] == "group_quarters" or unit["state"] not in states:
            continue
        own = sorted(members[unit["unit_id"]], key=lambda person: person["person_key"])
        if unit["kind"] == "vacant":
            continue
        head = next(person for person in own if person["relationship"] == "20")
        whole = (head["race"], head["hispanic"])
        _add(found, "PH1_denom", unit, whole, 1)
        _add(found, "PH8_denom", unit, whole, 2 if unit["tenure"] in ("1", "2") else 3)
        if unit["household_type"] in ("1", "2", "3"):
            _add(found, "PH5_denom", unit, whole, 1)
        for person in own[: tau["PH1_num"]]:
            _add(found, "PH1_num", unit, whole, 2 if person["age"] < 18 else 3)
        for _ in own[: tau["PH2"]]:
            _add(found, "PH2", unit, None, couple_cell(unit))
        for _ in own[: tau["PH7"]]:
            _add(found, "PH7", unit, whole, {"1": 2, "2": 3, "3": 4, "4": 4}[unit["tenure"]])
        young = [person for person in own if person["age"] < 18]
        for person in young[: tau["PH3"]]:
            race = (person["race"], person["hispanic"])
            _add(found, "PH3", unit, race, child_cell(person["relationship"], unit))
        children = [p for p in young if p["relationship"] in ("25", "26", "27")]
        for person in children[: tau["PH6"]]:
            _add(found, "PH6", unit, None, age_cell(person["age"], unit))
        family = [person for person in own if person["relationship"] in FAMILY]
        for person in family[: tau["PH4"]]:
            if unit["household_type"] <= "3":
                _add(found, "PH4", unit, whole, 2 if person["age"] < 18 else 3)
    return found


def _add(found: Plain, table: str, unit: dict, race: tuple[str, str] | None, cell: int) -> None:
    for region, name in (("usa", "1"), ("state", unit["state"])):
        for group in ("*",) if race is None else ("*", "A-G", "H,I"):
            for code in iterations(*(race or ("", "")), group):
                found[table, f"{region}_{group}"][name, code, cell] += 1


def couple_cell(unit: dict) -> int:
    kind, couple = unit["household_type2"], unit["couple_type"]
    if kind in ("01", "02"):
        return {"1": 3, "2": 4}[couple]
    if kind in ("03", "04"):
        return {"3": 6, "4": 7}[couple]
    return {"09": 9, "10": 10, "11": 10, "12": 10, "05": 12, "06": 13, "07": 13, "08": 13}[kind]


def child_cell(relationship: str, unit: dict) -> int:
    if relationship in ("20", "21", "22", "23", "24", "34", "35", "36"):
        return 2
    if relationship in ("25", "26", "27"):
        return {"01": 4, "03": 5, "10": 6, "06": 7}[unit["household_type2"]]
    if relationship == "30":
        return 9
    assert relationship in ("28", "29", "31", "32", "33")
    return 10


def age_cell(age: int, unit: dict) -> int:
    band = 0 if age <= 3 else 1 if age <= 5 else 2 if age <= 11 else 3
    return {"01": 3, "03": 8, "10": 13, "06": 18}[unit["household_type2"]] + band
