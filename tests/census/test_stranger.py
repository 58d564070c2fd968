"""A stranger adds a variable, a level and a table by editing data files, and no code."""

from importlib import resources
from pathlib import Path

import narwhals as nw
import pytest

from discreet.census import Census, InvalidCensus, ingest, validate
from discreet.engine import Engine
from discreet.products import tabulate
from discreet.simulate import simulate

PROFILE = """\
format_version: 1
name: my-simulated-country
schema: my-country.yaml
persons: 3000
"""

#: Each edit: a line of the profile, and what is put after it.
EDITS = {
    "  - {name: municipality,": """\
  - {name: district, title: District, pattern: '[A-Z]{2}\\d{5}D\\d', simulate: {children: 3}}
""",
    "  sex: {required: true,": """\
  language:
    required: true
    codes: {fin: Finnish, swe: Swedish}
    simulate: {shares: {fin: 0.9, swe: 0.1}, smooth: true}
""",
    "tables:\n": """\
  - name: R9
    title: Language by age
    count: persons
    by: [language, age_group]
    levels: [district, region]
""",
}
#: The code of a cell begins with the code of its district, not of its municipality.
OLD_CELL, NEW_CELL = r"\d{5}N", r"\d{5}D\dN"
FILES = {
    "geography.csv": """region,province,municipality,district,cell
AA,AA01,AA01001,AA01001D1,AA01001D1N4000E3000
AA,AA01,AA01001,AA01001D2,AA01001D2N4000E3001
AA,AA01,AA01001,AA01001D2,AA01001D2N4000E3002
""",
    "units.csv": """unit_id,cell,kind,tenure
1,AA01001D1N4000E3000,occupied,owner
2,AA01001D2N4000E3001,occupied,renter
3,AA01001D2N4000E3002,vacant,
""",
    "persons.csv": """unit_id,age,sex,household_role,activity,language
1,40,f,head,employed,fin
1,9,m,child,child,swe
2,70,m,head,retired,swe
2,68,f,partner,retired,swe
""",
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    profile = resources.files("discreet.census") / "profiles" / "register-country.yaml"
    text = profile.read_text(encoding="utf-8")
    for line, added in EDITS.items():
        start = text.index(line)
        end = text.index("\n", start) + 1
        text = text[:end] + added + text[end:]
    assert text.count(OLD_CELL) == 1
    text = text.replace(OLD_CELL, NEW_CELL)
    (tmp_path / "my-country.yaml").write_text(text.replace("register-country", "my-country"))
    (tmp_path / "source").mkdir()
    for name, content in FILES.items():
        (tmp_path / "source" / name).write_text(content)
    return tmp_path


def test_the_new_level_variable_and_table_work_everywhere(work: Path, engine: Engine) -> None:
    report = ingest(
        work / "source", work / "census", schema=work / "my-country.yaml", engine=engine
    )
    assert report.findings.items == ()
    census = Census.open(work / "census", engine)
    assert validate(census).items == ()
    assert census.schema.levels == ["region", "province", "municipality", "district", "cell"]
    rows = engine.rows(census.frame("persons", ["district", "language", "age"]))
    assert sorted(rows) == [
        ("AA01001D1", "fin", 40),
        ("AA01001D1", "swe", 9),
        ("AA01001D2", "swe", 68),
        ("AA01001D2", "swe", 70),
    ]
    table = tabulate(census, "R9", "district")
    assert sorted(engine.rows(table.select("area", "language", "age_group", "count"))) == [
        ("AA01001D1", "fin", "30-64", 1),
        ("AA01001D1", "swe", "0-14", 1),
        ("AA01001D2", "swe", "65+", 2),
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "rule"),
    [
        ("persons.csv", "child,swe", "child,rus", "code"),
        ("persons.csv", ",language", ",tongue", "column"),
        ("geography.csv", "AA01001D2,AA01001D2N4000E3002", "D2,AA01001D2N4000E3002", "pattern"),
        ("geography.csv", "AA01001,AA01001D2,AA01001D2N4000E3002",
         "AA01002,AA01001D2,AA01001D2N4000E3002", "nesting"),
    ],
)  # fmt: skip
def test_the_new_level_and_variable_are_checked(
    file: str, old: str, new: str, rule: str, work: Path, engine: Engine
) -> None:
    path = work / "source" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InvalidCensus) as error:
        ingest(work / "source", work / "census", schema=work / "my-country.yaml", engine=engine)
    assert {item.rule for item in error.value.findings.errors} == {rule}


def test_the_new_level_variable_and_table_are_simulated(work: Path, engine: Engine) -> None:
    (work / "profile.yaml").write_text(PROFILE)
    simulate(str(work / "profile.yaml"), work / "simulated", seed=1, processes=1)
    census = Census.open(work / "simulated", engine)
    assert validate(census).items == ()
    geography = census.geography.select("municipality", "district", "cell")
    for municipality, district, cell in engine.rows(geography):
        assert district.startswith(municipality)
        assert cell.startswith(district)
    rows = engine.rows(tabulate(census, "R9", "district").select("area", "language", "count"))
    assert {language for _, language, _ in rows} == {"fin", "swe"}
    ((persons,),) = engine.rows(census.table("persons").select(nw.len()))
    assert sum(count for *_, count in rows) == persons
