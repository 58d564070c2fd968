"""Commands on a census: read one in, check it, count it."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.console import Json, guarded, print_json
from discreet.errors import EXIT_BAD_INPUT, BadInput

if TYPE_CHECKING:
    from discreet.census import Census
    from discreet.engine import Frame

CensusFolder = Annotated[Path, typer.Argument(metavar="CENSUS", help="Folder of a census.")]
Waivers = Annotated[Path | None, typer.Option(help="File of waived rules, each with its reason.")]


@guarded
def ingest(
    source: Annotated[Path, typer.Argument(help="Folder (or file) to read.")],
    out: Annotated[Path, typer.Argument(help="New folder for the census.")],
    layout: Annotated[
        str, typer.Option(help="A layout that comes with discreet, or a mapping file.")
    ] = "canonical",
    schema: Annotated[
        str | None, typer.Option(help="A schema by name or file; default: the layout's.")
    ] = None,
    waivers: Waivers = None,
    values: Annotated[
        Path | None, typer.Option(help="Folder for values.csv: the values at fault.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read files on to the census model, check everything, and write a census folder.

    Nothing is written unless every error is mended or waived. Values are never printed.
    """
    from discreet.census import InvalidCensus
    from discreet.census import ingest as run_ingest

    try:
        report = run_ingest(
            source,
            out,
            layout=layout,
            schema=schema,
            waivers=waivers,
            work=values,
            values=values is not None,
        )
    except InvalidCensus as problem:
        if not as_json:
            raise
        print_json({"written": False, **problem.findings.data()})
        raise typer.Exit(problem.exit_code) from None
    if as_json:
        print_json({"written": True, "rows": report.counts, **report.findings.data()})
        return
    print(report.findings.text())
    rows = ", ".join(f"{count:,} {table}" for table, count in report.counts.items())
    print(f"{out}: {rows}")


@guarded
def validate(
    census: CensusFolder,
    waivers: Waivers = None,
    values: Annotated[
        Path | None, typer.Option(help="Folder for values.csv: the values at fault.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a census against its schema; exit with 2 if an error is left.

    Shows file, rows, column, rule and count, never a value.
    """
    from discreet.census import Census
    from discreet.census import validate as run_validate

    findings = run_validate(Census.open(census), waivers, values)
    if as_json:
        print_json({"valid": findings.ok, **findings.data()})
    else:
        print(findings.text())
    if not findings.ok:
        raise typer.Exit(EXIT_BAD_INPUT)


@guarded
def tabulate(
    census: CensusFolder,
    table: Annotated[str, typer.Option(help="Name of a table of the schema.")],
    level: Annotated[str, typer.Option(help="Kind of area, on the spine or not.")],
    out: Annotated[Path | None, typer.Option(help="CSV file; default: stdout.")] = None,
) -> None:
    """Count a census into one table of its schema, as CSV.

    From supplied data and from trials the file is readable by its owner only.
    """
    from discreet.census import Census
    from discreet.products import tabulate as run_tabulate

    opened = Census.open(census)
    by = opened.schema.table(table).by
    counted = run_tabulate(opened, table, level).sort("area", *by)
    if out is not None:
        _write(opened, counted, ["area", *by], out)
        print(out)
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["area", *by, "count"])
    writer.writerows(opened.engine.rows(counted.select("area", *by, "count")))


@guarded
def pl94(
    records: Annotated[
        Path, typer.Argument(metavar="RECORDS", help="Folder of a census or of a release.")
    ],
    out: Annotated[Path, typer.Argument(help="New folder for the tables.")],
    levels: Annotated[
        str | None,
        typer.Option(help="Kinds of area, for instance county,place; default: all there are."),
    ] = None,
    tables: Annotated[
        str | None, typer.Option(help="For instance P1,H1; default: all that can be counted.")
    ] = None,
    mdf: Annotated[
        bool, typer.Option("--mdf", help="The records in the detail-file layout instead.")
    ] = False,
) -> None:
    """Write the redistricting tables P1 to P5 and H1 as OUT/level/table.parquet.

    With --mdf write the records in the layout of the 2020 detail files. What the records
    have no persons or units for is left out. From supplied data and from trials the files
    are readable by their owner only.
    """
    from discreet.products import pl94 as product

    opened = _records(records)
    if mdf:
        if levels is not None or tables is not None:
            raise BadInput("--mdf writes all records. Drop --levels and --tables, or --mdf.")
        product.write_mdf(opened, out)
        _say_left_out(opened, {"persons": "MDF_PER.txt", "units": "MDF_UNIT.txt"})
    else:
        chosen = [None if text is None else _listed(text) for text in (levels, tables)]
        product.write_tables(opened, out, *chosen)
        if tables is None:
            _say_left_out(opened, {"persons": "P1 to P5", "units": "H1"})
    print(out)


def _records(folder: Path) -> Census:
    """Return the records of a census or a release."""
    from discreet.census import Census
    from discreet.mechanisms import HEADER, Release

    if not (folder / HEADER).is_file():
        return Census.open(folder)
    release = Release.open(folder)
    if not (folder / "microdata").is_dir():
        raise BadInput(
            f"{folder.name}: is a release of tables ({release.header.mechanism}), without records. "
            f"Give a census, or a release with microdata."
        )
    return release.microdata()


def _say_left_out(census: Census, of: dict[str, str]) -> None:
    """Say which tables or files the records have nothing for."""
    for counted, what in of.items():
        if getattr(census, counted) is None:
            print(f"left out: {what}, as there are no {counted}", file=sys.stderr)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _write(census: Census, counted: Frame, order: list[str], out: Path) -> None:
    """Write the table in a private folder first: it must not be readable for a moment."""
    from discreet.files import scratch_folder

    if not out.resolve().parent.is_dir():
        raise BadInput(f"the folder of {out.name} does not exist. Make it first.")
    with scratch_folder(out) as private:
        file = private / out.name
        census.engine.write_csv(counted, file, order_by=order)
        file.chmod(0o600 if census.private else 0o644)
        file.replace(out)


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.command(epilog="Example: discreet ingest census copy --layout canonical")(ingest)
    app.command(epilog="Example: discreet validate census --json")(validate)
    app.command(epilog="Example: discreet tabulate census --table P1 --level county")(tabulate)
    app.command(epilog="Example: discreet pl94 census tables --levels state,county")(pl94)
