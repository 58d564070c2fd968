"""Many processes at once, processes that are killed, and long random histories."""

import contextlib
import multiprocessing
import os
import random
import signal
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.register import Refused, Register
from discreet.spec import LogRational, NoFiniteBudget
from registers import (
    DECLARED,
    collection,
    hashed,
    opened,
    promise,
    pure,
    request,
    rho2,
    spend,
    spend_until_killed,
    ticking,
)

AFRESH = multiprocessing.get_context("spawn")


@pytest.mark.slow
def test_eight_processes_never_spend_more_than_the_account_has(tmp_path):
    """Together they try to spend four times the limit, in steps that do not divide it."""
    path, tries, step = tmp_path / "register.db", 12, Fraction(1, 23)
    opened(path).close()
    spenders = [
        AFRESH.Process(target=spend, args=(str(path), f"p{number}", tries, str(step)))
        for number in range(8)
    ]
    for spender in spenders:
        spender.start()
    for spender in spenders:
        spender.join()
    assert [spender.exitcode for spender in spenders] == [0] * 8
    with Register.open(path) as register:
        assert register.verify() == []
        total = register.total("census-2030")
        assert total.reserved == 0
        # Never more than the limit; and nothing was lost by waiting either.
        assert total.spent == 23 * step == 1
        numbers = [entry.sequence for entry in register.entries()]
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.slow
def test_a_killed_process_loses_nothing_it_was_told_is_done(tmp_path):
    """kill -9 at random moments: the register verifies, and every commit told is there."""
    path, told = tmp_path / "register.db", tmp_path / "told.txt"
    opened(path).close()
    told.touch()
    moments = random.Random(3)
    for life in range(8):
        before = told.stat().st_size
        process = AFRESH.Process(
            target=spend_until_killed, args=(str(path), f"life{life}", str(told))
        )
        process.start()
        while told.stat().st_size == before:  # it has begun to write
            assert process.is_alive()
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.15))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with Register.open(path) as register:
            assert register.verify() == []
            ledger = {e.event.run_id for e in register.entries() if e.event.kind == "commit"}
            assert {f"run-{name}" for name in told.read_text().split()} <= ledger
    with Register.open(path) as register:
        # A run that was killed after its reservation goes on where it stopped.
        charges = register.account("census-2030").charges.values()
        for charge in [c for c in charges if c.state == "reserved"]:
            made = register.reserve(request(charge.specification, charge.name))
            register.commit(made, hashed(charge.name))
        assert register.total("census-2030").reserved == 0
        assert register.verify() == []


# --- random histories ---------------------------------------------------------------------------

names = st.sampled_from(["a", "b", "c", "d", "e"])
amounts = st.sampled_from(["0", "1/7", "1/3", "1/2", "1/10"])
promises = st.one_of(
    st.builds(rho2, amounts, keeps=st.sampled_from([DECLARED, DECLARED[:1], ()])),
    st.builds(lambda ratio: promise(LogRational(of=ratio)), st.sampled_from(["2", "3/2"])),
    st.just(promise(NoFiniteBudget(reason="r"))),
    st.just(rho2("1/7", status="checked numerically")),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), names, promises, st.sampled_from([None, "accepted"])),
        st.tuples(st.just("commit"), names, st.sampled_from(["draw", "other"])),
        st.tuples(st.just("cancel"), names),
        st.tuples(st.just("external"), names, promises, st.sampled_from([None, "forced"])),
        st.tuples(st.just("approve"), names),
        st.tuples(st.just("trial")),
        st.tuples(st.just("again")),
    ),
    max_size=14,
)


class Model:
    """The same account kept by hand, without specifications: fractions in dictionaries."""

    def __init__(self):
        self.runs, self.external, self.void = {}, {}, set()

    def spent(self):
        done = [cost for cost, state in self.runs.values() if state == "committed"]
        return sum(filter(None, [*done, *self.external.values()]), Fraction(0))

    def reserved(self):
        held = [cost for cost, state in self.runs.values() if state == "reserved"]
        return sum(filter(None, held), Fraction(0))


def cost(specification):
    """Return rho^2 of a specification, worked out here once more; None if there is no number."""
    amount = specification.budget.amount
    if isinstance(amount, NoFiniteBudget):
        return None
    if isinstance(amount, LogRational):
        return amount.upper_bound() ** 2 / 2
    return amount.of


def do(register, model, step):
    """Do one step with the register, and what should follow from it with the model."""
    match step:
        case "reserve", name, specification, accepted:
            register.reserve(request(specification, name, accept_no_guarantee=accepted))
            # A repeated request is the old one: only a new name changes the account.
            model.runs.setdefault(name, (cost(specification), "reserved"))
        case "commit", name, draw:
            made = register.reservation("census-2030", name)
            register.commit(made, hashed(draw))
            model.runs[name] = (model.runs[name][0], "committed")
        case "cancel", name:
            register.cancel(register.reservation("census-2030", name), "no")
            model.runs[name] = (None, "cancelled")
        case "external", name, specification, forced:
            register.add_external("census-2030", name, specification, "by", "n", forced)
            unproved = specification.budget.status == "checked numerically"
            amount = None if unproved else cost(specification)
            model.external[name] = amount
        case "approve", name:
            register.approve("census-2030", hashed("c"), name)
        case ("trial",):
            register.count_trial(
                "census-2030", "v1", hashed("c"), seed_known=True, fingerprint=hashed("v1")
            )


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.sampled_from(["1/2", "1", "2"]))
def test_any_history_verifies_and_adds_up(history, limit):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "register.db"
        model = Model()
        with opened(path, limit) as register:
            for step in history:
                with contextlib.suppress(Refused):
                    do(register, model, step)
                total = register.total("census-2030")
                assert total.spent == model.spent()
                assert total.reserved == model.reserved()
        with Register.open(path) as register:
            assert register.verify() == []
            total = register.total("census-2030")
            assert (total.spent, total.reserved) == (model.spent(), model.reserved())
            live = [c for c, state in model.runs.values() if state != "cancelled"]
            assert bool(total.void) == (None in [*live, *model.external.values()])
            forced = [e for e in register.entries() if getattr(e.event, "force_reason", None)]
            assert forced or total.remaining >= 0


@settings(max_examples=15, deadline=None)
@given(st.lists(st.fractions(1, 3, max_denominator=50), max_size=8))
def test_pure_accounts_add_up_as_a_product(ratios):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "register.db"
        with Register.create(path, clock=ticking()) as register:
            register.open_collection(collection("5/2", unit="epsilon"))
            register.add_version("census-2030", "v1", "original", hashed("v1"))
            product = Fraction(1)
            for number, ratio in enumerate(ratios):
                wanted = request(pure(ratio), f"r{number}")
                if LogRational(of=product * ratio).upper_bound() <= Fraction(5, 2):
                    register.reserve(wanted)
                    product *= ratio
                else:
                    with pytest.raises(Refused, match="over budget"):
                        register.reserve(wanted)
            total = register.total("census-2030")
            assert total.reserved == LogRational(of=product).upper_bound()
            assert register.verify() == []
