"""Whatever happens to the file is noticed and named, and never ends in a traceback."""

import json
import os
import random
import shutil
import signal
import sqlite3
import stat
import sys

import pytest
from typer.testing import CliRunner

import limits
from discreet.cli.registers import registers
from discreet.errors import BadInput, DiscreetError, NewerFormat, UnreadableFile
from discreet.register import Refused, Register, RegisterBusy, read_collection
from discreet.register.chain import START, digest
from discreet.register.entries import canonical
from registers import collection, hashed, opened, request, rho2


@pytest.fixture
def path(tmp_path):
    """Return a register of nine entries."""
    path = tmp_path / "register.db"
    with opened(path) as register:
        for name in "abc":
            register.commit(register.reserve(request(rho2("1/4"), name)), hashed(name))
    return path


def found(path):
    with Register.open(path) as register:
        return register.verify()


def tampered(path, *statements):
    """Change the file behind the register's back: its rules are dropped and put back."""
    with sqlite3.connect(path) as raw:
        rules = raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in rules:
            raw.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            raw.execute(*statement) if isinstance(statement, tuple) else raw.execute(statement)
        for _, sql in rules:
            raw.execute(sql)
    raw.close()


def rewritten(path, change):
    """Change bodies and compute every hash anew, as somebody who knows the format would."""
    with sqlite3.connect(path) as raw:
        bodies = [json.loads(body) for (body,) in raw.execute("SELECT body FROM entries")]
    raw.close()
    change(bodies)
    rows, previous = [], START
    for number, body in enumerate(bodies, start=1):
        text = canonical_of(body)
        rows.append((number, previous, text, digest(number, previous, text)))
        previous = rows[-1][3]
    inserts = [("INSERT INTO entries VALUES (?, ?, ?, ?)", row) for row in rows]
    tampered(path, "DELETE FROM entries", *inserts)
    path.with_name("register.db.head").unlink()


def canonical_of(body):
    return canonical([body])[1:-1]


# --- the file -----------------------------------------------------------------------------------


def test_a_register_is_private_and_says_what_it_is(path):
    assert found(path) == []
    for file in (path, path.with_name("register.db.head")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with sqlite3.connect(path) as raw:
        assert raw.execute("PRAGMA application_id").fetchone() == (int.from_bytes(b"dscr"),)
        assert raw.execute("PRAGMA user_version").fetchone() == (1,)
    raw.close()
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "register.db",
        "register.db.head",
    ]


def test_writing_is_synchronous(path):
    with Register.open(path) as register:
        level = register._book._database._select("PRAGMA synchronous")
    assert level[0][0] >= 2  # FULL or more


def test_an_existing_file_is_never_replaced(path):
    before = path.read_bytes()
    with pytest.raises(BadInput, match=r"register\.db exists"):
        Register.create(path)
    assert path.read_bytes() == before


def test_a_deleted_register_is_not_quietly_begun_anew(path):
    path.unlink()
    with pytest.raises(BadInput, match="register that is gone"):
        Register.create(path)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text.db").write_text("dear diary")
    (tmp_path / "empty.db").write_text("")
    with sqlite3.connect(tmp_path / "other.db") as raw:
        raw.execute("CREATE TABLE entries (a)")
    raw.close()
    for name in ("text.db", "empty.db", "other.db", "missing.db", "."):
        with pytest.raises(UnreadableFile):
            Register.open(tmp_path / name)


@pytest.mark.parametrize("version", [2, 0, -1])
def test_another_format_is_refused(path, version):
    with sqlite3.connect(path) as raw:
        raw.execute(f"PRAGMA user_version = {version}")
    raw.close()
    with pytest.raises(NewerFormat):
        Register.open(path)


def test_a_locked_register_is_busy_and_nothing_happens(path):
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    with Register.open(path, busy_seconds=0.05) as register, pytest.raises(RegisterBusy):
        register.reserve(request(rho2(0), "d"))
    raw.execute("ROLLBACK")
    raw.close()
    assert found(path) == []


def test_a_folder_that_cannot_be_written_is_an_error_in_words(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DiscreetError, match="cannot be created"):
        Register.create(tmp_path / "file" / "register.db")


COLLECTION = (
    "{format_version: 1, id: census-2030, title: Census of 2030, reference_date: 2030-04-01, "
    "unit: rho2, limit: '1', approvals_required: 0, invariants: []}"
)

#: What Python reports of itself before it touches a file.
TOUCHES = ("open", "os.link", "os.rename", "os.remove", "os.mkdir", "sqlite3.connect")


def opening(folder):
    """Open a collection in a register that is made for it, as the command does."""
    return CliRunner().invoke(registers, ["open", str(folder / "r.db"), str(folder / "c.yaml")])


def killed_at(number, work):
    """Do `work` in a process that is killed at its n-th touch of a file; return if it was."""
    process = os.fork()
    if process == 0:
        seen = []

        def hook(event, _):
            if event in TOUCHES:
                seen.append(event)
                if len(seen) == number:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        work()
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


def test_a_killed_opening_leaves_nothing_or_the_whole_register(tmp_path):
    for number in range(1, 100):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "c.yaml").write_text(COLLECTION)
        killed = killed_at(number, lambda folder=folder: opening(folder))
        left = sorted(file.name for file in folder.iterdir())
        assert left in (["c.yaml"], ["c.yaml", "r.db"], ["c.yaml", "r.db", "r.db.head"]), number
        if "r.db" in left:
            with Register.open(folder / "r.db") as register:
                assert [one.id for one in register.collections()] == ["census-2030"]
        else:
            assert opening(folder).exit_code == 0
        if not killed:
            break
    assert 5 < number < 99
    assert found(folder / "r.db") == []


def test_an_opening_that_is_refused_leaves_nothing(tmp_path):
    (tmp_path / "c.yaml").write_text(COLLECTION.replace("limit: '1'", "limit: '-1'"))
    assert opening(tmp_path).exit_code == 2
    assert [file.name for file in tmp_path.iterdir()] == ["c.yaml"]


OPENING = """
import sys
from discreet.errors import BadInput
from discreet.register import Register
try:
    Register.open(sys.argv[1])
except BadInput as error:
    print(error)
"""


def test_a_register_that_may_not_be_read_is_reported_as_such(path):
    path.chmod(0)
    first = limits.python(OPENING, path)
    path.chmod(0o600)
    path.parent.chmod(0)
    second = limits.python(OPENING, path)
    path.parent.chmod(0o700)
    remedy = "Ask its owner for the permission."
    for done in (first, second):
        assert done.stdout == f"register.db: this user may not read it. {remedy}\n", done.stderr


@pytest.mark.parametrize("closed", ["file", "folder"])
def test_a_register_that_may_only_be_read_is_shown_and_not_written(path, closed):
    (path.parent / "c.yaml").write_text(COLLECTION.replace("census-2030,", "census-2031,"))
    (path if closed == "file" else path.parent).chmod(0o400 if closed == "file" else 0o500)
    try:
        shown = limits.discreet("register", "show", path.name, cwd=path.parent)
        done = limits.discreet("register", "open", path.name, "c.yaml", cwd=path.parent)
    finally:
        path.parent.chmod(0o700)
    assert shown.returncode == 0, shown.stderr
    assert done.returncode == 2
    assert "register.db: this user may not write it, or not in its folder" in done.stderr
    with Register.open(path) as register:
        assert len(register.entries()) == 9


def test_an_error_while_deciding_leaves_nothing(path):
    def fail():
        raise RuntimeError("the clock stopped")

    with Register.open(path, clock=fail) as register, pytest.raises(RuntimeError):
        register.reserve(request(rho2(0), "d"))
    assert found(path) == []
    with Register.open(path) as register:
        assert len(register.entries()) == 9


# --- entries ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = ''",
        "UPDATE entries SET hash = hash",
        "DELETE FROM entries WHERE sequence = 9",
        "INSERT OR REPLACE INTO entries SELECT 9, previous, body, hash FROM entries LIMIT 1",
        "REPLACE INTO entries SELECT 3, previous, body, hash FROM entries LIMIT 1",
        "INSERT INTO entries VALUES (11, '', '', '')",
        "INSERT INTO entries VALUES (NULL, '', '', '')",
    ],
)
def test_sqlite_itself_refuses_changes(path, statement):
    raw = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute(statement)
    raw.close()
    assert found(path) == []


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        (["UPDATE entries SET body = replace(body, '1/4', '1/9') WHERE sequence = 4"], "entry 4 "),
        (["UPDATE entries SET previous = hash WHERE sequence = 6"], "entry 6 "),
        (["UPDATE entries SET hash = upper(hash) WHERE sequence = 2"], "entry 2 "),
        (["UPDATE entries SET body = x'ff' WHERE sequence = 5"], "entry 5 is not text"),
        (["UPDATE entries SET body = 7 WHERE sequence = 5"], "entry 5 "),
        (["DELETE FROM entries WHERE sequence = 5"], "entry 5 is missing"),
        (["DELETE FROM entries WHERE sequence = 1"], "entry 1 is missing"),
        (["DELETE FROM entries"], "entry 1 is missing"),
        (["DELETE FROM entries WHERE sequence = 9"], "entry 9 and later ones are missing"),
        (["DELETE FROM entries WHERE sequence > 6"], "entry 7 and later ones are missing"),
        (
            [
                "UPDATE entries SET sequence = 100 WHERE sequence = 4",
                "UPDATE entries SET sequence = 4 WHERE sequence = 6",
                "UPDATE entries SET sequence = 6 WHERE sequence = 100",
            ],
            "entry 4 ",
        ),
    ],
)
def test_a_changed_entry_is_named_and_nothing_more_is_written(path, statements, named):
    tampered(path, *statements)
    assert any(named in problem for problem in found(path)), found(path)
    with Register.open(path) as register, pytest.raises(BadInput, match=named):
        register.reserve(request(rho2(0), "d"))


def test_dropped_rules_are_noticed(path):
    with sqlite3.connect(path) as raw:
        raw.execute("DROP TRIGGER entries_not_deleted")
    raw.close()
    assert "'entries_not_deleted' is missing" in found(path)[0]
    with Register.open(path) as register, pytest.raises(UnreadableFile, match="entries_not_del"):
        register.reserve(request(rho2(0), "d"))


def test_a_planted_trigger_is_noticed(path):
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TRIGGER more AFTER INSERT ON entries BEGIN SELECT 1; END")
    raw.close()
    assert "'more' is missing or was altered" in found(path)[0]


# --- a chain that is whole, but says what the rules forbid ----------------------------------------


def spend_more(bodies):
    for number in (3, 5, 7):
        amount = bodies[number]["event"]["request"]["specification"]["budget"]["amount"]
        amount["of"] = "1/2"


def lower_limit(bodies):
    bodies[1]["event"]["opened"]["limit"] = "1/2"


def undeclare(bodies):
    bodies[1]["event"]["opened"]["invariants"] = []


def swap_the_file(bodies):
    bodies[3]["event"]["request"]["fingerprint"] = hashed("another file")


def hide_the_void(bodies):
    budget = bodies[3]["event"]["request"]["specification"]["budget"]
    budget["amount"] = {"kind": "none", "reason": "r"}
    bodies[3]["event"]["request"]["accept_no_guarantee"] = "because"


# --- registers written before a rule was made ---------------------------------------------------


def share_the_file(bodies):
    """Declare the file under a second collection, and charge a release of it there."""
    second, file, third = (json.loads(json.dumps(bodies[number])) for number in (1, 2, 7))
    second["event"]["opened"]["id"] = "second-try"
    file["event"]["collection"] = "second-try"
    third["event"]["request"].update(collection="second-try", run_id="run-z")
    bodies[5:7] = [second, file, third]  # the reservation of b and its commit
    del bodies[8:]


def approve_twice(bodies):
    """Let one person approve twice, and a release depend on it."""
    bodies[1]["event"]["opened"]["approvals_required"] = 2
    for number, name in ((3, "Ada"), (4, "\N{FULLWIDTH LATIN CAPITAL LETTER A}da")):
        agreed = {"kind": "approval", "collection": "census-2030", "by": name}
        agreed["configuration_hash"] = hashed("configuration")
        bodies.insert(number, {"time": bodies[2]["time"], "event": agreed})


def test_an_old_register_with_one_file_in_two_collections_is_read_and_charged_no_more(path):
    rewritten(path, share_the_file)
    before = path.read_bytes()
    with Register.open(path) as register:
        assert [c.id for c in register.collections()] == ["census-2030", "second-try"]
        assert len(register.entries()) == 8
        assert register.total("second-try").releases == 1
        for name in ("census-2030", "second-try"):
            with pytest.raises(Refused, match="file in two collections"):
                register.reserve(request(rho2(0), "d", collection=name))
        problems = register.verify()
    assert path.read_bytes() == before
    assert sum("breaks a rule: file in two collections" in problem for problem in problems) == 2
    # What was reserved before the rule was made is carried out.
    with Register.open(path) as register:
        made = register.reservation("second-try", "c")
        assert register.commit(made, hashed("z")).state == "committed"


def test_verify_goes_on_after_what_an_old_register_was_allowed(path):
    def both(bodies):
        share_the_file(bodies)
        bodies.append(bodies[4])

    rewritten(path, both)
    problems = found(path)
    assert any("entry 7 breaks a rule: file in two collections" in one for one in problems)
    assert any("entry 9 breaks a rule: already ended" in one for one in problems)


def test_in_an_old_register_one_person_counts_once(path):
    rewritten(path, approve_twice)
    problems = found(path)
    assert any("entry 5 breaks a rule: approved twice" in one for one in problems)
    assert any("entry 6 breaks a rule: not approved" in one for one in problems)
    with Register.open(path) as register:
        assert len(register.account("census-2030").approvals) == 2
        with pytest.raises(Refused, match="1 of the 2"):
            register.reserve(request(rho2(0), "d"))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (spend_more, "entry 8 breaks a rule: over budget"),
        (lower_limit, "entry 8 breaks a rule: over budget"),
        (undeclare, "entry 4 breaks a rule: undeclared invariant"),
        (swap_the_file, "entry 4 breaks a rule: another file"),
        (hide_the_void, "entry 4 breaks a rule: wrong total"),
        (lambda bodies: bodies.pop(3), "entry 4 breaks a rule: unknown run"),
        (lambda bodies: bodies.pop(2), "entry 3 breaks a rule: unknown version"),
        (lambda bodies: bodies.pop(1), "entry 2 breaks a rule: unknown collection"),
        (lambda bodies: bodies.pop(0), "entry 1 breaks a rule: wrong order"),
        (lambda bodies: bodies.append(bodies[0]), "entry 10 breaks a rule: wrong order"),
        (lambda bodies: bodies.append(bodies[4]), "entry 10 breaks a rule: already ended"),
        (lambda bodies: bodies.append(bodies[3]), "entry 10 breaks a rule: run id in use"),
        (lambda bodies: bodies[4]["event"].update(kind="gift"), "entry 5 says nothing this"),
        (lambda bodies: bodies[4].pop("time"), "entry 5 says nothing this"),
    ],
)
def test_forged_entries_with_good_hashes_break_a_named_rule(path, change, named):
    rewritten(path, change)
    problems = found(path)
    assert any(named in problem for problem in problems), problems
    assert any("head is missing" in problem for problem in problems)


def test_a_forged_chain_contradicts_the_head(path):
    head = path.with_name("register.db.head")
    kept = head.read_text()
    rewritten(path, lambda bodies: bodies[0]["event"].update(register_id="0" * 32))
    head.write_text(kept)
    assert found(path) == ["entry 9 is not the one that the head names"]


# --- the head -----------------------------------------------------------------------------------


def test_a_head_that_is_behind_is_no_problem_and_catches_up(path):
    """A process may be killed between writing an entry and writing the head."""
    head = path.with_name("register.db.head")
    before = head.read_text()
    (path.parent / ".register.db.head.4711.part").write_text("half")
    with Register.open(path) as register:
        register.reserve(request(rho2(0), "d"))
    assert head.read_text() != before
    newest = head.read_text()
    head.write_text(before)
    assert found(path) == []
    with Register.open(path) as register:
        register.reserve(request(rho2(0), "d"))
    assert head.read_text() == newest
    assert not list(path.parent.glob(".*"))


def test_a_missing_head_is_named_and_written_again(path):
    head = path.with_name("register.db.head")
    head.unlink()
    assert "register.db.head is missing" in found(path)[0]
    with Register.open(path) as register:
        register.count_dry_run("census-2030", "v1", hashed("c"), fingerprint=hashed("v1"))
    assert found(path) == []


@pytest.mark.parametrize("text", ["", "{", '{"sequence": 9}', '{"format_version": 2}', "\x00"])
def test_a_damaged_head_is_named_and_stops_writing(path, text):
    path.with_name("register.db.head").write_text(text)
    assert "register.db.head" in found(path)[0]
    with Register.open(path) as register, pytest.raises(BadInput, match=r"register\.db\.head"):
        register.reserve(request(rho2(0), "d"))


def test_an_older_copy_is_not_spent_from(path, tmp_path):
    shutil.copy(path, tmp_path / "copy.db")
    with Register.open(path) as register:
        register.reserve(request(rho2("1/4"), "d"))
    shutil.copy(tmp_path / "copy.db", path)
    with Register.open(path) as register:
        with pytest.raises(BadInput, match="entry 10 and later ones are missing"):
            register.reserve(request(rho2("1/4"), "e"))
        # The way out, for people: give up the head, and enter what was lost by hand.
        path.with_name("register.db.head").unlink()
        register.add_external("census-2030", "d", rho2("1/4"), "A. Clerk", "lost entry")
        with pytest.raises(Refused, match="over budget"):
            register.reserve(request(rho2("1/4"), "e"))
    assert found(path) == []


# --- bytes ---------------------------------------------------------------------------------------


def told(path):
    """Return all entries and problems of a file that may be damaged."""
    try:
        with Register.open(path) as register:
            problems = register.verify()
            return [entry.hash for entry in register.entries()], problems
    except DiscreetError as error:
        return None, [str(error)]


def test_flipped_bytes_are_noticed_unless_they_change_nothing(path, tmp_path):
    """Unused bytes may differ; what is read must be what was written, or be named."""
    whole = path.read_bytes()
    entries, _ = told(path)
    random_bytes = random.Random(5)
    noticed = 0
    head = path.with_name("register.db.head").read_text()
    (tmp_path / "x.db.head").write_text(head)
    for _ in range(150):
        broken = bytearray(whole)
        broken[random_bytes.randrange(len(whole))] ^= 1 << random_bytes.randrange(8)
        (tmp_path / "x.db").write_bytes(broken)
        read, problems = told(tmp_path / "x.db")
        assert problems or read == entries
        noticed += bool(problems)
    assert noticed > 50


@pytest.mark.parametrize("word", [b"BEFORE INSERT", b"INTEGER", b"RAISE", b"(\n    sequence"])
@pytest.mark.parametrize("byte", [b"\xff", b"\x80"])
def test_a_schema_that_is_no_text_is_named_as_damage(path, word, byte):
    """SQLite quotes it in its own errors, which Python then cannot decode."""
    whole = path.read_bytes()
    assert word in whole
    path.write_bytes(whole.replace(word, byte + word[1:]))
    _, problems = told(path)
    assert any("is damaged" in problem or "altered" in problem for problem in problems), problems


@pytest.mark.parametrize("kept", [1, 15, 17, 50, 99])
def test_a_truncated_file_is_noticed(path, kept):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * kept // 100])
    _, problems = told(path)
    assert problems
    assert "register.db" in problems[0]


def test_random_bytes_in_place_of_a_page_are_noticed(path):
    whole = bytearray(path.read_bytes())
    whole[4096:8192] = random.Random(1).randbytes(4096)
    path.write_bytes(whole)
    assert told(path)[1]


# --- collections in files -------------------------------------------------------------------------


def test_a_collection_is_read_from_yaml(tmp_path):
    (tmp_path / "c.yaml").write_text(
        "format_version: 1\nid: census-2030\ntitle: Census of 2030\nreference_date: 2030-04-01\n"
        "unit: rho2\nlimit: '1'\napprovals_required: 0\ninvariants:\n"
        + "".join(
            f"  - {{name: {name}, of: units, by: [{name.split()[-1]}], level: county, "
            "where: {kind: [occupied]}}\n"
            for name in ("households by size", "households by tenure")
        )
    )
    assert read_collection(tmp_path / "c.yaml") == collection()


@pytest.mark.parametrize("invariant", ["size", "[size]", "7", "null", "[{name: a}]", "{kind: {}}"])
def test_an_invariant_that_is_no_mapping_is_named(tmp_path, invariant):
    (tmp_path / "c.yaml").write_text(COLLECTION.replace("[]}", f"[{invariant}]}}"))
    with pytest.raises(BadInput, match=r"c\.yaml:\n  invariants\.0"):
        read_collection(tmp_path / "c.yaml")


@pytest.mark.parametrize("limit", ["0.5", "-1", "many"])
def test_a_limit_is_exact_and_not_negative(tmp_path, limit):
    (tmp_path / "c.yaml").write_text(
        "format_version: 1\nid: c\ntitle: C\nreference_date: 2030-04-01\nunit: rho2\n"
        f"limit: {limit}\ninvariants: []\napprovals_required: 0\n"
    )
    with pytest.raises(BadInput, match="limit"):
        read_collection(tmp_path / "c.yaml")
