"""Commands that compute what a mechanism really loses."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, inf
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.console import Json, guarded, print_json
from discreet.config import rational
from discreet.errors import BadInput

if TYPE_CHECKING:
    from discreet.audit import MarginAudit
    from discreet.spec import OutputPremetric, psa

#: What a loss of one stratum is a loss per, and among which tables.
_PER: dict[str, Any] = {
    "unit": "record",
    "input_premetric": "hamming-of-multisets",
    "invariants": [
        "number of records in the stratum by holding category",
        "number of records in the stratum by swapping category",
    ],
}

NOT_THIS = " (a budget in pure epsilon, not of this loss)"

#: Exact forms longer than this are not printed.
LONGEST = 60

audits = typer.Typer(
    name="audit",
    help="Compute what a mechanism really loses, from its law rather than from its promise.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@audits.callback()
def start() -> None:
    """Compute what a mechanism really loses, from its law rather than from its promise."""


@audits.command(epilog="Example: discreet audit exact --holding 2,2 --swapping 2,2 --rate 1/2")
@guarded
def exact(
    holding: Annotated[str, typer.Option(help="Records per holding category, like 2,2.")],
    swapping: Annotated[str, typer.Option(help="Records per swapping category, like 2,2.")],
    rate: Annotated[str, typer.Option(help="Swap rate from 0 to 1, like 1/2 or 0.05.")],
    output: Annotated[
        str, typer.Option(help="Output premetric, like normalised-renyi or total-variation.")
    ] = "multiplicative",
    delta: Annotated[
        str | None, typer.Option(help="With --output approximate: its delta, like 1e-10.")
    ] = None,
    order: Annotated[
        str | None, typer.Option(help="With --output renyi: its order, above 1.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute the exact loss of swapping one stratum, over all tables with its margins.

    The loss is per record changed. Theorem 1 and the sharpened bound are budgets in pure epsilon:
    they bound the loss under the multiplicative premetric only, and theorem1_holds is null under
    others. In JSON, a loss or budget of null is infinite.
    """
    from discreet.audit import audit_margins

    found = audit_margins(
        _margin(holding, "--holding"),
        _margin(swapping, "--swapping"),
        _rate(rate),
        _output(output, delta, order),
    )
    if as_json:
        print_json(_as_data(found))
        return
    for line in _lines(found):
        print(line)


def _margin(text: str, name: str) -> list[int]:
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = [-1]
    if min(counts) < 0:
        raise BadInput(f"{name}: must be whole numbers from 0 up, separated by commas, like 2,2.")
    return counts


def _rate(text: str) -> Fraction:
    try:
        rate = rational(text)
    except ValueError:
        rate = Fraction(-1)
    if not 0 <= rate <= 1:
        raise BadInput("--rate: must be a number from 0 to 1, like 1/2 or 0.05.")
    return rate


def _output(name: str, delta: str | None, order: str | None) -> OutputPremetric:
    from discreet.config import parse, suggest
    from discreet.spec import OUTPUTS, OutputPremetric

    if name not in OUTPUTS:
        raise BadInput(f"--output: there is no '{name}'.{suggest(name, OUTPUTS)}")
    for option, given, owner, like in (
        ("--delta", delta, "approximate", "between 0 and 1, like 1e-10"),
        ("--order", order, "renyi", "above 1, like 2"),
    ):
        if (given is not None) != (name == owner):
            raise BadInput(f"{option}: a number {like}, with --output {owner} and only there.")
    return parse(OutputPremetric, {"name": name, "delta": delta, "order": order}, "--output")


def _lines(found: MarginAudit) -> list[str]:
    loss, witness = found.loss, found.loss.witness
    exact = "" if loss.exact is None or loss.exact == 0 else str(loss.exact)
    form = f" = {exact}" if 0 < len(exact) <= LONGEST else ""
    elsewhere = " (exact form: --json)" if len(exact) > LONGEST else ""
    per = f" per {_PER['unit']}"
    lines = [f"loss        {_shown(float(loss.bounds))}{form}{per}{elsewhere}"]
    unit = found.output.properties.unit
    if unit in ("rho2", "mu2"):
        lines.append(f"{unit:<12}{_shown(float(loss.bounds.squared()))}{per}")
    published, sharpened = _up(found.theorem_1), _up(found.sharpened)
    lines += [
        f"theorem 1   {published}{per}{_judged(found)}",
        f"sharpened   {sharpened}{per}{'' if found.theorem_1_holds is not None else NOT_THIS}",
        f"input       {_PER['input_premetric']}: records changed",
        f"invariants  {'; '.join(_PER['invariants'])}",
        f"output      {found.output.name}: {found.output.definition}",
        f"tables      {found.tables}",
    ]
    if witness is None:
        alone = "one table only: the margins disclose it fully"
        return [*lines, f"witness     none; {alone if found.tables == 1 else 'all laws are alike'}"]
    lines.append(f"witness     {witness.one} and {witness.other}, {witness.apart} records changed")
    if witness.distance.outcome is not None:
        lines.append(f"outcome     {witness.distance.outcome}")
    if witness.distance.order is not None:
        lines.append(f"order       {witness.distance.order:.6g}")
    return lines


def _judged(found: MarginAudit) -> str:
    answers = {None: NOT_THIS, True: " (holds)", False: " (is BROKEN by the loss)"}
    return answers[found.theorem_1_holds]


def _up(budget: psa.LogAmount) -> str:
    """Return a budget with six decimals, rounded up."""
    above = budget.upper_bound()
    return "infinite" if above is None else f"{ceil(above * 10**6) / 10**6:.6f}"


def _as_data(found: MarginAudit) -> dict[str, Any]:
    loss, unit = found.loss, found.output.properties.unit
    squared: dict[str, Any] = {}
    if unit in ("rho2", "mu2"):
        squared[unit] = _finite(float(loss.bounds.squared()))
    return {
        **_PER,
        "output_premetric": found.output.name,
        "output": found.output.model_dump(mode="json", exclude_defaults=True),
        "loss": _finite(float(loss.bounds)),
        "at_least": _finite(loss.bounds.lower),
        "at_most": _finite(loss.bounds.upper),
        **squared,
        "exact": _exact(found),
        "theorem1": _finite(found.theorem_1.value),
        "sharpened": _finite(found.sharpened.value),
        "bounds_are": "budgets in pure epsilon (multiplicative)",
        "theorem1_holds": found.theorem_1_holds,
        "tables": found.tables,
        "witness": _witness(found),
    }


def _exact(found: MarginAudit) -> dict[str, Any] | None:
    """Return the exact form; of ln(a/b)/d also a and b, as text because they can be long, and d."""
    from discreet.spec import divergences

    exact = found.loss.exact
    if exact is None:
        return None
    if exact == 0:
        return {"form": "0", "a": "1", "b": "1", "d": 1}
    if not isinstance(exact, divergences.LogOf):
        return {"form": str(exact)}
    d = exact.over
    return {
        "form": str(exact),
        "a": str(exact.of.numerator),
        "b": str(exact.of.denominator),
        "d": int(d) if d.denominator == 1 else str(d),
    }


def _witness(found: MarginAudit) -> dict[str, Any] | None:
    witness = found.loss.witness
    if witness is None:
        return None
    return {
        "one": witness.one,
        "other": witness.other,
        "distance": int(witness.apart),
        "outcome": witness.distance.outcome,
        "order": witness.distance.order,
    }


def _finite(value: float) -> float | None:
    return None if value == inf else value


def _shown(value: float) -> str:
    return "infinite" if value == inf else f"{value:.6f}"


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(audits)
