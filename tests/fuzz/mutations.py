"""Ways to spoil an input file. Each returns the spoilt bytes and whether it must be refused.

A mutation that must be refused leaves a file that cannot be read as what it claims to be,
or one in which some rule is broken whatever else it holds. The others may be harmless.
"""

import csv
import io
import random
from collections.abc import Callable
from dataclasses import dataclass, field

#: Texts planted as values; neither may ever be seen in a message.
CANARY_TEXT = "zq7canary{:06d}"
CANARY_NUMBER = "7351{:06d}9"


@dataclass(frozen=True)
class Spoilt:
    """A mutated file."""

    what: str
    data: bytes
    must_refuse: bool = False


@dataclass(frozen=True)
class Columns:
    """What a delimited file's columns hold, which decides what must be refused."""

    numbers: set[str] = field(default_factory=set)
    codes: set[str] = field(default_factory=set)
    never_missing: set[str] = field(default_factory=set)
    references: set[str] = field(default_factory=set)
    required: set[str] = field(default_factory=set)
    unique_rows: bool = False


# -- any file --------------------------------------------------------------------------


def flip_bits(data: bytes, rng: random.Random, number: int) -> Spoilt:
    spoilt = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
    return Spoilt("bits flipped", bytes(spoilt))


def cut_off(data: bytes, rng: random.Random, number: int) -> Spoilt:
    return Spoilt("cut off", data[: rng.randrange(len(data))])


def cut_out(data: bytes, rng: random.Random, number: int) -> Spoilt:
    start = rng.randrange(len(data))
    return Spoilt("piece cut out", data[:start] + data[start + rng.randrange(1, 40) :])


def repeat_piece(data: bytes, rng: random.Random, number: int) -> Spoilt:
    start = rng.randrange(len(data))
    stop = start + rng.randrange(1, 60)
    return Spoilt("piece repeated", data[:stop] + data[start:])


def insert_bytes(data: bytes, rng: random.Random, number: int) -> Spoilt:
    place = rng.randrange(len(data))
    added = rng.choice(
        [b"\0", b'"', b"'", b"\r", b"\n", b",", b";", b"|", b"\\", b" ", b"\xc3\xa9"]
    )
    return Spoilt("bytes inserted", data[:place] + added + data[place:])


def not_utf8(data: bytes, rng: random.Random, number: int) -> Spoilt:
    place = rng.randrange(len(data))
    added = rng.choice([b"\xff", b"\xfe\xff", b"\xc3", b"\x80", b"\xed\xa0\x80"])
    joined = data[:place] + added + data[place:]
    try:
        joined.decode("utf-8")
    except UnicodeDecodeError:
        return Spoilt("not UTF-8", joined, must_refuse=True)
    return Spoilt("bytes inserted", joined)


def other_file(data: bytes, rng: random.Random, number: int) -> Spoilt:
    kinds = [b"", b"\n", b"PAR1", b"\x1f\x8b\x08" + data, b"%PDF-1.4\n", b"{}", bytes(512)]
    return Spoilt("another kind of file", rng.choice(kinds), must_refuse=True)


BYTES = [flip_bits, cut_off, cut_out, repeat_piece, insert_bytes, not_utf8, other_file]

# -- delimited files -------------------------------------------------------------------

Rows = list[list[str]]


def parse(data: bytes) -> tuple[list[str], Rows]:
    header, *rows = csv.reader(io.StringIO(data.decode("utf-8"), newline=""))
    return header, rows


def render(header: list[str], rows: Rows) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode("utf-8")


def set_cell(
    data: bytes, rng: random.Random, columns: set[str], values: list[str], what: str
) -> Spoilt | None:
    header, rows = parse(data)
    known = sorted(columns & set(header))
    if not known:
        return None
    column = rng.choice(known)
    rows[rng.randrange(len(rows))][header.index(column)] = rng.choice(values)
    return Spoilt(f"{column}: {what}", render(header, rows), must_refuse=True)


def wrong_type(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt | None:
    values = [CANARY_TEXT.format(number), "1.5", "1e3", " 12", "0x1F", "١٢", "--1", "1,5", "NaN"]
    return set_cell(data, rng, columns.numbers - {"latitude"}, values, "not a number")


def huge_number(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt | None:
    canary = CANARY_NUMBER.format(number)
    values = [canary, "-" + canary, canary * 3, "9" * 400, "1e308", "-1e999"]
    return set_cell(data, rng, columns.numbers, values, "huge number")


def unknown_code(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt | None:
    values = [CANARY_TEXT.format(number), CANARY_NUMBER.format(number), "\0", "OCCUPIED", "é" * 30]
    return set_cell(data, rng, columns.codes, values, "unknown code")


def no_value(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt | None:
    return set_cell(data, rng, columns.never_missing, [""], "missing")


def dangling(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt | None:
    return set_cell(data, rng, columns.references, [CANARY_NUMBER.format(number)], "dangling")


def any_cell(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt:
    header, rows = parse(data)
    values = [CANARY_TEXT.format(number), CANARY_NUMBER.format(number), "", "0", "-1", '"', "a,b"]
    rows[rng.randrange(len(rows))][rng.randrange(len(header))] = rng.choice(values)
    return Spoilt("any cell set", render(header, rows))


def drop_column(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt:
    header, rows = parse(data)
    place = rng.randrange(len(header))
    name = header[place]
    lines = [line[:place] + line[place + 1 :] for line in (header, *rows)]
    spoilt = render(lines[0], lines[1:])
    return Spoilt(f"{name} dropped", spoilt, must_refuse=name in columns.required)


def rename_column(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt:
    header, rows = parse(data)
    place = rng.randrange(len(header))
    name = header[place]
    choices = [CANARY_TEXT.format(number), name.swapcase(), f" {name}", f"{name}\0", "_row", "row"]
    header[place] = rng.choice(choices)
    return Spoilt(f"{name} renamed", render(header, rows), must_refuse=name in columns.required)


def repeat_name(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt:
    header, rows = parse(data)
    first, second = rng.sample(range(len(header)), 2)
    header[first] = rng.choice([header[second], header[second].upper()])
    return Spoilt("column named twice", render(header, rows), must_refuse=True)


def add_column(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt:
    header, rows = parse(data)
    name = rng.choice([CANARY_TEXT.format(number), "person_key", "donor_id", "_unread_age", "kind"])
    if name in header:
        name = "another"
    value = rng.choice([CANARY_TEXT.format(number), "", "1"])
    return Spoilt("column added", render([*header, name], [[*row, value] for row in rows]))


def ragged(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt:
    header, rows = parse(data)
    place = rng.randrange(len(rows))
    extra = [CANARY_TEXT.format(number)]
    rows[place] = rows[place] + extra if rng.random() < 0.6 else rows[place][:-1]
    return Spoilt("row too long or short", render(header, rows), must_refuse=True)


def repeat_row(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt:
    header, rows = parse(data)
    rows.insert(rng.randrange(len(rows) + 1), rng.choice(rows))
    return Spoilt("row repeated", render(header, rows), must_refuse=columns.unique_rows)


def shuffle(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt:
    header, rows = parse(data)
    order = rng.sample(range(len(header)), len(header))
    rng.shuffle(rows)
    ordered = [[line[place] for place in order] for line in (header, *rows)]
    return Spoilt("columns and rows shuffled", render(ordered[0], ordered[1:]))


def other_style(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt:
    header, rows = parse(data)
    text = io.StringIO()
    style = {"delimiter": rng.choice(",;|\t"), "lineterminator": rng.choice(["\n", "\r\n"])}
    quoting = rng.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
    csv.writer(text, quoting=quoting, **style).writerows([header, *rows])  # type: ignore[arg-type]
    mark = rng.choice([b"", b"\xef\xbb\xbf"])
    return Spoilt("other separators", mark + text.getvalue().encode("utf-8"))


def no_header(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt:
    _, _, rest = data.partition(b"\n")
    return Spoilt("no header", rest, must_refuse=True)


Cells = Callable[[bytes, random.Random, int, Columns], Spoilt | None]
CELLS: list[Cells] = [
    wrong_type, huge_number, unknown_code, no_value, dangling, any_cell, drop_column,
    rename_column, repeat_name, add_column, ragged, repeat_row, shuffle, other_style, no_header,
]  # fmt: skip


def spoil_delimited(data: bytes, rng: random.Random, number: int, columns: Columns) -> Spoilt:
    """Spoil a delimited file in one way."""
    if rng.random() < 0.35:
        return rng.choice(BYTES)(data, rng, number)
    while True:
        spoilt = rng.choice(CELLS)(data, rng, number, columns)
        if spoilt is not None:
            return spoilt


# -- YAML ------------------------------------------------------------------------------


def spoil_yaml(data: bytes, rng: random.Random, number: int) -> Spoilt:
    """Spoil a YAML file in one way."""
    if rng.random() < 0.3:
        return rng.choice(BYTES)(data, rng, number)
    lines = data.decode("utf-8").splitlines()
    places = [i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")]
    place = rng.choice(places)
    line = lines[place]
    canary = CANARY_TEXT.format(number)
    values = [
        canary, CANARY_NUMBER.format(number), "null", "true", "[]", "{}", "-1", "1e999", ".nan",
        "9" * 60, "[[[[[[]]]]]]", "[" * 300 + "]" * 300, "&a [*a]", "*nowhere", "!!python/name:os",
        "2020-01-01", "'(?=x)'", "'['", "!!binary aGk=", f"{{{canary}: 1}}", "\"\\0\"", "? [1]",
    ]  # fmt: skip
    action = rng.choice(
        ["value", "value", "value", "entry", "key", "drop", "twice", "indent", "swap"]
    )
    if action == "value" and ":" in line:
        lines[place] = line[: line.index(":") + 1] + " " + rng.choice(values)
    elif action == "entry" and any(mark in line for mark in "[{"):
        start = rng.choice([i for i, mark in enumerate(line) if mark in "[{,:"])
        stop = next((i for i in range(start + 1, len(line)) if line[i] in ",]}"), len(line))
        lines[place] = line[: start + 1] + " " + rng.choice(values) + line[stop:]
    elif action == "key" and ":" in line:
        lines[place] = line.replace(":", "x:", 1)
    elif action == "drop":
        del lines[place]
    elif action == "twice":
        lines.insert(place, line)
    elif action == "indent":
        lines[place] = rng.choice([" ", "  ", "\t"]) + line
    else:
        other = rng.choice(places)
        lines[place], lines[other] = lines[other], lines[place]
    return Spoilt(f"YAML {action} in line {place + 1}", ("\n".join(lines) + "\n").encode())
