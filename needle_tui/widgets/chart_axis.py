"""Axes: limits that rest on round numbers, ticks at 1, 2 and 5, and labels of steady width."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from needle.units import duration_text

AxisKind = Literal["count", "time"]

_RELATIVE_RESOLUTION = 1e-12
"""A span smaller than this part of its values has no digits left to tell its ends apart."""

LARGEST = 1e300
"""Beyond this, differences of two values could not be told any more."""

_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


@dataclass(frozen=True)
class Limits:
    """The ends of an axis, `low < high`. With `log`, they are decimal logarithms of the values."""

    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value lies: 0 at `low`, 1 at `high`."""
        return (value - self.low) / (self.high - self.low)

    def at(self, share: float) -> float:
        """The value at a share of the axis."""
        return self.low * (1 - share) + self.high * share


@dataclass(frozen=True)
class Tick:
    """A place on an axis, in the axis's own numbers, and what is written there."""

    at: float
    label: str


def value_limits(low: float, high: float, *, log: bool, ticks: int) -> Limits:
    """Limits for values from `low` to `high`, moved outwards to ticks so that they seldom change.

    With `log`, arguments are decimal logarithms. Non-finite arguments give 0 to 1, and none counts for more
    than `LARGEST`.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return Limits(0.0, 1.0, log)
    low, high = max(low, -LARGEST), min(high, LARGEST)
    if _is_point(low, high):
        low, high = _padded(low, log)
    if log:
        return _log_limits(low, high)
    step = nice_step(high - low, ticks)
    return Limits(_floor(low, step), _ceil(high, step))


def _log_limits(low: float, high: float) -> Limits:
    """Whole decades for a wide span, else the nearest 1, 2 or 5."""
    if high - low >= 2:
        return Limits(math.floor(low), math.ceil(high), True)
    below = max(mark for mark in _log_marks(low) if mark <= low + 1e-9)
    above = min(mark for mark in _log_marks(high) if mark >= high - 1e-9)
    return Limits(min(below, low), max(above, high), True)


def _log_marks(near: float) -> list[float]:
    """Logarithms of the 1, 2 and 5 around one value."""
    whole = math.floor(near)
    return [decade + part for decade in (whole - 1, whole, whole + 1) for part in _LOG_125]


_LOG_125 = (0.0, math.log10(2), math.log10(5))


def x_limits(low: float, high: float, *, kind: AxisKind, end: float | None = None) -> Limits:
    """Limits for x values from `low` to `high`, with room for the next points, but none past `end`."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return Limits(0.0, 1.0)
    start = 0.0 if 0 <= low <= high / 10 else low
    step = nice_step(high - start, 8)
    if kind == "count":
        step = max(1.0, step)
    stop = _ceil(high, step)
    if end is not None and high <= end < stop:
        stop = end
    if stop <= start or _is_point(start, high):
        stop = start + max(step, abs(start) * 1e-6)
    return Limits(start, stop)


def value_ticks(limits: Limits, count: int) -> list[Tick]:
    """At most `count` ticks (two at least) for an axis of values, lowest first."""
    if limits.log:
        return _log_ticks(limits, count)
    step = nice_step(limits.high - limits.low, max(1, count - 1))
    places = _multiples(limits, step)
    return [Tick(at, label) for at, label in zip(places, value_labels(places, step), strict=True)]


def x_ticks(limits: Limits, count: int, kind: AxisKind) -> list[Tick]:
    """At most `count` ticks for an axis of counts (steps, tokens) or of seconds."""
    span = limits.high - limits.low
    if kind == "time" and span >= 2:
        step = _time_step(span, count)
        return [Tick(at, _duration(at)) for at in _multiples(limits, step)]
    step = nice_step(span, max(1, count))
    if kind == "count":
        step = max(1.0, step)
    places = _multiples(limits, step)
    labels = value_labels(places, step) if kind == "time" else count_labels(places, step)
    return [Tick(at, label) for at, label in zip(places, labels, strict=True)]


def nice_step(span: float, count: float) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that divides `span` into at most `count` steps."""
    raw = abs(span) / max(count, 1e-9)
    if not math.isfinite(raw) or raw < 1e-300:
        return 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    for factor in (1.0, 2.0, 5.0):
        if raw <= factor * power * (1 + 1e-9):
            return factor * power
    return 10.0 * power


def value_labels(places: list[float], step: float) -> list[str]:
    """Labels with the same number of decimals, enough to tell neighbours apart."""
    largest = max((abs(at) for at in places), default=0.0)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if largest < 1e6 and decimals <= (5 if largest >= 0.01 else 4):
        return [f"{_positive_zero(at):,.{decimals}f}" for at in places]
    digits = 0 if largest == 0 else math.floor(math.log10(largest)) - math.floor(math.log10(step) + 1e-9)
    return [_scientific(at, min(max(digits, 0), 12)) for at in places]


def count_labels(places: list[float], step: float) -> list[str]:
    """`1,200` for counts, `1.2 M` where every label would be long."""
    largest = max((abs(at) for at in places), default=0.0)
    for unit, name in ((1e9, " B"), (1e6, " M")):
        if largest >= unit and step >= unit / 100:
            decimals = max(0, -math.floor(math.log10(step / unit) + 1e-9))
            return [f"{_positive_zero(at / unit):.{decimals}f}{name}" if at else "0" for at in places]
    if largest >= 1e12:
        return value_labels(places, step)
    return [f"{at:,.0f}" for at in places]


def _log_ticks(limits: Limits, count: int) -> list[Tick]:
    """1, 2 and 5 of each decade where they fit, else whole decades; linear ticks within less than that."""
    first, last = math.ceil(limits.low - 1e-9), math.floor(limits.high + 1e-9)
    if 3 * (limits.high - limits.low) > 2 * count and last > first:
        stride = max(1, math.ceil((last - first + 1) / max(2, count)))
        powers = range(first + (-first) % stride, last + 1, stride)
        return [Tick(float(power), _power_label(power)) for power in powers]
    marks = [e + part for e in range(first - 1, last + 2) for part in _LOG_125]
    inside = [mark for mark in marks if limits.low - 1e-9 <= mark <= limits.high + 1e-9]
    if len(inside) >= 2:
        return [Tick(mark, value_labels([v := _power(mark)], v)[0]) for mark in inside]
    linear = value_ticks(Limits(_power(limits.low), _power(limits.high)), count)
    return [Tick(math.log10(tick.at), tick.label) for tick in linear if tick.at > 0]


def _power_label(power: int) -> str:
    """`0.001 .. 10000` written out, else `1e-7`."""
    return f"{10.0**power:.{max(0, -power)}f}" if -4 <= power <= 5 else f"1e{power}"


def _power(exponent: float) -> float:
    """Ten to this power, within what a number can be: never 0, never infinite."""
    return math.pow(10.0, min(max(exponent, -323.0), 308.25))


def _time_step(span: float, count: int) -> float:
    """A step that people count in: seconds, minutes, hours, days."""
    wanted = span / max(1, count)
    for seconds in _SECONDS:
        if seconds >= wanted:
            return float(seconds)
    return 86400.0 * max(1.0, nice_step(span / 86400, count))


def _duration(seconds: float) -> str:
    """`30m` rather than `30m 00s`: a tick is exact."""
    text = duration_text(seconds)
    return text.removesuffix(" 00s").removesuffix(" 00m").removesuffix(" 00h")


def _multiples(limits: Limits, step: float) -> list[float]:
    """Multiples of `step` within the limits; their number is bounded by how `step` was chosen."""
    first = math.ceil(limits.low / step - 1e-9)
    last = math.floor(limits.high / step + 1e-9)
    return [index * step for index in range(first, min(last, first + 200) + 1)]


def _is_point(low: float, high: float) -> bool:
    """Whether two values are too close for an axis between them."""
    return high - low <= max(_RELATIVE_RESOLUTION * max(abs(low), abs(high)), 1e-300)


def _padded(value: float, log: bool) -> tuple[float, float]:
    """Room around a single value."""
    if log:
        return value - 0.5, value + 0.5
    room = abs(value) * 0.1
    return (value - room, value + room) if room > 1e-300 else (value - 1.0, value + 1.0)


def _floor(value: float, step: float) -> float:
    return math.floor(value / step + 1e-9) * step


def _ceil(value: float, step: float) -> float:
    return math.ceil(value / step - 1e-9) * step


def _positive_zero(value: float) -> float:
    return value + 0.0 if value else 0.0


def _scientific(value: float, digits: int) -> str:
    """`1.5e-7` rather than `1.5e-07`."""
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"
