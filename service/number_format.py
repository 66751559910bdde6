"""How figures are written for people: the same on pages, in reports and in messages."""

COUNTED = 10_000  # so far pages count; what is one more stands for any more


def number(value: float, digits: int = 0) -> str:
    """1363 → 1,363."""
    return f"{value:,.{digits}f}"


def counted(value: int) -> str:
    """The same for a count that stops one beyond `COUNTED`: 10001 → 10,000+."""
    return number(value) if value <= COUNTED else f"{number(COUNTED)}+"


def gpu_hours(value: float) -> str:
    """GPU-hours with as many digits as mean something."""
    if value == 0:
        return "0"
    if value < 0.1:  # noqa: PLR2004 - below it one decimal would say nothing
        return "<0.1"
    return number(value, 1) if value < 10 else number(value)  # noqa: PLR2004 - as above


def percent(share: float | None, digits: int = 1) -> str:
    """0.0403 → 4.0 %; a dash where it is not known."""
    return "–" if share is None else f"{share * 100:.{digits}f}\u00a0%"


def span(seconds: float) -> str:
    """A duration in its two largest units."""
    left = max(0, round(seconds))
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}\u00a0{unit}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0\u00a0s"


def sureness(share: float) -> str:
    """A verdict's confidence as people read it: nothing is ever 100 % sure."""
    return "over 99\u00a0%" if share > 0.995 else percent(share, 0)  # noqa: PLR2004 - what would be written as 100
