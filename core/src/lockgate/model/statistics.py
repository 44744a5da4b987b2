"""Statistics in the form of Hadoop's `IOStatisticsSnapshot`, and how those of many are made one.

Durations are in milliseconds, under Hadoop's names: `NAME` counts, `NAME.min`, `NAME.max` and `NAME.mean` measure
(`ManifestCommitterStatisticNames`, `StoreStatisticNames`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

UNSET = -1
"""A minimum or maximum that was never sampled (Hadoop `IOStatistics.MIN_UNSET_VALUE`, `MAX_UNSET_VALUE`)."""


class Mean(Struct, frozen=True, gc=False):
    """A mean as its parts, so that means of means are right."""

    samples: int = 0
    sum: int = 0

    @property
    def value(self) -> float:
        """The mean; 0 without samples."""
        return self.sum / self.samples if self.samples else 0.0


class Statistics(Struct, frozen=True, omit_defaults=True):
    """Hadoop's `IOStatisticsSnapshot`."""

    counters: Mapping[str, int] = field(default_factory=dict)
    gauges: Mapping[str, int] = field(default_factory=dict)
    minimums: Mapping[str, int] = field(default_factory=dict)
    maximums: Mapping[str, int] = field(default_factory=dict)
    meanstatistics: Mapping[str, Mean] = field(default_factory=dict)


class Gathered:
    """Statistics as they come in; `now()` is what they have come to."""

    def __init__(self) -> None:
        self._counters: dict[str, int] = {}
        self._gauges: dict[str, int] = {}
        self._minimums: dict[str, int] = {}
        self._maximums: dict[str, int] = {}
        self._means: dict[str, Mean] = {}

    def add(self, more: Statistics) -> None:
        """Aggregate as Hadoop's `IOStatisticsSnapshot.aggregate`: counters and gauges are added up, means joined, and
        of minimums and maximums the extreme counts, of those that were sampled. What is zero or unset is left out."""
        for mine, theirs in ((self._counters, more.counters), (self._gauges, more.gauges)):
            for name, value in theirs.items():
                if value:
                    mine[name] = mine.get(name, 0) + value
        for name, value in more.minimums.items():
            if value != UNSET:
                self._minimums[name] = min(value, self._minimums.get(name, value))
        for name, value in more.maximums.items():
            if value != UNSET:
                self._maximums[name] = max(value, self._maximums.get(name, value))
        for name, mean in more.meanstatistics.items():
            if mean.samples:
                self._add_mean(name, mean)

    def sample(self, name: str, value: int) -> None:
        """One value of what is measured, such as a size, under one name for minimum, maximum and mean."""
        self._extremes(name, name, value)
        self._add_mean(name, Mean(1, value))

    def sample_all(self, name: str, values: Sequence[int]) -> None:
        """As `sample`, once for each of the values."""
        if values:
            self._extremes(name, name, min(values))
            self._extremes(name, name, max(values))
            self._add_mean(name, Mean(len(values), sum(values)))

    def took(self, name: str, seconds: float, times: int = 1) -> None:
        """Something was done so many times, in so many seconds together."""
        milliseconds = round(seconds * 1000)
        self._counters[name] = self._counters.get(name, 0) + times
        if times:
            self._extremes(f"{name}.min", f"{name}.max", milliseconds // times)
            self._add_mean(f"{name}.mean", Mean(times, milliseconds))

    def now(self) -> Statistics:
        """What has come in so far."""
        return Statistics(
            dict(sorted(self._counters.items())),
            dict(sorted(self._gauges.items())),
            dict(sorted(self._minimums.items())),
            dict(sorted(self._maximums.items())),
            dict(sorted(self._means.items())),
        )

    def _extremes(self, minimum: str, maximum: str, value: int) -> None:
        self._minimums[minimum] = min(value, self._minimums.get(minimum, value))
        self._maximums[maximum] = max(value, self._maximums.get(maximum, value))

    def _add_mean(self, name: str, mean: Mean) -> None:
        before = self._means.get(name, Mean())
        self._means[name] = Mean(before.samples + mean.samples, before.sum + mean.sum)


def merged_statistics(*parts: Statistics) -> Statistics:
    """All of them as one."""
    gathered = Gathered()
    for part in parts:
        gathered.add(part)
    return gathered.now()
