"""Fail early: whatever a mechanism refuses, it refuses before the account is touched."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import discreet
from discreet.census import Census, Schema, check_structure, write_header
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.files import folder_hash
from discreet.mechanisms import MECHANISMS, mechanism
from discreet.register import Collection, Register
from discreet.run import run
from run.refusals import GOOD, REFUSALS, Refusal

pytestmark = pytest.mark.filterwarnings("ignore:rows of region type USA")


def write(folder: Path, census: Census) -> None:
    """Write whatever tables a census has, as somebody supplied them."""
    folder.mkdir()
    for name in ("geography", "units", "persons"):
        if getattr(census, name) is not None:
            census.engine.write_parquet(census.table(name), folder / f"{name}.parquet")
    write_header(folder, census.schema, "supplied")


def promise(refusal: Refusal, schema: Schema) -> tuple[str, tuple]:
    """Return the unit and the invariants of what would be charged, if it can be said."""
    try:
        specification = mechanism(refusal.mechanism, schema, refusal.parameters).specify()
    except BadInput:
        return "epsilon", ()
    return specification.budget.unit, specification.multiverse.invariants


def configured(folder: Path, refusal: Refusal) -> Path:
    """Write a census, a register that would let the run pass, and the file of it; return that."""
    census = refusal.census(Engine(threads=1))
    write(folder / "census", census)
    unit, invariants = promise(refusal, census.schema)
    with Register.create(folder / "register.sqlite") as register:
        register.open_collection(
            Collection(
                id="tiny",
                title="Tiny",
                reference_date="2026-04-01",
                unit=unit,
                limit="1000",
                invariants=invariants,
                approvals_required=0,
            )
        )
        register.add_version("tiny", "edited", "original", folder_hash(folder / "census"))
    account = {"register": "register.sqlite", "collection": "tiny", "version": "edited"}
    content = {
        "format_version": 1,
        "release": "first",
        "mode": "release",
        "census": "census",
        "work": "work",
        "out": "out",
        "mechanism": refusal.mechanism,
        "parameters": refusal.parameters,
        "account": {**account, "accept_no_guarantee": "a test of refusals"},
    }
    path = folder / "run.yaml"
    path.write_text(json.dumps(content))  # YAML without aliases
    return path


def entries(folder: Path) -> list[str]:
    with Register.open(folder / "register.sqlite") as register:
        assert register.verify() == []
        return [entry.event.kind for entry in register.entries("tiny")]


@pytest.mark.parametrize("why", REFUSALS)
def test_a_refusal_leaves_the_account_untouched_and_nothing_behind(tmp_path, why):
    refusal = REFUSALS[why]
    path = configured(tmp_path, refusal)
    before = sorted(one.name for one in tmp_path.iterdir())
    opened = entries(tmp_path)
    with pytest.raises(BadInput, match=refusal.says) as refused:
        run(path)
    assert refused.value.exit_code == 2
    assert entries(tmp_path) == opened
    assert sorted(one.name for one in tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_run_that_is_not_refused_is_charged(tmp_path, name):
    """So that the test above means something: only the refusal keeps the account untouched."""
    good = Refusal(name, GOOD[name], "")
    if name == "phsafe":
        good = replace(REFUSALS["phsafe: no tenure"], parameters=GOOD[name], changes=())
    run(configured(tmp_path, good))
    assert entries(tmp_path)[-2:] == ["commit", "publication"]


# -- all of them ----------------------------------------------------------------------------------

SOURCE = Path(discreet.__file__).parent

#: Modules whose refusals can be reached by a run before the draw.
MODULES = [
    *("mechanisms/noisy_tables.py", "mechanisms/catalogue.py"),
    *(
        f"mechanisms/swapping/{name}.py"
        for name in ("permutation", "fields", "exchange", "households", "geometry")
    ),
    *(f"mechanisms/swapping/{name}.py" for name in ("record", "public_docs", "targeted")),
    *(f"mechanisms/topdown/{name}.py" for name in ("strategy", "axes", "histogram", "promise")),
    *(f"mechanisms/topdown/{name}.py" for name in ("mechanism", "spine", "counts")),
    *(f"mechanisms/topdown/{name}.py" for name in ("constraints", "released")),
    *(f"mechanisms/phsafe/{name}.py" for name in ("mechanism", "parameters", "configuration")),
    *("products/sdhc/tally.py", "products/sdhc/counts.py"),
    *(f"census/{name}.py" for name in ("placing", "provenance", "structure", "categories")),
]

#: Refusals that no run can meet, and why.
OUT_OF_REACH = {
    "geography was read without its points": "a guard against callers in Python",
    "a unit without a share of the budget": "a guard against callers in Python",
    "has no axis '": "axes are checked when a strategy is read",
    "is not measured at": "a guard against callers in Python",
    "no strategy or strategy file of that name": "a run takes strategies by name or as a whole",
    "no configuration or configuration file": "a run takes configurations by name",
    "this run is not one of phsafe": "of plans, which read files of runs",
    "counts persons, so it needs a threshold": "a guard against callers in Python",
    "persons live in quarters of a type": "links to units are checked before",
    "records lie in blocks": "links to blocks are checked before",
    "topdown: this census has no areas of level": "areas of the spine are checked before",
    "query '": "met inside a list of problems, in other words",
}


def templates() -> Iterator[tuple[str, str]]:
    """Yield every refusal of these modules: its file, and its text as a regular expression."""
    for module in MODULES:
        for node in ast.walk(ast.parse((SOURCE / module).read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                name = getattr(node.exc.func, "id", "")
                if name in ("BadInput", "ValueError") and node.exc.args:
                    text = pattern(node.exc.args[0])
                    if text:
                        yield module, text


def pattern(node: ast.expr) -> str:
    """Return the text of a message with its changing parts left open; nothing if all change."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value)
    if isinstance(node, ast.JoinedStr):
        parts = [p.value if isinstance(p, ast.Constant) else None for p in node.values]
        if any(part and len(part) > 3 for part in parts):
            return "".join("(.|\n)*" if part is None else re.escape(part) for part in parts)
    return ""


def message(refusal: Refusal, engine: Engine) -> str:
    census = refusal.census(engine)
    try:
        made = mechanism(refusal.mechanism, census.schema, refusal.parameters)
        check_structure(census)
        made.check(census)
    except BadInput as error:
        return str(error)
    return ""


def test_every_refusal_of_every_mechanism_is_among_those_tried():
    engine = Engine(threads=1)
    said = [message(refusal, engine) for refusal in REFUSALS.values()]
    untried = [
        f"{module}: {text}"
        for module, text in templates()
        if not any(re.search(text, one) for one in said)
        and not any(re.escape(known) in text for known in OUT_OF_REACH)
    ]
    assert untried == []
