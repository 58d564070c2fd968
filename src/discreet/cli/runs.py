"""Commands that run a configuration and publish a draw."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.console import Json, guarded, print_json, progress

Config = Annotated[Path, typer.Argument(metavar="CONFIG.yaml", help="The configuration.")]


@guarded
def run(
    config: Config,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in the work folder.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and the promise; draw nothing.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Repeatable; for modes design and trial only.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Protect a census as a configuration says, and publish the result.

    A draw is reserved, made, committed and published, in that order. After a crash,
    --resume goes on without drawing anything again that was committed.
    """
    if dry_run:
        from discreet.run import plan

        planned = plan(config)
        if as_json:
            print_json(
                {
                    "release": planned.config.release,
                    "mode": planned.config.mode,
                    "approval": planned.approval,
                    "specification": planned.specification.model_dump(mode="json"),
                }
            )
            return
        print(f"{planned.describe()}\nTo be approved: {planned.approval}")
        return
    with progress() as shown:
        shown(0.0, "starting")
        from discreet.run import internal_figures
        from discreet.run import run as run_configuration

        release = run_configuration(config, resume=resume, seed=seed, progress=shown)
    if as_json:
        print_json({"release": str(release.folder), **release.header.model_dump(mode="json")})
        return
    print(release.folder)
    internal = internal_figures(config)
    if internal is not None:  # not on stdout, whose only line is the release
        print(f"Internal figures, not for release: {internal}", file=sys.stderr)


@guarded
def publish(config: Config) -> None:
    """Publish the committed draw of a run; the census is not needed and not opened."""
    from discreet.run import publish as publish_run

    print(publish_run(config).folder)


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.command(epilog="Example: discreet run examples/swap.yaml --dry-run")(run)
    app.command(epilog="Example: discreet publish examples/swap.yaml")(publish)
