"""Kernels that read plain delimited text: the key of every row, and the kind of the rest.

Rows are of one kind if they agree in every field but the key, byte by byte. Kinds are found
with a hash table, and a row joins a kind only after a comparison of all its bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Offsets = NDArray[np.int32]
Hashes = NDArray[np.uint64]

NEWLINE, QUOTE, FIRST_PRINTED, LAST_PRINTED = 10, 34, 32, 126
ZERO, NINE = 48, 57

#: Digits of a key: more may not fit a signed word.
DIGITS = 18

#: Fowler, Noll and Vo's hash FNV-1a of 64 bits; and a factor that spreads it over a table.
BASIS, PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)
SPREAD = np.uint64(0x9E3779B97F4A7C15)

#: So many kinds may be found before they are too many for the rows.
MANY_KINDS = 1 << 16

#: A row of more bytes is not one of codes and numbers.
LONGEST = 1 << 12


@compiled
def scan(
    data: Bytes, at: int, form: tuple[int, int, int], keys: Numbers, kinds: Offsets
) -> tuple[int, Bytes, Offsets]:
    """Fill the key and the kind of every row; return the number of rows, and the kinds.

    `form` is the separator, the number of columns and the place of the key. A kind is its row
    without the key, so that the key's field is empty, and with a separator at its end; they are
    returned end to end, with where each field begins. The number of rows is -1 for text that is
    not plain: quotes, bytes that are not printed ASCII, a row with more or fewer fields, a key
    that is not a whole number written as usual; and once more than half of many rows are of a
    kind of their own.
    """
    separator, columns, _ = form
    texts, begins = np.empty(1 << 16, dtype=np.uint8), np.zeros((1 << 12) + 1, dtype=np.int32)
    hashes, slots = np.empty(1 << 12, dtype=np.uint64), np.full(1 << 13, -1, dtype=np.int32)
    many, row = 0, 0
    while at < data.size:
        key, after, end, value, code = _row(data, at, form)
        if end < 0 or row == keys.size or (many > MANY_KINDS and 2 * many > row):
            return -1, texts, begins
        slot = _home(code, slots.size)
        while slots[slot] >= 0:
            kind = slots[slot]
            mine = texts[begins[kind] : begins[kind + 1] - 1]
            if hashes[kind] == code and _alike(data, at, key, after, end, mine):
                break
            slot = (slot + 1) & (slots.size - 1)
        kind = slots[slot]
        if kind < 0:
            kind, used, size = many, begins[many], key - at + end - after
            many += 1
            while texts.size <= used + size:
                texts = np.concatenate((texts, np.empty_like(texts)))
            texts[used : used + key - at] = data[at:key]
            texts[used + key - at : used + size] = data[after:end]
            texts[used + size] = separator
            begins[many], hashes[kind], slots[slot] = used + size + 1, code, kind
            if many == hashes.size:
                begins = np.concatenate((begins, np.empty(many, dtype=np.int32)))
                hashes = np.concatenate((hashes, np.empty_like(hashes)))
                slots = _slots(hashes, many)
        keys[row], kinds[row] = value, kind
        row += 1
        at = end + 1
    return row, texts[: begins[many]], _fields(texts, begins[many], separator, columns * many)


@compiled_within
def _fields(texts: Bytes, used: int, separator: int, many: int) -> Offsets:
    """Return where fields begin that end in a separator, and where the last one has ended."""
    fields = np.zeros(many + 1, dtype=np.int32)
    field = 0
    for at in range(used):
        if texts[at] == separator:
            field += 1
            fields[field] = at + 1
    return fields


@compiled_within
def _row(data: Bytes, at: int, form: tuple[int, int, int]) -> tuple[int, int, int, int, np.uint64]:
    """Return where the key begins and ends, the end of the row (-1: not plain), key and hash."""
    separator, columns, place = form
    column, key, after, value = 0, at, at, 0
    code = BASIS
    end = at
    while end < data.size and data[end] != NEWLINE:
        byte = data[end]
        if byte == separator:
            if column == place:
                after = end
            column += 1
            if column == place:
                key = end + 1
        elif byte < FIRST_PRINTED or byte > LAST_PRINTED or byte == QUOTE:
            return key, after, -1, value, code
        elif column == place:
            if byte < ZERO or byte > NINE:
                return key, after, -1, value, code
            value = 10 * value + (byte - ZERO)
            end += 1
            continue
        code = (code ^ np.uint64(byte)) * PRIME
        end += 1
    if column == place:
        after = end
    digits = after - key
    plain = 0 < digits <= DIGITS and (digits == 1 or data[key] != ZERO)
    plain = plain and column == columns - 1 and end - at <= LONGEST
    return key, after, end if plain else -1, value, code


@compiled_within
def _home(code: np.uint64, size: int) -> int:
    """Return the first slot to look at."""
    return np.int64((code * SPREAD) >> np.uint64(32)) & (size - 1)  # type: ignore[return-value]


@compiled_within
def _alike(data: Bytes, at: int, key: int, after: int, end: int, kind: Bytes) -> bool:
    """Tell whether a row has the bytes of a kind before its key and after it."""
    before = key - at
    if kind.size != before + end - after:
        return False
    for i in range(before):
        if data[at + i] != kind[i]:
            return False
    same = True
    for i in range(end - after):
        same &= data[after + i] == kind[before + i]
    return same


@compiled_within
def _slots(hashes: Hashes, many: int) -> Offsets:
    """Return a table of slots, a quarter of them taken by the kinds there are."""
    slots = np.full(4 * many, -1, dtype=np.int32)
    for kind in range(many):
        slot = _home(hashes[kind], slots.size)
        while slots[slot] >= 0:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot] = kind
    return slots
