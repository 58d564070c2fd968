"""To look at one of each kind of rows finds what looking at every row finds, and gives the same."""

import csv
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.census import (
    Findings,
    InvalidCensus,
    ingest,
    load_layout,
    load_schema,
    read_census,
    representatives,
)
from discreet.census.census import as_data
from discreet.census.grouping import Chosen, alike, choose
from discreet.census.layout import Layout
from discreet.census.sources import Sources
from discreet.engine import Engine, EngineStopped, MemoryReached
from discreet.errors import BadInput, UnreadableFile

VIOLATIONS: list[dict[str, Any]] = [
    case
    for case in yaml.safe_load((Path(__file__).parent / "violations.yaml").read_text())
    if case["sample"] == "phsafe" and case["rule"] != "column"
]

FILES = ("geo", "units", "persons")
COPIES = 20

Copy = Callable[[str], Path]
Edit = Callable[[Path, list[Any]], None]


def read(path: Path) -> list[list[str]]:
    with path.open(newline="") as handle:
        return list(csv.reader(handle))


def write(path: Path, rows: list[list[str]]) -> None:
    path.write_text("\n".join(",".join(row) for row in rows) + "\n")


def repeat(clean: Path, edited: Path) -> Path:
    """Put the edited sample among copies of the clean one, each with ids of its own."""
    for name in FILES:
        header, *rows = read(clean / f"{name}.csv")
        last_header, *last = read(edited / f"{name}.csv")
        kept = [header.index(column) for column in last_header]
        copies = []
        for copy in range(COPIES):
            here = last if copy == COPIES // 2 else [[row[place] for place in kept] for row in rows]
            copies += [numbered(row, last_header.index("MAFID"), copy) for row in here]
        write(edited / f"{name}.csv", [last_header, *copies])
    return edited


def numbered(row: list[str], key: int, copy: int) -> list[str]:
    """Return a row with the id of a copy, unless it has none of the sample."""
    own = row[key].isdecimal() and 100000001 <= int(row[key]) <= 100000004
    return [*row[:key], str(int(row[key]) + 1000 * copy), *row[key + 1 :]] if own else row


def quick(
    engine: Engine, folder: Path, layout: Layout | None = None
) -> representatives.Flawless | None:
    layout = layout or load_layout("phsafe")
    schema = layout.checked(load_schema("us-decennial"))
    sources = Sources(engine, folder, layout)
    return representatives.by_representatives(engine, sources, layout, schema)


def test_a_clean_sample_needs_no_look_at_every_row(
    copied: Copy, engine: Engine, take_in: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied("phsafe")
    repeat(folder, folder)
    assert quick(engine, folder) is not None
    first = take_in(folder, "phsafe", out=folder.parent / "quick", key="k")
    monkeypatch.setattr(representatives, "read_linked", lambda *_: None)
    second = take_in(folder, "phsafe", out=folder.parent / "slow", key="k")
    assert first == second
    for path in sorted((folder.parent / "slow").iterdir()):
        assert path.read_bytes() == (folder.parent / "quick" / path.name).read_bytes()


@pytest.mark.parametrize(
    "stop", [EngineStopped("no"), MemoryReached("no"), UnreadableFile("units.csv", "no", "no")]
)
def test_what_the_engine_stops_at_is_read_row_by_row(
    copied: Copy, engine: Engine, monkeypatch: pytest.MonkeyPatch, stop: Exception
) -> None:
    folder = copied("phsafe")
    assert quick(engine, folder) is not None

    def stopped(*_: object) -> None:
        raise stop

    monkeypatch.setattr(representatives._Examiner, "_choose", stopped)
    assert quick(engine, folder) is None


@pytest.mark.parametrize(
    "case", VIOLATIONS, ids=lambda case: f"{case['rule']}:{case['edits'][0][1:3]}"
)
def test_one_row_at_fault_among_many_is_noticed(
    case: dict[str, Any], copied: Copy, edit: Edit, engine: Engine, tmp_path: Path
) -> None:
    folder = copied("phsafe")
    clean = tmp_path / "clean"
    folder.rename(clean)
    folder = copied("phsafe")
    for change in case["edits"]:
        edit(folder, change)
    assert quick(engine, repeat(clean, folder)) is None


#: What to leave out, and a fault that only this shows: two householders in a household of the
#: stated size; group quarters with the geography row of a dwelling; an id out of its range.
PLANTS: dict[str, list[list[Any]]] = {
    "members": [["persons", 2, "RELSHIP", "20"]],
    "area": [
        ["geo", 4, "RTYPE", "2"],
        ["geo", 4, "TABBLKCOU", "001"],
        ["geo", 4, "TABTRACTCE", "030100"],
        ["geo", 4, "TABBLK", "1000"],
        ["geo", 4, "PLACEFP", "59000"],
    ],
    "ids": [["units", 2, "MAFID", "99"], ["geo", 2, "MAFID", "99"]],
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_comparison_that_leaves_something_out_misses_a_fault(
    plant: str,
    copied: Copy,
    edit: Edit,
    engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied("phsafe").rename(tmp_path / "clean")
    folder = copied("phsafe")
    for change in PLANTS[plant]:
        edit(folder, change)
    repeat(tmp_path / "clean", folder)
    assert quick(engine, folder) is None
    if plant == "ids":

        def short(first: Any, groups: Any, areas: Any, ids: Any) -> Chosen:
            return choose(first, groups, areas, np.sort(ids)[1:])

        monkeypatch.setattr(representatives, "choose", short)
    elif plant == "members":
        monkeypatch.setattr(representatives, "alike", lambda kinds, of: alike(kinds, of[:1]))
    else:
        monkeypatch.setattr(representatives, "alike", lambda kinds, of: alike(kinds, of[1:]))
    assert quick(engine, folder) is not None


OTHER_LAYOUTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "without lookup": lambda units: units.pop("lookup"),
    "id padded": lambda units: units["columns"].update(
        unit_id={"from": [{"column": "MAFID", "pad": 12}]}
    ),
    "id in a code": lambda units: units["columns"].update(tenure=["TEN", "MAFID"]),
    "two files in a column": lambda units: units["columns"].update(
        tenure=["TEN", "geography.RTYPE"]
    ),
}


@pytest.mark.parametrize("change", OTHER_LAYOUTS)
def test_a_layout_that_asks_for_more_is_read_row_by_row(
    change: str, copied: Copy, engine: Engine
) -> None:
    data = load_layout("phsafe").model_dump(by_alias=True, exclude_defaults=True)
    OTHER_LAYOUTS[change](data["tables"]["units"])
    assert quick(engine, copied("phsafe"), Layout.model_validate(data)) is None


CELLS = st.tuples(
    st.sampled_from(FILES),
    st.integers(0, 5),
    st.integers(0, 10),
    st.sampled_from(
        ["", "0", "1", "2", "3", "4", "9", "00", "01", "07", "20", "21", "25", "x", "17"]
    ),
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(CELLS, min_size=1, max_size=2))
def test_any_edit_has_the_same_outcome(
    tmp_path_factory: pytest.TempPathFactory,
    engine: Engine,
    changes: list[tuple[str, int, int, str]],
) -> None:
    clean = Path(__file__).parent / "samples" / "phsafe"
    folder = tmp_path_factory.mktemp("edited")
    for name in FILES:
        rows = read(clean / f"{name}.csv")
        for file, row, column, value in changes:
            if file == name:
                line = rows[1 + row % (len(rows) - 1)]
                line[column % len(line)] = value
        write(folder / f"{name}.csv", rows)
    repeat(clean, folder)
    found = quick(engine, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(representatives, "read_linked", lambda *_: None)
        outcome: Findings | None
        try:
            outcome = ingest(
                folder, folder / "out", layout="phsafe", engine=engine, key="k"
            ).findings
        except BadInput:
            outcome = None
    if found is not None:
        assert outcome is not None
        assert list(outcome.items) == found.notes
        assert outcome.not_checked == found.not_checked
    else:
        # What is left to the long way may yet be right: an id not written as usual.
        assert outcome is None or outcome.items


# -- schemas and layouts of one's own ------------------------------------------------------------


Tables = dict[str, list[list[str]]]
Data = dict[str, Any]


def in_both_ways(
    folder: Path, tables: Tables, schema: Data, layout: Data, engine: Engine
) -> tuple[bool, bool]:
    """Read tables in both ways, which must agree; tell whether they are right, and if quickly."""
    folder.mkdir()
    for name, rows in tables.items():
        write(folder / f"{name}.csv", rows)
    (folder / "schema.yaml").write_text(yaml.safe_dump({**schema, "name": "mine"}))
    (folder / "layout.yaml").write_text(yaml.safe_dump({"format_version": 1, **layout}))
    outcomes, quickly = [], []
    for linked in (representatives.read_linked, lambda *_: None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(representatives, "read_linked", linked)
            quickly.append(_quickly(patch))
            outcomes.append(_outcome(folder, engine))
    assert outcomes[0] == outcomes[1]
    return outcomes[0][0] == "right", quickly[0] == [True]


def _quickly(patch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that is told whether files were read quickly."""
    told: list[bool] = []
    module, run = sys.modules["discreet.census.ingest"], representatives.by_representatives

    def watched(*given: Any) -> Any:
        found = run(*given)
        told.append(found is not None)
        return found

    patch.setattr(module, "by_representatives", watched)
    return told


def _outcome(folder: Path, engine: Engine) -> tuple[Any, ...]:
    try:
        read = read_census(
            folder,
            layout=folder / "layout.yaml",
            schema=folder / "schema.yaml",
            engine=engine,
            key="k",
        )
    except InvalidCensus as error:
        return "wrong", error.findings
    assert read.findings is not None
    tables = [read.geography, read.table("units"), read.table("persons")]
    rows = [(dict(t.collect_schema()), sorted(map(repr, engine.rows(t)))) for t in tables]
    return "right", read.findings, rows


def sample(copies: int = 5) -> Tables:
    """Return the tables of the sample, several times."""
    found: Tables = {}
    for name in FILES:
        header, *rows = read(Path(__file__).parent / "samples" / "phsafe" / f"{name}.csv")
        key = header.index("MAFID")
        found[name] = [header, *(numbered(r, key, copy) for copy in range(copies) for r in rows)]
    return found


def with_column(tables: Tables, file: str, name: str, values: list[str]) -> Tables:
    """Add a column to a file, whose values are repeated."""
    header, *rows = tables[file]
    told = itertools.cycle(values)
    return {**tables, file: [[*header, name], *([*row, next(told)] for row in rows)]}


def ids_kept(schema: Data, layout: Data) -> None:
    schema["units"]["mafid"] = {"number": "integer"}


def ids_in_classes(schema: Data, layout: Data) -> None:
    ids_kept(schema, layout)
    bins = {"a": [0, 100002001], "b": [100002002, 100002002], "c": [100002003, None]}
    schema["computed_units"]["id_class"] = {"of": "mafid", "bins": bins}
    add_rule(schema, "units", {"id_class": ["a", "c"]})


def add_rule(schema: Data, table: str, then: Data, **more: Any) -> None:
    schema["rules"].append({"id": "mine", "table": table, "title": "mine", "then": then, **more})


def looked_up(schema: Data, layout: Data, **variable: Any) -> None:
    layout["tables"]["units"]["columns"]["gx"] = {"from": ["geography.X"], "optional": True}
    layout["also"]["units"]["gx"] = {"codes": ["a", "b"], "missing": True, **variable}


def computed_of_looked_up(schema: Data, layout: Data) -> None:
    looked_up(schema, layout)
    schema["units"]["gx"] = {"codes": ["a", "b"], "missing": True}
    groups = {"A": ["a"], "B": ["b"]}
    schema["computed_units"]["gxc"] = {"of": "gx", "groups": groups}
    add_rule(schema, "units", {"gxc": ["A"]}, **{"if": {"kind": ["occupied"]}})


def only_on_looked_up(schema: Data, layout: Data) -> None:
    looked_up(schema, layout, only={"kind": ["occupied"]}, missing=False)


def derived_of_count(schema: Data, layout: Data) -> None:
    schema["persons"]["px"] = {"codes": ["A", "B"], "derive": "pxc"}
    schema["computed_units"]["eights"] = {"members": {"age": {"min": 8, "max": 8}}}
    schema["computed_persons"]["pxc"] = {"of": "eights", "bins": {"A": [0, 1], "B": [2, None]}}
    add_rule(schema, "persons", {"px": ["A"]})


def persons_once(schema: Data, layout: Data) -> None:
    layout["tables"]["persons"]["distinct"] = True


def empty_text_taken(schema: Data, layout: Data) -> None:
    for table, name in (("persons", "code"), ("units", "hcode")):
        schema[table][name] = {"pattern": ".*", "missing": True}
    schema["computed_units"]["hc"] = {"member": {"relationship": ["20"]}, "take": "code"}
    add_rule(schema, "units", {"same": ["hcode", "hc"]})
    recode = {**{str(code): str(code) for code in range(21, 39)}, "20": ""}
    layout["tables"]["persons"]["columns"]["code"] = {"from": ["RELSHIP"], "recode": recode}


def nothing(schema: Data, layout: Data) -> None:
    pass


def twins(tables: Tables) -> Tables:
    """Give the third copy of the family a second child like the first."""
    header, *rows = tables["persons"]
    child = next(row for row in rows if row[1] == "100002001" and row[2] == "8")
    units = [[*row] for row in tables["units"]]
    for row in units:
        if row[1] == "100002001":
            row[2:4] = ["4", "4"]
    return {**tables, "persons": [header, *rows, child], "units": units}


def swapped(tables: Tables) -> Tables:
    """Turn the rows of the geography file around."""
    header, *rows = tables["geo"]
    return {**tables, "geo": [header, *rows[::-1]]}


X = with_column(sample(), "geo", "X", ["a", "b", "a", "b"])
OWN_CASES: dict[str, tuple[Callable[[Data, Data], None], Tables, bool, bool]] = {
    "clean": (nothing, swapped(sample()), True, True),
    "ids kept": (ids_kept, sample(), True, True),
    "ids in classes": (ids_in_classes, sample(), False, False),
    "computed of looked-up, right": (computed_of_looked_up, swapped(X), True, True),
    "computed of looked-up, wrong": (
        computed_of_looked_up,
        swapped(with_column(sample(), "geo", "X", ["a", "b", "b", "b"])),
        False,
        False,
    ),
    "only on looked-up, right": (
        only_on_looked_up,
        swapped(with_column(sample(), "geo", "X", ["a", "", "a", ""])),
        True,
        True,
    ),
    "only on looked-up, wrong": (
        only_on_looked_up,
        swapped(with_column(sample(), "geo", "X", ["", "a", "a", ""])),
        False,
        False,
    ),
    "derived of a count": (derived_of_count, twins(sample()), False, False),
    "twins": (nothing, twins(sample()), True, True),
    "persons once": (persons_once, twins(sample()), False, False),
    "own column of a looked-up name": (
        nothing,
        with_column(sample(), "units", "geography.RTYPE", ["2", "2", "2", "4"]),
        True,
        False,
    ),
    "empty text taken": (
        empty_text_taken,
        with_column(sample(), "units", "hcode", [""]),
        False,
        False,
    ),
    "long line": (nothing, with_column(sample(), "units", "NOTE", ["x" * 5000]), True, False),
    "odd name": (nothing, with_column(sample(), "geo", "_key", ["1"]), True, False),
}


@pytest.mark.parametrize("case", OWN_CASES)
def test_schemas_and_layouts_of_ones_own_have_the_same_outcome(
    case: str, tmp_path: Path, engine: Engine
) -> None:
    change, tables, right, quickly = OWN_CASES[case]
    schema = as_data(load_schema("us-decennial"))
    layout = load_layout("phsafe").model_dump(by_alias=True, exclude_defaults=True)
    change(schema, layout)
    assert in_both_ways(tmp_path / "files", tables, schema, layout, engine) == (right, quickly)


def test_a_layout_that_loosens_the_schema_is_not_trusted(tmp_path: Path, engine: Engine) -> None:
    layout = load_layout("phsafe").model_dump(by_alias=True, exclude_defaults=True)
    kinds = as_data(load_schema("us-decennial"))["units"]["kind"]
    layout["also"]["units"]["kind"] = {**kinds, "missing": True}
    assert in_both_ways(
        tmp_path / "files", sample(), as_data(load_schema("us-decennial")), layout, engine
    ) == (True, True)
    read = read_census(
        tmp_path / "files",
        layout=tmp_path / "files" / "layout.yaml",
        schema=tmp_path / "files" / "schema.yaml",
        engine=engine,
    )
    assert not read.sound
