"""A run is planned, charged, drawn once, published, resumed, or refused."""

import shutil
from collections.abc import Callable
from pathlib import Path

import narwhals as nw
import pytest
import yaml

from discreet.census import Census
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import Release
from discreet.noise import tape
from discreet.register import Refused, Register
from discreet.run import CorruptDraw, approval_hash, internal_figures, plan, publish, run
from worlds import folder_bytes


def committed(folder: Path) -> list[str]:
    with Register.open(folder / "register.sqlite") as register:
        assert register.verify() == []
        kinds = [entry.event.kind for entry in register.entries("tiny-2026")]
    return kinds


def test_a_design_run_is_published_and_repeats(configure, name, tmp_path):
    config = configure(name)
    release = run(config, seed=4)
    assert release.header.mode == "design"
    assert (tmp_path / "work").stat().st_mode & 0o777 == 0o700
    first = folder_bytes(tmp_path / "out")
    shutil.rmtree(tmp_path / "out")
    shutil.rmtree(tmp_path / "work")
    run(config, seed=4)
    assert folder_bytes(tmp_path / "out") == first


def test_a_release_is_charged_once(configure, name, tmp_path):
    config = configure(name, "release")
    release = run(config)
    assert release.header.mode == "release"
    kinds = committed(tmp_path)
    assert kinds.count("reservation") == kinds.count("commit") == 1
    run(config, resume=True)
    assert committed(tmp_path) == kinds


def test_a_trial_is_counted_and_internal(configure, name, tmp_path):
    config = configure(name, "trial")
    release = run(config, seed=4)
    assert release.header.mode == "trial"
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    kinds = committed(tmp_path)
    assert "trial" in kinds
    assert "reservation" not in kinds


def test_a_dry_run_draws_nothing_and_states_the_promise(configure, name, tmp_path, monkeypatch):
    config = configure(name, "release")
    monkeypatch.setattr(tape.os, "urandom", lambda n: pytest.fail("a dry run drew randomness"))
    text = plan(config).describe()
    assert "How much" in text
    assert "charged to collection tiny-2026" in text
    assert not (tmp_path / "work").exists()
    assert not (tmp_path / "out").exists()
    assert "dry-run" in committed(tmp_path)


def test_over_budget_is_refused_before_any_draw(configure, name, tmp_path, monkeypatch):
    config = configure(name, "release", limit="1/1000")
    monkeypatch.setattr(tape.os, "urandom", lambda n: pytest.fail("drew before it was refused"))
    with pytest.raises(Refused) as caught:
        run(config)
    assert caught.value.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_a_refused_run_leaves_nothing_behind_and_charges_nothing(configure, name, tmp_path):
    config = configure(name, "release")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("x")
    with pytest.raises(BadInput, match="out is not empty"):
        run(config)
    assert not (tmp_path / "work").exists()
    assert "reservation" not in committed(tmp_path)


def rewritten(file: Path, change: Callable[[nw.LazyFrame], nw.LazyFrame]) -> None:
    """Write a table of a census again, changed."""
    engine = Engine(threads=1)
    changed = engine.materialise(change(engine.read_parquet(file)))
    engine.write_parquet(changed, file)


def as_text(column: str) -> Callable[[nw.LazyFrame], nw.LazyFrame]:
    return lambda frame: frame.with_columns(
        nw.concat_str(nw.lit("x"), nw.col(column)).alias(column)
    )


SPOILT = {
    "persons who live nowhere": ("persons", lambda f: f.drop("unit_id"), "neither unit_id nor"),
    "a number as text": ("persons", as_text("age"), r"persons\.age: does not have the type"),
    "ids as text": ("units", as_text("unit_id"), r"units\.unit_id: does not have the type"),
    "units without kind": ("units", lambda f: f.drop("kind"), r"units\.kind: is missing"),
    "a spine with a gap": ("geography", lambda f: f.drop("tract"), r"geography\.tract: is missing"),
}


@pytest.mark.parametrize("case", SPOILT)
@pytest.mark.parametrize("exists", [False, True])
def test_tables_out_of_shape_are_named_and_nothing_is_left(configure, tmp_path, case, exists):
    """And the next try, with the table mended, does not find half a run."""
    config = configure("permutation-swapping")
    table, change, says = SPOILT[case]
    file = tmp_path / "census" / f"{table}.parquet"
    good = file.read_bytes()
    rewritten(file, change)
    if exists:
        (tmp_path / "work").mkdir(mode=0o700)
    with pytest.raises(BadInput, match=says):
        run(config, seed=1)
    assert (tmp_path / "work").exists() == exists
    assert not (tmp_path / "out").exists()
    file.write_bytes(good)
    run(config, seed=1)


@pytest.mark.parametrize("step", ["check_structure", "check_mode"])
def test_an_error_of_any_kind_before_the_reservation_leaves_nothing(
    configure, name, tmp_path, monkeypatch, step
):
    config = configure(name, "release")

    def fail(*_):
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(f"discreet.run.runner.{step}", fail)
        with pytest.raises(RuntimeError):
            run(config)
    assert not (tmp_path / "work").exists()
    assert "reservation" not in committed(tmp_path)
    run(config)


def test_a_reservation_that_may_have_been_entered_keeps_its_run(configure, tmp_path, monkeypatch):
    """The charge is made, then the connection breaks: resuming must use what was charged."""
    config = configure("permutation-swapping", "release")
    real = Register.reserve

    def breaks(self, request):
        real(self, request)
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(Register, "reserve", breaks)
        with pytest.raises(RuntimeError):
            run(config)
    assert (tmp_path / "work" / "run.yaml").exists()
    run(config, resume=True)
    kinds = committed(tmp_path)
    assert kinds.count("reservation") == kinds.count("commit") == 1


def test_a_missing_census_is_named_by_its_path(configure, tmp_path):
    config = configure("permutation-swapping", census="elsewhere/census")
    with pytest.raises(BadInput) as caught:
        run(config, seed=1)
    assert str(tmp_path / "elsewhere" / "census") in str(caught.value)
    assert not (tmp_path / "work").exists()


def test_where_the_internal_figures_are(configure, name, tmp_path):
    config = configure(name)
    assert internal_figures(config) is None
    run(config, seed=1)
    swap = name == "permutation-swapping"
    assert internal_figures(config) == (tmp_path / "work" / "internal.json" if swap else None)


def test_a_dry_run_without_a_budget_promises_nothing(configure, tmp_path):
    parameters = {"rate": "1/2", "within": "county", "leave": "block"}
    config = configure("permutation-swapping", mechanism="targeted-swapping", parameters=parameters)
    text = plan(config).describe()
    assert "nothing is promised" in text
    assert "stability factor" not in text
    assert "protected 1 + k times less" not in text


def test_undeclared_invariants_are_refused(configure, tmp_path):
    config = configure("permutation-swapping", "release")
    content = yaml.safe_load(config.read_text())
    content["parameters"]["match"] = ["size", "tenure"]
    config.write_text(yaml.safe_dump(content))
    with pytest.raises(Refused, match="invariant"):
        run(config)


def test_a_release_takes_no_seed(configure, name):
    with pytest.raises(BadInput, match="no seed"):
        run(configure(name, "release"), seed=1)


@pytest.mark.parametrize(("mode", "origin"), [("design", "supplied"), ("trial", "simulated")])
def test_the_mode_must_fit_the_data(configure, name, tmp_path, mode, origin):
    config = configure(name, mode)
    header = tmp_path / "census" / "census.yaml"
    content = yaml.safe_load(header.read_text())
    header.write_text(yaml.safe_dump({**content, "origin": origin}))
    with pytest.raises(BadInput, match="does not fit"):
        run(config, seed=1)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"mechansim": "x"}, "Did you mean 'mechanism'"),
        ({"mode": "prod"}, "mode"),
        ({"release": "Two Words"}, "release"),
        ({"mechanism": "permutation-swaping"}, "Did you mean 'permutation-swapping'"),
        ({"work": "out"}, "separate folders"),
        ({"out": "census/public"}, "separate folders"),
        ({"mode": "release", "account": None}, "needs an account"),
        ({"format_version": 2}, "format_version"),
        ({"parameters": {"rate": "2", "match": [], "within": "county"}}, "rate"),
        ({"census": "nowhere"}, "nowhere: there is no such folder"),
    ],
)
def test_bad_configurations_get_one_clear_error(configure, tmp_path, change, says):
    config = configure("permutation-swapping", **change)
    with pytest.raises(BadInput, match=says) as caught:
        run(config)
    assert caught.value.exit_code == 2
    assert not (tmp_path / "out").exists()


# -- resuming ---------------------------------------------------------------------------------


class Crash(BaseException):
    """Stands for a kill: nothing in the package catches it."""


def crash_at(monkeypatch, target: str) -> None:
    def crash(*_, **__):
        raise Crash

    monkeypatch.setattr(target, crash)


STEPS = {
    "before the draw": "discreet.run.runner.make_draw",
    "before the commit": "discreet.run.ledger.FileLedger.commit",
    "before publishing": "discreet.run.runner.publish_draw",
    "while publishing": "discreet.mechanisms.contract.ReleaseHeader.sealed",
}


@pytest.mark.parametrize("step", STEPS)
def test_resuming_equals_never_having_stopped(configure, name, tmp_path, monkeypatch, step):
    config = configure(name)
    run(config, seed=4)
    whole = folder_bytes(tmp_path / "out")
    shutil.rmtree(tmp_path / "out")
    shutil.rmtree(tmp_path / "work")
    with monkeypatch.context() as patched:
        crash_at(patched, STEPS[step])
        with pytest.raises(Crash):
            run(config, seed=4)
    assert not (tmp_path / "out").exists()
    run(config, seed=4, resume=True)
    assert folder_bytes(tmp_path / "out") == whole
    assert (tmp_path / "work" / "draw").exists() == (name != "permutation-swapping")
    assert not (tmp_path / "work" / "purged").exists()
    kept = tmp_path / "work" / "internal.json"
    assert kept.exists() == (name == "permutation-swapping")
    assert not kept.exists() or kept.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["census", "out", "run.yaml", "work"]


@pytest.mark.parametrize("moment", ["before", "during"])
def test_a_kill_while_purging_is_finished_by_resuming(configure, tmp_path, monkeypatch, moment):
    config = configure("permutation-swapping", "release")
    with monkeypatch.context() as patched:
        crash_at(patched, "discreet.run.runner.Path.rename")
        with pytest.raises(Crash):
            run(config)
    published = folder_bytes(tmp_path / "out")
    if moment == "during":
        (tmp_path / "work" / "draw").rename(tmp_path / "work" / "purged")
        (tmp_path / "work" / "purged" / "draw.yaml").unlink()
    run(config, resume=True)
    assert folder_bytes(tmp_path / "out") == published
    assert not (tmp_path / "work" / "draw").exists()
    assert not (tmp_path / "work" / "purged").exists()


def test_a_committed_draw_is_not_made_again(configure, name, tmp_path, monkeypatch):
    config = configure(name, "release")
    with monkeypatch.context() as patched:
        crash_at(patched, "discreet.run.runner.publish_draw")
        with pytest.raises(Crash):
            run(config)
    draw = folder_bytes(tmp_path / "work" / "draw")
    with monkeypatch.context() as patched:
        patched.setattr(tape.os, "urandom", lambda n: pytest.fail("noise was drawn again"))
        patched.setattr("discreet.run.runner.new_run_id", lambda: "0" * 32)
        release = run(config, resume=True)
    if name == "permutation-swapping":
        data = "microdata/units.parquet"
        assert (tmp_path / "out" / data).read_bytes() == draw[data]
    assert release.header.mode == "release"
    assert committed(tmp_path).count("commit") == 1


def test_an_uncommitted_draw_is_deleted_unread(configure, name, tmp_path, monkeypatch):
    config = configure(name, "release")
    with monkeypatch.context() as patched:
        crash_at(patched, "discreet.run.ledger.RegisterLedger.commit")
        with pytest.raises(Crash):
            run(config)
    old = folder_bytes(tmp_path / "work" / "draw")
    (tmp_path / "work" / "draw" / "draw.yaml").write_text("garbage that would fail if read")
    run(config, resume=True)
    assert Release.open(tmp_path / "out").header.mode == "release"
    assert old
    kinds = committed(tmp_path)
    assert kinds.count("reservation") == kinds.count("commit") == 1


@pytest.mark.parametrize("damage", ["changed", "truncated", "missing"])
def test_a_damaged_draw_is_named_and_not_replaced(configure, name, tmp_path, monkeypatch, damage):
    config = configure(name, "release")
    with monkeypatch.context() as patched:
        crash_at(patched, "discreet.run.runner.publish_draw")
        with pytest.raises(Crash):
            run(config)
    file = next((tmp_path / "work" / "draw").rglob("*.parquet"))
    content = file.read_bytes()
    if damage == "changed":
        file.write_bytes(content[:50] + bytes([content[50] ^ 1]) + content[51:])
    elif damage == "truncated":
        file.write_bytes(content[:-10])
    else:
        shutil.rmtree(tmp_path / "work" / "draw")
    with pytest.raises(CorruptDraw, match="draw"):
        run(config, resume=True)
    assert not (tmp_path / "out").exists()


def test_a_damaged_release_is_named(configure, name, tmp_path):
    config = configure(name)
    run(config, seed=1)
    file = tmp_path / "out" / "specification.yaml"
    file.write_text(file.read_text() + "\n")
    with pytest.raises(BadInput, match=r"specification\.yaml"):
        run(config, seed=1, resume=True)


def test_changed_circumstances_are_named(configure, name, tmp_path, monkeypatch):
    """Before the commit; after it the census is not needed (see test_charged)."""
    config = configure(name)
    with monkeypatch.context() as patched:
        crash_at(patched, "discreet.run.ledger.FileLedger.commit")
        with pytest.raises(Crash):
            run(config, seed=4)
    with pytest.raises(BadInput, match="the seed"):
        run(config, seed=5, resume=True)
    text = config.read_text()
    config.write_text(text.replace("release: first", "release: second"))
    with pytest.raises(BadInput, match="the configuration"):
        run(config, seed=4, resume=True)
    config.write_text(text)
    with monkeypatch.context() as patched:
        patched.setattr("discreet.run.runner.code_version", lambda: "other")
        with pytest.raises(BadInput, match="the code"):
            run(config, seed=4, resume=True)
    (tmp_path / "census" / "extra.txt").write_text("x")
    with pytest.raises(BadInput, match="the census"):
        run(config, seed=4, resume=True)
    (tmp_path / "census" / "extra.txt").unlink()
    config.write_text(text + "\nmemory_limit: 1GB\n")  # changes no result
    run(config, seed=4, resume=True)


def test_a_second_run_does_not_begin_in_a_used_folder(configure, name):
    config = configure(name)
    run(config, seed=1)
    with pytest.raises(BadInput, match="--resume"):
        run(config, seed=1)


def test_a_run_does_not_take_another_release_for_its_own(configure, tmp_path, monkeypatch):
    config = configure("permutation-swapping", "release")
    with monkeypatch.context() as patched:
        crash_at(patched, "discreet.run.runner.publish_draw")
        with pytest.raises(Crash):
            run(config)
    text = config.read_text()
    config.write_text(
        text.replace("release: first", "release: second").replace("work: work", "work: work2")
    )
    run(config)
    config.write_text(text)
    with pytest.raises(BadInput, match="another release"):
        run(config, resume=True)
    assert (tmp_path / "work" / "draw").exists()
    shutil.rmtree(tmp_path / "out")
    run(config, resume=True)
    assert committed(tmp_path).count("commit") == 2


def test_only_committed_draws_are_published(configure, name, tmp_path, monkeypatch):
    config = configure(name, "release")
    with monkeypatch.context() as patched:
        crash_at(patched, "discreet.run.ledger.RegisterLedger.commit")
        with pytest.raises(Crash):
            run(config)
    with pytest.raises(BadInput, match="no committed draw"):
        publish(config)
    with monkeypatch.context() as patched:
        crash_at(patched, "discreet.run.runner.publish_draw")
        with pytest.raises(Crash):
            run(config, resume=True)
    shutil.rmtree(tmp_path / "census")  # not needed any more
    assert publish(config).header.mode == "release"


def test_an_approval_covers_the_census_and_its_schema(configure, tmp_path):
    config = configure("permutation-swapping", "release")
    before = approval_hash(config)
    schema = tmp_path / "census" / "schema.yaml"
    schema.write_text(schema.read_text().replace("title: United States", "title: Other"))
    assert approval_hash(config) != before
    with pytest.raises(Refused, match="declared"):
        run(config)


def test_a_census_that_counts_twice_is_refused_before_it_is_charged(configure, name, tmp_path):
    config = configure(name, "release")
    engine = Engine()
    units = tmp_path / "census" / "units.parquet"
    frame = engine.read_parquet(units)
    twice = engine.materialise(nw.concat([frame, frame.filter(nw.col("unit_id") == 1)]))
    engine.write_parquet(twice, units)
    with pytest.raises(BadInput, match="repeat a unit_id"):
        plan(config)
    with pytest.raises(BadInput, match="repeat a unit_id"):
        run(config)
    assert "reservation" not in committed(tmp_path)


def test_resume_without_a_run_is_refused(configure, name):
    with pytest.raises(BadInput, match="no run to resume"):
        run(configure(name), seed=1, resume=True)


def test_publishing_cannot_open_the_census(configure, name, tmp_path, monkeypatch):
    config = configure(name)
    opened = []
    real = Census.open.__func__

    def publish(*arguments, **options):
        shutil.rmtree(tmp_path / "census")
        monkeypatch.setattr(
            Census, "open", classmethod(lambda c, f, e=None: opened.append(f) or real(c, f, e))
        )
        from discreet.mechanisms import publish_draw

        return publish_draw(*arguments, **options)

    monkeypatch.setattr("discreet.run.runner.publish_draw", publish)
    run(config, seed=1)
    assert opened == []
