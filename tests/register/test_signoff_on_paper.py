"""The sign-off page on paper: one page, whole and readable, in any font.

The browser prints and measures for real. Nothing here may depend on the fonts of the machine, so
each is forced, and seen to be what the browser draws with.
"""

import functools

import pytest

from browser import PAPERS, headings, n_pages, open_browser
from discreet.register import Register
from discreet.report.signoff import render
from discreet.spec import Budget, Indicator, LogRational
from promises import table
from registers import collection, hashed, pure, request, ticking

#: All in Debian's package fonts-dejavu-core. A fixed pitch is wider than any usual text font.
FONTS = {"serif": "DejaVu Serif", "sans": "DejaVu Sans", "wide": "DejaVu Sans Mono"}

LEVELS = ("state", "county", "tract", "block_group", "block")
APPROVERS = (
    "Ada Lovelace",
    "Florence Nightingale",
    "Prasanta Chandra Mahalanobis",
    "Bartholomew Featherstonehaugh-Cholmondeley",
    "Gertrude Mary Cox",
    "William Sealy Gosset",
)
CONDITIONS = (
    "upper bound in the universe of these data, given exact publication of the listed statistics",
    "valid only if the rate and the variables were fixed without looking at these data",
)

pytestmark = [pytest.mark.needs_browser, pytest.mark.slow]


def statistics(level):
    """Return statistics of a level as TopDown, PHSafe and permutation swapping keep them exact."""
    homes, shared = ("occupied", "vacant"), ("occupied", "group_quarters")
    return [
        table("units", level, ("size",), shared, f"household records by {level}", whole=True),
        table("units", level, ("size", "tenure"), ("occupied",), f"households by {level}"),
        table("units", level, (), ("vacant",), f"vacant units by {level}", whole=True),
        table("units", level, ("gq_type",), ("group_quarters",), f"group quarters by {level}"),
        table("persons", level, ("voting_age",), (), f"persons of voting age by {level}"),
        Indicator(name=f"any in {level}", of="units", where={"kind": [*homes]}, level=level),
    ]


#: Numbers of exact statistics and of approvals: the corners, and some between.
CASES = [(0, 0), (0, 6), (1, 1), (4, 3), (4, 6), (14, 2), (22, 4), (30, 0), (30, 6)]

EXACT = [one for level in LEVELS for one in statistics(level)]


@functools.cache
def page(folder, n_exact, n_approvals):
    """Return the page of a release after one that kept nothing exact, so that much is given up."""
    exact = [
        EXACT[n % len(EXACT)].model_copy(update={"name": f"table {n}"}) for n in range(n_exact)
    ]
    budget = Budget(
        unit="epsilon",
        amount=LogRational(of="17844534"),
        source="Bailie, Gong and Meng, Theorem 1",
        status="published",
        conditions=CONDITIONS,
    )
    path = folder / f"{n_exact}-{n_approvals}.db"
    with Register.create(path, clock=ticking()) as register:
        declared = {"invariants": tuple(exact), "approvals_required": n_approvals}
        register.open_collection(collection("1000").model_copy(update=declared))
        register.add_version("census-2030", "v1", "original", hashed("v1"))
        for name in APPROVERS[:n_approvals]:
            register.approve("census-2030", hashed("configuration"), name)
        register.add_external("census-2030", "early-counts", pure("5/2", keeps=()), "by", "press")
        made = pure("17844534", keeps=exact, budget=budget)
        register.reserve(request(made, "households-2030-swapped"))
        return render(register, "census-2030", "households-2030-swapped")


@pytest.fixture(scope="module")
def registers(tmp_path_factory):
    """Return the folder of the registers that pages are made from."""
    return tmp_path_factory.mktemp("registers")


@pytest.fixture(scope="module")
def browser(chromium, tmp_path_factory):
    """Return a browser for all tests of this file."""
    with open_browser(chromium, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def styled(html, css):
    """Return the page with further style."""
    return html.replace("</style>", f"{css}\n</style>")


@pytest.fixture(scope="module")
def set_in(browser, registers, missing_need):
    """Return what sets a page in a font; one that is not installed is a missing need."""

    @functools.cache
    def force(family):
        css = f'* {{ font-family: "{family}" !important; }}'
        browser.show(styled(page(registers, 1, 1), css))
        if browser.fonts("h1, h2, p, dt, dd, li, code, strong") != {family}:
            missing_need(f"needs the font {family} (Debian: fonts-dejavu-core)")
        return css

    return lambda font, html: styled(html, force(FONTS[font]))


#: What is wrong with the text as it is laid out: for every piece of it, whether it is drawn at all,
#: inside the page and whatever cuts it off, at 7.5 points (10 pixels) or more, and clear of others.
PROBLEMS = """(() => {
  const problems = new Set(), drawn = [];
  const inside = (a, b) => a.left > b.left - 1 && a.right < b.right + 1
    && a.top > b.top - 1 && a.bottom < b.bottom + 1;
  const area = {left: 0, top: 0, right: innerWidth, bottom: HEIGHT};
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode, range = document.createRange();
    if (!text.data.trim()) continue;
    range.selectNodeContents(text);
    const boxes = [...range.getClientRects()];
    const style = getComputedStyle(text.parentElement);
    if (!boxes.length || style.visibility !== "visible") problems.add("hidden");
    if (parseFloat(style.fontSize) < 10) problems.add("too small");
    for (const box of boxes) {
      if (!inside(box, area)) problems.add("outside the page");
      for (let up = text.parentElement; up !== document.body; up = up.parentElement)
        if (getComputedStyle(up).overflow !== "visible" && !inside(box, up.getBoundingClientRect()))
          problems.add("cut off");
      drawn.push(box);
    }
  }
  for (const [n, a] of drawn.entries()) for (const b of drawn.slice(n + 1))
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1) problems.add("overlapping");
  return [...problems].sort();
})()"""


def problems(browser, html, paper, height="innerHeight"):
    """Return what is wrong with the text of a page on this paper."""
    browser.show(html)
    browser.as_on(paper)
    return browser.evaluate(PROBLEMS.replace("HEIGHT", height))


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("font", FONTS)
def test_any_number_of_statistics_and_approvals_is_one_page_in_any_font(
    browser, registers, set_in, font, paper
):
    printed = {}
    for case in CASES:
        browser.show(set_in(font, page(registers, *case)))
        printed[case] = n_pages(browser.print(paper))
    assert printed == dict.fromkeys(printed, 1)


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("font", FONTS)
def test_all_text_is_on_the_page_whole_and_readable(browser, registers, set_in, font, paper):
    found = {}
    for case in CASES:
        found[case] = problems(browser, set_in(font, page(registers, *case)), paper)
    assert found == {case: [] for case in CASES}


@pytest.mark.parametrize(
    ("css", "problem"),
    [
        (".page footer { display: none !important; }", "hidden"),
        (".page footer { visibility: hidden; }", "hidden"),
        (".page .note { font-size: 7pt !important; }", "too small"),
        (".page dd { white-space: nowrap; }", "outside the page"),
        (".page { line-height: 2 !important; }", "outside the page"),
        (".page .run-in { height: 3em; overflow: hidden; }", "cut off"),
        (".page .run-in { height: 3em; }", "overlapping"),
    ],
)
def test_a_planted_mistake_is_found(browser, registers, set_in, css, problem):
    html = set_in("sans", page(registers, 30, 6))
    assert problem in problems(browser, styled(html, f"@media print {{ {css} }}"), "A4")


def test_larger_type_would_take_two_pages(browser, registers, set_in):
    html = set_in("sans", page(registers, 30, 6))
    browser.show(styled(html, "@media print { .page { font-size: 11pt !important; } }"))
    assert n_pages(browser.print("A4")) == 2


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("font", FONTS)
def test_too_much_for_one_page_goes_on_with_account_and_signatures(
    browser, registers, set_in, font, paper
):
    html = set_in(font, page(registers, 90, 6))
    browser.show(html)
    printed = browser.print(paper)
    assert n_pages(printed) == 2
    assert headings(printed) == {
        "households-2030-swapped": 1,
        "What is released": 1,
        "What is promised": 1,
        "Account of the collection": 2,
        "Approvals of this configuration, and signatures with date": 2,
    }
    assert problems(browser, html, paper, height="Infinity") == []
