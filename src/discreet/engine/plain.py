"""Read plain delimited text as numbers: the key of every row, and the kind of the rest.

Of files like those of a census most rows repeat another but for an id. Here they are read in
one pass as ids and kinds, several times faster than as columns of text, and whoever looks at
values looks at each kind once. What is not plain (see `read_plain`) is left to the engine,
whose reader knows all of delimited text and says what is wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet.engine.delimited import header_of
from discreet.engine.lists import Texts

#: Larger files are left to the engine, which streams them.
MOST_BYTES = 1 << 29


@dataclass(frozen=True)
class Plain:
    """A file in which rows differ by a key and are otherwise of a few kinds.

    Row i has the key `keys[i]`, and in every other column the text in place `kinds[i]` of
    `columns`, which may be empty.
    """

    name: str
    #: All columns in the order of the file, and the one that holds the key.
    names: tuple[str, ...]
    key: str
    keys: NDArray[np.int64]
    kinds: NDArray[np.int32]
    columns: dict[str, Texts]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the bytes of all texts of each kind."""
        total = np.zeros(self.many, dtype=np.int64)
        for column in self.columns.values():
            total += np.diff(column.offsets)
        return total

    @property
    def many(self) -> int:
        """Return the number of kinds."""
        return len(next(iter(self.columns.values())).offsets) - 1


def read_plain(path: Path, key: str) -> Plain | None:
    """Return a delimited file with header by kinds, or None if it is not plain.

    Plain is a file of printed ASCII characters without quotes, with lines of moderate length
    that end in a line feed alone and have a field for each column, and with the column `key` a
    whole number without sign or leading zeros in every row. Also None if the rows hardly repeat
    each other, or if there are too many, and for names that begin with an underscore, as those
    of columns that are added do.
    """
    size = path.stat().st_size
    names, separator = header_of(path, None)
    if size > MOST_BYTES or len(names) < 2:
        return None
    with path.open("rb") as file:
        first = file.read(1 << 20).partition(b"\n")[0]
        usual = all(n.isascii() and n.isprintable() and not n.startswith("_") for n in names)
        if not usual or key not in names or first != separator.join(names).encode():
            return None
        # Numba is loaded only where a file is read: it takes a while.
        from discreet.engine.scan import PADDING, scan

        data = np.zeros(size + PADDING, dtype=np.uint8)
        file.seek(0)
        if file.readinto(data.data[:size]) != size or file.read(1):  # somebody writes to it
            return None
    data[size] = ord("\n")
    words = np.ndarray(size + 1, dtype="<u8", buffer=data, strides=(1,))
    begin, mark, place = len(first) + 1, ord(separator), names.index(key)
    # A row has a digit at least, and a byte after each field; memory not written is not taken.
    rows = size // (len(names) + 1) + 1
    keys, kinds = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int32)
    rows, texts, begins = scan(data, words, begin, (mark, len(names), place), keys, kinds)
    if rows < 1:
        return None
    # Fields end to end, each with its separator: a column is every so many of them.
    fields, of_column = Texts(begins, texts), np.arange(0, begins.size - 1, len(names))
    columns = {
        name: fields.part(of_column + at).without_last()
        for at, name in enumerate(names)
        if at != place
    }
    return Plain(path.name, tuple(names), key, keys[:rows], kinds[:rows], columns)
