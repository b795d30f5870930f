"""Determinants are right, and their error bars hold.

`python -m tests.accuracy.determinants` does the same for a thousand matrices.
"""

from tests.accuracy.determinants import measure


def test_signs_and_logarithms_are_right_for_every_family_and_method():
    tallies = measure(count=60, seed=3)
    assert [line for tally in tallies.values() for line in tally.wrong] == []
    ratios = [ratio for tally in tallies.values() for ratio in tally.ratios]
    assert len(ratios) > 100
    assert sum(ratio > 2 for ratio in ratios) <= len(ratios) // 100
