"""A plot of nodes over time as an SVG file, without a plotting library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

__all__ = ["Curve", "step_chart"]

_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#bcbd22")
_Scale = Callable[[float], float]
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 16.0, 40.0, 44.0


@dataclass(frozen=True, slots=True)
class Curve:
    """A step function of time: (Unix seconds, value), each valid until the next."""

    label: str
    steps: Sequence[tuple[float, float]]
    is_area: bool = False
    """Filled to the axis: what is needed, under the lines of what stands."""


def step_chart(
    title: str, curves: Sequence[Curve], begin: float, end: float, *, width: int = 1200, height: int = 360
) -> str:
    """Return an SVG document of step functions between two times, with a legend and a time axis in UTC."""
    top = max((value for curve in curves for _, value in curve.steps), default=1.0) or 1.0
    across, up = width - _LEFT - _RIGHT, height - _TOP - _BOTTOM

    def x(at: float) -> float:
        return _LEFT + across * min(max((at - begin) / (end - begin), 0.0), 1.0)

    def y(value: float) -> float:
        return _TOP + up * (1.0 - value / top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="16" font-size="13" font-weight="bold">{escape(title)}</text>',
    ]
    parts += [
        f'<line x1="{_LEFT}" y1="{y(value):.1f}" x2="{width - _RIGHT}" y2="{y(value):.1f}" stroke="#ddd"/>'
        f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>'
        for value in _ticks(top)
    ]
    for at in _times(begin, end):
        text = datetime.fromtimestamp(at, UTC).strftime("%d %b %H:%M")
        parts.append(
            f'<line x1="{x(at):.1f}" y1="{_TOP}" x2="{x(at):.1f}" y2="{height - _BOTTOM}" stroke="#eee"/>'
            f'<text x="{x(at):.1f}" y="{height - _BOTTOM + 16}" text-anchor="middle">{text}</text>'
        )
    for i, curve in enumerate(curves):
        parts.append(_drawn(curve, _COLOURS[i % len(_COLOURS)], begin, end, x, y))
    place = _LEFT
    for i, curve in enumerate(curves):
        colour = _COLOURS[i % len(_COLOURS)]
        parts.append(
            f'<rect x="{place:.0f}" y="24" width="10" height="10" fill="{colour}" '
            f'fill-opacity="{0.35 if curve.is_area else 1}"/>'
            f'<text x="{place + 14:.0f}" y="33">{escape(curve.label)}</text>'
        )
        place += 30 + 6.2 * len(curve.label)
    parts.append(f'<text x="12" y="{_TOP - 8}">nodes</text></svg>')
    return "\n".join(parts) + "\n"


def _drawn(curve: Curve, colour: str, begin: float, end: float, x: _Scale, y: _Scale) -> str:
    value = 0.0
    points = [(x(begin), y(0.0))]
    for at, following in curve.steps:
        if at > end:
            break
        points += [(x(at), y(value)), (x(at), y(following))]
        value = following
    points.append((x(end), y(value)))
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    if curve.is_area:
        return f'<polygon points="{path} {x(end):.1f},{y(0.0):.1f}" fill="{colour}" fill-opacity="0.35"/>'
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.2"/>'


def _ticks(top: float) -> list[float]:
    step = 1.0
    while top / step > 6:
        step *= 2.5 if str(step)[0] == "2" else 2.0
    return [i * step for i in range(int(top // step) + 1)]


def _times(begin: float, end: float) -> list[float]:
    for step in (300.0, 900.0, 3600.0, 3 * 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0):
        if (end - begin) / step <= 10:
            break
    first = -(-begin // step) * step
    return [first + i * step for i in range(int((end - first) // step) + 1)]
