"""Intervals of S-DHC estimates: how often they hold the truth, over the prior and for one truth."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from discreet.errors import BadInput
from discreet.products.sdhc import estimates
from discreet.products.sdhc.estimates import coverage_of_sums
from discreet.products.sdhc.estimates.ratios import averages, averages_by_age

SIGMA = 41.34


def test_coverage_of_counts_is_90_percent_over_the_prior() -> None:
    """The prior is flat on Y >= 0 and cannot be drawn from, so it is cut off at 50 sigma.

    Beyond a few sigma intervals hold 90 percent for every truth; below, too few near zero
    and too many after it, which must cancel: the mean over the prior is exact.
    """
    truth = np.linspace(0, 50, 5_001)
    mean = integrate.trapezoid(estimates.coverage(truth, 1.0, rounded=False), truth) / 50
    assert mean == pytest.approx(0.9, abs=2e-4)


@pytest.mark.parametrize(("sigma", "most"), [(12.158, 0.017), (41.337, 0.006), (121.582, 0.003)])
def test_rounding_outwards_adds_up_to_two_points(sigma: float, most: float) -> None:
    """As the guide says: before rounding half a point from three sigma on, rounding adds to it."""
    truth = np.rint(np.linspace(3, 50, 300) * sigma)
    sharp = estimates.coverage(truth, sigma**2, rounded=False)
    added = estimates.coverage(truth, sigma**2) - sharp
    assert np.all(np.abs(sharp - 0.9) < 0.0055)
    assert np.all((added > 0) & (added < most))


def test_coverage_formula_agrees_with_drawing() -> None:
    """Within 5 standard errors; false alarm below 1e-5."""
    rng = np.random.default_rng(12)
    for truth in (0, 3, 20, 60, 400):
        z = truth + np.rint(rng.normal(0, SIGMA, 100_000))
        found = estimates.estimate_cells(z, SIGMA**2)
        share = np.mean((found.low <= truth) & (truth <= found.high))
        # Noise is whole here and not in the formula: a shift of at most a half.
        around = estimates.coverage([max(truth - 0.5, 0), truth + 0.5], SIGMA**2)
        room = 5 * np.sqrt(0.25 / 100_000) + abs(around[1] - around[0])
        assert abs(share - estimates.coverage([truth], SIGMA**2)[0]) < room


@pytest.mark.parametrize("least", [1, 2])
def test_coverage_of_averages_is_88_to_92_percent_over_the_prior(least: int) -> None:
    """Truth drawn from the flat prior on the polytope, cut off at 12 sigma of households.

    The area of possible persons grows with d^2, so d = 12 sigma u^(1/3). With 2500 draws a
    true 90 percent leaves 88..92 with probability below 1e-3.
    """
    rng = np.random.default_rng(13)
    many, most = 2500, 10
    d = 1 + 12 * SIGMA * rng.random(many) ** (1 / 3)
    total = np.sqrt(rng.uniform(least**2, most**2, many)) * d
    young = total * rng.random(many)
    truth = np.stack([total, young, total - young], axis=1) / d[:, None]
    z = np.stack([young, total - young, d], axis=1) + rng.normal(0, SIGMA, (many, 3))
    found = averages_by_age(z[:, :2], SIGMA**2, z[:, 2], SIGMA**2, least, most)
    held = np.mean((found.low <= truth) & (truth <= found.high), axis=0)
    assert np.all((held > 0.88) & (held < 0.92)), held


def test_coverage_of_averages_of_two_counts_is_88_to_92_percent_over_the_prior() -> None:
    """As in PH8, with households cut off at 12 sigma.

    The range of possible persons grows with d, so d = 12 sigma u^(1/2). With 10000 draws a
    true 90 percent leaves 88..92 with probability below 1e-10.
    """
    rng = np.random.default_rng(15)
    many, most = 10_000, 10
    d = 1 + 12 * SIGMA * np.sqrt(rng.random(many))
    truth = rng.uniform(1, most, many)
    persons, homes = (x + rng.normal(0, SIGMA, many) for x in (truth * d, d))
    found = averages(persons, SIGMA**2, homes, SIGMA**2, 1, most)
    held = np.mean((found.low <= truth) & (truth <= found.high))
    assert 0.88 < held < 0.92, held
    # Planted: noise is taken for half as large.
    wrong = averages(persons, SIGMA**2 / 4, homes, SIGMA**2 / 4, 1, most)
    assert np.mean((wrong.low <= truth) & (truth <= wrong.high)) < 0.8


def test_coverage_of_totals_is_88_to_92_percent_over_the_prior() -> None:
    """Four cells, each flat on 0..12 sigma; 10000 draws leave 88..92 with probability 1e-10."""
    rng = np.random.default_rng(14)
    truth = np.rint(rng.uniform(0, 12 * SIGMA, (10_000, 4)))
    z = truth + np.rint(rng.normal(0, SIGMA, truth.shape))
    found = estimates.estimate_sums(z, SIGMA**2, [(0, 1, 2, 3)])
    total = truth.sum(axis=1)
    held = np.mean((found.low[:, 0] <= total) & (total <= found.high[:, 0]))
    assert 0.88 < held < 0.92, held


def equal(times: list[float], cells: int) -> np.ndarray:
    """Return sums of equal cells, each cell some times the noise."""
    return np.outer(times, np.ones(cells)) * SIGMA


def test_of_one_cell_a_sum_is_covered_like_the_cell() -> None:
    """Against the exact formula and a simulation of cells; within 5 standard errors.

    The bias is the mean of phi(Z/sigma)/Phi(Z/sigma), in units of sigma, by quadrature.
    """
    at, draws = [0.25, 0.5, 1.0, 2.0, 4.0], 20_000
    found = coverage_of_sums(equal(at, 1), SIGMA**2, draws=draws, seed=3)
    room = 5 * np.sqrt(0.25 / draws)
    exact = estimates.coverage(np.multiply(at, SIGMA), SIGMA**2)
    np.testing.assert_allclose(found.held, exact, atol=room)
    rng = np.random.default_rng(16)
    for place, times in enumerate(at):
        truth = times * SIGMA
        drawn = estimates.estimate_cells(truth + rng.normal(0, SIGMA, draws), SIGMA**2)
        share = np.mean((drawn.low <= truth) & (truth <= drawn.high))
        assert found.held[place] == pytest.approx(share, abs=2 * room)
        z = times + np.linspace(-10, 10, 4001)
        rates = np.exp(stats.norm.logpdf(z) - special.log_ndtr(z))
        bias = integrate.trapezoid(rates * stats.norm.pdf(z - times), z)
        assert found.bias[place] / SIGMA == pytest.approx(bias, abs=0.02)


def test_sums_of_many_small_cells_are_biased_and_not_covered() -> None:
    """A direct simulation of 16 cells, without the lattice: the law of the sum is drawn, too.

    At half a sigma the interval never holds the sum, although that of one cell does in 93
    percent; at three it does in about 90.
    """
    at = [0.5, 1.0, 3.0]
    found = coverage_of_sums(equal(at, 16), SIGMA**2, draws=300, seed=4)
    assert found.held[0] < 0.02
    assert 0.18 < found.held[1] < 0.38
    assert found.held[2] > 0.84
    assert coverage_of_sums(equal(at, 1), SIGMA**2, draws=300).held[0] > 0.87
    rng = np.random.default_rng(17)
    for place, times in enumerate(at):
        noisy = (times + rng.standard_normal((300, 16, 1))) * SIGMA
        low = special.ndtr(-noisy / SIGMA)
        laws = noisy + SIGMA * special.ndtri(low + (1 - low) * rng.random((300, 16, 400)))
        sums, total = laws.sum(axis=1), 16 * times * SIGMA
        ends = np.quantile(sums, [0.05, 0.95], axis=1)
        share = np.mean((np.floor(ends[0]) <= total) & (total <= np.ceil(ends[1])))
        # Within 5 standard errors of the difference, and 3 points for ends from 400 draws.
        room = 5 * np.sqrt(2 * max(share * (1 - share), 0.001) / 300) + 0.03
        assert found.held[place] == pytest.approx(share, abs=room)
        assert found.bias[place] == pytest.approx(sums.mean() - total, abs=5 * 4 * SIGMA / 300**0.5)


def test_the_bias_of_a_sum_is_that_of_its_cells() -> None:
    """Also of unequal cells with unlike noise: the bias adds up, cell by cell."""
    cells, spread = np.array([5.0, 40.0, 300.0]), np.array([10.0, 40.0, 100.0]) ** 2
    found = coverage_of_sums([cells], [spread], draws=4000)
    alone = [
        coverage_of_sums([[y]], d, draws=4000, seed=5).bias[0]
        for y, d in zip(cells, spread, strict=True)
    ]
    assert found.bias[0] == pytest.approx(sum(alone), abs=5 * 2**0.5 * 60 / 4000**0.5)
    again = coverage_of_sums([cells], [spread], draws=4000)
    assert again.bias[0] == found.bias[0]


@pytest.mark.parametrize("truth", [3.0, [1.0, 2.0], np.empty((0, 3)), np.empty((2, 0))])
def test_sums_need_rows_and_columns(truth) -> None:
    with pytest.raises(BadInput, match="a row per sum"):
        coverage_of_sums(truth, 1.0)
