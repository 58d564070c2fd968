"""Every release is weighed before it is drawn, exactly, and refused by a named rule."""

import re
from fractions import Fraction

import pytest

from discreet.errors import BadInput
from discreet.register import Refused, Register
from discreet.spec import (
    NORMALISED_RENYI,
    Budget,
    Domain,
    Exactly,
    FunctionOfUniverse,
    MarginalTable,
    NoFiniteBudget,
    OutputPremetric,
    approximate,
    hamming_of_multisets,
    symmetric_difference,
)
from registers import DECLARED, SECRET, collection, hashed, opened, promise, pure, request, rho2

TINY = Fraction(1, 10**30)
NONE = promise(NoFiniteBudget(reason="pairs of rare households are always swapped"))


@pytest.fixture
def register(tmp_path):
    with opened(tmp_path / "register.db") as register:
        yield register
        assert register.verify() == []


def refused(register, rule, wanted):
    """Check that a request is refused by `rule` and leaves no trace."""
    before = len(register.entries())
    with pytest.raises(Refused) as caught:
        register.reserve(wanted)
    assert caught.value.rule == rule
    assert caught.value.exit_code == 2
    assert len(register.entries()) == before
    return str(caught.value)


# --- the limit, exactly -------------------------------------------------------------------------


def test_the_limit_itself_is_allowed_and_the_least_above_it_is_not(register):
    register.reserve(request(rho2("1/3"), "a"))
    register.reserve(request(rho2("1/3"), "b"))
    refused(register, "over budget", request(rho2(Fraction(1, 3) + TINY), "c"))
    register.reserve(request(rho2("1/3"), "c"))
    total = register.total("census-2030")
    assert (total.spent, total.reserved, total.remaining) == (0, 1, 0)
    refused(register, "over budget", request(rho2(TINY), "d"))
    register.reserve(request(rho2(0), "d"))


def test_pure_releases_never_pass_the_limit_by_rounding(tmp_path):
    """ln 2 = 0.693147180559945309417232121458176568...; the two limits enclose it."""
    below, above = "0.693147180559945309417232121458", "0.6931471805599453094172322"
    with opened(tmp_path / "below.db", below, unit="epsilon") as register:
        refused(register, "over budget", request(pure(2)))
    with opened(tmp_path / "above.db", above, unit="epsilon") as register:
        register.reserve(request(pure(2)))
        assert 0 <= register.total("census-2030").remaining < Fraction(1, 10**24)


def test_reservations_count_as_much_as_commits(register):
    first = register.reserve(request(rho2("3/4"), "a"))
    refused(register, "over budget", request(rho2("1/2"), "b"))
    register.commit(first, hashed("draw"))
    refused(register, "over budget", request(rho2("1/2"), "b"))
    assert register.total("census-2030").spent == Fraction(3, 4)


def test_a_cancelled_reservation_is_free_again(register):
    first = register.reserve(request(rho2(1), "a"))
    assert register.cancel(first, "wrong rate").state == "cancelled"
    assert register.cancel(first, "wrong rate").state == "cancelled"
    register.reserve(request(rho2(1), "a", run_id="another-run"))
    refused(register, "cancelled run", request(rho2(1), "a"))


def test_pure_releases_are_converted_one_by_one_in_an_account_of_rho2(register):
    """(ln 2)^2 / 2 = 0.240226506959...; four of them fit, four converted together do not."""
    for name in "abcd":
        register.reserve(request(pure(2), name))
    total = register.total("census-2030")
    assert total.composition.specification.output_premetric == NORMALISED_RENYI
    assert total.unit == total.composition.specification.budget.unit == "rho2"
    assert Fraction("0.960906") < total.reserved < Fraction("0.960907")
    assert "release a is converted from pure" in total.composition.weakenings[0]
    refused(register, "over budget", request(pure(2), "e"))


def test_versions_of_a_collection_share_its_account(register):
    register.add_version("census-2030", "v2", "corrected", hashed("v2"), "after the recount")
    register.add_version("census-2030", "sample", "extract", hashed("sample"))
    register.reserve(request(rho2("1/2"), "a"))
    register.reserve(request(rho2("1/2"), "b", version="v2", fingerprint=hashed("v2")))
    third = request(rho2(TINY), "c", version="sample", fingerprint=hashed("sample"))
    refused(register, "over budget", third)


def test_two_collections_do_not_share_one(register):
    register.open_collection(collection(name="health-survey"))
    register.add_version("health-survey", "v1", "original", hashed("other people"))
    register.reserve(request(rho2(1), "a"))
    other = {"collection": "health-survey", "fingerprint": hashed("other people")}
    register.reserve(request(rho2(1), "a", run_id="other", **other))
    assert [c.id for c in register.collections()] == ["census-2030", "health-survey"]
    assert len(register.entries("health-survey")) == 3


def test_one_file_in_two_collections_is_refused(register):
    """Otherwise the limit could be spent once in each of them."""
    register.open_collection(collection(name="second-try"))
    before = len(register.entries())
    with pytest.raises(Refused) as caught:
        register.add_version("second-try", "v1", "original", hashed("v1"))
    assert caught.value.rule == "file in two collections"
    assert "census-2030" in str(caught.value)
    assert not re.search(r"[0-9a-f]{12}", str(caught.value))
    assert len(register.entries()) == before
    # Under its own collection a file may have two names: they share one account.
    register.add_version("census-2030", "v1-again", "extract", hashed("v1"))


def test_a_request_with_records_of_another_collection_is_refused(register):
    """Whatever a version says of its records, or does not say because it is older."""
    register.open_collection(collection(name="second-try"))
    register.add_version("second-try", "v1", "original", hashed("f"), records=[hashed("persons")])
    with pytest.raises(Refused, match="file in two collections"):
        register.add_version("census-2030", "v2", "corrected", "a" * 64, None, [hashed("persons")])
    refused(register, "file in two collections", request(rho2(0), records=(hashed("persons"),)))
    register.reserve(request(rho2(0), records=(hashed("units"),)))


def test_what_was_given_up_is_stored_with_the_release(register):
    register.reserve(request(rho2("1/8"), "a"))
    register.reserve(request(pure("6/5", keeps=DECLARED), "b"))
    stored = register.entries("census-2030")[-1].event.weakenings
    assert stored == (
        "release a is told with further invariants: households by tenure",
        "release b is converted from pure to zero-concentrated, rho^2 = epsilon^2 / 2, "
        "which cannot be undone",
    )
    register.reserve(request(rho2("1/8"), "c", run_id="third"))
    assert register.entries("census-2030")[-1].event.weakenings == (
        "release c is told with further invariants: households by tenure",
    )


# --- refusals -----------------------------------------------------------------------------------


def test_unknown_collections_and_versions_are_refused_with_a_suggestion(register):
    text = refused(register, "unknown collection", request(rho2(0), collection="census-2003"))
    assert "Did you mean 'census-2030'" in text
    text = refused(register, "unknown version", request(rho2(0), version="v2"))
    assert "Known: v1" in text


def test_a_release_is_made_from_the_declared_file_only(register):
    register.add_version("census-2030", "v2", "corrected", hashed("v2"))
    changed = hashed("v1, edited once more")
    for wanted in (
        request(rho2(0), fingerprint=changed),
        request(rho2(0), version="v2"),  # the declared file of another version
    ):
        text = refused(register, "another file", wanted)
        assert f"not the file that was declared as version {wanted.version}. Declare a" in text
        assert not re.search(r"[0-9a-f]{12}", text)
    register.add_version("census-2030", "v3", "corrected", changed)
    register.reserve(request(rho2(0), version="v3", fingerprint=changed))


@pytest.mark.parametrize(
    "kept",
    [
        SECRET,
        DECLARED[0].model_copy(update={"level": "block"}),
        DECLARED[0].model_copy(update={"where": {}}),
        DECLARED[0].model_copy(update={"whole_record": True}),
    ],
)
def test_an_undeclared_invariant_is_refused_by_name(register, kept):
    text = refused(register, "undeclared invariant", request(rho2(0, keeps=[*DECLARED, kept])))
    assert f"'{kept.name}'" in text
    assert kept.describe() in text


def test_the_order_of_conditions_in_an_invariant_does_not_matter(tmp_path):
    there = MarginalTable(name="n", of="units", level="county", where={"a": ["1"], "b": ["2"]})
    back = MarginalTable(name="n", of="units", level="county", where={"b": ["2"], "a": ["1"]})
    with Register.create(tmp_path / "r.db") as register:
        declared = collection().model_copy(update={"invariants": (there,)})
        register.open_collection(declared)
        register.add_version("census-2030", "v1", "original", hashed("v1"))
        register.reserve(request(rho2(0, keeps=[there]), "a"))
        register.reserve(request(rho2(0, keeps=[back]), "b"))
        assert register.total("census-2030").composition.weakenings == ()


def test_bounds_that_are_not_proved_are_never_charged(register):
    refused(register, "unproved bound", request(rho2(0, status="checked numerically")))
    register.reserve(request(rho2(0, status="proved here")))


def test_a_function_of_the_universe_is_no_charge(register):
    unknown = promise(FunctionOfUniverse(formula="ln(b + 1)"))
    refused(register, "budget without a number", request(unknown))


def test_an_account_in_epsilon_has_no_rule_for_concentrated_releases(tmp_path):
    with opened(tmp_path / "r.db", "10", unit="epsilon") as register:
        refused(register, "no composition rule", request(rho2("1/100")))
        register.reserve(request(pure(3), "a"))
        refused(register, "no composition rule", request(rho2("1/100"), "b"))


@pytest.mark.parametrize(
    "other",
    [
        {"domain": Domain(records="persons", schema_name="us-decennial")},
        {"input_premetric": symmetric_difference("household")},
        {"input_premetric": hamming_of_multisets("person")},
    ],
)
def test_other_flavors_without_a_rule_are_refused(register, other):
    register.reserve(request(rho2("1/8"), "a"))
    refused(register, "no composition rule", request(rho2("1/8", **other), "b"))


def test_a_premetric_that_no_account_is_kept_in_is_refused(register):
    budget = Budget(unit="value", amount=Exactly(of=0), source="s", status="published")
    other = rho2(0, budget=budget, output_premetric=OutputPremetric(name="total-variation"))
    refused(register, "no composition rule", request(other))
    budget = Budget(unit="epsilon", amount=Exactly(of=0), source="s", status="published")
    other = rho2(0, budget=budget, output_premetric=approximate("1/1000"))
    refused(register, "no composition rule", request(other))


def test_a_release_id_belongs_to_one_run(register):
    register.reserve(request(rho2(0), "a"))
    refused(register, "release id in use", request(rho2(0), "a", run_id="another"))


@pytest.mark.parametrize(
    "change",
    [
        {"configuration_hash": hashed("other")},
        {"specification": rho2("1/4")},
        {"release_id": "other"},
        {"version": "v2"},
        {"fingerprint": hashed("v2")},
        {"accept_no_guarantee": "why not"},
    ],
)
def test_a_run_asks_for_one_thing_only(register, change):
    register.add_version("census-2030", "v2", "corrected", hashed("v2"))
    wanted = request(rho2("1/8"))
    register.reserve(wanted)
    refused(register, "run id in use", wanted.model_copy(update=change))


# --- without a guarantee ------------------------------------------------------------------------


def test_no_finite_budget_needs_a_reason_and_voids_the_total_for_good(register):
    register.reserve(request(rho2("1/2"), "before"))
    text = refused(register, "no finite budget", request(NONE))
    assert "no finite budget exists for this method" in text
    made = register.reserve(request(NONE, accept_no_guarantee="the law demands it"))
    register.commit(made, hashed("draw"))
    total = register.total("census-2030")
    assert total.composition is None
    assert "the law demands it" in total.void[0]
    assert "epsilon" not in total.describe()
    assert "rho" not in total.describe()
    # Finite releases go on being charged below the limit, but there is no total any more.
    register.reserve(request(rho2("1/2"), "after"))
    assert register.total("census-2030").void
    refused(register, "over budget", request(rho2(TINY), "too-much"))


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines"])
def test_an_empty_reason_is_no_reason(reason):
    with pytest.raises(ValueError, match="one line of text"):
        request(NONE, accept_no_guarantee=reason)


def test_a_reason_does_not_lift_other_rules(register):
    wanted = request(rho2(2), accept_no_guarantee="we want to")
    refused(register, "over budget", wanted)
    secret = promise(NoFiniteBudget(reason="r"), keeps=[SECRET])
    refused(register, "undeclared invariant", request(secret, accept_no_guarantee="we want to"))


# --- run ids, crashes, commits ------------------------------------------------------------------


def test_the_same_request_gets_the_same_reservation(register):
    wanted = request(rho2(1))
    first = register.reserve(wanted)
    assert register.reserve(wanted) == first
    done = register.commit(first, hashed("draw"))
    assert (done.state, done.draw_hash) == ("committed", hashed("draw"))
    assert register.commit(first, hashed("draw")) == done
    assert register.reserve(wanted) == done
    assert len(register.entries()) == 5


def test_a_second_draw_is_refused(register):
    made = register.reserve(request(rho2(1)))
    register.commit(made, hashed("draw"))
    with pytest.raises(Refused, match="Delete this one unread"):
        register.commit(made, hashed("another draw"))
    with pytest.raises(Refused, match="was committed before"):
        register.cancel(made, "regret")


def test_a_cancelled_or_unknown_reservation_cannot_be_committed(register, tmp_path):
    made = register.reserve(request(rho2(1)))
    register.cancel(made, "wrong rate")
    with pytest.raises(Refused, match="was cancelled before"):
        register.commit(made, hashed("draw"))
    with opened(tmp_path / "other.db") as other:
        with pytest.raises(Refused, match="reserved nothing"):
            other.commit(made, hashed("draw"))
        other.reserve(request(rho2("1/2")))
        with pytest.raises(Refused, match="something else"):
            other.commit(made, hashed("draw"))


# --- approvals and counts -----------------------------------------------------------------------


def test_approvals_are_by_different_people_for_this_very_configuration(tmp_path):
    with opened(tmp_path / "r.db", approvals=2) as register:
        wanted = request(rho2(1))
        refused(register, "not approved", wanted)
        assert register.approve("census-2030", hashed("configuration"), "Ada Lovelace")
        assert register.approve("census-2030", hashed("configuration"), " ada  lovelace ") is None
        register.approve("census-2030", hashed("another"), "Florence Nightingale")
        assert "1 of the 2" in refused(register, "not approved", wanted)
        register.approve("census-2030", hashed("configuration"), "Florence Nightingale")
        register.reserve(wanted)
        approved = register.account("census-2030").approved(hashed("configuration"))
        assert [approval.by for approval in approved] == ["Ada Lovelace", "Florence Nightingale"]
        assert register.verify() == []


@pytest.mark.parametrize(
    "same",
    [
        "\N{FULLWIDTH LATIN CAPITAL LETTER A}da Lovelace",
        "ADA   LOVELACE",
        "Ada Lovelace\N{VARIATION SELECTOR-1}",
        "Ada\N{COMBINING GRAPHEME JOINER} Lovelace",
        "Ada \N{HANGUL FILLER}Lovelace",
        "Ada Lovelace\N{BRAILLE PATTERN BLANK}",
        "Ada Lovelace\N{MUSICAL SYMBOL NULL NOTEHEAD}",
        "Ada \N{KHITAN SMALL SCRIPT FILLER}Lovelace",
    ],
)
def test_a_name_written_otherwise_is_the_same_person(tmp_path, same):
    with opened(tmp_path / "r.db", approvals=2) as register:
        assert register.approve("census-2030", hashed("configuration"), "Ada Lovelace")
        assert register.approve("census-2030", hashed("configuration"), same) is None
        assert "1 of the 2" in refused(register, "not approved", request(rho2(1)))


@pytest.mark.parametrize(
    ("one", "other"), [("Jos\u00e9", "Jose\u0301"), ("Stra\u00dfe", "STRASSE")]
)
def test_a_letter_composed_otherwise_is_the_same_person(tmp_path, one, other):
    with opened(tmp_path / "r.db", approvals=2) as register:
        assert register.approve("census-2030", hashed("configuration"), one)
        assert register.approve("census-2030", hashed("configuration"), other) is None


@pytest.mark.parametrize(
    "hidden",
    ["\N{ZERO WIDTH SPACE}", "\N{SOFT HYPHEN}", "\N{WORD JOINER}", "\N{NO-BREAK SPACE}"],
)
def test_names_with_characters_that_do_not_print_are_refused(register, hidden):
    with pytest.raises(BadInput, match="one line of text"):
        register.approve("census-2030", hashed("configuration"), f"Ada{hidden} Lovelace")


def test_beginnings_are_entered_and_beyond_the_first_counted_as_redraws(register):
    made = register.reserve(request(rho2(1)))
    assert (made.redraws, register.account("census-2030").redraws) == (0, 0)
    assert register.begin(made, "draw").redraws == 0
    assert "run run-r1: draw is drawn" in register.entries()[-1].describe()
    assert register.begin(made, "other part").redraws == 0
    register.begin(made, "draw")
    assert register.begin(made, "draw").redraws == 2
    assert register.account("census-2030").redraws == 2
    last = register.entries()[-1]
    assert (last.event.kind, last.collection) == ("beginning", "census-2030")
    assert "run run-r1: draw is drawn again (redraw 2)" in last.describe()
    done = register.commit(made, hashed("draw"))
    assert (done.state, done.redraws) == ("committed", 2)
    with pytest.raises(Refused, match="was committed before"):
        register.begin(made, "draw")
    assert register.total("census-2030").spent == 1
    assert register.verify() == []


def test_what_was_never_reserved_or_given_back_cannot_be_drawn_again(register, tmp_path):
    made = register.reserve(request(rho2(1)))
    register.cancel(made, "wrong rate")
    with pytest.raises(Refused, match="was cancelled before"):
        register.begin(made, "draw")
    with opened(tmp_path / "other.db") as other, pytest.raises(Refused, match="reserved nothing"):
        other.begin(made, "draw")


def test_trials_and_dry_runs_are_counted_and_cost_nothing(register):
    for _ in range(3):
        register.count_trial(
            "census-2030", "v1", hashed("configuration"), seed_known=True, fingerprint=hashed("v1")
        )
    register.count_dry_run("census-2030", "v1", hashed("configuration"), fingerprint=hashed("v1"))
    account = register.account("census-2030")
    assert (account.trials, account.dry_runs) == (3, 1)
    assert account.total().remaining == 1
    with pytest.raises(Refused, match="no version 'v9'"):
        register.count_trial(
            "census-2030", "v9", hashed("configuration"), seed_known=False, fingerprint=hashed("v1")
        )


def test_trials_and_dry_runs_of_another_file_are_refused(register):
    counted = ("census-2030", "v1", hashed("configuration"))
    for count in (
        lambda: register.count_trial(*counted, seed_known=True, fingerprint=hashed("another")),
        lambda: register.count_dry_run(*counted, fingerprint=hashed("another")),
    ):
        with pytest.raises(Refused, match="not the file that was declared as version v1"):
            count()
    account = register.account("census-2030")
    assert (account.trials, account.dry_runs) == (0, 0)


# --- releases made elsewhere --------------------------------------------------------------------


def test_a_release_made_elsewhere_is_charged_alike(register):
    def add(title, specification, **more):
        return register.add_external(
            "census-2030", title, specification, "A. Clerk", "press release 12", **more
        )

    add("first tables", rho2("3/4"))
    refused(register, "over budget", request(rho2("1/2")))
    with pytest.raises(Refused, match="over budget"):
        add("second tables", rho2("1/2"))
    with pytest.raises(Refused, match="is in the account"):
        add("first tables", rho2(0))
    entry = add("second tables", rho2("1/2"), force_reason="published in May")
    assert entry.event.overrides == ("over budget",)
    total = register.total("census-2030")
    assert (total.spent, total.remaining) == (Fraction(5, 4), Fraction(-1, 4))
    assert total.void == ()
    refused(register, "over budget", request(rho2(0)))


@pytest.mark.parametrize(
    ("specification", "rule"),
    [
        (NONE, "no finite budget"),
        (rho2(0, input_premetric=hamming_of_multisets("person")), "no composition rule"),
        (rho2(0, status="checked numerically"), "unproved bound"),
        (promise(FunctionOfUniverse(formula="f")), "budget without a number"),
    ],
)
def test_what_cannot_be_added_up_voids_the_total_when_forced(register, specification, rule):
    register.reserve(request(rho2("1/2")))
    with pytest.raises(Refused, match=rule):
        register.add_external("census-2030", "t", specification, "A. Clerk", "n")
    entry = register.add_external(
        "census-2030", "t", specification, "A. Clerk", "n", force_reason="it has happened"
    )
    assert entry.event.overrides == (rule,)
    assert rule in register.total("census-2030").void[0]


def test_an_undeclared_invariant_published_elsewhere_is_recorded_and_told(register):
    register.add_external(
        "census-2030", "t", rho2(0, keeps=[SECRET]), "A. Clerk", "n", force_reason="in print"
    )
    register.reserve(request(rho2("1/2")))
    assert SECRET.name in str(register.total("census-2030").composition.weakenings)


# --- words --------------------------------------------------------------------------------------


def test_no_amount_stands_without_unit_premetric_and_invariants(register):
    register.reserve(request(rho2("1/3")))
    text = register.total("census-2030").describe()
    for needed in (
        "Reserved:  rho^2 = 0.333334 per household record",
        "Remaining: rho^2 = 0.666666 per household record",
        "normalised-renyi",
        DECLARED[0].describe(),
    ):
        assert needed in text
    line = register.entries()[-1].describe()
    assert "rho^2 = 0.3334 per household record, normalised-renyi, exact: households by" in line


def test_every_entry_has_a_line(register):
    made = register.reserve(request(rho2("1/3")))
    register.commit(made, hashed("draw"))
    register.cancel(register.reserve(request(rho2("1/3"), "b")), "not now")
    register.add_external("census-2030", "t", rho2(0), "A. Clerk", "n", force_reason="f")
    register.approve("census-2030", hashed("c"), "Ada")
    register.count_trial(
        "census-2030", "v1", hashed("c"), seed_known=True, fingerprint=hashed("v1")
    )
    register.count_dry_run("census-2030", "v1", hashed("c"), fingerprint=hashed("v1"))
    lines = [entry.describe() for entry in register.entries()]
    assert len(lines) == 11
    assert all("\n" not in line for line in lines)
    assert "2031-01-01 00:01:00 UTC" in lines[0]
    for internal in (hashed("draw"), hashed("v1")):
        assert internal[:12] not in "".join(lines)


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda r: r.approve("census-2030", "abc", "Ada"),
        lambda r: r.approve("census-2030", hashed("c"), " "),
        lambda r: r.add_version("census-2030", "../v2", "corrected", hashed("v2")),
        lambda r: r.add_version("census-2030", "v2", "copy", hashed("v2")),
        lambda r: r.add_version("census-2030", "v1", "corrected", hashed("v2")),
        lambda r: r.add_version("census-2030", "v2", "corrected", "not a hash"),
        lambda r: r.add_version("census-2030", "v2", "original", hashed("v2")),
        lambda r: r.add_version("nothing", "v2", "original", hashed("v2")),
        lambda r: r.open_collection(collection()),
        lambda r: r.commit(r.reserve(request(rho2(0))), "not a hash"),
        lambda r: r.add_external("census-2030", "t", rho2(0), "", "n"),
        lambda r: r.entries("nothing"),
        lambda r: r.total("nothing"),
        lambda r: r.reservation("census-2030", "nothing"),
        lambda r: r.reserve(request(rho2(Fraction(1, 10**5000)))),
    ],
)
def test_bad_input_is_refused_in_words(register, call):
    with pytest.raises(BadInput):
        call(register)
