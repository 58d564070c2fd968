"""Plain text read as keys and kinds says what a reader of delimited text says; all else is left."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.engine import Texts, read_plain
from discreet.engine.plain import Plain


def table(found: Plain) -> list[list[str]]:
    """Return the rows as texts, in the order of the columns."""
    texts = {name: column.listed() for name, column in found.columns.items()}
    return [
        [texts[name][kind] if name in texts else str(key) for name in found.names]
        for key, kind in zip(found.keys.tolist(), found.kinds.tolist(), strict=True)
    ]


def rows_of(text: str, separator: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(text), delimiter=separator))[1:]


FIELD = st.text(st.sampled_from("ab0 1.-'"), max_size=3) | st.text(
    st.sampled_from("ab~ "), max_size=20
)
ROW = st.tuples(FIELD, st.integers(0, 10**18 - 1), FIELD)


@settings(deadline=None)  # the first one may compile
@given(st.lists(ROW, min_size=1, max_size=40), st.sampled_from(",|;\t"), st.booleans())
def test_rows_are_those_of_a_reader_of_delimited_text(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, int, str]],
    separator: str,
    ended: bool,
) -> None:
    path = tmp_path_factory.mktemp("plain") / "file.csv"
    lines = [["first", "id", "last"], *([a, str(k), b] for a, k, b in rows)]
    text = "\n".join(separator.join(line) for line in lines) + "\n" * ended
    path.write_text(text)
    found = read_plain(path, "id")
    assert found is not None
    assert table(found) == rows_of(text, separator)
    assert found.many == len({(a, b) for a, _, b in rows})
    assert found.names == ("first", "id", "last")


@pytest.mark.parametrize("key", [0, 1, 2])
def test_many_kinds_are_told_apart(tmp_path: Path, key: int) -> None:
    # More kinds than the first table of hashes holds, each in two rows; the key in any column.
    lines = []
    for number in range(30_000):
        fields = [f"a{number % 150}", f"b{number // 150 % 100}"]
        fields.insert(key, str(10**17 - number))
        lines.append(",".join(fields))
    names = ["x", "y"]
    names.insert(key, "id")
    text = "\n".join([",".join(names), *lines, ""])
    (tmp_path / "file.csv").write_text(text)
    found = read_plain(tmp_path / "file.csv", "id")
    assert found is not None
    assert found.many == 15_000
    assert table(found) == rows_of(text)


@pytest.mark.parametrize(
    "text",
    [
        'a,id\n"x",1\n',
        "a,id\nx,1\r\n",
        "a,id\r\nx,1\r\n",
        "a,id\ny\u00e9,1\n",
        "\ufeffa,id\nx,1\n",
        "a,id\nx\x00,1\n",
        "a,id\nx\t,1\n",
        "a,id\nx,1,2\n",
        "a,id\nx\n",
        "a,id\nx,1\n\n",
        "a,id\nx,\n",
        "a,id\nx,01\n",
        "a,id\nx,-1\n",
        "a,id\nx,+1\n",
        "a,id\nx, 1\n",
        "a,id\nx,1.0\n",
        "a,id\nx,1000000000000000000\n",
        "a,id\n",
        "a,other\nx,1\n",
        "id\n1\n",
        f"a,id\n{'x' * 5000},1\n",
        f"id,a\n1,{'x' * 5000}\n",
    ],
)
def test_what_is_not_plain_is_left_to_the_engine(tmp_path: Path, text: str) -> None:
    (tmp_path / "file.csv").write_text(text, newline="")
    assert read_plain(tmp_path / "file.csv", "id") is None


def test_rows_that_do_not_repeat_are_left_to_the_engine(tmp_path: Path) -> None:
    lines = [f"{number},{number}" for number in range(70_000)]
    (tmp_path / "file.csv").write_text("\n".join(["a,id", *lines]))
    assert read_plain(tmp_path / "file.csv", "id") is None


def test_large_files_are_left_to_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file.csv").write_text("a,id\nx,1\n")
    assert read_plain(tmp_path / "file.csv", "id") is not None
    monkeypatch.setattr("discreet.engine.plain.MOST_BYTES", 8)
    assert read_plain(tmp_path / "file.csv", "id") is None


def test_texts_are_listed_as_they_were_given() -> None:
    texts = ["", "ab", "\u00e9", ""]
    assert Texts.of(texts).listed() == texts
    assert Texts.of(texts).part(np.array([2, 0, 1, 1])).listed() == ["\u00e9", "", "ab", "ab"]


@pytest.mark.parametrize("more", ["y,2\n", None])
def test_a_file_that_changes_while_it_is_read_is_left_to_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str | None
) -> None:
    path = tmp_path / "file.csv"
    path.write_text("a,id\nx,1\n")

    def header_of(file: Path, separator: str | None) -> tuple[list[str], str]:
        file.write_text("a,id\n" if more is None else "a,id\nx,1\n" + more)
        return ["a", "id"], ","

    monkeypatch.setattr("discreet.engine.plain.header_of", header_of)
    assert read_plain(path, "id") is None
