"""Commands on the register of releases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from discreet.cli.console import Json, guarded, print_json
from discreet.errors import EXIT_FAILED

File = Annotated[Path, typer.Argument(metavar="REGISTER", help="The register's file.")]
Collection = Annotated[str, typer.Argument(help="The id of the collection.")]
Release = Annotated[str, typer.Argument(help="The id of the release.")]
By = Annotated[str, typer.Option(help="Who says so.")]

registers = typer.Typer(
    name="register",
    help="The account of releases per collection.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@registers.command("open", epilog="Example: discreet register open register.sqlite tiny.yaml")
@guarded
def open_collection(
    register: File,
    collection: Annotated[Path, typer.Argument(help="The collection, declared in YAML.")],
) -> None:
    """Open the account of a collection; makes the register if there is none."""
    from discreet.register import Register, read_collection

    declared = read_collection(collection)
    if register.exists():
        with Register.open(register) as book:
            book.open_collection(declared)
    else:
        Register.create(register, collection=declared).close()
    print(f"{register}: opened {declared.id}")


@registers.command(
    epilog="Example: discreet register version register.sqlite tiny-2026 edited --census census"
)
@guarded
def version(
    register: File,
    collection: Collection,
    version: Annotated[str, typer.Argument(help="The id of the version.")],
    census: Annotated[Path, typer.Option(help="The folder of the census that it is.")],
    kind: Annotated[
        Literal["original", "corrected", "extract"], typer.Option(help="What it is.")
    ] = "original",
    note: Annotated[str | None, typer.Option(help="Anything worth knowing.")] = None,
) -> None:
    """Declare a file of a collection from which releases will be made.

    Its hash is kept in the register: a run on any other file is refused. So are the hashes of
    its files of units and persons: no other collection may have one of them.
    """
    from discreet.census import Census
    from discreet.register import Register
    from discreet.run import folder_hash, record_hashes

    Census.open(census)  # a folder that is no census, or none at all, has a hash too
    with Register.open(register) as book:
        book.add_version(
            collection, version, kind, folder_hash(census), note, record_hashes(census)
        )
    print(f"{register}: {collection} has version {version}")


@registers.command(epilog="Example: discreet register show register.sqlite")
@guarded
def show(
    register: File,
    collection: Annotated[str | None, typer.Argument(help="One collection only.")] = None,
    as_json: Json = False,
) -> None:
    """Show what was spent, what is reserved, and every entry."""
    from discreet.register import Register

    with Register.open(register) as book:
        ids = [collection] if collection else [known.id for known in book.collections()]
        totals = {name: book.total(name) for name in ids}
        entries = {name: book.entries(name) for name in ids}
    if as_json:
        print_json(
            {
                name: {
                    "unit": total.unit,
                    "limit": str(total.collection.limit),
                    "spent": None if total.void else str(total.spent),
                    "reserved": None if total.void else str(total.reserved),
                    "void": list(total.void),
                    "entries": [
                        {
                            "sequence": e.sequence,
                            "time": e.time.isoformat(),
                            "kind": e.event.kind,
                            "hash": e.hash,
                        }
                        for e in entries[name]
                    ],
                }
                for name, total in totals.items()
            }
        )
        return
    for name, total in totals.items():
        print(total.describe())
        for entry in entries[name]:
            print(f"{entry.describe()}  [{entry.hash[:12]}]")


@registers.command(epilog="Example: discreet register add register.sqlite tiny-2026 made.yaml ...")
@guarded
def add(
    register: File,
    collection: Collection,
    specification: Annotated[Path, typer.Argument(help="What the release promises (YAML).")],
    title: Annotated[str, typer.Option(help="What was released.")],
    by: By,
    note: Annotated[str, typer.Option(help="Where the figures come from.")],
    force_reason: Annotated[
        str | None, typer.Option(help="Record it although it breaks a rule, and why.")
    ] = None,
) -> None:
    """Charge a release that was made elsewhere."""
    from discreet.register import Register
    from discreet.spec import read_specification

    promised = read_specification(specification)
    with Register.open(register) as book:
        book.add_external(collection, title, promised, by, note, force_reason)
        print(book.total(collection).describe())


@registers.command(epilog="Example: discreet register approve register.sqlite run.yaml --by Ada")
@guarded
def approve(
    register: File,
    config: Annotated[Path, typer.Argument(help="The configuration that is approved.")],
    by: By,
) -> None:
    """Record that a person agrees to exactly this configuration, census and code."""
    from discreet.errors import BadInput
    from discreet.register import Register
    from discreet.run import approval_hash, read_config

    agreed = read_config(config)
    if agreed.account is None:
        raise BadInput(f"{config.name} names no account, so there is nothing to approve.")
    approved = approval_hash(config)
    with Register.open(register) as book:
        made = book.approve(agreed.account.collection, approved, by)
    print("approved" if made else "approved before", approved)


@registers.command(
    epilog="Example: discreet register cancel register.sqlite tiny-2026 first --reason mistaken"
)
@guarded
def cancel(
    register: File,
    collection: Collection,
    release: Release,
    reason: Annotated[str, typer.Option(help="Why it will not be used.")],
) -> None:
    """Give back a reservation that was never committed.

    Only if nothing was drawn for it, or the draw was deleted unread.
    """
    from discreet.register import Register

    with Register.open(register) as book:
        book.cancel(book.reservation(collection, release), reason)
        print(book.total(collection).describe())


@registers.command(epilog="Example: discreet register verify register.sqlite")
@guarded
def verify(register: File, as_json: Json = False) -> None:
    """Recompute every hash and every account; exit with 1 if anything is wrong."""
    from discreet.register import Register

    with Register.open(register) as book:
        problems = book.verify()
        count = len(book.entries()) if not problems else 0
    if as_json:
        print_json({"problems": problems})
    else:
        print("\n".join(problems) or f"{count} entries, all well")
    if problems:
        raise typer.Exit(EXIT_FAILED)


@registers.command(epilog="Example: discreet register check public --register register.sqlite")
@guarded
def check(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The folder of a release.")],
    register: Annotated[Path, typer.Option(metavar="REGISTER", help="The register's file.")],
    as_json: Json = False,
) -> None:
    """Say whether a release was charged and is unaltered; exit with 2 if not.

    Checked: every file has the hash that the header of the release lists; the entry that it
    names is committed in the register, for its collection, with its draw and its specification;
    and the header is the one that was entered when the release was published.

    Not checked: that the register is the right one and the newest, that its entries are all that
    was released, and that the code that made the release did what its specification says.
    """
    from discreet.register import charged
    from discreet.run import check_release

    found = check_release(release, register)
    request = found.request
    if as_json:
        print_json(
            {
                "sequence": found.sequence,
                "entry": found.entry,
                "collection": request.collection,
                "release": request.release_id,
                "redraws": found.redraws,
            }
        )
        return
    print(
        f"charged: entry {found.sequence} of {register.name} [{found.entry[:12]}], collection "
        f"{request.collection}, release {request.release_id}\n{charged(request.specification)}\n"
        f"redraws before the commit: {found.redraws}"
    )


@registers.command(
    "sign-off", epilog="Example: discreet register sign-off register.sqlite tiny-2026 first s.html"
)
@guarded
def sign_off(
    register: File,
    collection: Collection,
    release: Release,
    out: Annotated[Path, typer.Argument(help="The page to write.")],
) -> None:
    """Write the one-page document that is signed for a release."""
    from discreet.register import Register
    from discreet.report import sign_off as write_page

    with Register.open(register) as book:
        write_page(book, collection, release, out)
    print(out)


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(registers)
