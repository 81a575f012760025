#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""curve.py METRICS.jsonl [KEY]: draws a training curve in 80 columns of text."""

import json
import sys

REWARD = "critic/score/mean"
WIDTH, HEIGHT = 70, 10
EIGHTHS = " ▁▂▃▄▅▆▇█"


def read(path, key):
    """step -> value; a step that was repeated counts with its last line."""
    points = {}
    with open(path) as f:
        for line in f:
            row = json.loads(line)
            value = row["data"].get(key)
            if value is not None:
                points[row["step"]] = value
    return sorted(points.items())


def columns(points):
    """One value per column: a step is as wide as fits, or several steps share one by their mean."""
    if len(points) <= WIDTH:
        each = WIDTH // len(points)
        return [v for _, v in points for _ in range(each)]
    out = []
    for i in range(WIDTH):
        part = points[i * len(points) // WIDTH : (i + 1) * len(points) // WIDTH]
        out.append(sum(v for _, v in part) / len(part))
    return out


def draw(points, key, unicode=True):
    values = columns(points)
    low, high = min(0.0, *values), max(values)
    scale = HEIGHT * 8 / ((high - low) or 1.0)
    marks = EIGHTHS if unicode else "   .:::##"
    lines = [f"{key}, steps {points[0][0]} to {points[-1][0]}: {points[0][1]:.3f} -> {points[-1][1]:.3f}"]
    for row in reversed(range(HEIGHT)):
        cells = (max(0, min(8, round((v - low) * scale) - row * 8)) for v in values)
        label = f"{low + (row + 1) * 8 / scale:7.2f} " if row % 3 == 0 else " " * 8
        lines.append((label + "|" + "".join(marks[c] for c in cells)).rstrip())
    lines.append(" " * 8 + "+" + "-" * len(values))
    return "\n".join(lines)


def main():
    key = sys.argv[2] if len(sys.argv) > 2 else REWARD
    points = read(sys.argv[1], key)
    if not points:
        sys.exit(f"curve: no '{key}' in '{sys.argv[1]}'")
    print(draw(points, key, (sys.stdout.encoding or "").lower().startswith("utf")))


if __name__ == "__main__":
    main()
