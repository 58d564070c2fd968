"""Budgets, stability and noise against the published figures, and the tighter account."""

import math
import re
from fractions import Fraction

import pytest

from discreet.census import load_schema
from discreet.errors import BadInput
from discreet.mechanisms import mechanism
from discreet.mechanisms.phsafe import (
    Configuration,
    Parameters,
    account,
    budget_for_margin,
    load_configuration,
    shipped_configurations,
    stability,
    tight_square,
)
from discreet.mechanisms.phsafe.accounting import KEEP_UNIQUE, join_stability, keep_first, overlap
from discreet.products import sdhc
from discreet.register import Collection, Refused, Register, read_collection
from registers import hashed, request

US, PR = load_configuration("us-2020"), load_configuration("pr-2020")

#: Margins of error that the budgets of 2020 were set for.
NATION, STATE, STATE_RACE, STATE_RACE_CHILDREN = 500, 200, 68, 20


def margin(table: str, level: str) -> int:
    if level.startswith("usa"):
        return NATION
    if level != "state_A-G":
        return STATE
    return STATE_RACE_CHILDREN if table == "PH3" else STATE_RACE


#: Budgets by level as printed: usa_*, usa_A-G, usa_H,I, state_*, state_A-G, state_H,I.
JOINED = ["0.002619"] * 3 + ["0.016371", "0.141622", "0.016371"]
CHILDREN = ["0.001061"] * 3 + ["0.006630", "0.662976", "0.006630"]
HOUSING = ["0.000022"] * 3 + ["0.000135", "0.001170", "0.000135"]
PRINTED = {
    "PH1_num": JOINED, "PH4": JOINED, "PH7": JOINED, "PH2": JOINED, "PH3": CHILDREN,
    "PH6": CHILDREN, "PH1_denom": HOUSING, "PH5_denom": HOUSING, "PH8_denom": HOUSING,
}  # fmt: skip


def test_all_46_published_budgets_follow_from_margin_and_threshold():
    checked = 0
    for table, shell in sdhc.SHELLS.items():
        printed = dict(zip(sdhc.LEVELS, PRINTED[table], strict=True))
        distance = stability(table, US.thresholds.get(table))
        for level in shell.levels:
            expected = Fraction(printed[level])
            assert budget_for_margin(margin(table, level), distance) == expected
            assert US.budgets[table][level] == expected
            checked += 1
    assert checked == 46


@pytest.mark.parametrize("z", ["1.64", "1.6448536269514722"])
def test_no_other_constant_gives_them_all(z):
    differing = [
        (table, level)
        for table, shell in sdhc.SHELLS.items()
        for level in shell.levels
        if budget_for_margin(
            margin(table, level), stability(table, US.thresholds.get(table)), Fraction(z)
        )
        != US.budgets[table][level]
    ]
    assert ("PH1_num", "state_A-G") in differing


def test_totals():
    assert US.account.published("add-remove") == Fraction("1.257281")
    assert US.account.published("replace") == Fraction("2.514562")
    assert PR.account.published("add-remove") == Fraction("1.226649")
    assert PR.account.published("replace") == Fraction("2.453298")
    tight = [a.tight(c) for a in (US.account, PR.account) for c in ("add-remove", "replace")]
    assert [round(float(t), 4) for t in tight] == [0.4884, 1.9536, 0.4759, 1.9037]
    assert shipped_configurations() == ["pr-2020", "us-2020"]
    assert {part.level.split("_")[0] for part in PR.account.parts} == {"state"}


def test_the_tight_account_is_never_above_the_one_charged():
    for part in US.account.parts:
        for change in ("add-remove", "replace"):
            assert part.tight(change) <= part.published(change)
    tau = {10: Fraction(10, 11) ** 2, 6: Fraction(6, 7) ** 2, None: Fraction(1)}
    for part in US.account.parts:
        assert part.tight("add-remove") == part.budget * tau[part.threshold] / 2
        assert part.tight("replace") == part.budget * tau[part.threshold] * 2


SIGMAS = [  # rho, stability, sigma^2, sigma, 1.645 sigma
    ("0.002619", 22, 92401.68, 303.976, 500.04),
    ("0.016371", 22, 14782.24, 121.582, 200.00),
    ("0.141622", 22, 1708.774, 41.337, 68.000),
    ("0.001061", 14, 92365.69, 303.917, 499.94),
    ("0.006630", 14, 14781.30, 121.578, 200.00),
    ("0.662976", 14, 147.818, 12.158, 20.000),
    ("0.000022", 2, 90909.09, 301.511, 495.99),
    ("0.000135", 2, 14814.81, 121.716, 200.22),
    ("0.001170", 2, 1709.402, 41.345, 68.01),
]


@pytest.mark.parametrize(("rho", "distance", "variance", "sigma", "width"), SIGMAS)
def test_variances_of_the_published_budgets(rho, distance, variance, sigma, width):
    parts = [p for p in US.account.parts if (p.budget, p.stability) == (Fraction(rho), distance)]
    assert parts
    for part in parts:
        assert float(part.parameter) == pytest.approx(variance, rel=4e-6)
        assert math.sqrt(part.parameter) == pytest.approx(sigma, abs=6e-4)
        assert 1.645 * math.sqrt(part.parameter) == pytest.approx(width, abs=6e-3)


def test_stability_follows_from_the_query():
    assert join_stability(keep_first(10), KEEP_UNIQUE, 1, 2) == 22
    for tau in (1, 2, 6, 10, 50):
        assert stability("PH7", tau) == 2 * tau + 2
    assert {stability(table) for table in ("PH1_denom", "PH5_denom", "PH8_denom")} == {2}
    assert tight_square("PH3", 6, "replace") == 288


def test_a_record_lies_in_one_cell_of_a_level(monkeypatch):
    for table, shell in sdhc.SHELLS.items():
        assert {overlap(table, level) for level in shell.levels} == {1}
    # A level with groups that overlap would be charged for it.
    both = sdhc.Level("USA", ("A", "H", "I"))
    monkeypatch.setitem(sdhc.LEVELS, "usa_H,I", both)
    assert overlap("PH1_num", "usa_H,I") == 2
    assert stability("PH1_num", 10) == 44


def test_a_budget_of_0_leaves_a_level_out():
    budgets = {name: dict.fromkeys(s.levels, Fraction(0)) for name, s in sdhc.SHELLS.items()}
    budgets["PH2"]["state_*"] = Fraction(1, 2)
    made = account(budgets, US.thresholds)
    assert [(part.table, part.level) for part in made.parts] == [("PH2", "state_*")]


def merged(**given) -> Configuration:
    return Parameters.model_validate({"configuration": "us-2020", **given}).settings


def test_what_is_given_takes_the_place_of_single_entries():
    found = merged(
        budgets={"PH2": {"usa_*": "0"}, "PH7": {"state_*": "1/2"}}, thresholds={"PH3": 4}
    )
    expected = {table: dict(levels) for table, levels in US.budgets.items()}
    expected["PH2"]["usa_*"], expected["PH7"]["state_*"] = Fraction(0), Fraction(1, 2)
    assert found.budgets == expected
    assert found.thresholds == {**US.thresholds, "PH3": 4}
    assert (found.states, found.noise) == (US.states, US.noise)
    parts = {(part.table, part.level): part for part in found.account.parts}
    assert len(parts) == 45
    assert ("PH2", "usa_*") not in parts
    assert parts["PH3", "usa_*"].stability == 10
    assert merged(budgets={}, thresholds={}) == US


def test_parameters_are_written_out_in_full():
    own = {"configuration": "us-2020", "budgets": {"PH2": {"usa_*": "1/3"}}}
    made = mechanism("phsafe", load_schema("us-decennial"), own)
    written = made.parameters()
    assert "configuration" not in written
    assert written["budgets"]["PH2"] == {"usa_*": "1/3", "state_*": "16371/1000000"}
    assert len(written["budgets"]) == len(sdhc.SHELLS)
    added = Fraction(1, 3) - US.budgets["PH2"]["usa_*"]
    assert made.specify().budget.amount.of == 2 * (Fraction("1.257281") + added)
    again = mechanism("phsafe", load_schema("us-decennial"), written)
    assert again.specify() == made.specify()


def test_budgets_of_one_noise_are_not_taken_for_another():
    """What is rho for one is epsilon for the other."""
    some = {"noise": "geometric", "budgets": {"PH2": {"usa_*": "1"}}}
    with pytest.raises(BadInput, match="every table is needed"):
        load_configuration("us-2020", some)
    assert load_configuration("us-2020", {"noise": "gaussian"}) == load_configuration("us-2020")


def test_geometric_noise_is_told_in_epsilon():
    made = account({"PH7": {"usa_*": Fraction(1)}}, {"PH7": 10}, "geometric")
    assert made.parts[0].parameter == 22
    assert (made.published("add-remove"), made.published("replace")) == (1, 2)
    assert made.tight("add-remove") == Fraction(20, 22)


# -- two accounts ------------------------------------------------------------------------------


def promised(name: str):
    schema = load_schema("us-decennial")
    return mechanism("phsafe", schema, {"configuration": name}).specify()


def opened(path, limits: dict[str, str]) -> Register:
    """Return a register with a collection for each limit, and a file in each."""
    register = Register.create(path)
    for name, limit in limits.items():
        register.open_collection(
            Collection(
                id=name,
                title=name,
                reference_date="2020-04-01",
                unit="rho2",
                limit=limit,
                invariants=promised("us-2020").multiverse.invariants,
                approvals_required=0,
            )
        )
        register.add_version(name, "v1", "original", hashed(name))
    return register


def asked(specification, name: str, collection: str):
    return request(specification, name, collection=collection, fingerprint=hashed(collection))


def test_us_and_puerto_rico_have_room_in_two_collections_and_not_in_one(tmp_path):
    us, island = promised("us-2020"), promised("pr-2020")
    limits = {"sdhc-us": "2.514562", "sdhc-pr": "2.453298"}
    with opened(tmp_path / "two.sqlite", limits) as register:
        register.reserve(asked(us, "us", "sdhc-us"))
        register.reserve(asked(island, "pr", "sdhc-pr"))
    with opened(tmp_path / "one.sqlite", {"sdhc-us": "2.514562"}) as register:
        register.reserve(asked(us, "us", "sdhc-us"))
        with pytest.raises(Refused, match=r"budget|limit"):
            register.reserve(asked(island, "pr", "sdhc-us"))


def test_the_collection_of_the_guide_has_room_for_its_run(root, tmp_path):
    page = (root / "docs" / "guide" / "phsafe.md").read_text()
    (block,) = re.findall(r"```yaml\n(# sdhc-us.yaml.*?)```", page, re.DOTALL)
    (tmp_path / "sdhc-us.yaml").write_text(block)
    declared = read_collection(tmp_path / "sdhc-us.yaml")
    promise = promised("us-2020")
    assert declared.invariants == promise.multiverse.invariants
    assert declared.limit == promise.budget.amount.of
    assert 'limit: "2.453298"' in block
    assert promised("pr-2020").budget.amount.of == Fraction("2.453298")
