"""The register's commands: a file is declared by its hash, a reservation is given back."""

import re
from fractions import Fraction

import pytest
from typer.testing import CliRunner

from discreet.cli.registers import registers
from discreet.engine import Engine
from discreet.files import sha256_file
from discreet.register import Register
from discreet.run import approval_hash, folder_hash, record_hashes
from discreet.run.records import TABLES
from registers import collection, hashed, opened, request, rho2
from worlds import us_census, write_census

HASH = re.compile(r"[0-9a-f]{12}")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "register.db"


def discreet(*arguments):
    """Run a command; return its exit code, and what it printed and complained."""
    done = CliRunner().invoke(registers, [str(argument) for argument in arguments])
    return done.exit_code, done.stdout, done.stderr


def written(folder):
    """Write a small census and return its folder."""
    write_census(us_census(Engine(threads=1), [(0, "1", [(40, "1", "01")])]), folder)
    return folder


def test_a_folder_in_place_of_a_register_is_named_as_such(tmp_path):
    (tmp_path / "folder").mkdir()
    code, _, complaint = discreet("verify", tmp_path / "folder")
    assert (code, "is a folder" in complaint) == (2, True)


def test_the_help_of_check_says_what_is_checked_and_what_is_not():
    _, out, _ = discreet("check", "--help")
    assert "Checked:" in out
    assert "Not checked:" in out


# --- version ------------------------------------------------------------------------------------


def test_a_version_is_the_file_it_was_declared_with(tmp_path, path):
    census = written(tmp_path / "census")
    with Register.create(path) as register:
        register.open_collection(collection())
    declare = ("version", path, "census-2030", "v1", "--census", census, "--note", "of May")
    code, out, _ = discreet(*declare)
    assert code == 0
    assert not HASH.search(out.removeprefix(str(path)))
    with Register.open(path) as register:
        (version,) = register.account("census-2030").versions.values()
        assert (version.kind, version.note) == ("original", "of May")
        assert version.fingerprint == folder_hash(census)
        register.reserve(request(rho2(0), fingerprint=folder_hash(census)))
    code, _, complaint = discreet(*declare)
    assert (code, "known version" in complaint) == (2, True)


def in_a_folder(census):
    (census / "persons").mkdir()
    (census / "persons.parquet").rename(census / "persons" / "a.parquet")


TRIVIAL = {
    "nothing": lambda census: None,
    "an empty file": lambda census: (census / "x").touch(),
    "a file of the system": lambda census: (census / ".DS_Store").write_bytes(b"1"),
    "a line in the header": lambda census: (census / "census.yaml").write_text(
        (census / "census.yaml").read_text() + "# another\n"
    ),
    "persons in a folder": in_a_folder,
    "without persons": lambda census: (census / "persons.parquet").unlink(),
}


@pytest.mark.parametrize("change", TRIVIAL)
def test_the_same_records_in_two_collections_are_refused(tmp_path, path, change):
    with Register.create(path) as register:
        register.open_collection(collection())
        register.open_collection(collection(name="second-try"))
    census = written(tmp_path / "census")
    assert discreet("version", path, "census-2030", "v1", "--census", census)[0] == 0
    TRIVIAL[change](census)
    code, _, complaint = discreet("version", path, "second-try", "v1", "--census", census)
    assert (code, "file in two collections" in complaint) == (2, True)
    # Under its own collection it may be declared again: they share one account.
    again = ("version", path, "census-2030", "v2", "--census", census, "--kind", "corrected")
    assert discreet(*again)[0] == 0


def test_files_without_rows_are_no_records(tmp_path):
    """Those of two collections may well be the same."""
    census = written(tmp_path / "census")
    before = record_hashes(census)
    assert before == tuple(sorted(sha256_file(census / f"{t}.parquet") for t in TABLES))
    (census / "units").mkdir()
    (census / "units.parquet").rename(census / "units" / "b.parquet")
    engine = Engine(threads=1)
    units = engine.read_parquet(census / "units" / "b.parquet")
    engine.write_parquet(units.head(0), census / "units" / "a.parquet")
    assert record_hashes(census) == before


@pytest.mark.parametrize("folder", ["missing", "empty"])
def test_only_a_census_can_be_a_version(tmp_path, path, folder):
    (tmp_path / "empty").mkdir()
    with Register.create(path) as register:
        register.open_collection(collection())
    code, _, complaint = discreet(
        "version", path, "census-2030", "v1", "--census", tmp_path / folder
    )
    assert code == 2
    assert complaint.startswith("error: ")
    with Register.open(path) as register:
        assert register.account("census-2030").versions == {}


# --- approve ------------------------------------------------------------------------------------


def test_an_approval_is_of_the_configuration_with_its_census(tmp_path, path):
    census = written(tmp_path / "census")
    config = tmp_path / "run.yaml"
    config.write_text(
        "{format_version: 1, release: first, mode: release, census: census, work: work, out: out, "
        "mechanism: permutation-swapping, "
        "parameters: {rate: 1/20, match: [size], within: county}, "
        "account: {register: register.db, collection: census-2030, version: v1}}"
    )
    opened(path).close()
    approve = ("approve", path, config, "--by", "Ada")
    told = approval_hash(config)
    assert discreet(*approve)[:2] == (0, f"approved {told}\n")
    assert discreet(*approve)[:2] == (0, f"approved before {told}\n")
    (census / "units.parquet").write_bytes(b"something else")
    assert discreet(*approve)[:2] == (0, f"approved {approval_hash(config)}\n")
    with Register.open(path) as register:
        hashes = [one.configuration_hash for one in register.account("census-2030").approvals]
    assert hashes == [told, approval_hash(config)]
    assert len(set(hashes)) == 2


# --- cancel -------------------------------------------------------------------------------------


def test_a_reservation_is_given_back_and_the_account_told(path):
    with opened(path) as register:
        register.reserve(request(rho2("1/2")))
    code, out, _ = discreet("cancel", path, "census-2030", "r1", "--reason", "wrong rate")
    assert code == 0
    assert "Reserved:  rho^2 = 0\n" in out
    assert "Remaining: rho^2 = 1\n" in out
    with Register.open(path) as register:
        assert register.entries()[-1].event.reason == "wrong rate"
        assert register.total("census-2030").remaining == 1
        assert register.verify() == []
        # The name is free again, for another run.
        register.reserve(request(rho2(1), run_id="another"))


def test_a_committed_release_is_never_given_back(path):
    with opened(path) as register:
        register.commit(register.reserve(request(rho2("1/2"))), hashed("draw"))
    code, out, complaint = discreet("cancel", path, "census-2030", "r1", "--reason", "regret")
    assert (code, out) == (2, "")
    assert "was committed before: its draw may have been read, so its charge stays" in complaint
    assert not HASH.search(complaint)
    with Register.open(path) as register:
        assert register.total("census-2030").spent == Fraction(1, 2)


@pytest.mark.parametrize(
    ("release", "reason", "rule"),
    [("r2", "wrong rate", "unknown release"), ("r1", " ", "one line of text")],
)
def test_what_cannot_be_cancelled_is_said(path, release, reason, rule):
    with opened(path) as register:
        register.reserve(request(rho2("1/2")))
    code, _, complaint = discreet("cancel", path, "census-2030", release, "--reason", reason)
    assert code == 2
    assert rule in complaint
    with Register.open(path) as register:
        assert register.total("census-2030").reserved == Fraction(1, 2)


# --- show ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_show_tells_the_hash_of_entries_and_of_nothing_confidential(path, options):
    with opened(path) as register:
        register.commit(register.reserve(request(rho2("1/2"))), hashed("draw"))
        hashes = [entry.hash for entry in register.entries("census-2030")]
    code, out, _ = discreet("show", path, *options)
    assert code == 0
    # In words the beginning is enough for the eye; a machine gets all of it.
    assert all((entry if options else entry[:12]) in out for entry in hashes)
    for internal in (hashed("draw"), hashed("v1")):
        assert internal[:12] not in out
