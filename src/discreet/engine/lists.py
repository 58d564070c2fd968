"""Lend columns of lists and text to the engine without copying them.

NumPy has neither, and to build lists inside the engine costs more than to write them. So
the memory is described as the Arrow C data interface does (Apache Arrow, format/CDataInterface)
and handed over as the Arrow PyCapsule protocol does, which DuckDB reads without further
libraries. All memory stays ours: `release`, which a consumer calls when done, only marks
the description as used, and whoever lends keeps `Lent` alive as long as anybody may read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Offsets = npt.NDArray[np.int32]

_FORMATS = {
    "int8": b"c",
    "int16": b"s",
    "int32": b"i",
    "int64": b"l",
    "uint8": b"C",
    "uint16": b"S",
    "uint32": b"I",
    "uint64": b"L",
    "float64": b"g",
}


class Lists(NamedTuple):
    """A column of lists end to end: list i is `values[offsets[i]:offsets[i + 1]]`."""

    offsets: Offsets
    values: Array


class Texts(NamedTuple):
    """A column of text end to end, in UTF-8."""

    offsets: Offsets
    data: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """Return texts as a column."""
        encoded = [text.encode() for text in texts]
        ends = np.cumsum([0, *map(len, encoded)])
        data = np.frombuffer(b"".join(encoded) or b"\0", dtype=np.uint8)
        return cls(ends.astype(np.int32), data)

    def part(self, which: npt.NDArray[np.integer]) -> Texts:
        """Return some of the texts, in the order given."""
        lengths = np.diff(self.offsets)
        if lengths.size and lengths.min() == lengths.max():  # as codes of one level have
            width = int(lengths[0])
            table = self.data[: lengths.size * width].reshape(lengths.size, width)
            return Texts(_offsets(np.arange(len(which) + 1) * width), table[which].reshape(-1))
        lengths = lengths[which]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(ends[-1]) + np.repeat(self.offsets[which] - ends[:-1], lengths)
        return Texts(_offsets(ends), self.data[places])


Column = Array | Lists | Texts


def _offsets(ends: Array) -> Offsets:
    """Return where texts begin, unless there is more text than such a column can hold."""
    if ends[-1] >= 2**31:
        raise ValueError("too much text for one column")
    return ends.astype(np.int32)


class _Schema(ctypes.Structure):
    _fields_: ClassVar = [
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private", ctypes.c_void_p),
    ]


class _Array(ctypes.Structure):
    _fields_: ClassVar = [
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private", ctypes.c_void_p),
    ]


class _Stream(ctypes.Structure):
    _fields_: ClassVar = [
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.c_void_p),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private", ctypes.c_void_p),
    ]


_Fill = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_Tell = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_Struct = type[_Schema] | type[_Array] | type[_Stream]


def _releasing(struct: _Struct) -> Any:
    def release(address: int) -> None:
        struct.from_address(address).release = None

    return _Release(release)


# Kept for ever: a consumer may call them after we have forgotten what we lent.
_RELEASE = {struct: _releasing(struct) for struct in (_Schema, _Array, _Stream)}
_NO_ERROR = _Tell(lambda _stream: None)

_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


class Lent:
    """Columns of one length as a source that DuckDB can scan, in batches of `batch` rows."""

    def __init__(self, columns: Mapping[str, Column], batch: int) -> None:
        self._columns = {name: _contiguous(column) for name, column in columns.items()}
        lengths = {_length(column) for column in self._columns.values()}
        if len(lengths) != 1:
            raise ValueError(f"columns differ in length: {sorted(lengths)}")
        self._rows, self._batch = lengths.pop(), batch
        self._kept: list[object] = []

    def __arrow_c_schema__(self) -> object:
        """Return the description of the columns."""
        return _capsule(ctypes.addressof(self._schema()), b"arrow_schema", None)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the batches, from the first."""
        begins = iter(range(0, self._rows, self._batch))

        def get_schema(_stream: int, out: int) -> int:
            return _give(self._schema(), out)

        def get_next(_stream: int, out: int) -> int:
            begin = next(begins, None)  # at the end: nothing, said by an empty description
            return _give(_Array() if begin is None else self._rows_from(begin), out)

        calls = [_Fill(get_schema), _Fill(get_next), _NO_ERROR, _RELEASE[_Stream]]
        stream = _Stream(*map(_address, calls), None)
        self._kept += [calls, stream]
        return _capsule(ctypes.addressof(stream), b"arrow_array_stream", None)

    def _schema(self) -> _Schema:
        fields = []
        for name, column in self._columns.items():
            if isinstance(column, Texts):
                fields.append(self._field(b"u", name, []))
            elif isinstance(column, Lists):
                item = self._field(_FORMATS[column.values.dtype.name], "element", [])
                fields.append(self._field(b"+l", name, [item]))
            else:
                fields.append(self._field(_FORMATS[column.dtype.name], name, []))
        return self._field(b"+s", "", fields)

    def _field(self, kind: bytes, name: str, children: list[_Schema]) -> _Schema:
        inside = self._addresses([ctypes.addressof(child) for child in children])
        release = _address(_RELEASE[_Schema])
        field = _Schema(kind, name.encode(), None, 0, len(children), inside, None, release, None)
        self._kept += [field, *children]
        return field

    def _rows_from(self, begin: int) -> _Array:
        """Return the batch that begins there; offsets count from the first row of all."""
        length = min(self._batch, self._rows - begin)
        fields = []
        for column in self._columns.values():
            if isinstance(column, Texts):
                data = [_at(column.offsets, begin), _at(column.data, 0)]
                fields.append(self._array(length, data, []))
            elif isinstance(column, Lists):
                inside = self._array(column.values.size, [_at(column.values, 0)], [])
                fields.append(self._array(length, [_at(column.offsets, begin)], [inside]))
            else:
                fields.append(self._array(length, [_at(column, begin)], []))
        return self._array(length, [], fields)

    def _array(self, length: int, data: list[int], children: list[_Array]) -> _Array:
        buffers = self._addresses([None, *data])  # the first would say which are missing
        inside = self._addresses([ctypes.addressof(child) for child in children])
        release, many = _address(_RELEASE[_Array]), len(children)
        array = _Array(length, 0, 0, 1 + len(data), many, buffers, inside, None, release, None)
        self._kept += [array, *children]
        return array

    def _addresses(self, addresses: Sequence[int | None]) -> int | None:
        if not addresses:
            return None
        listed = (ctypes.c_void_p * len(addresses))(*addresses)
        self._kept.append(listed)
        return ctypes.addressof(listed)


def _give(struct: _Schema | _Array, out: int) -> int:
    ctypes.memmove(out, ctypes.addressof(struct), ctypes.sizeof(struct))
    return 0


def _at(array: Array, place: int) -> int:
    return int(array.ctypes.data) + place * array.itemsize


def _contiguous(column: Column) -> Column:
    """Return a column in one piece of memory."""
    alike: Callable[[Array], Array] = np.ascontiguousarray
    if isinstance(column, Lists):
        return Lists(alike(column.offsets), alike(column.values))
    return (
        Texts(alike(column.offsets), alike(column.data))
        if isinstance(column, Texts)
        else alike(column)
    )


def _length(column: Column) -> int:
    return len(column) if isinstance(column, np.ndarray) else len(column.offsets) - 1
