"""Estimates of the S-DHC: against SciPy, quadrature and sampling; never absurd."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, special, stats

from discreet.errors import BadInput
from discreet.products.sdhc import estimates
from discreet.products.sdhc.estimates import normal
from discreet.products.sdhc.estimates.ratios import averages, averages_by_age
from discreet.products.sdhc.estimates.sums import sum_quantiles

SIGMA = 41.34

# --- normal tails ---------------------------------------------------------------------------------


def test_normal_tails_agree_with_scipy() -> None:
    x = np.concatenate([np.linspace(-30, 40, 701), [1e3, 1e6, 1e10]])
    np.testing.assert_allclose(
        np.vectorize(normal.log_upper_tail)(x), special.log_ndtr(-x), rtol=1e-12
    )
    near = np.linspace(-8, 30, 500)
    tails = [normal.upper_tail(value) for value in near]
    np.testing.assert_allclose(tails, special.ndtr(-near), rtol=1e-12)


def test_moments_of_a_cut_normal_agree_with_quadrature() -> None:
    for a in (-20.0, -3.0, 0.0, 2.99, 3.01, 7.0, 30.0, 400.0):
        start, scale = max(-a - 9.0, 0.0), 1 / max(a, 1.0)
        parts = [
            integrate.quad(
                lambda y, k=k, a=a: y**k * np.exp(-0.5 * (a + y) ** 2 + 0.5 * max(a, 0) ** 2),
                start,
                max(-a, 0.0) + 45 * scale,
                points=[max(-a, 0.0) + scale] if a > -9 else None,
                epsabs=0,
                epsrel=1e-11,
                limit=200,
            )[0]
            for k in range(3)
        ]
        mean = parts[1] / parts[0]
        assert normal.excess_mean(a) == pytest.approx(mean, rel=1e-8)
        variance = parts[2] / parts[0] - mean**2
        assert normal.excess_variance(a) == pytest.approx(variance, rel=1e-6)


@given(st.floats(-30, 30), st.floats(0.01, 0.99))
@settings(max_examples=200, deadline=None)
def test_the_quantile_inverts_the_tail(a: float, p: float) -> None:
    y = normal.excess_quantile(a, p)
    left = special.log_ndtr(-(a + y)) - special.log_ndtr(-a)
    assert left == pytest.approx(np.log1p(-p), rel=1e-7, abs=1e-9)


def test_far_below_zero_the_law_is_exponential() -> None:
    """Z << 0: Y is exponential with mean sigma^2/|Z|, where 1 - Phi has long underflowed."""
    found = estimates.posterior(-1e9, 100.0)
    mean = 100.0 / 1e9
    assert found.value == pytest.approx(mean, rel=1e-9)
    assert found.low == pytest.approx(-mean * np.log(0.95), rel=1e-9)
    assert found.high == pytest.approx(-mean * np.log(0.05), rel=1e-9)


def test_counts_agree_with_scipy() -> None:
    z = np.array([-90.0, -40, -10, -1, 0, 3, 17, 50, 200, 1e5])
    found, law = estimates.posterior(z, 100.0), stats.truncnorm(-z / 10, np.inf, z, 10)
    np.testing.assert_allclose(found.value, law.mean(), rtol=1e-10)
    np.testing.assert_allclose(found.low, law.ppf(0.05), rtol=1e-10)
    np.testing.assert_allclose(found.high, law.ppf(0.95), rtol=1e-10)


# --- sums -----------------------------------------------------------------------------------------


def quantile_of_two(z: tuple[float, float], s: tuple[float, float], p: float) -> float:
    """Return a quantile of the sum of two cut normals by panels of Gauss and Legendre."""
    x, w = np.polynomial.legendre.leggauss(60)
    a, b = -z[0] / s[0], -z[1] / s[1]
    low = max(0.0, z[0] - 9 * s[0])
    high = max(z[0], 0) + 9 * s[0] if a < 1 else 45 * s[0] / a

    def below(total: float) -> float:
        end = min(high, total)
        if end <= low:
            return -p
        near = total - np.array([0, 1, 5, 20, 45]) * s[1] / max(b, 1)
        cuts = np.unique(np.clip([*np.linspace(low, end, 40), *near], low, end))
        left, right = cuts[:-1, None], cuts[1:, None]
        at = 0.5 * (left + right) + 0.5 * (right - left) * x
        first = np.exp(stats.norm.logpdf(at, z[0], s[0]) - special.log_ndtr(-a))
        rest = np.maximum(total - at, 0) / s[1]
        second = -np.expm1(special.log_ndtr(-(b + rest)) - special.log_ndtr(-b))
        return float(np.sum(0.5 * (right - left) * w * first * second)) - p

    return optimize.brentq(below, 0, sum(max(part, 0) for part in z) + 20 * sum(s), xtol=1e-11)


@pytest.mark.parametrize(
    ("z", "s"),
    [
        ((0, 0), (10, 10)),
        ((0, -500), (10, 10)),
        ((-500, -500), (10, 10)),
        ((20, 5), (10, 10)),
        ((50, -1e4), (10, 10)),
        ((3, 100), (1, 50)),
        ((500, 0), (10, 10)),
        ((-50, -10), (1, 40)),
        ((-5000, -2000), (10, 10)),
        ((0, 0), (1, 300)),
    ],
)
def test_sums_of_two_agree_with_quadrature(z, s) -> None:
    found = sum_quantiles(np.array([z], float), np.array([s], float) ** 2, (0.05, 0.95))[0]
    wanted = [quantile_of_two(z, s, p) for p in (0.05, 0.95)]
    spread = (wanted[1] - wanted[0]) / 3.29
    np.testing.assert_allclose(found, wanted, atol=1e-5 * spread)


def test_sums_of_many_agree_with_sampling() -> None:
    """P(sum <= quantile) within 5 standard errors: false alarm about 1e-5 over all checks."""
    rng = np.random.default_rng(11)
    many = 200_000
    for size, centre in ((7, 0), (16, -20), (16, 10), (3, 300)):
        z = rng.normal(centre, 40, size)
        ends = sum_quantiles(z[None], np.full((1, size), SIGMA**2), (0.05, 0.95))[0]
        cuts = -z[:, None] / SIGMA
        laws = stats.truncnorm(cuts, np.inf, z[:, None], SIGMA)
        parts = laws.rvs((size, many), random_state=rng)
        for end, p in zip(ends, (0.05, 0.95), strict=True):
            share = np.mean(np.sum(parts, axis=0) <= end)
            assert abs(share - p) < 5 * np.sqrt(0.05 * 0.95 / many)


def test_large_parts_add_up_to_a_normal() -> None:
    z, d = np.array([[1e4, 2e4, 3e4]]), np.array([[100.0, 400.0, 900.0]])
    ends = sum_quantiles(z, d, (0.05, 0.95))[0]
    np.testing.assert_allclose(ends, stats.norm.ppf([0.05, 0.95], 6e4, np.sqrt(1400)), rtol=1e-12)


def test_tables_add_up_and_intervals_hold_the_estimate() -> None:
    rng = np.random.default_rng(2)
    for sigma in (0.3, 1.0, 12.0, 300.0):
        z = np.rint(rng.normal(2 * sigma, 3 * sigma, (300, 6)))
        members = [(0, 1), (2, 3, 4, 5), (0, 1, 2, 3, 4, 5)]
        cells = estimates.estimate_cells(z, sigma**2)
        sums = estimates.estimate_sums(z, sigma**2, members)
        for place, columns in enumerate(members):
            np.testing.assert_array_equal(sums.value[:, place], cells.value[:, columns].sum(axis=1))
        for found in (cells, sums):
            assert np.all(found.low >= 0)
            assert np.all(found.low <= found.value)
            assert np.all(found.value <= found.high)


def test_estimates_are_rounded_half_to_even() -> None:
    """Far from zero the mean is the noisy count itself, which may be a half."""
    z = np.array([1000.5, 1001.5])
    np.testing.assert_array_equal(estimates.estimate_cells(z, 1.0).value, [1000, 1002])


# --- averages -------------------------------------------------------------------------------------

PAIRS = [
    (300, 120, 1, 10),
    (50, 60, 1, 10),
    (-20, 30, 1, 10),
    (40, -30, 1, 10),
    (400, 5, 1, 10),
    (-30, -20, 1, 4),
    (2500, 1000, 2, 6),
]
TRIPLES = [
    (100, 200, 120, 1, 10),
    (20, 40, 30, 1, 10),
    (-40, 60, 30, 1, 10),
    (600, 1800, 1000, 2, 10),
    (5, -50, 10, 2, 10),
    (350, 620, 110, 1, 10),
    (30, 20, 100, 1, 10),
]


def sample(z, least, most, rng, many=1_000_000):
    """Return draws from the posterior by rejection: counts of persons by kind, households."""
    *n, d = (rng.normal(centre, SIGMA, many) for centre in z)
    total = sum(n)
    kept = (d >= 1) & (total >= least * d) & (total <= most * d)
    if len(n) > 1:
        kept &= np.all([part >= 0 for part in n], axis=0)
    return [part[kept] for part in n], d[kept]


def disagreements(ratio, n, d, value, low, high, numerator, denominator) -> list[float]:
    """Return by how many standard errors five estimates differ from those of a sample."""
    size = len(ratio)
    assert size > 5000
    found = [
        (draws.mean() - wanted) / (draws.std() / np.sqrt(size))
        for draws, wanted in ((ratio, value), (n, numerator), (d, denominator))
    ]
    error = np.sqrt(0.05 * 0.95 / size)
    return [
        *found,
        (np.mean(ratio <= low) - 0.05) / error,
        (np.mean(ratio <= high) - 0.95) / error,
    ]


def told(found, *place):
    parts = (found.value, found.low, found.high, found.numerator, found.denominator)
    return [part[place] for part in parts]


def test_averages_of_two_counts_agree_with_sampling() -> None:
    """All within 5 standard errors: a false alarm has probability below 3e-5."""
    rng = np.random.default_rng(7)
    for n, d, least, most in PAIRS:
        (drawn,), houses = sample((n, d), least, most, rng)
        found = averages([n], SIGMA**2, [d], SIGMA**2, least, most)
        gaps = disagreements(drawn / houses, drawn, houses, *told(found, 0))
        assert max(map(abs, gaps)) < 5, (n, d, gaps)


def test_averages_of_three_counts_agree_with_sampling() -> None:
    """All within 5 standard errors: a false alarm has probability below 1e-4."""
    rng = np.random.default_rng(8)
    for young, old, d, least, most in TRIPLES:
        (a, b), houses = sample((young, old, d), least, most, rng)
        found = averages_by_age([[young, old]], SIGMA**2, [d], SIGMA**2, least, most)
        for cell, drawn in enumerate((a + b, a, b)):
            gaps = disagreements(drawn / houses, drawn, houses, *told(found, 0, cell))
            assert max(map(abs, gaps)) < 5, (young, old, d, cell, gaps)


def test_a_wrong_limit_is_noticed() -> None:
    """Planted: the threshold of the model is not that of the data."""
    rng = np.random.default_rng(9)
    (drawn,), houses = sample((400, 5), 1, 10, rng)
    found = averages([400], SIGMA**2, [5], SIGMA**2, 1, 9.9)
    assert max(map(abs, disagreements(drawn / houses, drawn, houses, *told(found, 0)))) > 5


def test_the_parts_of_an_average_add_up() -> None:
    rng = np.random.default_rng(10)
    houses = 10 ** rng.uniform(0, 6, 300)
    persons = rng.uniform(0.05, 4, (300, 2)) * houses[:, None] + rng.normal(0, SIGMA, (300, 2))
    d = houses + rng.normal(0, SIGMA, 300)
    found = averages_by_age(persons, SIGMA**2, d, SIGMA**2, 1, 10)
    np.testing.assert_allclose(found.value[:, 0], found.value[:, 1:].sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(found.numerator[:, 0], found.numerator[:, 1:].sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(found.denominator[:, :1] + 0 * found.value, found.denominator, 1e-6)


@pytest.mark.parametrize(
    ("persons", "sigma", "houses", "tau"),
    [
        ((84, -566), (41, 41), 91, 41),  # at the end of a line, then falling more and more slowly
        ((-388, 159), (41, 41), -193, 41),
        ((39, -7), (105, 4), 151, 23),  # steep on one side of the kink, shallow on the other
        ((-298, 1), (125, 1.1), -13, 2),  # steep where the search begins, shallow at the peak
        ((-10, 49), (2.4, 7), -690, 517),  # most of the law in a small part of its window
        # The search begins at the end of the law, where it is low, and a stride leaps the peak.
        ((-22.214, 38.167), (3.5708, 5.4368), -281.82, 352.66),
    ],
)
def test_the_parts_of_an_average_add_up_for_laws_of_odd_shape(persons, sigma, houses, tau) -> None:
    found = averages_by_age([persons], [np.square(sigma)], [houses], [tau**2], 1, 10)
    for part in (found.value, found.numerator):
        np.testing.assert_allclose(part[:, 0], part[:, 1:].sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(found.denominator[:, :1] + 0 * found.value, found.denominator, 1e-5)


def test_with_hardly_any_noise_averages_are_those_of_the_counts() -> None:
    found = averages_by_age([[6e6, 1.9e7]], 1.0, [1e7], 1.0, 1, 10)
    np.testing.assert_allclose(found.value[0], [2.5, 0.6, 1.9], rtol=1e-6)
    assert np.all(found.high - found.low < 1e-5)


def test_averages_rise_with_persons_and_fall_with_households() -> None:
    """Where the noisy counts are possible; far outside, the corner at d = 1 decides."""
    steps = np.linspace(150, 1500, 60)
    rising = averages(steps, SIGMA**2, np.full(60, 150.0), SIGMA**2, 1, 10)
    falling = averages(np.full(60, 1500.0), SIGMA**2, steps, SIGMA**2, 1, 10)
    for name in ("value", "low", "high"):
        assert np.all(np.diff(getattr(rising, name)) > -1e-6)
        assert np.all(np.diff(getattr(falling, name)) < 1e-6)


def test_with_huge_noise_averages_are_those_of_the_prior_cone() -> None:
    """The law no longer depends on the counts: only directions are left."""
    one = averages([100.0], 1e20, [50.0], 1e20, 1, 10)
    other = averages([-1e4], 1e20, [7e3], 1e20, 1, 10)
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-5)


extreme = st.floats(-1e6, 1e6).map(lambda x: np.sign(x) * abs(x) ** 1.5)


@given(
    st.tuples(extreme, extreme, extreme),
    st.tuples(*[st.floats(1e-2, 1e4)] * 3),
    st.sampled_from([1, 2]),
    st.integers(1, 20),
)
@settings(max_examples=150, deadline=None)
def test_averages_are_never_absurd(z, s, least, room) -> None:
    """However far the noisy counts are from anything possible."""
    most, d = least + room, np.square(s)
    three = averages_by_age([z[:2]], [d[:2]], [z[2]], [d[2]], least, most)
    two = averages([z[0]], [d[0]], [z[2]], [d[2]], least, most)
    for found, start in ((three, np.array([least, 0, 0])), (two, least)):
        assert np.all(np.isfinite(found.value))
        assert np.all(start <= found.low)
        assert np.all(found.low <= found.value * (1 + 1e-9))
        assert np.all(found.value <= found.high * (1 + 1e-9))
        assert np.all(found.high <= most)
        assert np.all(found.denominator >= 1)


@pytest.mark.parametrize(("least", "most"), [(1, 1), (2, 2), (2, 1), (1, np.inf)])
def test_a_threshold_without_room_is_refused(least: int, most: float) -> None:
    with pytest.raises(BadInput, match="threshold above"):
        averages([1.0], 1.0, [1.0], 1.0, least, most)


@pytest.mark.parametrize(("z", "d"), [(np.nan, 1.0), (1.0, 0.0), (1.0, -1.0), (np.inf, 1.0)])
def test_what_is_no_noisy_count_is_refused(z: float, d: float) -> None:
    with pytest.raises(BadInput, match="variances be positive"):
        estimates.estimate_cells([z], [d])


# --- tables of a release --------------------------------------------------------------------------


def columns(cells, value, variance, groups=(("STATE", "01", "*"), ("STATE", "02", "*"))):
    rows = [(*group, cell) for group in groups for cell in cells]
    names = ("region_type", "region", "iteration", "cell")
    made = {name: np.array(part) for name, part in zip(names, zip(*rows, strict=True), strict=True)}
    return {**made, "value": np.array(value), "variance": np.full(len(rows), float(variance))}


def test_tables_of_counts_have_all_cells_in_order() -> None:
    found = estimates.count_table("PH7", columns([2, 3, 4], [-50, 10, 400, 5, 6, 7], 100.0))
    assert found["DATA_CELL"].tolist() == [1, 2, 3, 4] * 2
    assert found["GEOID"].tolist() == ["01"] * 4 + ["02"] * 4
    assert found["COUNT_NOISY"].tolist() == [360, -50, 10, 400, 18, 5, 6, 7]
    assert found["VARIANCE"].tolist() == [300.0, 100, 100, 100] * 2
    predicted = found["PRED"].reshape(2, 4)
    assert (predicted[:, 0] == predicted[:, 1:].sum(axis=1)).all()
    assert list(found) == [
        *("GEOID", "REGION_TYPE", "ITERATION_CODE", "DATA_CELL", "COUNT_NOISY", "VARIANCE"),
        *("MOE_NOISY", "PRED", "PRED_LO", "PRED_HI"),
    ]


def test_tables_of_averages_take_the_groups_both_tables_have() -> None:
    released = {
        "PH1_num": columns([2, 3], [60, 190, 6, 19], 100.0),
        "PH1_denom": columns([1], [0], 100.0, groups=[("STATE", "02", "*")]),
        "PH8_num": columns([2, 3], [500, 300, -20, 9], 100.0),
        "PH8_denom": columns([2, 3], [200, 150, 30, 0], 100.0),
    }
    found = estimates.estimate_tables(released, {"PH1_num": 10, "PH4": 10, "PH7": 10})
    assert list(found) == ["PH1", "PH8"]
    assert found["PH1"]["GEOID"].tolist() == ["02"] * 3
    assert np.isnan(found["PH1"]["RATIO_NOISY"]).all()
    assert np.isfinite(found["PH1"]["RATIO_PRED"]).all()
    assert found["PH8"]["COUNT_NOISY_NUM"].tolist() == [800, 500, 300, -11, -20, 9]
    assert found["PH8"]["VARIANCE_DENOM"].tolist() == [200.0, 100, 100] * 2
    assert "PRED_NUM" not in found["PH8"]
    assert np.all((found["PH8"]["RATIO_PRED"] >= 1) & (found["PH8"]["RATIO_PRED"] <= 10))
    assert list(estimates.estimate_tables(released, {"PH1_num": 1, "PH7": 10})) == ["PH8"]
