"""What is published is what was charged, and anybody with the register can see it."""

import json
import os
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import limits
from discreet.cli.app import app
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.files import folder_hash, sha256_file
from discreet.mechanisms import (
    NoisyTables,
    Release,
    ReleaseHeader,
    make_draw,
    mechanism,
    publish_draw,
)
from discreet.noise import system, tape
from discreet.register import Refused, Register, ReleaseRequest, ReservedRun
from discreet.run import check_release, ledger, plan, publish, run, runner
from discreet.spec import Exactly
from worlds import folder_bytes

from .conftest import MECHANISMS
from .test_run import Crash, committed, crash_at

COMMITTED = "discreet.run.runner.publish_draw"
DRAWN = "discreet.run.ledger.RegisterLedger.commit"


def crashed(config: Path, monkeypatch, target: str, **options) -> None:
    """Run until `target`."""
    with monkeypatch.context() as patched:
        crash_at(patched, target)
        with pytest.raises(Crash):
            run(config, **options)


def cheaper(real):
    """Return `specify` of a package that has learnt to promise ten times less."""

    def specify(self, facts=None):
        told = real(self, facts)
        amount = Exactly(of=Fraction(1, 20))
        budget = told.budget.model_copy(update={"amount": amount})
        return told.model_copy(update={"budget": budget})

    return specify


def charged_by(folder: Path):
    with Register.open(folder / "register.sqlite") as register:
        return register.reservation("tiny-2026", "first")


# -- the specification is part of the draw -------------------------------------------------------


@pytest.mark.parametrize("how", ["publish", "resume"])
def test_what_was_charged_is_published_though_specify_changed(
    configure, tmp_path, monkeypatch, how
):
    config = configure("noisy-tables", "release")
    crashed(config, monkeypatch, COMMITTED)
    # The sources are the same, so nobody notices that the promise would be another.
    monkeypatch.setattr(NoisyTables, "specify", cheaper(NoisyTables.specify))
    release = publish(config) if how == "publish" else run(config, resume=True)
    assert release.specification == charged_by(tmp_path).request.specification
    assert release.specification.budget.amount == Exactly(of=Fraction(1, 2))


def test_the_specification_is_hashed_with_the_draw_and_published_verbatim(
    configure, name, tmp_path, monkeypatch
):
    config = configure(name, "release")
    crashed(config, monkeypatch, COMMITTED)
    kept = (tmp_path / "work" / "draw" / "specification.yaml").read_bytes()
    publish(config)
    assert (tmp_path / "out" / "specification.yaml").read_bytes() == kept


def test_a_draw_with_another_specification_than_was_charged_is_not_published(
    configure, tmp_path, monkeypatch
):
    config = configure("noisy-tables", "release")
    real = runner.make_draw

    def forged(*arguments, **options):
        folder = real(*arguments, **options)
        file = folder / "specification.yaml"
        text = file.read_text()
        assert "of: 1/2" in text
        file.write_text(text.replace("of: 1/2", "of: 1/20"))
        return folder

    monkeypatch.setattr(runner, "make_draw", forged)
    with pytest.raises(Refused, match="charges another specification"):
        run(config)
    assert "commit" in committed(tmp_path)
    for again in (lambda: publish(config), lambda: run(config, resume=True)):
        with pytest.raises(Refused, match="charges another specification"):
            again()
    assert not (tmp_path / "out").exists()


def test_nothing_is_drawn_when_the_promise_is_not_the_one_that_was_reserved(
    configure, tmp_path, monkeypatch
):
    config = configure("noisy-tables", "release")
    monkeypatch.setattr(tape.os, "urandom", lambda n: pytest.fail("drew all the same"))
    real, specify = runner.make_draw, NoisyTables.specify

    def late(*arguments, **options):
        monkeypatch.setattr(NoisyTables, "specify", cheaper(specify))
        return real(*arguments, **options)

    monkeypatch.setattr(runner, "make_draw", late)
    with pytest.raises(BadInput, match="another specification"):
        run(config)
    assert not (tmp_path / "work" / "draw").exists()


def test_a_release_that_was_altered_is_not_taken_for_the_published_one(configure, tmp_path):
    config = configure("noisy-tables", "release")
    run(config)
    state_less(tmp_path / "out")
    for again in (lambda: publish(config), lambda: run(config, resume=True)):
        with pytest.raises(Refused, match="charges another specification"):
            again()


ZERO = "0" * 64


def stated(out: Path) -> dict:
    return yaml.safe_load((out / "release.yaml").read_text())


def restate(out: Path, **changes) -> None:
    """Change what a release says of itself, and seal it again."""
    header = ReleaseHeader(**{**stated(out), **changes}).sealed()
    (out / "release.yaml").write_text(yaml.safe_dump(header.content()))


def state_less(out: Path) -> None:
    """Let a release promise ten times less, with all its hashes in order."""
    file = out / "specification.yaml"
    file.write_text(file.read_text().replace("of: 1/2", "of: 1/20"))
    restate(out, files={**stated(out)["files"], file.name: sha256_file(file)})


# -- what may change between the commit and the publication --------------------------------------


@pytest.mark.parametrize("how", ["publish", "resume"])
def test_publishing_refuses_another_configuration_or_code(configure, tmp_path, monkeypatch, how):
    config = configure("noisy-tables", "release")
    crashed(config, monkeypatch, COMMITTED)

    def again():
        return publish(config) if how == "publish" else run(config, resume=True)

    text = config.read_text()
    config.write_text(text.replace("out: out", "out: elsewhere"))
    with pytest.raises(BadInput, match="the configuration changed"):
        again()
    config.write_text(text)
    with monkeypatch.context() as patched:
        patched.setattr(runner, "code_version", lambda: "another")
        with pytest.raises(BadInput, match="the code of discreet changed"):
            again()
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "elsewhere").exists()
    config.write_text(text + "\nmemory_limit: 1GB\n")  # changes no result
    assert again().header.mode == "release"


def test_a_changed_package_does_not_publish(configure, root, tmp_path, monkeypatch):
    config = configure("noisy-tables", "release")
    crashed(config, monkeypatch, COMMITTED)
    other = tmp_path / "other"
    shutil.copytree(
        root / "src" / "discreet", other / "discreet", ignore=shutil.ignore_patterns("__pycache__")
    )
    told = other / "discreet" / "mechanisms" / "noisy_tables.py"
    told.write_text(told.read_text() + "\n# changed after the charge\n")
    for arguments in (["publish", config], ["run", config, "--resume"]):
        done = subprocess.run(
            [sys.executable, "-m", "discreet", *arguments],
            env={**os.environ, "PYTHONPATH": str(other), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert "the code of discreet changed" in done.stderr
    assert not (tmp_path / "out").exists()
    assert publish(config).specification == charged_by(tmp_path).request.specification


@pytest.mark.parametrize("mode", ["design", "release"])
def test_a_committed_draw_is_published_by_resuming_without_the_census(
    configure, name, tmp_path, monkeypatch, mode
):
    config = configure(name, mode)
    crashed(config, monkeypatch, COMMITTED)
    shutil.rmtree(tmp_path / "census")
    assert run(config, resume=True).header.mode == mode
    assert not (tmp_path / "work" / "stages").exists()
    assert not (tmp_path / "work" / "spill").exists()


# -- a release names its entry -------------------------------------------------------------------


def test_a_release_names_the_entry_that_charged_it(configure, name, tmp_path):
    config = configure(name, "release")
    release = run(config)
    made = check_release(tmp_path / "out", tmp_path / "register.sqlite")
    assert made == charged_by(tmp_path)
    assert release.header.charged.entry == made.entry
    assert release.header.charged.collection == "tiny-2026"
    assert release.header.charged.release == "first"
    assert made.draw_hash == release.header.draw
    # The run id is the salt of the entry's hash: with it the fingerprint could be guessed at.
    public = b"".join(folder_bytes(tmp_path / "out").values())
    assert made.request.run_id.encode() not in public
    assert made.request.fingerprint.encode() not in public
    assert len(made.request.run_id) == 32


def test_designs_and_trials_name_no_entry(configure, name, tmp_path):
    config = configure(name, "trial")
    assert run(config, seed=1).header.charged is None
    assert "charged" not in (tmp_path / "out" / "release.yaml").read_text()
    with pytest.raises(Refused, match="trial"):
        check_release(tmp_path / "out", tmp_path / "register.sqlite")


def test_releases_that_name_no_entry_are_read_and_were_not_charged(configure, tmp_path):
    """Earlier versions wrote them."""
    run(configure("noisy-tables", "release"))
    restate(tmp_path / "out", charged=None)
    assert "charged" not in stated(tmp_path / "out")
    assert Release.open(tmp_path / "out").header.mode == "release"
    with pytest.raises(Refused, match="names no entry"):
        check_release(tmp_path / "out", tmp_path / "register.sqlite")


def check(folder: Path, *options: str):
    register = str(folder / "register.sqlite")
    command = ["register", "check", str(folder / "out"), "--register", register, *options]
    done = CliRunner().invoke(app, command)
    return done.exit_code, done.stdout, done.stderr


def test_the_command_says_whether_a_release_was_charged(configure, tmp_path):
    run(configure("noisy-tables", "release"))
    code, out, _ = check(tmp_path)
    assert code == 0
    assert out.startswith("charged: entry 4 of register.sqlite")
    assert "rho^2 = 0.5000 per household record" in out
    code, out, _ = check(tmp_path, "--json")
    told = json.loads(out)
    assert (code, told["entry"], told["release"]) == (0, charged_by(tmp_path).entry, "first")
    assert "run" not in told


def forge_files(out: Path) -> None:
    """Put confidential data into a release, with all its hashes in order."""
    shutil.copy(out.parent / "census" / "units.parquet", out / "units.parquet")
    restate(
        out, files={**stated(out)["files"], "units.parquet": sha256_file(out / "units.parquet")}
    )


def forge_parameters(out: Path) -> None:
    restate(out, parameters={**stated(out)["parameters"], "budget": "1/20"})


@pytest.mark.parametrize("forge", [forge_files, forge_parameters])
def test_files_or_a_header_that_were_altered_are_not_taken_for_published(
    configure, tmp_path, forge
):
    config = configure("noisy-tables", "release")
    run(config)
    forge(tmp_path / "out")
    Release.open(tmp_path / "out")  # by itself it looks whole
    code, out, complaint = check(tmp_path)
    assert (code, out) == (2, "")
    assert "was altered" in complaint
    for again in (lambda: publish(config), lambda: run(config, resume=True)):
        with pytest.raises(Refused, match="was altered"):
            again()


def test_the_digest_is_entered_before_the_release_appears_and_once(
    configure, name, tmp_path, monkeypatch
):
    config = configure(name, "release")
    crashed(config, monkeypatch, "discreet.register.Register.publish")
    assert not (tmp_path / "out").exists()
    assert charged_by(tmp_path).digest is None
    with monkeypatch.context() as patched:
        real = Register.publish

        def die_after(self, *arguments):
            real(self, *arguments)
            raise Crash

        patched.setattr(Register, "publish", die_after)
        with pytest.raises(Crash):
            publish(config)
    assert not (tmp_path / "out").exists()
    entered = charged_by(tmp_path).digest
    release = run(config, resume=True)
    assert release.header.digest == entered
    run(config, resume=True)
    assert committed(tmp_path).count("publication") == 1


def test_a_release_put_there_before_the_draw_was_published_is_refused(
    configure, tmp_path, monkeypatch
):
    """Whoever forges one before the digest is entered must not have it entered by resuming."""
    config = configure("noisy-tables", "release")
    crashed(config, monkeypatch, COMMITTED)
    register = tmp_path / "register.sqlite"
    keep(tmp_path)
    publish(config)
    forge_files(tmp_path / "out")
    restore(tmp_path)
    for again in (lambda: publish(config), lambda: run(config, resume=True)):
        with pytest.raises(Refused, match="not published"):
            again()
    with pytest.raises(Refused, match="not published"):
        check_release(tmp_path / "out", register)
    shutil.rmtree(tmp_path / "out")
    publish(config)
    check_release(tmp_path / "out", register)


FORGERIES = {
    "no such entry": lambda out: restate(out, charged={**stated(out)["charged"], "entry": ZERO}),
    "another draw": lambda out: restate(out, draw=ZERO),
    "another specification": state_less,
    "does not belong to the release": lambda out: (out / "more.txt").write_text("x"),
}


@pytest.mark.parametrize("forged", FORGERIES)
def test_the_command_refuses_a_release_that_was_not_charged_so(configure, tmp_path, forged):
    run(configure("noisy-tables", "release"))
    FORGERIES[forged](tmp_path / "out")
    code, out, complaint = check(tmp_path)
    assert (code, out) == (2, "")
    assert forged in complaint


# -- no release without a ledger -----------------------------------------------------------------


@pytest.fixture
def supplied(tmp_path, configure):
    """Return a mechanism and a supplied census with its account."""
    from discreet.census import Census

    configure("noisy-tables", "release")
    census = Census.open(tmp_path / "census", Engine(threads=1))
    return mechanism("noisy-tables", census.schema, MECHANISMS["noisy-tables"]), census


def test_nobody_draws_a_release_without_its_reservation(supplied, tmp_path, monkeypatch):
    made, census = supplied
    monkeypatch.setattr(tape.os, "urandom", lambda n: pytest.fail("drew all the same"))
    with pytest.raises(BadInput, match="charged before it is drawn"):
        make_draw(made, census, system(), tmp_path / "draw", "release")
    unknown = ReservedRun(tmp_path / "register.sqlite", "run-1")
    with pytest.raises(Refused, match="reserved nothing"):
        make_draw(made, census, system(), tmp_path / "draw", "release", reserved=unknown)
    assert not (tmp_path / "draw").exists()


def test_nobody_publishes_a_release_that_was_not_committed(supplied, tmp_path):
    made, census = supplied
    register = tmp_path / "register.sqlite"
    request = ReleaseRequest(
        collection="tiny-2026",
        version="edited",
        fingerprint=folder_hash(tmp_path / "census"),
        release_id="first",
        run_id="run-1",
        configuration_hash="0" * 64,
        specification=made.specify(made.facts(census)),
    )
    with Register.open(register) as book:
        reserved = book.reserve(request)
    run_1 = ReservedRun(register, "run-1")
    draw = make_draw(made, census, system(), tmp_path / "draw", "release", reserved=run_1)
    with pytest.raises(BadInput, match="only with its register"):
        publish_draw(draw, tmp_path / "out")
    with pytest.raises(Refused, match="is reserved, not committed"):
        publish_draw(draw, tmp_path / "out", reserved=run_1)
    with Register.open(register) as book:
        assert book.run(reserved.request.run_id).begun == {"draw": 1}
        book.commit(reserved, folder_hash(draw))
    with pytest.raises(Refused, match="was committed before"):
        make_draw(made, census, system(), tmp_path / "second", "release", reserved=run_1)
    assert publish_draw(draw, tmp_path / "out", reserved=run_1).header.mode == "release"
    check_release(tmp_path / "out", register)


def test_a_draw_that_only_calls_itself_a_release_is_not_published(configure, tmp_path, monkeypatch):
    config = configure("noisy-tables")
    crashed(config, monkeypatch, COMMITTED, seed=1)
    draw = tmp_path / "work" / "draw"
    file = draw / "draw.yaml"
    file.write_text(file.read_text().replace("mode: design", "mode: release"))
    with pytest.raises(BadInput, match="only with its register"):
        publish_draw(draw, tmp_path / "out")
    configure("noisy-tables", "release")  # writes a register
    with pytest.raises(BadInput, match="names no entry"):
        publish_draw(
            draw, tmp_path / "out", reserved=ReservedRun(tmp_path / "register.sqlite", "x")
        )
    assert not (tmp_path / "out").exists()


# -- a register that was restored together with its head -----------------------------------------


def restore(folder: Path) -> None:
    for kept in folder.glob("*.kept"):
        shutil.copy(kept, kept.with_suffix(""))


def keep(folder: Path) -> None:
    for file in folder.glob("register.sqlite*"):
        shutil.copy(file, folder / f"{file.name}.kept")


@pytest.mark.parametrize("published", [False, True])
def test_a_run_whose_entry_the_register_lost_is_refused(
    configure, name, tmp_path, monkeypatch, published
):
    config = configure(name, "release")
    keep(tmp_path)
    if published:
        run(config)
        draw = {}
    else:
        crashed(config, monkeypatch, COMMITTED)
        draw = folder_bytes(tmp_path / "work" / "draw")
    restore(tmp_path)
    for again in (lambda: run(config, resume=True), lambda: publish(config)):
        with pytest.raises(ledger.LostEntry, match="older copy"):
            again()
    assert "reservation" not in committed(tmp_path)
    assert published or folder_bytes(tmp_path / "work" / "draw") == draw
    if published:
        with pytest.raises(Refused, match="no such entry"):
            check_release(tmp_path / "out", tmp_path / "register.sqlite")


def test_a_new_run_beside_a_release_that_the_register_lost_is_refused(configure, tmp_path):
    config = configure("noisy-tables", "release")
    keep(tmp_path)
    run(config)
    restore(tmp_path)
    config.write_text(config.read_text().replace("work: work", "work: work2"))
    with pytest.raises(ledger.LostEntry, match="older copy"):
        run(config)
    assert not (tmp_path / "work2").exists()
    assert "reservation" not in committed(tmp_path)


# -- redraws are entered -------------------------------------------------------------------------


def redraws(folder: Path) -> int:
    return charged_by(folder).redraws


@pytest.mark.parametrize("name", ["permutation-swapping", "noisy-tables"])
def test_every_redraw_is_entered_before_the_old_draw_is_deleted(
    configure, name, tmp_path, monkeypatch
):
    config = configure(name, "release")
    crashed(config, monkeypatch, DRAWN)
    assert redraws(tmp_path) == 0
    crashed(config, monkeypatch, DRAWN, resume=True)
    assert redraws(tmp_path) == 1
    old = folder_bytes(tmp_path / "work" / "draw")
    crashed(config, monkeypatch, "discreet.register.Register.begin", resume=True)
    assert folder_bytes(tmp_path / "work" / "draw") == old
    run(config, resume=True)
    assert redraws(tmp_path) == 2
    assert charged_by(tmp_path).redraws == 2
    run(config, resume=True)
    kinds = committed(tmp_path)
    assert kinds.count("reservation") == kinds.count("commit") == 1
    assert kinds.count("beginning") == 3


@pytest.mark.parametrize("name", ["permutation-swapping", "noisy-tables"])
def test_a_draw_that_was_deleted_by_hand_is_a_redraw_all_the_same(
    configure, name, tmp_path, monkeypatch
):
    config = configure(name, "release")
    crashed(config, monkeypatch, DRAWN)
    shutil.rmtree(tmp_path / "work" / "draw")
    run(config, resume=True)
    assert redraws(tmp_path) == 1


@pytest.mark.parametrize("name", ["noisy-tables", "topdown"])
def test_a_work_folder_put_back_from_a_copy_does_not_hide_a_redraw(
    configure, name, tmp_path, monkeypatch
):
    config = configure(name, "release")
    crashed(config, monkeypatch, "discreet.run.runner.make_draw")
    shutil.copytree(tmp_path / "work", tmp_path / "copy")
    crashed(config, monkeypatch, DRAWN, resume=True)
    assert redraws(tmp_path) == 0
    shutil.rmtree(tmp_path / "work")
    (tmp_path / "copy").rename(tmp_path / "work")
    run(config, resume=True)
    parts = charged_by(tmp_path).begun
    assert redraws(tmp_path) == len(parts) > 0
    assert set(parts.values()) == {2}


@pytest.mark.parametrize("step", ["reserve", "make_draw"])
def test_a_kill_before_anything_was_drawn_is_no_redraw(
    configure, name, tmp_path, monkeypatch, step
):
    config = configure(name, "release")
    if step == "make_draw":
        crashed(config, monkeypatch, "discreet.run.runner.make_draw")
    else:
        crashed(config, monkeypatch, "discreet.run.ledger.RegisterLedger.reserve")
    run(config, resume=True)
    assert redraws(tmp_path) == 0


@pytest.mark.parametrize("name", ["topdown", "topdown full"])
def test_of_a_draw_in_stages_only_what_is_drawn_again_is_a_redraw(
    configure, name, tmp_path, monkeypatch
):
    config = configure(name, "release")
    # All stages are finished and kept: the draw is put together again, not drawn.
    crashed(config, monkeypatch, DRAWN)
    crashed(config, monkeypatch, DRAWN, resume=True)
    assert redraws(tmp_path) == 0
    stages = tmp_path / "work" / "stages"
    measured = sorted(stages.glob("*measured*.sha256"))
    assert len(measured) > 1
    for seal in (measured[-1], stages / measured[-1].name.replace("measured", "estimated")):
        seal.unlink(missing_ok=True)  # as if killed before it was sealed
    crashed(config, monkeypatch, DRAWN, resume=True)
    assert redraws(tmp_path) == 1
    for seal in stages.glob("*estimated*.sha256"):
        seal.unlink()  # a function of what was drawn: computed again, not drawn
    crashed(config, monkeypatch, DRAWN, resume=True)
    assert redraws(tmp_path) == 1
    shutil.rmtree(stages)
    run(config, resume=True)
    assert redraws(tmp_path) == 1 + len(measured)
    with Register.open(tmp_path / "register.sqlite") as register:
        parts = [e.event.part for e in register.entries() if e.event.kind == "beginning"]
    assert all("measured" in part for part in parts)


def test_redraws_are_shown(configure, tmp_path, monkeypatch):
    config = configure("noisy-tables", "release")
    crashed(config, monkeypatch, DRAWN)
    run(config, resume=True)
    done = CliRunner().invoke(app, ["register", "show", str(tmp_path / "register.sqlite")])
    assert "draw is drawn again (redraw 1)" in done.stdout
    assert "redraws before the commit: 1" in check(tmp_path)[1]


def test_a_run_on_records_of_another_collection_is_refused_before_the_charge(configure, tmp_path):
    config = configure("noisy-tables", "release")
    with Register.open(tmp_path / "register.sqlite") as register:
        declared = register.account("tiny-2026").collection
        register.open_collection(declared.model_copy(update={"id": "other"}))
        # Declared by its fingerprint only, as earlier versions did.
        (tmp_path / "census" / ".DS_Store").write_bytes(b"1")
        register.add_version("other", "v", "original", folder_hash(tmp_path / "census"))
    text = config.read_text().replace("tiny-2026", "other")
    config.write_text(text.replace("version: edited", "version: v"))
    with pytest.raises(Refused, match="file in two collections"):
        run(config)
    assert "reservation" not in committed(tmp_path)


def test_a_trial_or_dry_run_of_another_file_than_was_declared_is_refused(configure, tmp_path):
    config = configure("noisy-tables", "trial")
    (tmp_path / "census" / "more.txt").write_text("x")
    for start in (lambda: run(config, seed=1), lambda: plan(config)):
        with pytest.raises(Refused, match="another file"):
            start()
    assert not {"trial", "dry-run"} & set(committed(tmp_path))
    assert not (tmp_path / "out").exists()
    (tmp_path / "census" / "more.txt").unlink()
    plan(config)
    run(config, seed=1)
    assert {"trial", "dry-run"} <= set(committed(tmp_path))


# -- what is known before the charge is refused before the charge --------------------------------


def link_to_folder(out: Path) -> None:
    (out.parent / "target").mkdir()
    out.symlink_to(out.parent / "target")


def file_above(out: Path) -> None:
    out.parent.rmdir()
    out.parent.write_text("")


OUTS = {
    "a link to a folder": (link_to_folder, "is a symbolic link"),
    "a link to nothing": (lambda out: out.symlink_to("nowhere"), "is a symbolic link"),
    "a file": (lambda out: out.write_text("x"), "is not empty"),
    "below a file": (file_above, "cannot be made"),
    "not empty": (lambda out: (out / "x").mkdir(parents=True), "is not empty"),
}


@pytest.mark.parametrize("case", OUTS)
def test_an_out_that_cannot_be_published_to_is_refused_before_the_charge(configure, tmp_path, case):
    spoil, says = OUTS[case]
    config = configure("noisy-tables", "release", out="public/out")
    (tmp_path / "public").mkdir()
    spoil(tmp_path / "public" / "out")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(BadInput, match=says):
        run(config)
    assert "reservation" not in committed(tmp_path)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_an_out_with_a_name_that_leaves_no_room_is_refused_before_the_charge(configure, tmp_path):
    config = configure("noisy-tables", "release", out="new/" + 250 * "o")
    with pytest.raises(BadInput, match="cannot be made"):
        run(config)
    assert "reservation" not in committed(tmp_path)
    assert not (tmp_path / "new").exists()


def test_folders_above_out_are_made_and_an_empty_out_is_used(configure, tmp_path):
    config = configure("noisy-tables", "release", out="new/deep/out")
    assert run(config).folder == tmp_path / "new" / "deep" / "out"
    shutil.rmtree(tmp_path / "new" / "deep" / "out")
    (tmp_path / "new" / "deep" / "out").mkdir()
    text = config.read_text().replace("release: first", "release: second")
    config.write_text(text.replace("work: work", "work: work2"))
    run(config)


@pytest.mark.parametrize("closed", ["public", "census"])
def test_folders_without_permission_are_refused_before_the_charge(configure, tmp_path, closed):
    config = configure("noisy-tables", "release", out="public/out")
    (tmp_path / "public").mkdir()
    (tmp_path / closed).chmod(0o500 if closed == "public" else 0)
    done = limits.discreet("run", config.name, cwd=tmp_path)
    (tmp_path / closed).chmod(0o700)
    assert done.returncode == 2, done.stderr
    assert "Permission denied" in done.stderr or "this user may not" in done.stderr
    assert "reservation" not in committed(tmp_path)
    assert list((tmp_path / "public").iterdir()) == []
    assert not (tmp_path / "work").exists()


WORKS = {
    "a link to nothing": lambda work: work.symlink_to("nowhere"),
    "a link to itself": lambda work: work.symlink_to(work.name),
    "a file": lambda work: work.write_text("x"),
}


@pytest.mark.parametrize("case", WORKS)
def test_a_work_folder_that_is_none_is_refused(configure, tmp_path, case):
    config = configure("noisy-tables", "release")
    WORKS[case](tmp_path / "work")
    for resume in (False, True):
        with pytest.raises(BadInput):
            run(config, resume=resume)
    assert "reservation" not in committed(tmp_path)


@pytest.mark.parametrize("key", ["census", "work", "out", "register"])
@pytest.mark.parametrize("path", ["a\0b", ""])
def test_a_path_that_no_file_can_have_is_refused(configure, tmp_path, key, path):
    config = configure("noisy-tables", "release")
    content = yaml.safe_load(config.read_text())
    (content["account"] if key == "register" else content)[key] = path
    config.write_text(yaml.safe_dump(content))
    with pytest.raises(BadInput, match=key):
        run(config)
    assert not (tmp_path / "work").exists()
