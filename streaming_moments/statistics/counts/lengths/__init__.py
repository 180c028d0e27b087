"""Lengths of documents: histogram, weights, and error bounds."""

from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram, WeightedLengths
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.lengths.weights import POOLED, LengthWeights

__all__ = ["POOLED", "LengthHistogram", "LengthWeights", "RowLengths", "WeightedLengths"]
