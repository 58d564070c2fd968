"""Schemas and mapping files with a value of the wrong shape anywhere: refused in our words."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from discreet.census import load_layout, load_schema
from discreet.config import BadConfig
from discreet.errors import BadInput

DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
MINI = Path(__file__).parent.parent / "fuzz" / "mini"
#: One value of each shape that YAML can write.
ODD: list[Any] = [
    None, True, 10**30, 1.5, float("nan"), "", "[", "a{99999999999}", [], [[]], [{"x": "word"}],
    ["a", "a"], {}, {"a": None}, {"a": [{"b": "c"}]}, {"any": 5}, {"any": [3]}, {"not": ["a"]},
    {"same": 3}, {"min": {}}, {1: 2},
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value of a file."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for number in range(len(value)):
            yield from places(value[number], (*path, number))


def with_value(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(content)
    inside = changed
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    return changed


def load_both(path: Path) -> None:
    load_layout(path).checked(load_schema(MINI / "schema.yaml"))


@pytest.mark.parametrize(
    ("name", "load"), [("schema", load_schema), ("mapping", load_both)], ids=["schema", "mapping"]
)
def test_a_value_of_any_shape_is_read_or_refused_in_our_words(
    name: str, load: Callable[[Path], object], tmp_path: Path
) -> None:
    content = yaml.safe_load((MINI / f"{name}.yaml").read_text())
    path, refused = tmp_path / f"{name}.yaml", 0
    for place in places(content):
        for value in ODD:
            path.write_text(yaml.dump(with_value(content, place, value), Dumper=DUMPER))
            try:
                load(path)
            except BadInput:
                refused += 1
            except Exception as error:
                raise AssertionError(f"{place} = {value}: {error!r}") from error
    assert refused > 500


def schema_with(tmp_path: Path, path: tuple[Any, ...], value: Any) -> Path:
    content = yaml.safe_load((MINI / "schema.yaml").read_text())
    file = tmp_path / "schema.yaml"
    file.write_text(json.dumps(with_value(content, path, value)))
    return file


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("units", "kind", "codes"), [{"occupied": "In use"}], "units.kind.codes: codes are text"),
        (("units", "kind", "codes"), [["occupied"]], "units.kind.codes: codes are text"),
        (("units", "tenure", "codes"), ["owner", "owner"], "a code is given twice"),
        (("spine", 0, "codes"), ["AA", "AB", "AA"], "spine.0: a code is given twice"),
        (("spine", 0, "codes"), ["AA", "a7"], "spine.0: a code does not fit the pattern"),
        (("spine", 0, "codes"), [], "spine.0.codes"),
        (("spine", 0, "codes"), [{"AA": "North"}], "spine.0.codes.0"),
        (("persons", "origin", "pattern"), "a{99999999999}", "not a regular expression"),
        (("spine", 0, "pattern"), "a{99999999999}", "not a regular expression"),
        (("geography", "latitude", "max"), float("nan"), "geography.latitude.max"),
        (("computed_units", "large"), {"cases": [{"when": {"any": 5}, "then": ""}]}, "'any' needs"),
        (("areas", 0, "name"), "area", "level 'area': the name is taken by the model"),
        (("areas", 0, "name"), "rows", "level 'rows': the name is taken by the model"),
        (("areas", 0, "name"), "value", "level 'value': the name is taken by the model"),
        (("tables", 0, "by"), ["role", "adult", "role"], "tables.T1: names a column twice"),
        (("computed_persons", "adult"), {"of": "age", "bins": {}}, "computed_persons.adult"),
        (("computed_persons", "a"), {"of": "role", "groups": {}}, "computed_persons.a"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(
    path: tuple[Any, ...], value: Any, says: str, tmp_path: Path
) -> None:
    with pytest.raises(BadConfig, match=says):
        load_schema(schema_with(tmp_path, path, value))


def test_a_column_that_needs_itself_through_members_is_refused(tmp_path: Path) -> None:
    helped = {"of": "helpers", "bins": {"few": [0, 1], "many": [2, None]}}
    content = yaml.safe_load((MINI / "schema.yaml").read_text())
    content["computed_units"]["helpers"] = {"members": {"helped": ["few"]}}
    content["computed_persons"]["helped"] = helped
    path = tmp_path / "schema.yaml"
    path.write_text(yaml.dump(content))
    with pytest.raises(BadConfig, match=r"computed_units.helpers: needs itself"):
        load_schema(path)
