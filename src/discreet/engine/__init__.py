"""Where relational work runs: one machine today, one seam for others.

Everybody above writes Narwhals expressions; an `Engine` adds what Narwhals
lacks (reading, writing, materialising, a keyed order column, NumPy in and out).
Nothing outside this room executes a query.
"""

from discreet.engine.lists import Lists, Texts
from discreet.engine.literals import list_literal
from discreet.engine.local import Engine, EngineStopped, Frame, MemoryReached
from discreet.engine.named import parts
from discreet.engine.parallel import parallel_map

__all__ = [
    "Engine",
    "EngineStopped",
    "Frame",
    "Lists",
    "MemoryReached",
    "Texts",
    "list_literal",
    "parallel_map",
    "parts",
]
