"""The engine, and the traps between engines that its users must not fall into."""

import hashlib
import os
from pathlib import Path

import narwhals as nw
import numpy as np
import pytest

from discreet.engine import Engine, Texts, local, parallel_map
from discreet.errors import BadInput, DiscreetError, UnreadableFile

CANARY = "canary-4711"


@pytest.fixture
def engine() -> Engine:
    return Engine(threads=1)


def frame(engine: Engine, **columns):
    arrays = {
        name: np.array(v, dtype=object if any(x is None or isinstance(x, str) for x in v) else None)
        for name, v in columns.items()
    }
    return engine.from_numpy(arrays)


def test_parquet_and_csv_come_back_as_written(engine, tmp_path):
    rows = frame(engine, code=["02", "01", None], number=[2, 1, 3])
    engine.write_parquet(rows, tmp_path / "a.parquet", order_by=["number"])
    engine.write_csv(rows, tmp_path / "a.csv", order_by=["number"])
    back = engine.read_parquet(tmp_path / "a.parquet", row="row")
    assert engine.rows(back) == [("01", 1, 1), ("02", 2, 2), (None, 3, 3)]
    back = engine.read_csv(tmp_path / "a.csv", row="row")
    assert engine.rows(back) == [(1, "01", "1"), (2, "02", "2"), (3, None, "3")]


def test_columns_can_be_chosen_and_renamed_on_writing(engine, tmp_path):
    rows = frame(engine, a=[2, 1], b=[10, 20])
    engine.write_parquet(rows, tmp_path / "x.parquet", order_by=["b"], columns={"c": "a"})
    back = engine.read_parquet(tmp_path / "x.parquet")
    assert (back.collect_schema().names(), engine.rows(back)) == (["c"], [(2,), (1,)])


def test_a_folder_of_parts_reads_in_name_order(engine, tmp_path):
    for name, value in (("b", 2), ("a", 1)):
        engine.write_parquet(frame(engine, x=[value]), tmp_path / "parts" / f"{name}.parquet")
    assert engine.rows(engine.read_parquet(tmp_path / "parts")) == [(1,), (2,)]


@pytest.mark.parametrize("separator", [",", "|", ";", "\t"])
def test_separators_are_sniffed(engine, tmp_path, separator):
    (tmp_path / "x.txt").write_text(
        separator.join("ab") + "\n" + separator.join(["01", "x"]) + "\n"
    )
    assert engine.rows(engine.read_csv(tmp_path / "x.txt")) == [("01", "x")]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"a,a\n1,2\n",
        b"a,\n1,2\n",
        b"a,b\n1,2,3\n",
        b"a,b\n1\n",
        b'a,b\n1,"x\n',
        b"a,b\n1,\xff\xfe\n",
        b"a,A\n1,2\n",
    ],
)
def test_a_malformed_csv_is_refused_without_its_values(engine, tmp_path, content):
    (tmp_path / "bad.csv").write_bytes(content.replace(b"1", CANARY.encode()))
    with pytest.raises(UnreadableFile, match=r"bad\.csv") as caught:
        engine.rows(engine.read_csv(tmp_path / "bad.csv"))
    assert CANARY not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_broken_parquet_is_refused(engine, tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing here PAR1")
    with pytest.raises(UnreadableFile, match=r"bad\.parquet"):
        engine.read_parquet(tmp_path / "bad.parquet")
    with pytest.raises(UnreadableFile, match=r"none\.parquet"):
        engine.read_parquet(tmp_path / "none.parquet")


def test_errors_while_computing_do_not_quote_data(engine):
    rows = frame(engine, x=[CANARY])
    with pytest.raises(DiscreetError) as caught:
        engine.rows(rows.with_columns(nw.col("x").cast(nw.Int64)))
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_failed_write_leaves_nothing(engine, tmp_path):
    rows = frame(engine, x=[CANARY]).with_columns(nw.col("x").cast(nw.Int64))
    with pytest.raises(DiscreetError):
        engine.write_parquet(rows, tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_spilling_stays_in_the_work_folder(tmp_path):
    engine = Engine(work=tmp_path / "work", memory_limit="100MB", threads=1)
    assert (tmp_path / "work" / "spill").stat().st_mode & 0o777 == 0o700
    rows = engine.from_numpy({"x": np.random.default_rng(1).permutation(3_000_000)})
    wide = rows.with_columns(*(nw.col("x").cast(nw.String).alias(f"t{i}") for i in range(4)))
    engine.write_parquet(wide, tmp_path / "out.parquet", order_by=["t0"])
    assert engine.rows(engine.read_parquet(tmp_path / "out.parquet").select(n=nw.len())) == [
        (3_000_000,)
    ]


def test_without_a_work_folder_memory_ends_with_a_clear_error():
    engine = Engine(memory_limit="30MB", threads=1)
    with pytest.raises(DiscreetError, match="memory limit"):
        engine.materialise(engine.from_numpy({"x": np.arange(20_000_000)}).sort("x"))


def test_the_order_key_is_the_documented_hash(engine):
    rows = frame(engine, a=["x", None], n=[7, 8])
    keyed = engine.rows(engine.order_key(rows, ["a", "n"], "secret", "key").sort("n").select("key"))
    expected = [
        int(hashlib.sha256(text.encode()).hexdigest()[:15], 16)
        for text in ("secret|x|7", "secret||8")
    ]
    assert [row[0] for row in keyed] == expected


def test_fingerprints_differ_where_any_value_differs(engine):
    rows = frame(engine, a=["1", "11", None, "", "1:1"], b=["11", "1", "x", "x", "1"])
    texts = [row[0] for row in engine.rows(engine.fingerprint(rows, ["a", "b"], "f").select("f"))]
    assert len(set(texts)) == 5


def test_missing_values_do_not_slip_into_numpy(engine):
    with pytest.raises(DiscreetError, match="missing"):
        engine.to_numpy(frame(engine, x=[1, None]))


def test_equal_keys_rank_without_gaps(engine):
    """Ordinal ranks over ties differ between engines: only how many there are may matter."""
    rows = frame(engine, g=["a", "a", "b"], one=[1, 1, 1])
    ranked = rows.with_columns(r=nw.col("one").rank("ordinal").over("g")).select("g", "r")
    assert sorted(engine.rows(ranked)) == [("a", 1), ("a", 2), ("b", 1)]


def test_missing_values_sort_first_everywhere_we_sort(engine, tmp_path):
    rows = frame(engine, x=["b", None, "a"])
    engine.write_parquet(rows, tmp_path / "x.parquet", order_by=["x"])
    assert engine.rows(engine.read_parquet(tmp_path / "x.parquet")) == [(None,), ("a",), ("b",)]
    numbered = engine.number_rows(rows, ["x"], "n").sort("n").select("x")
    assert engine.rows(numbered) == [(None,), ("a",), ("b",)]


def square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def fail(number: int) -> int:
    if number == 1:
        raise BadInput("number 1 is not wanted here.")
    return number


def test_parallel_map_keeps_the_order_and_uses_processes():
    results = list(parallel_map(square, range(6), processes=2))
    assert [value for value, _ in results] == [0, 1, 4, 9, 16, 25]
    assert os.getpid() not in {process for _, process in results}
    assert {process for _, process in parallel_map(square, range(3))} == {os.getpid()}


@pytest.mark.parametrize("processes", [1, 2])
def test_parallel_map_raises_the_error_of_an_item(processes):
    with pytest.raises(BadInput, match="not wanted"):
        list(parallel_map(fail, [0, 1, 2], processes=processes))


def test_reading_a_missing_folder_names_it(engine):
    with pytest.raises(UnreadableFile, match="nowhere"):
        engine.read_parquet(Path("nowhere"))


@pytest.mark.parametrize(
    ("keys", "repeated"),
    [
        ([3, 1, 2], 0),
        ([3, 1, 3, 3], 2),
        ([-5, 2**62, -5], 1),
        ([1.5, 1.5, 2.5], 1),
        (["b", "a", "b"], 1),
        ([], 0),
        ([True, False, True], 1),
        ([-(2**63), 5, 5], 1),
    ],
)
@pytest.mark.parametrize("most_bits", [local.MOST_BITS, 2])
def test_repeated_keys_are_counted(engine, monkeypatch, keys, repeated, most_bits):
    monkeypatch.setattr(local, "MOST_BITS", most_bits)
    kind = object if keys and isinstance(keys[0], str) else None
    assert (
        engine.repeated(engine.from_numpy({"key": np.array(keys, dtype=kind)}), "key") == repeated
    )


def test_a_missing_key_counts_as_repeated(engine):
    rows = engine.project(engine.from_numpy({"x": np.arange(9)}), {"key": "nullif(x, 4)"})
    assert engine.repeated(rows, "key") == 1


def test_distinct_rows_stand_once(engine):
    rows = engine.from_numpy({"x": np.array([1, 2, 1, 1]), "y": np.array([5, 5, 5, 6])})
    assert sorted(engine.rows(engine.distinct(rows))) == [(1, 5), (1, 6), (2, 5)]


def test_ids_farther_apart_than_the_engine_has_bits_are_counted(engine):
    many = np.arange(20_000_000)
    many[-1] = 1_200_000_000  # 64 bits for each row would be enough
    assert engine.repeated(engine.from_numpy({"key": many}), "key") == 0


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_lent_rows_are_written_in_their_order(tmp_path, threads):
    """Releases rely on it: whoever lends sorted rows does not sort them again."""
    engine = Engine(threads=threads)
    number = np.arange(500_000)
    texts = Texts.of([f"{n:03d}" for n in range(900)]).part(number // 1000)
    with engine.lend_lists({"number": number, "text": texts}) as rows:
        told = engine.project(rows, {"number": "number", "text": "text", "half": "number // 2"})
        engine.write_parquet(told, tmp_path / "x")
    with engine.lend({"number": number}) as rows:
        engine.write_parquet(rows, tmp_path / "y")
    found = engine.to_numpy(engine.read_parquet(tmp_path / "x"))
    assert (found["number"] == number).all()
    assert (found["text"].astype(int) == number // 1000).all()
    assert (engine.to_numpy(engine.read_parquet(tmp_path / "y"))["number"] == number).all()
