"""A release names its entry, and the register says whether it was charged."""

import shutil

import pytest

from discreet.errors import BadInput
from discreet.register import Charged, Refused, Register
from registers import hashed, opened, pure, request, rho2


@pytest.fixture
def path(tmp_path):
    return tmp_path / "register.db"


@pytest.fixture
def charged(path):
    """Return what the release of a committed entry says."""
    with opened(path) as register:
        made = register.commit(register.reserve(request(rho2("1/2"))), hashed("draw"))
    return Charged(collection="census-2030", release="r1", entry=made.entry)


def refusal(path, *statement):
    with Register.open(path) as register, pytest.raises(Refused) as caught:
        register.check(*statement)
    assert caught.value.rule == "not charged"
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_a_committed_release_was_charged(path, charged):
    with Register.open(path) as register:
        found = register.check(charged, hashed("draw"), rho2("1/2"))
        assert found == register.reservation("census-2030", "r1")
        assert found.entry == register.entries()[found.sequence - 1].hash
        assert register.run(found.request.run_id) == found
        assert register.run("unknown") is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"entry": hashed("another entry")}, "no such entry"),
        ({"collection": "census-2031"}, "collection"),
        ({"release": "r2"}, "id of the release"),
    ],
)
def test_another_entry_collection_or_name_is_refused(path, charged, change, says):
    statement = charged.model_copy(update=change)
    assert says in refusal(path, statement, hashed("draw"), rho2("1/2"))


def test_another_draw_or_specification_is_refused(path, charged):
    assert "another draw" in refusal(path, charged, hashed("other"), rho2("1/2"))
    for other in (rho2("1/20"), pure(2), rho2("1/2", keeps=())):
        assert "another specification" in refusal(path, charged, hashed("draw"), other)


def test_a_release_is_published_once_with_one_digest(path, charged):
    statement = (charged, hashed("draw"), rho2("1/2"), hashed("release"))
    with Register.open(path) as register:
        made = register.reservation("census-2030", "r1")
        with pytest.raises(Refused, match="not published"):
            register.check_published(*statement)
        register.publish(made, hashed("release"))
        before = len(register.entries())
        assert register.publish(made, hashed("release")).digest == hashed("release")
        assert len(register.entries()) == before
        with pytest.raises(Refused, match="second publication"):
            register.publish(made, hashed("other files"))
        assert register.check_published(*statement).digest == hashed("release")
        with pytest.raises(Refused, match="was altered"):
            register.check_published(*statement[:3], hashed("other files"))
        assert register.verify() == []


def test_only_a_committed_draw_is_published(path):
    with opened(path) as register:
        made = register.reserve(request(rho2("1/2")))
        with pytest.raises(Refused, match="not committed"):
            register.publish(made, hashed("release"))


def test_a_reservation_is_no_charge_of_a_release_until_it_is_committed(path):
    with opened(path) as register:
        made = register.reserve(request(rho2("1/2")))
        stated = Charged(collection="census-2030", release="r1", entry=made.entry)
    assert "reserved" in refusal(path, stated, hashed("draw"), rho2("1/2"))
    with Register.open(path) as register:
        register.cancel(made, "wrong rate")
    assert "cancelled" in refusal(path, stated, hashed("draw"), rho2("1/2"))


def test_a_register_restored_together_with_its_head_lacks_the_entry(path, tmp_path):
    head = path.with_name("register.db.head")
    with opened(path) as register:
        for file in (path, head):
            shutil.copy(file, tmp_path / f"{file.name}.old")
        made = register.commit(register.reserve(request(rho2("1/2"))), hashed("draw"))
    for file in (path, head):
        shutil.copy(tmp_path / f"{file.name}.old", file)
    with Register.open(path) as register:
        assert register.verify() == []  # by itself it looks whole
    stated = Charged(collection="census-2030", release="r1", entry=made.entry)
    assert "older copy" in refusal(path, stated, hashed("draw"), rho2("1/2"))


def test_a_register_that_contradicts_its_head_proves_nothing(path, charged, tmp_path):
    shutil.copy(path, tmp_path / "old.db")
    with Register.open(path) as register:
        register.count_dry_run("census-2030", "v1", hashed("c"), fingerprint=hashed("v1"))
    shutil.copy(tmp_path / "old.db", path)
    with Register.open(path) as register, pytest.raises(BadInput, match="later ones are missing"):
        register.check(charged, hashed("draw"), rho2("1/2"))
