"""Measurement files: what is written is read, in the conventional layout; damage is refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from discreet.engine import Engine, Lists, Texts
from discreet.errors import BadInput, DiscreetError, NewerFormat, UnreadableFile
from discreet.mechanisms.topdown import measurement_file
from discreet.mechanisms.topdown.answers import Wanted, read_wanted
from discreet.mechanisms.topdown.measurement import Asked, Chunk
from discreet.mechanisms.topdown.measurement_file import (
    Header,
    LevelHeader,
    folder_name,
    write_header,
    writing,
)
from discreet.mechanisms.topdown.measurement_reader import Measurements, Published
from discreet.noise import DiscreteGaussian

NODES = 40
CODES = [f"area {k:03d}'" for k in range(NODES)]
SIGMA2 = (None, Fraction(12092, 10000), Fraction(4424, 7))
LAW = np.arange(NODES) % 3
MEASURED = np.flatnonzero(LAW)
SHAPES = {"total": (1,), "sex*age": (2, 3)}


@pytest.fixture
def engine():
    made = Engine(threads=2)
    yield made
    made.close()


@pytest.fixture(params=["one part", "many parts"])
def parts(request, monkeypatch):
    """Write small queries into one part, or every chunk into a part of its own."""
    if request.param == "many parts":
        monkeypatch.setattr(measurement_file, "PART", 1)


def header(kind: str, nodes: int = NODES) -> Header:
    levels = [LevelHeader(level=level, nodes=nodes, queries=SHAPES) for level in ("state", "block")]
    return Header(kind=kind, mode="trial", strategy="toy", histogram=(2, 3), levels=levels)


def asked_of(query: str, level: str = "block") -> Asked:
    rows = int(np.prod(SHAPES[query]))
    return Asked(level, query, np.arange(rows, dtype=np.int32), rows, SIGMA2, LAW)


def table_of(query: str) -> np.ndarray:
    """Return an answer for every measured node and row, all different."""
    rows = asked_of(query).rows
    return (np.arange(MEASURED.size * rows) * 17 - 1000).reshape(-1, rows).astype(np.int32)


def write_full(folder: Path, engine: Engine, cuts: tuple[int, ...] = (11, 12), wide: int = 0):
    """Write answers in chunks; the last chunk plus `wide`."""
    write_header(folder, header("full"))
    with writing(folder, header("full"), "block", CODES, engine) as writer:
        for query in SHAPES:
            table = table_of(query)
            for a, b in zip((0, *cuts), (*cuts, len(table)), strict=True):
                value = table[a:b] if b < len(table) else table[a:b].astype(np.int64) + wide
                writer.add_full(asked_of(query), Chunk(MEASURED[a:b], value))
        every = np.arange(NODES)
        writer.add_constraint("total", "=", [1], every, every[:, None] * 2)


def write_lazy(folder: Path, engine: Engine) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    write_header(folder, header("lazy"))
    written = {}
    with writing(folder, header("lazy"), "block", CODES, engine) as writer:
        for query in SHAPES:
            asked = asked_of(query)
            places = (MEASURED[:, None] * asked.rows + np.arange(asked.rows)).ravel()
            places = places[(places // asked.rows != 4) & (places % 5 != 0)]
            values = (places * 3 - 50).astype(np.int32)
            cut = np.searchsorted(places, 20 * asked.rows)
            for part in (slice(None, cut), slice(cut, None)):
                writer.add_rows(asked, places[part], values[part])
            written[query] = places, values
    return written


@pytest.mark.parametrize("query", SHAPES)
@pytest.mark.parametrize("wide", [0, 2**40])
@pytest.mark.usefixtures("parts")
def test_full_answers_come_back(tmp_path: Path, engine: Engine, query: str, wide: int) -> None:
    write_full(tmp_path, engine, wide=wide)
    file = Measurements(tmp_path, engine)
    table = table_of(query).astype(np.int64)
    table[12:] += wide
    found = file.read_full("block", query)
    assert np.array_equal(found.node, MEASURED)
    assert np.array_equal(found.value, table)
    exact = [float(DiscreteGaussian(SIGMA2[law]).variance()) for law in LAW[MEASURED]]
    assert found.variance.tolist() == exact
    for a, b in ((0, 5), (9, 21), (16, 18), (39, 40), (20, 20)):
        inside = np.isin(MEASURED, range(a, b))
        part = file.read_full("block", query, a, b)
        assert np.array_equal(part.node, MEASURED[inside])
        assert np.array_equal(part.value, table[inside])
        assert part.value.shape[1] == table.shape[1]
        rows = file.read_rows("block", query, a, b)
        assert np.array_equal(rows.value, table[inside].ravel())
        assert np.array_equal(rows.place // table.shape[1], np.repeat(part.node, table.shape[1]))


@pytest.mark.parametrize("query", SHAPES)
@pytest.mark.usefixtures("parts")
def test_lazy_answers_come_back(tmp_path: Path, engine: Engine, query: str) -> None:
    places, values = write_lazy(tmp_path, engine)[query]
    file = Measurements(tmp_path, engine)
    rows = asked_of(query).rows
    for a, b in ((0, NODES), (0, 5), (4, 5), (9, 30)):
        inside = (places >= a * rows) & (places < b * rows)
        found = file.read_rows("block", query, a, b)
        assert np.array_equal(found.place, places[inside])
        assert np.array_equal(found.value, values[inside])


def test_a_lazy_file_is_not_taken_for_a_full_one(tmp_path: Path, engine: Engine) -> None:
    write_lazy(tmp_path, engine)
    with pytest.raises(BadInput, match=r"kind: lazy\). Measure in full"):
        Measurements(tmp_path, engine).read_full("block", "total")


def test_the_layout_is_the_conventional_one(tmp_path: Path, engine: Engine) -> None:
    write_full(tmp_path, engine, cuts=())
    assert folder_name("block_group") == "Block_Group.parquet"
    folder = tmp_path / "Block.parquet"
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert found == [
        "Constraint/long-00000.parquet",
        "DPQuery/long-00000.parquet",
        "level.yaml",
    ]
    rows = engine.read_parquet(folder / "DPQuery")
    conventional = ["geocode", "query_name", "query_shape", "value", "variance", "plb", "rho"]
    told = engine.rows(rows.select(*conventional))
    assert [row[1] for row in told] == [f"{q}_dpq" for q in SHAPES for _ in MEASURED]
    first = told[MEASURED.size]
    assert first[:4] == (CODES[1], "sex*age_dpq", [2, 3], table_of("sex*age")[0].tolist())
    assert first[5:] == (10000 / 12092, "2500/3023")
    rows = engine.read_parquet(folder / "Constraint")
    named = ["geocode", "query_name", "sign", "query_shape", "value"]
    assert engine.rows(rows.select(*named))[3] == (CODES[3], "total_con", "=", [1], [6])


def test_a_level_is_there_whole_or_not_at_all(tmp_path: Path, engine: Engine) -> None:
    asked = asked_of("total")
    chunk = Chunk(MEASURED, table_of("total"))
    write_header(tmp_path, header("full"))

    def killed() -> None:
        with writing(tmp_path, header("full"), "block", CODES, engine) as writer:
            writer.add_full(asked, chunk)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        killed()
    file = Measurements(tmp_path, engine)
    assert not file.has("block")
    assert not (tmp_path / "Block.parquet").exists()
    with pytest.raises(UnreadableFile, match="Measure this level first"):
        file.read_full("block", "total")
    write_full(tmp_path, engine)
    assert file.has("block")
    with (
        pytest.raises(BadInput, match="exists"),
        writing(tmp_path, header("full"), "block", CODES, engine),
    ):
        pass


def test_missing_or_damaged_parts_are_refused(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement_file, "PART", 1)
    write_full(tmp_path, engine)
    part = tmp_path / "Block.parquet" / "DPQuery" / "part-00001.parquet"
    kept = part.read_bytes()
    part.unlink()
    with pytest.raises(UnreadableFile, match="all rows that were written"):
        Measurements(tmp_path, engine).read_full("block", "total")
    part.write_bytes(kept[: len(kept) // 2])
    with pytest.raises(UnreadableFile, match="not a readable Parquet file"):
        Measurements(tmp_path, engine).read_full("block", "total")
    part.write_bytes((part.parent / "part-00000.parquet").read_bytes())
    with pytest.raises(UnreadableFile, match=r"all rows|twice"):
        Measurements(tmp_path, engine).read_full("block", "total")


def test_a_part_that_stands_twice_is_refused(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement_file, "PART", 1)
    write_full(tmp_path, engine, cuts=(5, 10, 15))
    folder = tmp_path / "Block.parquet" / "DPQuery"
    copy = (folder / "part-00000.parquet").read_bytes()
    (folder / "part-00001.parquet").write_bytes(copy)
    file = Measurements(tmp_path, engine)
    with pytest.raises(UnreadableFile, match="a node twice"):
        file.read_full("block", "total")
    with pytest.raises(UnreadableFile, match="each answer that is needed once"):
        read_wanted(file, wanted(MEASURED))


def wanted(nodes: np.ndarray, rows: tuple[int, ...] = (1, 4)) -> Wanted:
    """Ask for the total of some nodes, and for some rows of the other query."""
    key = np.concatenate([nodes, NODES + nodes])
    start = np.cumsum([0, *([1] * nodes.size), *([len(rows)] * nodes.size)]).astype(np.int32)
    row = np.array([*([0] * nodes.size), *(rows * nodes.size)], dtype=np.int32)
    return Wanted("block", 0, NODES, list(SHAPES), key, start, row)


@pytest.mark.parametrize("wide", [0, 2**40])
@pytest.mark.usefixtures("parts")
def test_some_answers_of_all_queries_come_back(tmp_path: Path, engine: Engine, wide: int) -> None:
    write_full(tmp_path, engine, wide=wide)
    file = Measurements(tmp_path, engine)
    table = {query: table_of(query).astype(np.int64) for query in SHAPES}
    for each in table.values():
        each[12:] += wide
    for some in (slice(None), slice(3, 4), slice(10, 20), slice(0, 0)):
        told = [table["total"][some], table["sex*age"][some][:, [1, 4]]]
        expected = np.concatenate([each.ravel() for each in told])
        assert np.array_equal(read_wanted(file, wanted(MEASURED[some])), expected)
    with pytest.raises(UnreadableFile, match="each answer that is needed once"):
        read_wanted(file, wanted(np.arange(5)))  # of these some were not measured
    with pytest.raises(DiscreetError, match="missing"):
        read_wanted(file, wanted(MEASURED, (1, 6)))  # there is no row 6


@pytest.mark.usefixtures("parts")
def test_lazy_answers_are_those_of_the_estimate(tmp_path: Path, engine: Engine) -> None:
    written = write_lazy(tmp_path, engine)
    file = Measurements(tmp_path, engine)
    keys, rows = [], []
    for number, (query, (places, _)) in enumerate(written.items()):
        node, row = np.divmod(places, asked_of(query).rows)
        keys.append(number * NODES + node)
        rows.append(row)
    key, many = np.unique(np.concatenate(keys), return_counts=True)
    start = np.concatenate([[0], np.cumsum(many)]).astype(np.int32)
    asked = Wanted(
        "block", 0, NODES, list(SHAPES), key, start, np.concatenate(rows).astype(np.int32)
    )
    expected = np.concatenate([values for _, values in written.values()])
    assert np.array_equal(read_wanted(file, asked), expected)
    other = asked.row.copy()
    other[-1] -= 1
    with pytest.raises(UnreadableFile, match="for another estimate"):
        read_wanted(file, asked._replace(row=other))
    fewer = asked._replace(key=key[1:], start=start[1:] - start[1], row=asked.row[start[1] :])
    with pytest.raises(UnreadableFile, match="each answer that is needed once"):
        read_wanted(file, fewer)


@pytest.mark.parametrize(
    ("row", "value", "rule"), [([0, 6], [1, 2], "does not have"), ([0, 1], [1], "missing")]
)
def test_lists_of_rows_that_do_not_fit_are_refused(
    tmp_path: Path,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    row: list,
    value: list,
    rule: str,
) -> None:
    monkeypatch.setattr(measurement_file, "PART", 1)
    write_lazy(tmp_path, engine)
    folder = tmp_path / "Block.parquet" / "DPQuery"
    second = folder / "part-00003.parquet"
    old = engine.to_numpy(engine.read_parquet(second).select("node"))["node"]
    columns = {"node": old, "query_name": Texts.of(["sex*age_dpq"] * old.size)}
    for name, one in (("row", row), ("value", value)):
        ends = (np.arange(old.size + 1) * len(one)).astype(np.int32)
        columns[name] = Lists(ends, np.array(one * old.size, np.int32))
    with engine.lend_lists(columns) as frame:
        engine.write_parquet(frame, second)
    with pytest.raises(DiscreetError, match=rule):
        Measurements(tmp_path, engine).read_rows("block", "sex*age")


def test_another_shape_is_refused(tmp_path: Path, engine: Engine) -> None:
    write_full(tmp_path, engine)
    changed = header("full").model_dump(mode="json")
    changed["levels"][1]["queries"]["sex*age"] = [2, 4]
    write_header(tmp_path, Header.model_validate(changed))
    with pytest.raises(UnreadableFile, match="length of its query"):
        Measurements(tmp_path, engine).read_full("block", "sex*age")
    with pytest.raises(UnreadableFile, match="each answer that is needed once"):
        read_wanted(Measurements(tmp_path, engine), wanted(MEASURED))
    with pytest.raises(BadInput, match=r"'sex' is not measured at level 'block'"):
        Measurements(tmp_path, engine).read_full("block", "sex")
    with pytest.raises(BadInput, match=r"at level 'county'"):
        Measurements(tmp_path, engine).read_full("county", "total")


def test_a_newer_format_is_refused(tmp_path: Path, engine: Engine) -> None:
    write_full(tmp_path, engine)
    path = tmp_path / "measurements.yaml"
    path.write_text(path.read_text().replace("format_version: 1", "format_version: 2"))
    with pytest.raises(NewerFormat):
        Measurements(tmp_path, engine)


def test_the_writer_takes_only_what_belongs_there(tmp_path: Path, engine: Engine) -> None:
    with writing(tmp_path, header("full"), "block", CODES, engine) as writer:
        asked = asked_of("total")
        with pytest.raises(ValueError, match="do not belong"):
            writer.add_rows(asked, MEASURED, table_of("total").ravel())
        with pytest.raises(ValueError, match="not those of the header"):
            writer.add_full(asked_of("total", "state"), Chunk(MEASURED, table_of("total")))
        writer.add_full(asked, Chunk(MEASURED[:5], table_of("total")[:5]))
        with pytest.raises(ValueError, match="in order"):
            writer.add_full(asked, Chunk(MEASURED[4:], table_of("total")[4:]))
        with pytest.raises(ValueError, match="per node and row"):
            writer.add_full(asked, Chunk(MEASURED[6:], table_of("total")[5:]))


def publish(folder: Path, engine: Engine, rows: list[tuple[str, str, list[int], list[int]]]):
    """Write a folder as others do: any parts, any order, wide numbers, further columns."""
    path = folder / "County.parquet" / "DPQuery"
    path.mkdir(parents=True, exist_ok=True)
    for part, some in enumerate((rows[::2], rows[1::2])):
        lists = {}
        for name, place in (("query_shape", 2), ("value", 3)):
            ends = np.cumsum([0, *(len(row[place]) for row in some)]).astype(np.int32)
            lists[name] = Lists(ends, np.array([x for row in some for x in row[place]], np.int64))
        texts = {name: Texts.of([r[at] for r in some]) for name, at in TEXTS.items()}
        variance = np.full(len(some), 2.5)
        with engine.lend_lists({**texts, **lists, "variance": variance, "plb": variance}) as made:
            engine.write_parquet(made, path / f"part-{part}-c000.snappy.parquet")


TEXTS = {"geocode": 0, "query_name": 1, "hispanic": 1}


def test_files_of_others_are_read(tmp_path: Path, engine: Engine) -> None:
    rows = [(code, "detail_dpq", [2, 2], [k, -k, 2**33, 7]) for k, code in enumerate("dbae")]
    rows += [(code, "total_dpq", [1], [k]) for k, code in enumerate("bad")]
    publish(tmp_path, engine, rows)
    known = tmp_path / "County.parquet" / "Constraint"
    codes = Texts.of(list("cabde"))
    with engine.lend_lists({"geocode": codes, "query_name": codes}) as made:
        engine.write_parquet(made, known / "part-0.parquet")
    file = Published(tmp_path, engine)
    assert file.geocodes("county") == list("abcde")
    assert file.header.at("county").queries == {"detail": (2, 2), "total": (1,)}
    assert file.header.kind == "full"
    found = file.read_full("county", "detail")
    assert found.node.tolist() == [0, 1, 3, 4]
    assert found.value.tolist() == [[k, -k, 2**33, 7] for k in (2, 1, 0, 3)]
    assert found.variance.tolist() == [2.5] * 4
    assert file.read_full("county", "total", 1, 4).value.tolist() == [[0], [2]]
    assert file.read_rows("county", "total", 1, 4).place.tolist() == [1, 3]


def test_names_of_others_may_have_spaces(tmp_path: Path, engine: Engine) -> None:
    rows = [(code, "hispanic * cenrace_dpq", [1, 2], [k, 9]) for k, code in enumerate("ba")]
    publish(tmp_path, engine, rows)
    file = Published(tmp_path, engine)
    assert file.header.at("county").queries == {"hispanic*cenrace": (1, 2)}
    assert file.read_full("county", "hispanic*cenrace").value.tolist() == [[1, 9], [0, 9]]
    with pytest.raises(BadInput, match=r"not measured.*Known: hispanic"):
        file.read_full("county", "cenrace*hispanic")


def test_files_of_others_are_checked(tmp_path: Path, engine: Engine) -> None:
    with pytest.raises(UnreadableFile, match="no folder"):
        Published(tmp_path, engine)
    publish(tmp_path, engine, [("a", "x_dpq", [2], [1, 2]), ("b", "x_dpq", [2], [1])])
    with pytest.raises(UnreadableFile, match="length of its query"):
        Published(tmp_path, engine).read_full("county", "x")
    publish(tmp_path, engine, [("a", "x_dpq", [2], [1, 2]), ("a", "x_dpq", [2], [1, 2])])
    with pytest.raises(UnreadableFile, match="twice"):
        Published(tmp_path, engine).read_full("county", "x")
    publish(tmp_path, engine, [("a", "x_dpq", [2], [1, 2]), ("b", "x_dpq", [1, 2], [1, 2])])
    with pytest.raises(UnreadableFile, match="two shapes"):
        Published(tmp_path, engine)


def test_our_files_can_be_read_as_those_of_others(tmp_path: Path, engine: Engine) -> None:
    write_full(tmp_path, engine)
    ours, theirs = Measurements(tmp_path, engine), Published(tmp_path, engine)
    for query in SHAPES:
        for mine, other in zip(
            ours.read_full("block", query), theirs.read_full("block", query), strict=True
        ):
            assert np.array_equal(mine, other)


@pytest.mark.parametrize("threads", [1, 3])
def test_lists_and_texts_of_any_length_pass_through_the_engine(threads: int) -> None:
    """Many batches, empty lists and texts, several threads, twice from the same memory."""
    choose = np.random.default_rng(1)
    sizes = choose.integers(0, 5, 50_000)
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    values = choose.integers(-(2**60), 2**60, ends[-1])
    texts = ["é" * (k % 4) + str(k % 1000) for k in range(sizes.size)]
    number = np.arange(sizes.size)
    engine = Engine(threads=threads)
    columns = {"values": Lists(ends, values), "text": Texts.of(texts), "number": number}
    with engine.lend_lists(columns, batch=2048) as frame:
        for _ in range(2):
            rows = engine.rows(frame.sort("number"))
    assert [row[1] for row in rows] == texts
    assert [row[0] for row in rows] == [values[a:b].tolist() for a, b in pairwise(ends)]
    chosen = np.array([5, 4, 4, 7, 0])
    for some in (texts, ["abc", "déf", "xyz"] * 3, ["01", "02", "03", "04"] * 2, [""] * 8):
        part = Texts.of(some).part(chosen)
        with engine.lend_lists({"text": part}) as frame:
            assert [row[0] for row in engine.rows(frame)] == [some[k] for k in chosen]
    with (
        pytest.raises(ValueError, match="differ in length"),
        engine.lend_lists({"text": part, "number": number}),
    ):
        pass
    engine.close()
