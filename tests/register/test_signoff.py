"""The sign-off page says everything a signature stands for, on one page."""

import re
import stat
import subprocess
from html import unescape

import pytest

from discreet.register import Refused, Register
from discreet.report.signoff import render, sign_off
from discreet.spec import Budget, Exactly, NoFiniteBudget
from registers import DECLARED, collection, hashed, opened, promise, pure, request, rho2


def words(html):
    """Return the text of a page on one line."""
    text = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text)))


@pytest.fixture
def register(tmp_path):
    """Return an account with one release made elsewhere and one drawn here."""
    with opened(tmp_path / "register.db", approvals=2) as register:
        register.add_external("census-2030", "early counts", rho2("1/8"), "A. Clerk", "press")
        register.count_trial(
            "census-2030", "v1", hashed("c"), seed_known=True, fingerprint=hashed("v1")
        )
        register.approve("census-2030", hashed("configuration"), "Ada Lovelace")
        register.approve("census-2030", hashed("configuration"), "Florence <Nightingale>")
        budget = Budget(
            unit="rho2",
            amount=Exactly(of="1/3"),
            source="Bun and Steinke 2016",
            status="published",
            conditions=("fixed without looking at these data",),
        )
        made = register.reserve(request(rho2("1/3", keeps=DECLARED, budget=budget)))
        register.commit(made, hashed("draw"))
        yield register


def test_the_page_says_all_that_is_signed_for(register):
    html = render(register, "census-2030", "r1")
    text = words(html)
    for needed in (
        "Census of 2030, reference date 2030-04-01. Drawn and committed.",
        "version v1 (original)",
        hashed("configuration"),
        "rho^2 = 0.3334 per household record, among data sets that agree on what is exact; "
        "Bun and Steinke 2016, published",
        "normalised-renyi",
        "fixed without looking at these data",
        "not protected",
        *[invariant.describe() for invariant in DECLARED],
        "Charged before rho^2 = 0.125 ",
        "This release rho^2 = 0.333334 ",
        "Charged after rho^2 = 0.458334 ",
        "Limit rho^2 = 1 ",
        "Left after rho^2 = 0.541666 ",
        "release early counts is told with further invariants: households by tenure",
        "1 other release charged or reserved before",
        "1 trial and 0 dry runs",
        "signatures with date 2 required, 2 given at these times",
        "Ada Lovelace 2031-01-01 00:06 UTC",
        "Florence <Nightingale> 2031-01-01 00:07 UTC Released by",
        register.entries()[7].hash,
    ):
        assert needed in text
    for internal in (hashed("draw"), hashed("v1"), "<Nightingale>"):
        assert internal not in html
    assert not re.search(r"(?:src|href)=\"(?!data:)", html)
    assert "url(" not in html
    assert f'content: "r1 · register entry 8, {register.entries()[7].hash[:12]}"' in html


def test_statistics_that_the_page_lists_are_not_named_again(tmp_path):
    keeps = [DECLARED[0].model_copy(update={"name": f"count {n}"}) for n in range(30)]
    with Register.create(tmp_path / "register.db") as register:
        opened_here(register, keeps)
        text = words(render(register, "census-2030", "r1"))
    assert "early counts is told with further invariants: 30 of those listed above " in text
    assert "count 7" not in text


def test_the_page_is_private_and_can_be_made_again_later(register, tmp_path):
    out = sign_off(register, "census-2030", "r1", tmp_path / "signoff.html")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    before = out.read_bytes()
    register.approve("census-2030", hashed("configuration"), "Charles Babbage")
    register.reserve(request(rho2("1/8"), "r2"))
    assert sign_off(register, "census-2030", "r1", out).read_bytes() == before


def test_a_reserved_release_has_no_draw_yet(tmp_path):
    with opened(tmp_path / "register.db") as register:
        register.reserve(request(pure(2)))
        text = words(render(register, "census-2030", "r1"))
        assert "Reserved; nothing is drawn yet." in text
        assert "None required, none given." in text
        assert "at most 2 times as likely" in text
        assert "release r1 is converted from pure to zero-concentrated" in text
        # The budget in its own unit, and the charge in the unit of the account.
        assert "epsilon = 0.6932 per household record" in text
        assert "This release rho^2 = 0.240227" in text


def test_without_a_guarantee_no_amount_is_shown(tmp_path):
    with opened(tmp_path / "register.db") as register:
        register.reserve(request(rho2("1/2"), "finite"))
        none = promise(NoFiniteBudget(reason="rare households are always swapped"))
        register.reserve(request(none, accept_no_guarantee="the law demands it"))
        text = words(render(register, "census-2030", "r1"))
        assert "Nothing is promised: no finite budget exists for this method" in text
        assert "the law demands it" in text
        assert "No total exists for this collection." in text
        assert not re.search(r"(rho|epsilon)\S* = \d", text)


def test_only_releases_of_the_account_have_a_page(register, tmp_path):
    made = register.reserve(request(rho2("1/8"), "r2"))
    register.cancel(made, "not needed")
    for name in ("r2", "r3"):
        with pytest.raises(Refused, match="not in the account"):
            sign_off(register, "census-2030", name, tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()


@pytest.mark.needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("further", [0, 10, 25])
def test_it_prints_on_one_page(tmp_path, chromium, further):
    keeps = [DECLARED[0].model_copy(update={"name": f"count {n}"}) for n in range(4 + further)]
    with Register.create(tmp_path / "register.db") as register:
        opened_here(register, keeps)
        page = sign_off(register, "census-2030", "r1", tmp_path / "signoff.html")
    printed = tmp_path / "signoff.pdf"
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    subprocess.run(
        [*command, f"--print-to-pdf={printed}", page], check=True, capture_output=True, timeout=120
    )
    assert len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) == 1


def opened_here(register, keeps):
    """Open an account that declares `keeps`, and reserve a release that keeps them all."""
    declared = collection("10").model_copy(update={"invariants": tuple(keeps)})
    register.open_collection(declared)
    register.add_version("census-2030", "v1", "original", hashed("v1"))
    for name in ("Ada Lovelace", "Florence Nightingale", "Charles Babbage"):
        register.approve("census-2030", hashed("configuration"), name)
    register.add_external("census-2030", "early counts", pure("5/2", keeps=()), "by", "n")
    register.reserve(request(pure(3, keeps=keeps)))


def test_redraws_are_shown_and_the_salt_of_the_entry_is_not(register):
    assert "drawn again" not in words(render(register, "census-2030", "r1"))
    made = register.reserve(request(rho2("1/8"), "r2"))
    for _ in range(3):
        register.begin(made, "draw")
    html = render(register, "census-2030", "r2")
    assert "interrupted and drawn again 2 times" in words(html)
    assert made.request.run_id not in html
