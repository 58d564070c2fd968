"""The commands. Heavy modules are imported inside them, so that `--help` is quick."""

from __future__ import annotations

import dataclasses
import inspect
import os
from pathlib import Path
from typing import Annotated

import typer

import discreet
from discreet.cli import audits, data, evaluations, plans, registers, runs, schemas, specs
from discreet.cli.console import Json, guarded, print_json, progress
from discreet.process import own_process

app = typer.Typer(
    name="discreet",
    help="Disclosure avoidance for census-style data: protect it, say exactly what the "
    "protection promises, and measure what it costs.",
    epilog="Start with: discreet demo --out demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)

Processes = Annotated[
    int | None, typer.Option(min=1, help="Processes to use; default: one per core.")
]


def _version(asked: bool) -> None:
    if asked:
        print(f"discreet {discreet.__version__}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Start a command; only the options of all commands are handled here."""


@app.command(epilog="Example: discreet demo --out demo --profile tiny")
@guarded
def demo(
    out: Annotated[Path, typer.Option(help="New folder for census, release and report.")] = Path(
        "discreet-demo"
    ),
    profile: Annotated[str, typer.Option(help="What to simulate.")] = "small-state",
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 1,
    swap_seed: Annotated[
        int | None, typer.Option(help="Make the swap repeatable (default: it is not).")
    ] = None,
    processes: Processes = None,
) -> None:
    """Simulate a census, swap it, check every invariant, and write a report.

    The last line printed is the path of the report.
    """
    with progress() as shown:
        shown(0.0, "starting")
        from discreet.demo import demo as run_demo

        report = run_demo(
            out,
            profile,
            seed,
            swap_seed=swap_seed,
            processes=processes,
            progress=shown,
        )
    print(report.resolve())


@app.command(epilog="Example: discreet simulate census --profile tiny --seed 7")
@guarded
def simulate(
    out: Annotated[Path, typer.Argument(help="New folder for the census.")],
    profile: Annotated[
        str, typer.Option(help="A profile that comes with discreet, or a profile file.")
    ] = "small-state",
    seed: Annotated[int, typer.Option(help="Same profile and seed, same census.")] = 1,
    states: Annotated[
        str | None, typer.Option(help="Only these states of the profile, for instance 10,44,50.")
    ] = None,
    processes: Processes = None,
    as_json: Json = False,
) -> None:
    """Simulate a census. The result says nothing about any country."""
    with progress() as shown:
        shown(0.0, "starting")
        from discreet.simulate import simulate as run_simulation

        summary = run_simulation(
            profile,
            out,
            seed,
            states=None if states is None else [code.strip() for code in states.split(",")],
            processes=processes or _cores(),
            progress=lambda done, total, label: shown(done / max(total, 1), label),
        )
    if as_json:
        print_json({"census": str(out), **dataclasses.asdict(summary)})
        return
    print(
        f"{out}: {summary.persons:,} persons in {summary.units:,} units and "
        f"{summary.blocks:,} smallest areas, {summary.seconds:.1f} s "
        f"({summary.persons_per_second:,.0f} persons per second, "
        f"{summary.peak_memory_mb:,.0f} MB)"
    )


@app.command(epilog="Example: discreet mechanisms --json")
@guarded
def mechanisms(as_json: Json = False) -> None:
    """List the mechanisms by name, one line each."""
    from discreet.mechanisms import MECHANISMS

    told = {name: (inspect.getdoc(kind) or "").splitlines()[0] for name, kind in MECHANISMS.items()}
    if as_json:
        print_json([{"name": name, "does": line} for name, line in told.items()])
        return
    for name, line in told.items():
        print(f"{name}  {line}")


def _cores() -> int:
    return os.cpu_count() or 1


data.add_to(app)
runs.add_to(app)
registers.add_to(app)
schemas.add_to(app)
specs.add_to(app)
audits.add_to(app)
evaluations.add_to(app)
plans.add_to(app)


def main() -> None:
    """Run the command line."""
    own_process()
    app(prog_name="discreet")
