"""Reads measurements from a serial line and keeps hourly means."""
from __future__ import annotations

import argparse
import csv
import datetime as dt
import logging
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterable, Iterator

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sample:
    station: str
    taken_at: dt.datetime
    celsius: float
    humidity: float | None = None


@dataclass
class Mean:
    count: int = 0
    total: float = 0.0
    worst: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        if abs(value - self.value) > 15:
            self.worst.append(value)

    @property
    def value(self) -> float:
        return self.total / self.count if self.count else float("nan")


def parse(lines: Iterable[str]) -> Iterator[Sample]:
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            station, stamp, celsius, *rest = line.split(";")
            yield Sample(
                station=station,
                taken_at=dt.datetime.fromisoformat(stamp),
                celsius=float(celsius),
                humidity=float(rest[0]) if rest else None,
            )
        except (ValueError, IndexError) as error:
            log.warning("line %d is unreadable: %s", number, error)


def hourly(samples: Iterable[Sample]) -> dict[tuple[str, dt.datetime], Mean]:
    means: dict[tuple[str, dt.datetime], Mean] = defaultdict(Mean)
    for sample in samples:
        hour = sample.taken_at.replace(minute=0, second=0, microsecond=0)
        means[sample.station, hour].add(sample.celsius)
    return dict(means)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", type=Path)
    parser.add_argument("--output", type=Path, default=Path("hourly.csv"))
    args = parser.parse_args()
    with args.input.open(encoding="utf-8") as source:
        means = hourly(parse(source))
    with args.output.open("w", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(["station", "hour", "mean", "count"])
        for (station, hour), mean in sorted(means.items()):
            writer.writerow([station, hour.isoformat(), f"{mean.value:.2f}", mean.count])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
