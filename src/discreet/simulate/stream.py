"""Random numbers that depend on what they are for, not on when they are drawn.

One generator per (seed, purpose, area): a state comes out the same whether it is
simulated alone or among fifty, by one process or by eight.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, *purpose: str) -> np.random.Generator:
    """Return the generator of a purpose, for instance `("county", "50001")`.

    SFC64, the quickest of NumPy's generators inside compiled loops, seeded with a hash of
    all that names the stream.
    """
    text = "|".join((str(seed), *purpose))
    key = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return np.random.Generator(np.random.SFC64(int.from_bytes(key, "little")))
