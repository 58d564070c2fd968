"""The configuration of one run: one YAML file, checked before anything is touched."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from discreet.config import Strict, parse
from discreet.files import FORMAT_VERSION, check_format, read_yaml


def _location(text: str) -> str:
    if not text or "\0" in text:
        raise ValueError("must be a path: not empty, and without the character NUL")
    return text


#: A path, relative to the folder of the configuration.
Location = Annotated[str, AfterValidator(_location)]

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]


class Account(Strict):
    """Which account a run is counted in or charged to."""

    register_file: Location = Field(alias="register")
    collection: Slug
    version: Slug
    accept_no_guarantee: str | None = None


class RunConfig(Strict):
    """What to protect, how, in which mode, and where everything goes.

    `design` is for simulated data, `trial` for confidential data and internal output
    only, `release` for output that leaves the house. Paths are relative to the file.
    """

    format_version: int = FORMAT_VERSION
    release: Slug
    mode: Literal["design", "trial", "release"]
    census: Location
    work: Location
    out: Location
    mechanism: str
    parameters: dict[str, Any]
    account: Account | None = None
    memory_limit: Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)?[KMGT]B$")] = "2GB"

    @model_validator(mode="after")
    def _accounted(self) -> RunConfig:
        if self.mode != "design" and self.account is None:
            raise ValueError(f"mode {self.mode} needs an account: register, collection, version")
        return self

    def hash(self) -> str:
        """Return the SHA-256 of all that may change a result, in canonical form."""
        content = self.model_dump(mode="json", by_alias=True, exclude={"memory_limit"})
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def read_config(path: Path) -> RunConfig:
    """Return the configuration in a YAML file."""
    return parse(RunConfig, check_format(read_yaml(path), path.name), path.name)
