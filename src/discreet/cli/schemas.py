"""Commands on schemas: list those that come with discreet, show one, check one."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.console import Json, guarded, print_json

if TYPE_CHECKING:
    from discreet.census import Schema

Name = Annotated[str, typer.Argument(metavar="NAME_OR_PATH", help="A profile or a schema file.")]

schemas = typer.Typer(
    name="schema",
    help="Look at schemas and check your own.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@schemas.command("list", epilog="Example: discreet schema list")
@guarded
def list_schemas(as_json: Json = False) -> None:
    """List the schemas that come with discreet."""
    from discreet.census import load_schema

    folder = resources.files("discreet.census") / "profiles"
    files = sorted(entry.name for entry in folder.iterdir())
    names = [name.removesuffix(".yaml") for name in files if name.endswith(".yaml")]
    titles = {name: load_schema(name).title for name in names}
    if as_json:
        print_json([{"name": name, "title": title} for name, title in titles.items()])
        return
    for name, title in titles.items():
        print(f"{name}  {title}")


@schemas.command(epilog="Example: discreet schema show us-decennial")
@guarded
def show(name: Name, as_json: Json = False) -> None:
    """Show the levels, variables and tables of a schema."""
    from discreet.census import as_data, load_schema

    schema = load_schema(name)
    if as_json:
        print_json(as_data(schema))
    else:
        print(_overview(schema))


@schemas.command(epilog="Example: discreet schema check register-country")
@guarded
def check(name: Name, as_json: Json = False) -> None:
    """Check that a schema file is complete and consistent."""
    from discreet.census import load_schema

    schema = load_schema(name)
    if as_json:
        print_json({"name": schema.name, "valid": True})
    else:
        print(f"{schema.name}: a valid schema")


def _overview(schema: Schema) -> str:
    lines = [f"{schema.name}: {schema.title}", "", "Levels, largest first"]
    lines += [f"  {level.name}  {level.title}" for level in schema.spine]
    if schema.areas:
        lines += ["Other areas", *(f"  {area.name}  {area.title}" for area in schema.areas)]
    for place in ("geography", "units", "persons"):
        lines.append(f"Variables of {place}")
        for name, variable in schema.variables(place).items():
            needed = "required" if variable.required else "optional"
            kind = f"{len(variable.codes)} codes" if variable.codes else variable.kind
            lines.append(f"  {name}  {needed}, {kind}")
        if schema.computed(place):
            lines.append(f"  computed: {', '.join(schema.computed(place))}")
    lines.append("Tables")
    for table in schema.tables:
        lines.append(f"  {table.name}  {table.title}, by {', '.join(table.levels)}")
    return "\n".join(lines)


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(schemas)
