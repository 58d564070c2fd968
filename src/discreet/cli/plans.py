"""Commands that plan a release before there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli import promises
from discreet.cli.console import Json, guarded, print_json
from discreet.errors import BadInput

plans = typer.Typer(
    name="plan",
    help="Plan a release: the noise a budget buys, and the budget that wanted noise costs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@plans.callback()
def _plan() -> None:
    """Keep `plan` a group of commands, also while it has only one."""


@plans.command(epilog="Example: discreet plan topdown pl94-us-persons-2020 --root state")
@guarded
def topdown(
    strategies: Annotated[
        list[str],
        typer.Argument(metavar="STRATEGY...", help="Strategies by name, or strategy files."),
    ],
    root: Annotated[
        str | None, typer.Option(help="Start at this level; those above are not measured.")
    ] = None,
    children: Annotated[
        str | None,
        typer.Option(help="Typical number of children in a parent, level by level: 14,11,4,45."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="LEVEL:QUERY=MARGIN", help="A wanted margin of error (90 percent)."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(help="Write the strategy that meets the targets to this new file."),
    ] = None,
    schema: Annotated[
        str | None, typer.Option(help="Check the strategies against this schema, too.")
    ] = None,
    delta: Annotated[str, typer.Option(help="Delta of the epsilons.")] = "1e-10",
    as_json: Json = False,
) -> None:
    """Show noise, margins of error and promises of TopDown strategies.

    With --target each named query gets what its margin needs and all others keep their noise.
    """
    from discreet.mechanisms import topdown

    planning = topdown.planning

    if (target or write) and len(strategies) > 1:
        raise BadInput("--target and --write are for one strategy. Plan them one after another.")
    _check_write(write, target, *strategies)
    wanted, at = planning.targets_of(target or []), promises.fraction(delta, "delta")
    found = [planning.prepare(name, root, wanted, schema) for name in strategies]
    shown = [planning.plan(one, _numbers(children), at) for one in found]
    if write is not None:
        from discreet.files import write_yaml

        write_yaml(write, found[0].as_data())
    both = planning.together(found, at) if len(found) > 1 else None
    if as_json:
        told: dict[str, Any] = {"plans": [one.as_data() for one in shown]}
        print_json(told if both is None else {**told, "together": both})
        return
    print("\n\n".join("\n".join(one.describe()) for one in shown))
    if both is not None and both["rho2"] is None:
        print(f"\ntogether: not added up, as {both['reason']}")
    elif both is not None:
        print(
            f"\ntogether: rho^2 = {both['rho2_decimal']:.6f}, epsilon {both['epsilon']:.2f} "
            f"(Canonne, Kamath and Steinke), {both['epsilon_bun_steinke']:.2f} (Bun and Steinke); "
            f"neighbours: {both['neighbours']}"
        )
    if write is not None:
        print(f"\n{write}: written")


@plans.command(epilog="Example: discreet plan phsafe us-2020 --target 'PH3:state_A-G=10'")
@guarded
def phsafe(
    configuration: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG", help="us-2020, pr-2020, or a YAML file: a run or a configuration."
        ),
    ],
    sizes: Annotated[
        Path | None,
        typer.Option(help="Households by size, with their source: what truncation leaves out."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE:LEVEL=MARGIN", help="A wanted margin of error (90 percent)."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(help="Write parameters of a run that meet the targets to this new file."),
    ] = None,
    delta: Annotated[str, typer.Option(help="Delta of the epsilons.")] = "1e-10",
    as_json: Json = False,
) -> None:
    """Show noise, margins of error and promises of a PHSafe configuration.

    With --target each named level gets what its margin needs and all others keep their noise.
    """
    from discreet.mechanisms import phsafe

    planning = phsafe.planning

    _check_write(write, target, configuration)
    wanted, at = planning.targets_of(target or []), promises.fraction(delta, "delta")
    settings, change = phsafe.read_settings(configuration)
    if wanted:
        settings = planning.meet(settings, wanted)
    shown = planning.plan(settings, at, None if sizes is None else phsafe.load_sizes(sizes))
    if write is not None:
        from discreet.files import write_text

        write_text(write, phsafe.run_text(settings, change))
    if as_json:
        print_json(shown.as_data())
        return
    print("\n".join(shown.describe()))
    if write is not None:
        print(f"\n{write}: written")


def _check_write(path: Path | None, target: list[str] | None, *inputs: str) -> None:
    """Refuse to write without targets, or over a file: it may hold lines added by hand."""
    if path is None:
        return
    if not target:
        raise BadInput("--write: there is nothing new to write without --target.")
    promises.check_target(path, "--write", *map(Path, inputs))
    if path.exists():
        raise BadInput(f"--write: {path.name} is there already. Remove it, or choose another file.")


def _numbers(text: str | None) -> list[int]:
    try:
        return [] if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise BadInput("--children is a list of whole numbers such as 14,11,4,45.") from None


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(plans)
