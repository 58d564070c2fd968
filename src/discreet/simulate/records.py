"""The records kernels fill: NumPy rows of one person or one unit each.

Rows rather than columns: a kernel works on one household at a time and takes one argument
for all its variables, which Numba compiles far faster. Codes are small whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

#: A record array; fields are reached as `rows[k].age`.
Rows: TypeAlias = npt.NDArray[Any]
#: One record of named arrays; reached as `tables.sizes`.
Record: TypeAlias = Any

MALE, FEMALE = 0, 1
OCCUPIED, VACANT, QUARTERS = 0, 1, 2

PERSON = np.dtype(
    [
        ("unit", np.int32),  # row of the unit in the same area
        ("donor", np.int32),  # row of the donor in the same area, or -1
        ("ordinal", np.uint16),  # among identical records of the unit, from 1
        ("age", np.uint8),
        ("sex", np.uint8),  # 0 male, 1 female
        ("race", np.uint8),  # 0 to 62
        ("hispanic", np.uint8),  # 0 no, 1 yes
        ("relationship", np.uint8),  # 20 to 38
        ("origin", np.uint8),  # row of the table of detailed groups
        ("ethnicity", np.uint8),  # 0 not Hispanic, else from 1
        ("imputed", np.uint8),
    ]
)

UNIT = np.dtype(
    [
        ("block", np.int32),  # row of the block in the same area
        ("members", np.int32),  # members or residents
        ("kind", np.uint8),  # OCCUPIED, VACANT, QUARTERS
        ("race", np.uint8),  # race group of the householder, 0 to 6
        ("hispanic", np.uint8),  # of the householder
        ("vacancy", np.uint8),  # from 1; 0 not applicable, and so on below
        ("quarters", np.uint8),  # row of the table of types, from 1
        ("tenure", np.uint8),
        ("household_type", np.uint8),
        ("household_type2", np.uint8),
        ("couple_type", np.uint8),
        ("family_size", np.uint8),
        ("imputed", np.uint8),
    ]
)


def as_record(fields: Mapping[str, npt.ArrayLike]) -> Record:
    """Return named numbers and arrays as one NumPy record.

    A field of one dimension or more keeps its shape; a number stays a number.
    """
    arrays = {name: np.asarray(value) for name, value in fields.items()}
    layout = [(name, array.dtype, array.shape) for name, array in arrays.items()]
    rows = np.zeros(1, dtype=np.dtype(layout, align=True))
    for name, array in arrays.items():
        rows[name][0] = array
    return rows.view(np.recarray)[0]
