"""Smooth random fields: what makes neighbouring areas alike."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: Cosines in one field.
FEATURES = 64


def smooth_field(rng: np.random.Generator, points: Floats, length: float, fields: int) -> Floats:
    """Return `fields` independent smooth random fields at points, unit variance each.

    Random Fourier features (Rahimi and Recht 2007): a sum of cosines with normal
    frequencies has, in expectation, the squared-exponential covariance of that length.
    """
    frequency = rng.standard_normal((fields, FEATURES, 2)) / length
    phase = rng.uniform(0, 2 * np.pi, (fields, FEATURES))
    waves = [np.cos(points @ f.T + p).sum(axis=1) for f, p in zip(frequency, phase, strict=True)]
    fields_at: Floats = np.sqrt(2 / FEATURES) * np.stack(waves, axis=1)
    return fields_at
