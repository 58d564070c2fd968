"""Tuples as text: equal exactly where the tuples are equal."""

from pathlib import Path

import narwhals as nw
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.census import Layout
from discreet.census.joined import tuple_text
from discreet.engine import Engine

#: Characters that a length and its colon are written with.
PART = st.text("01:", max_size=3)
ENGINE = Engine(threads=1)


@st.composite
def tuples(draw: st.DrawFn) -> tuple[list[int | None], list[tuple[str, ...]]]:
    """Draw which parts have a known width, and tuples of such parts."""
    widths = draw(st.lists(st.sampled_from([None, 1, 2]), min_size=2, max_size=3))
    parts = [PART if w is None else st.text("01:", min_size=w, max_size=w) for w in widths]
    parts[-1] = PART
    return widths, draw(st.lists(st.tuples(*parts), min_size=20, max_size=80))


@settings(max_examples=60, deadline=None)
@given(tuples())
def test_two_tuples_have_one_text_only_if_they_are_equal(
    drawn: tuple[list[int | None], list[tuple[str, ...]]],
) -> None:
    widths, rows = drawn
    names = [f"p{number}" for number in range(len(widths))]
    columns = {n: np.array([row[i] for row in rows], dtype=object) for i, n in enumerate(names)}
    frame = ENGINE.from_numpy(columns)
    text = tuple_text([nw.col(name) for name in names], widths)
    found = [row[0] for row in ENGINE.rows(frame.select(text=text))]
    assert len(set(zip(rows, found, strict=True))) == len(set(rows)) == len(set(found))


def test_parts_of_known_width_make_the_plain_text() -> None:
    frame = ENGINE.from_numpy({"a": np.array(["01", "11"]), "b": np.array(["1", "234"])})
    text = tuple_text([nw.col("a"), nw.col("b")], [2, None])
    assert ENGINE.rows(frame.select(text=text)) == [("011",), ("11234",)]


def test_ids_that_two_tables_fill_up_differently_are_refused():
    """(1, 1) filled up to two places and (0, 11) filled up to one are the same text."""
    path = Path(__file__).parent.parent / "fuzz" / "mini" / "mapping.yaml"
    content = yaml.safe_load(path.read_text())
    for table, pad in (("units", 2), ("persons", 1)):
        parts = [{"column": "STREET", "pad": pad}, "HOUSE"]
        content["tables"][table]["columns"]["unit_id"] = parts
    with pytest.raises(ValueError, match="unit_id: units and persons must fill its parts up"):
        Layout.model_validate(content)
    content["tables"]["persons"]["columns"]["unit_id"][0]["pad"] = 2
    assert Layout.model_validate(content)
