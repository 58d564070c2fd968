"""The two steps of every release, draw and publish, and both together for trials."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from discreet.census import Census, as_data, check_structure, read_schema
from discreet.config import parse
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.files import (
    atomic_folder,
    check_format,
    files_below,
    folder_hash,
    read_yaml,
    remove_folder,
    sha256_file,
    write_text,
    write_yaml,
)
from discreet.mechanisms.catalogue import mechanism
from discreet.mechanisms.contract import (
    HEADER,
    SPECIFICATION,
    DrawRecord,
    Mechanism,
    Mode,
    Release,
    ReleaseHeader,
    Staged,
)
from discreet.mechanisms.self_test import check_kernels
from discreet.mechanisms.stages import Stages
from discreet.noise import Randomness
from discreet.register import Charged, ReservedRun
from discreet.spec import Specification, read_specification


def check_mode(mode: Mode, census: Census, rng: Randomness) -> None:
    """Refuse a mode that does not fit the data or the randomness."""
    _check_origin(mode, census.origin)
    if mode == "release" and rng.mode != "release":
        raise BadInput("a release takes no seed: its randomness is the operating system's.")


def _check_origin(mode: Mode, origin: str) -> None:
    if (mode == "design") != (origin == "simulated"):
        raise BadInput(
            f"mode {mode} does not fit a census that is {origin}. Simulated data run in "
            f"mode design, all others in mode trial or release."
        )


def make_draw(
    made: Mechanism,
    census: Census,
    rng: Randomness,
    folder: Path,
    mode: Mode,
    threads: int = 1,
    stages: Stages | None = None,
    reserved: ReservedRun | None = None,
) -> Path:
    """Draw once and write the draw, with what is promised about it, to a new private folder.

    In mode `release` this needs a reservation for this census and of what is promised that was
    not committed yet; every part that is drawn is entered there before. With `stages` a draw
    goes on where it was killed: finished stages are kept, and whatever else an earlier attempt
    left in `folder` is deleted unread.
    """
    if census.schema != made.census_schema:
        raise BadInput(
            f"{made.name} is set up for another schema than the census has. "
            f"Make the mechanism from the schema of the census."
        )
    check_mode(mode, census, rng)
    check_structure(census)
    made.check(census)
    specification = made.specify(made.facts(census))
    record = DrawRecord(
        mechanism=made.name,
        parameters=made.parameters(),
        mode=mode,
        origin=census.origin,
        charged=_charged(made, census, specification, reserved) if mode == "release" else None,
    )
    staged = made if stages is not None and isinstance(made, Staged) else None
    if reserved is not None and staged is None:
        reserved.begin(folder.name)
    if stages is not None:
        stages = stages if reserved is None else replace(stages, begin=reserved.begin)
        remove_folder(folder)
    with atomic_folder(folder, tag="draw") as temporary:
        if stages is not None and staged is not None:
            staged.draw_in_stages(census, rng, temporary, stages)
        else:
            made.draw(census, rng, temporary, threads)
        # Part of what is hashed and committed: what is published later is what was charged.
        specification.write(temporary / SPECIFICATION)
        write_yaml(temporary / "schema.yaml", as_data(census.schema), 0o600)
        # The hash of the draw is told outside; without a salt it could be used to test
        # guesses of what the draw holds beside the release.
        write_text(temporary / "salt.txt", _salt(rng), 0o600)
        write_yaml(temporary / "draw.yaml", record.model_dump(mode="json"), 0o600)
    return folder


def _charged(
    made: Mechanism,
    census: Census,
    specification: Specification,
    reserved: ReservedRun | None,
) -> Charged:
    """Return the entry that pays for a release, or refuse to draw one that nobody paid for.

    Whoever calls this without `discreet.run` is held to what a run does, too.
    """
    if reserved is None:
        raise BadInput(
            "a release is charged before it is drawn: it needs its reservation in the register "
            "of its collection. Use `discreet run`."
        )
    charged = reserved.reserved(specification)
    if census.folder is None:
        raise BadInput("a release is drawn from a census that was opened from its folder.")
    reserved.check_census(folder_hash(census.folder))
    check_kernels(made.name, "release")
    return charged


def _salt(rng: Randomness) -> str:
    one = np.ones(1, dtype=np.int64)
    words = rng.words("salt", np.zeros(1, dtype=np.uint64), 0 * one, 4 * one)
    return words.tobytes().hex()


def publish_draw(
    draw: Path,
    out: Path,
    engine: Engine | None = None,
    stages: Stages | None = None,
    reserved: ReservedRun | None = None,
) -> Release:
    """Write the release of a draw to a new folder.

    The draw folder is all this step is given; the census is not needed and not seen. In mode
    `release` this also needs the register, in which the draw must be committed with its hash
    and its specification: `discreet.run.publish` has it.
    """
    name = "draw.yaml"
    record = parse(DrawRecord, check_format(read_yaml(draw / name), name), name)
    drawn = folder_hash(draw)
    if record.mode == "release":
        if reserved is None:
            raise BadInput("a release is published only with its register. Use `discreet publish`.")
        reserved.check(record.charged, drawn, read_specification(draw / SPECIFICATION))
    _check_origin(record.mode, record.origin)
    schema = read_schema(draw / "schema.yaml")
    made = mechanism(record.mechanism, schema, record.parameters)
    # Trial output is internal: readable by its owner only, whatever the umask says.
    mode = 0o700 if record.mode == "trial" else 0o755
    with atomic_folder(out, mode, tag=drawn[:12]) as temporary:
        if stages is not None and isinstance(made, Staged):
            made.publish_in_stages(draw, temporary, engine or Engine(), stages)
        else:
            made.publish(draw, temporary, engine or Engine())
        shutil.copyfile(draw / SPECIFICATION, temporary / SPECIFICATION)
        for header_file in temporary.rglob("census.yaml"):
            write_yaml(header_file, {**read_yaml(header_file), "mode": record.mode})
        header = ReleaseHeader(
            mechanism=record.mechanism,
            schema_name=schema.name,
            parameters=record.parameters,
            mode=record.mode,
            origin=record.origin,
            draw=drawn,
            charged=record.charged if record.mode == "release" else None,
            files={str(p.relative_to(temporary)): sha256_file(p) for p in files_below(temporary)},
        )
        header = header.sealed()
        write_yaml(temporary / HEADER, header.content())
        if reserved is not None and record.mode == "release":
            # Before it appears: a release that is found without this entry is a forged one.
            reserved.publish(header.charged, header.digest)
    return Release.open(out)


def protect(
    made: Mechanism, census: Census, rng: Randomness, out: Path, threads: int = 1
) -> Release:
    """Draw, publish to `out`, and purge the draw: for design, on simulated data only.

    Confidential data leave a trace in the register of their collection before anything is
    drawn, as a trial that is counted or a release that is charged: use `discreet.run`.
    """
    if census.origin != "simulated":
        raise BadInput(
            "confidential data must be counted in or charged to the register of their "
            "collection. Use `discreet run` in mode trial or release."
        )
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=_made(out.parent)) as private:
        draw = make_draw(made, census, rng, Path(private) / "draw", "design", threads)
        return publish_draw(draw, out)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
