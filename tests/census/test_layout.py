"""Mapping files: small, declarative, and refused with a hint when wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from discreet.census import Census, IngestReport, InvalidCensus, ingest, load_layout
from discreet.config import BadConfig
from discreet.engine import Engine
from discreet.errors import BadInput

#: The register sample under other names, with other codes, cut up and put together.
MAPPING: dict[str, Any] = {
    "format_version": 1,
    "name": "other-office",
    "title": "Files of another office",
    "schema": "register-country",
    "missing": ["NA"],
    "tables": {
        "geography": {"files": ["grid"], "columns": {"cell": "CELL", "province": ["REG", "PROV"]}},
        "units": {
            "files": ["dwellings"],
            "columns": {
                "unit_id": "DWELLING",
                "cell": "CELL",
                "kind": {"from": "STATUS", "recode": {"1": "occupied", "2": "vacant"}},
                "tenure": {"from": "TEN", "recode": {"o": "owner"}, "missing": ["-"]},
                "dwelling_type": {"value": "house"},
            },
        },
        "persons": {
            "files": ["people"],
            "columns": {
                "unit_id": "DWELLING",
                "household_role": {"from": "ROLE", "optional": True},
            },
            "ignore": ["NAME"],
        },
    },
}
FILES = {
    "grid.csv": "region,REG,PROV,municipality,CELL\nAA,AA,01,AA01001,AA01001N4000E3000\n",
    "dwellings.csv": "DWELLING,CELL,STATUS,TEN\nx,AA01001N4000E3000,1,o\ny,AA01001N4000E3000,2,-\n",
    "people.csv": "DWELLING,NAME,age,sex,education\nx,Ann,40,f,high\nx,Bob,NA,m,low\n",
}


@pytest.fixture
def office(tmp_path: Path) -> Path:
    folder = tmp_path / "office"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def save(tmp_path: Path, mapping: dict[str, Any]) -> Path:
    path = tmp_path / "mapping.yaml"
    path.write_text(yaml.safe_dump(mapping, sort_keys=False))
    return path


def test_any_layout_by_a_mapping_file(office: Path, tmp_path: Path, engine: Engine) -> None:
    mapping = save(tmp_path, MAPPING)
    with pytest.raises(InvalidCensus) as error:
        ingest(office, tmp_path / "out", layout=mapping, engine=engine)
    assert [(i.rule, i.column, i.rows) for i in error.value.findings.errors] == [
        ("missing", "age", (2,))
    ]
    (office / "people.csv").write_text(FILES["people.csv"].replace("NA", "39"))
    report = ingest(office, tmp_path / "out", layout=mapping, engine=engine)
    assert report.counts == {"geography": 1, "units": 2, "persons": 2}
    units = engine.rows(Census.open(tmp_path / "out", engine).table("units"))
    assert units == [
        (1, "AA01001N4000E3000", "occupied", "owner", "house"),
        (2, "AA01001N4000E3000", "vacant", None, "house"),
    ]


def test_a_text_that_the_recode_does_not_list_is_found(
    office: Path, tmp_path: Path, engine: Engine
) -> None:
    (office / "people.csv").write_text(FILES["people.csv"].replace("NA", "39"))
    # The canonical code itself is not a code of that office.
    (office / "dwellings.csv").write_text(FILES["dwellings.csv"].replace(",2,-", ",vacant,-"))
    with pytest.raises(InvalidCensus) as error:
        ingest(office, tmp_path / "out", layout=save(tmp_path, MAPPING), engine=engine)
    found = [(i.rule, i.column, i.rows) for i in error.value.findings.errors]
    assert found == [("type", "kind", (2,))]


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the mapping with one entry set, `a.b.c`."""
    text = yaml.safe_load(yaml.safe_dump(MAPPING))
    *above, last = path.split(".")
    place = text
    for step in above:
        place = place[step]
    place[last] = value
    return text  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("tabels", {}, "Did you mean 'tables'"),
        ("format_version", 2, "Upgrade"),
        ("tables.units.colums", {}, "unknown key"),
        ("tables.units.columns.tenur", "TEN", "Did you mean 'tenure'"),
        ("tables.units.columns.tenure", {"from": "A", "value": "b"}, "exactly one"),
        ("tables.units.columns.tenure", {}, "exactly one"),
        ("tables.units.columns.tenure", 3, "tables.units.columns.tenure"),
        ("tables.units.files", [], "files"),
        ("tables.units.files", ["../secret"], "files"),
        ("tables.units.expand", {"into": "race", "counts": {"1": "W"}}, "only persons"),
        ("tables.units.lookup", {"table": "unit", "by": "X"}, "lookup"),
        ("tables", {"units": {"files": ["a"]}}, "has geography"),
        ("schema", "us-decenial", "Did you mean 'us-decennial'"),
        ("optional", ["persons.shoe"], "no such column"),
        ("optional", ["rules"], "no such column"),
        ("also", {"units": {"kind2": {}}}, "exactly one of codes"),
        ("also", {"units": {"kind2": {"codes": [{"a": "b"}]}}}, "codes are text"),
        ("also", {"units": {"kind2": {"codes": ["a", ["b"]]}}}, "codes are text"),
        ("rules", [{"id": "x", "table": "units", "title": "t", "then": {"kin": 1}}], "'kind'"),
        ("rules", [{"id": "one-head", "table": "units", "title": "t", "then": {}}], "twice"),
    ],
)
def test_a_bad_mapping_is_refused_with_a_hint(
    path: str, value: Any, says: str, office: Path, tmp_path: Path, engine: Engine
) -> None:
    mapping = save(tmp_path, changed(path, value))
    with pytest.raises(BadInput, match=says):
        ingest(office, tmp_path / "out", layout=mapping, engine=engine)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["canonical", "phsafe", "household-rows"])
def test_shipped_layouts_load(name: str) -> None:
    assert load_layout(name).name == name


def test_an_optional_column_of_a_mapping_may_be_absent_but_others_may_not(
    copied: Callable[[str], Path],
    edit: Callable[[Path, list[Any]], None],
    take_in: Callable[..., IngestReport],
) -> None:
    folder = copied("household-rows")
    edit(folder, ["households", "drop", "INTPTLAT10"])
    edit(folder, ["households", "drop", "INTPTLON10"])
    edit(folder, ["households", "drop", "TOTAL"])
    report = take_in(folder, "household-rows")
    assert report.findings.not_checked == {"stated-size": "units.stated_size"}
    edit(folder, ["households", "drop", "W"])
    with pytest.raises(InvalidCensus, match="W "):
        take_in(folder, "household-rows", out=folder / "other")


def test_a_recode_with_very_many_results_is_refused(tmp_path: Path) -> None:
    many = {str(n): f"t{n}" for n in range(500)}
    mapping = changed("tables.units.columns.kind", {"from": "STATUS", "recode": many})
    with pytest.raises(BadConfig, match="at most 200"):
        load_layout(save(tmp_path, mapping))


def test_rows_that_look_up_another_file_are_not_made_distinct(tmp_path: Path) -> None:
    data = load_layout("phsafe").model_dump(by_alias=True, exclude_defaults=True)
    data["tables"]["units"]["distinct"] = True
    with pytest.raises(BadConfig, match="look up another file"):
        load_layout(save(tmp_path, {"format_version": 1, **data}))
