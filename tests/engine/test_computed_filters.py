"""Filters on computed columns that may be missing: the engine must not think they always hold."""

import narwhals as nw
import numpy as np
import pytest

from discreet.engine import Engine


@pytest.fixture
def rows():
    engine = Engine(threads=1)
    values = np.array(["a", "b", None], dtype=object)
    kinds = np.array(["home"] * 3, dtype=object)
    frame = engine.from_numpy({"oak": values, "kind": kinds})
    low = nw.when(nw.col("oak").is_in(["b"])).then(nw.lit("low"))
    computed = nw.when(~nw.col("oak").is_null()).then(low)
    return engine, frame.with_columns(elm=computed)


def test_a_value_that_is_missing_is_in_no_list(rows):
    engine, frame = rows
    assert engine.rows(frame.filter(nw.col("elm").is_in(["low"])).select("oak")) == [("b",)]


def test_a_column_is_compared_with_one_that_has_a_single_value(rows):
    engine, frame = rows
    for oak in ("a", "b"):
        one = engine.materialise(frame.filter(nw.col("oak") == oak).select("oak", "kind"))
        low = nw.when(nw.col("oak").is_in(["b"])).then(nw.lit("low"))
        same = one.with_columns(elm=low).filter(nw.col("elm") == nw.col("kind"))
        assert engine.rows(same.select("oak")) == []
