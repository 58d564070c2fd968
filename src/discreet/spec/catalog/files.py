"""Read the files of the catalog."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from discreet.config import parse, suggest
from discreet.errors import BadInput
from discreet.files import check_format, read_yaml
from discreet.spec.catalog.entry import Shared, System

FOLDER = Path(__file__).parent


class UnknownSystem(BadInput):
    """The catalog has no system, or a system no accounting, of this name."""


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Return the names of the systems, sorted."""
    return tuple(sorted(path.stem for path in (FOLDER / "systems").glob("*.yaml")))


@lru_cache(maxsize=1)
def shared() -> Shared:
    """Return the blocks that systems have in common."""
    path = FOLDER / "shared.yaml"
    return parse(Shared, check_format(read_yaml(path), path.name), path.name)


@lru_cache(maxsize=64)
def system(name: str) -> System:
    """Return what the file of a system says."""
    if name not in names():
        raise UnknownSystem(f"the catalog has no system '{name}'.{suggest(name, names())}")
    path = FOLDER / "systems" / f"{name}.yaml"
    return parse(System, check_format(read_yaml(path), path.name), path.name)
