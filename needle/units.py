"""Numbers as people say them; each keeps a steady width so that a live screen does not jump."""

from __future__ import annotations

import math


def bytes_text(count: float) -> str:
    """`1536` -> `1.5 KiB`; binary units, three significant digits at most."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or abs(size) >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def duration_text(seconds: float | None) -> str:
    """`252` -> `4m 12s`; `-` when unknown."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600:02d}h"


def age_text(seconds: float) -> str:
    """Seconds since something happened -> `just now`, `5 min ago`, `2 h ago`, `3 d ago`."""
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    if seconds < 86400:
        return f"{int(seconds // 3600)} h ago"
    return f"{int(seconds // 86400)} d ago"


def count_text(count: float) -> str:
    """`45_123_456` -> `45.1 M`, `1234` -> `1,234`."""
    if abs(count) >= 1e9:
        return f"{count / 1e9:.1f} B"
    if abs(count) >= 1e6:
        return f"{count / 1e6:.1f} M"
    return f"{count:,.0f}"


def number_text(value: float) -> str:
    """A metric for reading: `0.4312`, `9.8e-05`, `1,234.5`; `NaN` and `inf` stay visible."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "0"
    magnitude = abs(value)
    if magnitude < 1e-3 or magnitude >= 1e6:
        return f"{value:.1e}"
    if magnitude >= 1000:
        return f"{value:,.1f}"
    return f"{value:.4f}" if magnitude < 10 else f"{value:.2f}"
