"""Kernels that read plain delimited text: the key of every row, and the kind of the rest.

Rows are of one kind if they agree in every field but the key, byte by byte. Text is looked at
eight bytes at a time, as words whose first byte is the lowest; Warren (2012), "Hacker's
Delight", section 6-1, finds a byte in a word. What is left of a row without its key is a list
of words that begins with the lengths of both parts. Kinds are found with a hash table, and a
row joins a kind only after a comparison of all its words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]
Offsets = NDArray[np.int32]

#: The kinds there are: their words end to end, where each begins, their hashes, and for a hash
#: the slot where its kind stands, or else in a slot after it.
Table = tuple[Words, Numbers, Words, Offsets]

NEWLINE, QUOTE, FIRST_PRINTED, LAST_PRINTED = 10, 34, 32, 126
ZERO = 48

#: Digits of a key: more may not fit a signed word.
DIGITS = 18

#: Bytes of a word, and of what follows the text: a line feed, and room to read a word there.
WORD, PADDING = 8, 16

#: A byte of 1, of 127 and of 128 in every place of a word; multiplied by the first, the bytes
#: of a word are added up in its highest place.
ONES, LOWS, HIGHS = (np.uint64(0x0101010101010101 * byte) for byte in (1, 127, 128))
NEWLINES = np.uint64(NEWLINE) * ONES

#: An odd factor, to hash words.
FACTOR = np.uint64(0x9E3779B97F4A7C15)
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)

#: So many kinds may be found before they are too many for the rows.
MANY_KINDS = 1 << 16

#: A row of more bytes is not one of codes and numbers.
LONGEST = 1 << 12
MOST_WORDS = LONGEST // WORD + 4

#: Rows that are looked up together.
BATCH = 64


@compiled
def scan(
    data: Bytes,
    words: Words,
    at: int,
    form: tuple[int, int, int],
    keys: Numbers,
    kinds: Offsets,
) -> tuple[int, Bytes, Offsets]:
    """Fill the key and the kind of every row; return the number of rows, and the kinds.

    `data` is the text and after it a line feed and zeros, `PADDING` bytes of both; word i of
    `words` begins at its byte i. `form` is the separator, the number of columns and the place
    of the key. A kind is its row without the key, so that the key's field is empty, and with a
    separator at its end; they are returned end to end, with where each field begins. The number
    of rows is -1 for text that is not plain: quotes, bytes that are not printed ASCII, a row
    with more or fewer fields, a key that is not a whole number written as usual; and once more
    than half of many rows are of a kind of their own.
    """
    nothing = np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int32)
    separator, columns, _ = form
    size = data.size - PADDING
    if not _printed(data[at:size], separator):
        return -1, *nothing
    lines, codes = np.empty(BATCH * MOST_WORDS, dtype=np.uint64), np.empty(BATCH, dtype=np.uint64)
    ends, guess = np.zeros(BATCH + 1, dtype=np.int64), np.empty(BATCH, dtype=np.int64)
    table = (
        np.empty(1 << 14, dtype=np.uint64),
        np.zeros((1 << 12) + 1, dtype=np.int64),
        np.empty(1 << 12, dtype=np.uint64),
        np.full(1 << 13, -1, dtype=np.int32),
    )
    many, row = 0, 0
    while at < size:
        rows, at = _rows(data, words, at, form, (lines, ends, codes), keys[row:])
        if at < 0 or (many > MANY_KINDS and 2 * many > row + rows):
            return -1, *nothing
        # Memory is waited for in both steps, but for many rows at a time.
        store, begins, _, slots = table
        for i in range(rows):
            kinds[row + i] = slots[_home(codes[i], slots.size)]
            guess[i] = begins[kinds[row + i]] if kinds[row + i] >= 0 else -1
        for i in range(rows):
            line = lines[ends[i] : ends[i + 1]]
            if guess[i] < 0 or not _alike(store, guess[i], line):
                kinds[row + i], many, table = _kind_of(table, many, line, codes[i])
        row += rows
    texts = _texts(table[0], table[1][: many + 1], separator)
    return row, texts, _fields(texts, separator, columns * many)


@compiled_within
def _kind_of(table: Table, many: int, line: Words, code: np.uint64) -> tuple[np.int32, int, Table]:
    """Return the kind of a row, which may be a new one; how many there are; and their table."""
    store, begins, hashes, slots = table
    slot = _home(code, slots.size)
    while slots[slot] >= 0:
        kind = slots[slot]
        if hashes[kind] == code and _alike(store, begins[kind], line):
            return kind, many, table
        slot = (slot + 1) & (slots.size - 1)
    begin, end = begins[many], begins[many] + line.size
    while store.size < end:
        store = np.concatenate((store, np.empty_like(store)))
    store[begin:end] = line
    begins[many + 1], hashes[many], slots[slot] = end, code, many
    if many + 1 == hashes.size:
        begins = np.concatenate((begins, np.empty(hashes.size, dtype=np.int64)))
        hashes = np.concatenate((hashes, np.empty_like(hashes)))
        slots = _slots(hashes, many + 1)
    return np.int32(many), many + 1, (store, begins, hashes, slots)


@compiled_within
def _rows(
    data: Bytes,
    words: Words,
    at: int,
    form: tuple[int, int, int],
    found: tuple[Words, Numbers, Words],
    keys: Numbers,
) -> tuple[int, int]:
    """Fill words, where they end, hash and key of the next rows; return how many, and where.

    Where the row after them begins, or -1 if one is not plain or there are more than keys.
    """
    lines, ends, codes = found
    size = data.size - PADDING
    for row in range(BATCH):
        if at >= size:
            return row, at
        if row == keys.size:
            return row, -1
        end, keys[row], used = _row(data, words, at, form, lines[ends[row] :])
        if end < 0:
            return row, -1
        ends[row + 1] = ends[row] + used
        codes[row] = _hash(lines[ends[row] : ends[row + 1]])
        at = end + 1
    return BATCH, at


@compiled_within
def _printed(text: Bytes, separator: int) -> bool:
    """Tell whether all bytes are printed ASCII but no quotes, or ends of fields and lines."""
    strange = np.zeros(256, dtype=np.uint8)
    for byte in range(256):
        strange[byte] = byte < FIRST_PRINTED or byte > LAST_PRINTED or byte == QUOTE
    strange[separator] = strange[NEWLINE] = 0
    found = np.uint8(0)
    for byte in text:
        found |= strange[byte]
    return bool(found == 0)


@compiled_within
def _row(
    data: Bytes, words: Words, at: int, form: tuple[int, int, int], mine: Words
) -> tuple[int, int, int]:
    """Return the end of a row (-1: not plain), its key, and how many words of `mine` it has."""
    separator, columns, place = form
    key, column, value = at, 0, 0
    while column < place:
        if data[key] == NEWLINE or key - at > LONGEST:
            return -1, 0, 0
        column += data[key] == separator
        key += 1
    after = key
    while ZERO <= data[after] < ZERO + 10 and after - key <= DIGITS:
        value = 10 * value + int(data[after]) - ZERO
        after += 1
    digits = after - key
    if not 0 < digits <= DIGITS or (digits > 1 and data[key] == ZERO):
        return -1, 0, 0
    if data[after] != separator and data[after] != NEWLINE:
        return -1, 0, 0
    used = 1
    for begin in range(at, key, WORD):
        mine[used] = _first(words[begin], key - begin)
        used += 1
    begin, left, separators = after, WORD, np.uint64(separator) * ONES
    while left == WORD:
        if begin - at > LONGEST:
            return -1, 0, 0
        left = _before(words[begin] ^ NEWLINES)
        mine[used] = _first(words[begin], left)
        column += _zeros(mine[used] ^ separators)
        used += left > 0
        begin += left
    mine[0] = (np.uint64(key - at) << HALF) | np.uint64(begin - after)
    return begin if column == columns - 1 else -1, value, used


@compiled_within
def _signed(word: np.uint64) -> int:
    """Return a small word as a signed number; Numba makes a float of both kinds together."""
    return np.int64(word)  # type: ignore[return-value]


@compiled_within
def _first(word: np.uint64, many: int) -> np.uint64:
    """Return a word with nothing but its first so many bytes."""
    if many >= WORD:
        return word
    return word & ((np.uint64(1) << np.uint64(8 * many)) - np.uint64(1))


@compiled_within
def _before(word: np.uint64) -> int:
    """Return how many bytes of a word stand before its first zero."""
    zero = (word - ONES) & ~word & HIGHS  # the lowest bit is right, if there is one
    if zero == np.uint64(0):
        return WORD
    return _signed((((zero - np.uint64(1)) & ~zero & ONES) * ONES) >> np.uint64(56)) - 1


@compiled_within
def _zeros(word: np.uint64) -> int:
    """Return how many bytes of a word are zero."""
    zeros = ~(((word & LOWS) + LOWS) | word | LOWS)
    return _signed(((zeros >> np.uint64(7)) * ONES) >> np.uint64(56))


@compiled_within
def _hash(line: Words) -> np.uint64:
    code = np.uint64(0)
    for word in line:
        code = (code ^ word) * FACTOR
        code ^= code >> HALF
    return code


@compiled_within
def _home(code: np.uint64, size: int) -> int:
    """Return the first slot to look at."""
    return _signed(code & np.uint64(size - 1))


@compiled_within
def _alike(store: Words, begin: int, line: Words) -> bool:
    """Tell whether a row has the words of a kind; their first says how many there are."""
    place = 0
    while place < line.size and store[begin + place] == line[place]:
        place += 1
    return place == line.size


@compiled_within
def _slots(hashes: Words, many: int) -> Offsets:
    """Return a table of slots, a quarter of them taken by the kinds there are."""
    slots = np.full(4 * many, -1, dtype=np.int32)
    for kind in range(many):
        slot = _home(hashes[kind], slots.size)
        while slots[slot] >= 0:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot] = kind
    return slots


@compiled_within
def _texts(store: Words, begins: Numbers, separator: int) -> Bytes:
    """Return the kinds as text, each with a separator at its end."""
    total = begins.size - 1
    for begin in begins[:-1]:
        total += _signed(store[begin] >> HALF) + _signed(store[begin] & LOW)
    texts = np.empty(total, dtype=np.uint8)
    at = 0
    for begin in begins[:-1]:
        word = begin + 1
        for length in (_signed(store[begin] >> HALF), _signed(store[begin] & LOW)):
            for byte in range(length):
                shift = np.uint64(8 * (byte % WORD))
                texts[at] = np.uint8((store[word + byte // WORD] >> shift) & np.uint64(255))
                at += 1
            word += (length + WORD - 1) // WORD
        texts[at] = separator
        at += 1
    return texts


@compiled_within
def _fields(texts: Bytes, separator: int, many: int) -> Offsets:
    """Return where fields begin that end in a separator, and where the last one has ended."""
    fields = np.zeros(many + 1, dtype=np.int32)
    field = 0
    for at in range(texts.size):
        if texts[at] == separator:
            field += 1
            fields[field] = at + 1
    return fields
