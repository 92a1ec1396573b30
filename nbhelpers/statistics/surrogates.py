"""Rearrangements of runs that keep what their order has to do with the outcome.

Owns the three kinds: single runs, whole stretches of runs, and random phases, which keep the
autocorrelation and every period. `order` says which of them a campaign needs.
"""

import numpy as np

ROUNDS = 8  # of the iterated surrogates: spectrum and values agree by then
WINDOWS = 10  # stretches of a campaign within which a level is taken to be constant
SHORTEST_WINDOW = 8  # runs
SHORTEST_PIECE = 3
TENTHS = 10  # of a campaign: within one, runs vary alike
MOST_BEATS = 6  # waves taken out
BEAT_LEVEL = 0.1  # chance that white data have a wave as strong
FINER = 8  # frequencies looked at, for each of the periodogram


def block_orders(size: int, block: int, count: int, random: np.random.Generator) -> np.ndarray:
    """Rearrangements of 0 … size − 1 (count × size) that keep neighbours together in blocks (block
    1: any rearrangement).

    The sequence is closed to a ring, cut into blocks from a random place on, the blocks are
    shuffled and every other time run backwards, so that the joints fall elsewhere each time.
    """
    if block <= 1:
        return random.permuted(np.tile(np.arange(size), (count, 1)), axis=1)
    orders = np.empty((count, size), int)
    for order in orders:
        ring = np.roll(np.arange(size), random.integers(size))
        pieces = np.array_split(ring, max(2, round(size / block)))
        arranged = np.concatenate([pieces[index] for index in random.permutation(len(pieces))])
        order[:] = arranged[::-1] if random.integers(2) else arranged
    return orders


def circular_orders(size: int, random: np.random.Generator) -> np.ndarray:
    """All circular shifts of 0 … size − 1, forwards and backwards, but itself, in random order."""
    shifted = (np.arange(size)[:, None] + np.arange(size)) % size
    return random.permutation(np.vstack([shifted[1:], -shifted % size]))


def tenth_orders(size: int, count: int, random: np.random.Generator) -> np.ndarray:
    """Rearrangements within each tenth of 0 … size − 1 (count × size)."""
    return np.argsort(np.arange(size) * TENTHS // size + random.random((count, size)), axis=1)


def phase_orders(values: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Rearrangements of values that keep their spectrum, with random phases.

    Parameters
    ----------
    values
        Outcomes of n runs, float64 [n], in the order of measuring.
    count
        Number of rearrangements.
    random
        Generator of the random phases.

    Returns
    -------
    Array count × n of places: `values[orders]` are the surrogates.

    Notes
    -----
    Iterated amplitude-adjusted Fourier surrogates (Schreiber and Schmitz 1996): they have the same
    values and nearly the same spectrum, so the same autocorrelation and the same periods.
    """
    size = values.size
    ascending = np.lexsort((random.random(size), values))  # ties in a random order
    ordered = values[ascending] - values.mean()
    lengths = np.abs(np.fft.rfft(values - values.mean()))
    phases = np.exp(2j * np.pi * random.random((count, lengths.size)))
    waves = np.fft.irfft(lengths * phases, size, axis=1)
    placed = np.empty((count, size))
    for _ in range(ROUNDS):
        np.put_along_axis(placed, np.argsort(waves, axis=1), ordered[None], axis=1)
        spectrum = np.fft.rfft(placed, axis=1)
        spectrum *= lengths / np.maximum(np.abs(spectrum), 1e-12)
        waves = np.fft.irfft(spectrum, size, axis=1)
    orders = np.empty((count, size), int)
    np.put_along_axis(orders, np.argsort(waves, axis=1), ascending[None], axis=1)
    return orders


def level_windows(size: int, changes: tuple[int, ...] = ()) -> np.ndarray:
    """Number of the stretch that each run lies in: tenths of the campaign, divided where the level
    changes.
    """
    width = max(SHORTEST_WINDOW, -(-size // WINDOWS))
    edges = sorted({*range(width, size - SHORTEST_PIECE, width), *changes})
    kept: list[int] = []
    for edge in edges:
        near = kept and edge - kept[-1] < SHORTEST_PIECE
        if near and edge in changes:
            kept[-1] = edge
        elif not near:
            kept.append(edge)
    return np.searchsorted(np.array(kept, int), np.arange(size), side="right")


def without_level(values: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Values (n, or n × k) with the mean of each window taken out."""
    first = np.flatnonzero(np.diff(windows, prepend=-1))
    sizes = np.diff(np.append(first, windows.size))
    shape = (-1,) + (1,) * (values.ndim - 1)
    means = np.add.reduceat(values, first, axis=0) / sizes.reshape(shape)
    return values - np.repeat(means, sizes, axis=0)


def beats(values: np.ndarray) -> np.ndarray:
    """Frequencies, per run, of waves in values that are stronger than chance (at most six).

    The strongest wave of the periodogram is taken out, then the next; a beat that is no sine has
    several. Between the frequencies of the periodogram, too: a period need not divide a campaign.
    """
    size, found = values.size, list[float]()
    left = values - values.mean()
    least = np.log(FINER * size / 2 / BEAT_LEVEL)  # of an exponential ordinate
    while len(found) < MOST_BEATS:
        power = np.abs(np.fft.rfft(left, FINER * size)) ** 2
        power[:FINER] = 0  # slower than the campaign is a drift
        strongest = int(np.argmax(power))
        if power[strongest] <= least * (left**2).sum():
            break
        found.append(strongest / (FINER * size))
        left = without_beats(values - values.mean(), np.array(found))
    return np.array(found)


def without_beats(values: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Values (n, or n × k) without their waves of these frequencies."""
    if not frequencies.size:
        return values
    angles = 2 * np.pi * np.arange(len(values))[:, None] * frequencies
    waves, _ = np.linalg.qr(np.column_stack([np.sin(angles), np.cos(angles)]))
    return values - waves @ (waves.T @ values)


def neighbourhood(values: np.ndarray) -> float:
    """Share of a run's deviation that the next run has, too: the first autocorrelation, or 0."""
    left = values - values.mean()
    return float(np.clip(left[1:] @ left[:-1] / max(float(left @ left), 1e-12), 0, 1))


def without_past(values: np.ndarray, share: float) -> np.ndarray:
    """Values (n, or n × k) less this share of the run before (Cochrane and Orcutt 1949)."""
    left = values - values.mean(axis=0)
    left[1:] -= share * left[:-1].copy()
    return left
