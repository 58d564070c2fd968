"""Hold a simulated census against the public figures it was set from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from discreet.census import Census, TableName
from discreet.engine import Engine
from discreet.files import check_format, read_yaml
from discreet.simulate.profile import US_SCHEMA


@dataclass(frozen=True)
class Comparison:
    """One figure: simulated, and the public one beside it (percent, or entropy in nats)."""

    topic: str
    category: str
    simulated: float
    public: float | None
    source: str


def describe(folder: Path | str) -> list[Comparison]:
    """Return distributions of a simulated census beside the figures they were set from.

    For the US layout these are public figures; for any other schema, its own hints.
    """
    engine = Engine()
    try:
        census = Census.open(folder, engine)
        rows = _us(census) if census.schema.name == US_SCHEMA else _hinted(census)
        return list(rows)
    finally:
        engine.close()


def _shares(
    census: Census, table: TableName, column: str, where: Mapping[str, Any] | None
) -> dict[str, float]:
    """Return the share of each value of a column, in percent; missing values left out."""
    frame = census.frame(table, [column], where).filter(~nw.col(column).is_null())
    counts = frame.group_by(column).agg(count=nw.len())
    found = {str(value): int(count) for value, count in census.engine.rows(counts)}
    total = sum(found.values())
    return {value: 100 * count / total for value, count in found.items()} if total else {}


def _us(census: Census) -> Iterator[Comparison]:
    source = resources.files("discreet.simulate") / "us-public.yaml"
    with resources.as_file(source) as path:
        public = check_format(read_yaml(path), path.name)
    for topic in public["topics"]:
        shares = _shares(census, topic["table"], topic["column"], topic.get("where"))
        groups = topic.get("groups", {name: [name] for name in topic["figures"]})
        for name, figure in topic["figures"].items():
            simulated = sum(shares.get(code, 0.0) for code in groups[name])
            yield Comparison(topic["title"], name, simulated, figure, topic["source"])
    entropy = mean_entropy(census)
    yield Comparison("Race in tracts", "mean entropy", entropy, None, public["entropy"])


def mean_entropy(census: Census, area: str = "tract", group: str = "race_group") -> float:
    """Return the mean over areas of -sum p log p over a grouping of persons (natural log)."""
    frame = census.frame("persons", [area, group]).group_by(area, group).agg(count=nw.len())
    counts: dict[str, list[int]] = {}
    for name, _, count in census.engine.rows(frame):
        counts.setdefault(name, []).append(count)
    entropies = []
    for values in counts.values():
        share = np.array(values) / sum(values)
        entropies.append(float(-(share * np.log(share)).sum()))
    # Summed in the order of size: an engine may return areas in any order.
    return float(np.mean(sorted(entropies)))


def _hinted(census: Census) -> Iterator[Comparison]:
    """Yield the variables whose shares a schema gives outright."""
    for table in ("units", "persons"):
        for name, variable in census.schema.variables(table).items():
            hint = variable.simulate or {}
            if "shares" not in hint or "by" in hint:
                continue
            shares = _shares(census, table, name, None)
            total = sum(hint["shares"].values())
            for code, share in hint["shares"].items():
                simulated = shares.get(str(code), 0.0)
                yield Comparison(name, str(code), simulated, 100 * share / total, "schema")
