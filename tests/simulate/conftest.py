"""Simulated censuses the tests share, and plain SQL over them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from discreet.simulate import simulate

Query = Callable[[str], list[tuple[Any, ...]]]

#: Three small states, so that states can be asked for one by one.
THREE_STATES = """
format_version: 1
name: three-states
schema: us-decennial
quarters_size: 0.1
states:
  - {code: "09", name: A, persons: 6000, counties: 3, tracts: 6, blocks: 200,
     latitude: 41, longitude: -72, race: [66, 11, 1, 5, 0, 8, 9], hispanic: 17}
  - {code: "10", name: B, persons: 4000, counties: 2, tracts: 4, blocks: 150,
     latitude: 39, longitude: -75, race: [60, 22, 1, 4, 0, 5, 8], hispanic: 10}
  - {code: "15", name: C, persons: 5000, counties: 2, tracts: 5, blocks: 150,
     latitude: 20, longitude: -156, race: [23, 2, 1, 37, 11, 2, 25], hispanic: 10}
"""


@pytest.fixture(scope="session")
def three_states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a profile file."""
    path = tmp_path_factory.mktemp("profile") / "three-states.yaml"
    path.write_text(THREE_STATES, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a simulated small state: about three seconds, once compiled."""
    folder = tmp_path_factory.mktemp("small") / "census"
    simulate("small-state", folder, 3, processes=2)
    return folder


@pytest.fixture(scope="session")
def country(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a simulated census of the other schema."""
    folder = tmp_path_factory.mktemp("country") / "census"
    simulate("other-country", folder, 1)
    return folder


@pytest.fixture(scope="session")
def sql() -> Callable[[Path], Query]:
    """Return what opens a census folder for SQL: its tables, by name."""

    def opened(folder: Path) -> Query:
        connection = duckdb.connect()
        for table in ("geography", "units", "persons"):
            single = folder / f"{table}.parquet"
            files = single if single.exists() else folder / table / "*.parquet"
            connection.execute(f"create view {table} as from read_parquet('{files}')")
        return lambda text: connection.execute(text).fetchall()

    return opened


@pytest.fixture(scope="session")
def ask(small: Path, sql: Callable[[Path], Query]) -> Query:
    """Return SQL over the small state."""
    return sql(small)
