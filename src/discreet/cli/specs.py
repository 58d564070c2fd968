"""Commands on promises: published ones, your own, and what swapping promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import promises
from discreet.cli.console import Json, guarded, print_json
from discreet.errors import BadInput

if TYPE_CHECKING:
    from discreet.spec import psa as swapping

NAMED = "A system of the catalog, or a specification's YAML file; NAME@RATE for a swap's rate."
Named = Annotated[str, typer.Argument(metavar="NAME_OR_FILE", help=NAMED)]
Stratum = Annotated[int, typer.Option(help="Records in the largest stratum.", min=0)]
Touched = Annotated[
    int | None,
    typer.Option(help="How many household records one person can alter, if units differ.", min=1),
]

#: On what the sum of budgets rests.
INDEPENDENT = (
    "the releases use independent randomness: no common sample, noise, seed or cell keys. For "
    "releases that share any no rule exists (--shared)"
)

specs = typer.Typer(
    name="spec",
    help="What releases promise: published systems, your own, and swapping.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


# -- swapping -----------------------------------------------------------------------------------


@specs.command(epilog="Example: discreet spec psa --stratum 264331 --rate 0.01")
@guarded
def psa(
    stratum: Stratum,
    rate: Annotated[str, typer.Option(help="Swap rate, such as 0.05 or 1/20.")],
    as_json: Json = False,
) -> None:
    """Account for permutation swapping at one rate."""
    from discreet.spec import psa as accountant

    found = accountant.account(stratum, promises.fraction(rate, "rate"))
    _print_swaps(found, as_json)


@specs.command(epilog="Example: discreet spec invert --stratum 10 --epsilon 3")
@guarded
def invert(
    stratum: Stratum,
    epsilon: Annotated[float, typer.Option(help="The budget of Theorem 1.")],
    as_json: Json = False,
) -> None:
    """Show both swap rates that have a budget, with the share of records each moves."""
    from discreet.spec import psa as accountant

    found = accountant.invert(stratum, epsilon)
    _print_swaps(found, as_json)


#: What a budget of swapping is a budget of.
_SWAPS: dict[str, Any] = {
    "unit": "record that is swapped (a household, where households are)",
    "input_premetric": "hamming-of-multisets",
    "output_premetric": "multiplicative",
    "invariants": [
        "counts by matching and holding variables",
        "counts by matching and swapping variables",
    ],
}


def _print_swaps(found: swapping.Account | swapping.Inversion, as_json: bool) -> None:
    if as_json:
        print_json({**found.as_data(), **_SWAPS})
        return
    print("\n".join(found.describe()))
    print(f"distances between data sets: {_SWAPS['input_premetric']} of the records swapped")


# -- the catalog --------------------------------------------------------------------------------


@specs.command("list", epilog="Example: discreet spec list")
@guarded
def list_systems(as_json: Json = False) -> None:
    """List the published systems of the catalog."""
    from discreet.spec import catalog

    titles = {name: catalog.title(name) for name in catalog.names()}
    if as_json:
        print_json([{"name": name, "title": title} for name, title in titles.items()])
        return
    width = max(map(len, titles))
    for name, title in titles.items():
        print(f"{name:{width}}  {title}")


@specs.command(epilog="Example: discreet spec table 3")
@guarded
def table(
    number: Annotated[str, typer.Argument(help="2, 3, 4 or 5.")], as_json: Json = False
) -> None:
    """Recompute a table of Bailie, Gong and Meng beside what is printed."""
    from discreet.spec import tables

    # Text, because whole numbers would be read from 2.0 too.
    found = tables.table(int(number) if number in ("2", "3", "4", "5") else 0)
    if as_json:
        print_json(found.as_dict())
    else:
        print(found.describe())


@specs.command(epilog="Example: discreet spec show das-2020")
@guarded
def show(
    name: Named,
    as_json: Json = False,
    as_yaml: Annotated[
        bool, typer.Option("--yaml", help="Print the specification as its YAML file.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page to this file.")] = None,
) -> None:
    """Show a promise: who, where, what, how, how much, and what is not protected."""
    if as_json + as_yaml + (html is not None) > 1:
        raise BadInput("--json, --yaml and --html are three ways to show: give one of them.")
    specification, entry = promises.read(name)
    if html is not None:
        from discreet.report import write_card

        promises.check_target(html, "--html", Path(name))
        title = entry.title if entry else Path(name).stem
        cautions = promises.cautions_of(specification, entry)
        mode = promises.mode_of(name)
        written = write_card(
            specification, html, title=title, entry=entry, cautions=cautions, mode=mode
        )
        print(written)
    elif as_json:
        own = {"name": name, "specification": specification.model_dump(mode="json")}
        print_json(entry.as_dict() if entry else own)
    elif as_yaml:
        print(promises.as_yaml(specification.model_dump(mode="json")), end="")
    else:
        told = entry.describe() if entry else specification.describe()
        warned = promises.cautions_of(specification, entry)
        print("\n".join([told, "", "Cautions:", *(f"  - {one.id} {one.text}" for one in warned)]))


@specs.command(epilog="Example: discreet spec compare psa-2010 das-2020")
@guarded
def compare(
    first: Named,
    second: Named,
    touched: Touched = None,
    records: Annotated[
        int | None,
        typer.Option(
            help="The most persons in one household, to tell persons by household.", min=1
        ),
    ] = None,
    same_sizes: Annotated[
        bool, typer.Option("--same-sizes", help="With --records: sizes of households never vary.")
    ] = False,
    copies: Annotated[
        int | None,
        typer.Option(help="How often imputation copied a contributor's record at most.", min=0),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell which of two promises is stronger, if either is, with proofs and cautions."""
    from discreet.spec import compare as set_side_by_side

    (one, one_entry), (two, two_entry) = promises.read(first), promises.read(second)
    found = set_side_by_side(
        one,
        two,
        names=(first, second),
        touched=touched,
        records=records,
        same_sizes=same_sizes,
        copies=copies,
        facts=(promises.facts_of(one_entry), promises.facts_of(two_entry)),
    )
    if as_json:
        print_json(promises.with_options(found.as_dict()))
    else:
        print(promises.with_options(found.describe()))


@specs.command(epilog="Example: discreet spec compose topdown safetab-p phsafe")
@guarded
def compose(
    names: Annotated[list[str], typer.Argument(metavar="NAME_OR_FILE...", help=NAMED)],
    touched: Touched = None,
    delta: Annotated[
        str | None, typer.Option(help="Tell a rho^2 as epsilon at this delta too.")
    ] = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="Releases share randomness: refused, no rule exists.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what several releases of the same data promise together.

    Budgets add up only if the releases use independent randomness, which is assumed.
    """
    at = None if delta is None else promises.fraction(delta, "delta")
    read = [promises.read(name) for name in names]
    found = promises.combined([part for part, _ in read], touched, at, shared)
    converted = promises.converted(found.specification, at, [part for part, _ in read])
    tighter = promises.tighter(read, found.specification, touched, at)
    if as_json:
        print_json(
            {
                "specification": found.specification.model_dump(mode="json"),
                "assumes": [INDEPENDENT] if len(read) > 1 else [],
                "weakenings": list(found.weakenings),
                "converted": converted.model_dump(mode="json") if converted else None,
                "tighter": tighter.model_dump(mode="json") if tighter else None,
            }
        )
        return
    print(found.specification.describe())
    if len(read) > 1:
        print(f"\nAssumes that {INDEPENDENT}.")
    if found.weakenings:
        print("\nGiven up in composing:", *(f"  - {text}" for text in found.weakenings), sep="\n")
    if tighter:
        print(f"\nTold tighter, for the same promise: {promises.in_short(tighter)}")
    if converted:
        print(f"\nAt delta = {delta}, for the same promise:\n{converted.describe()}")


@specs.command(epilog="Example: discreet spec registry topdown-pl --out redistricting.yaml")
@guarded
def registry(
    name: Named,
    metadata: Annotated[
        Path | None, typer.Option(help="What the registry asks for beside the promise (YAML).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file, not to stdout.")] = None,
) -> None:
    """Write an entry for the OpenDP registry of deployments."""
    from discreet.spec import registry as deployments

    specification, entry = promises.read(name)
    beside = entry.registry if entry else None
    if metadata is not None:
        beside = deployments.read_metadata(metadata)
    if beside is None:
        raise BadInput(
            f"{name} is no deployment by itself: nothing is known of its curator, use and date. "
            f"Give them with --metadata FILE."
        )
    if out is not None:
        promises.check_target(out, "--out", Path(name), *([metadata] if metadata else []))
    made = deployments.registry_entry(specification, beside)
    if out is None:
        print(deployments.as_yaml(made), end="")
        return
    deployments.write(made, out, promises.mode_of(name))
    print(out)


@specs.command(epilog="Example: discreet spec schema")
@guarded
def schema() -> None:
    """Print the JSON Schema of specification files."""
    from discreet.spec import json_schema

    print_json(json_schema())


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(specs)
