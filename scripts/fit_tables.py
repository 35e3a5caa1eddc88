#!/usr/bin/env python3
"""Prints the tables of src/backend/cpu/tables.h.

Each of 32 segments of b = a + 1, eight to an octave from 1 to 16, has a polynomial of its own:
the normal distribution's tail over exp(-a^2 / 2) as a quartic in the distance from the segment's
middle, and the base-2 logarithm of the tail as a quadratic in b. A polynomial of degree n is the
one whose error has the same size, with changing sign, at the n + 2 extrema of a Chebyshev
polynomial: within a few per cent of the best there is.
"""

import math


def tail_over_shape(a):
    return 0.5 * math.erfc(a / math.sqrt(2)) * math.exp(a * a / 2)


def log2_tail(a):
    return math.log2(0.5 * math.erfc(a / math.sqrt(2)))


def solved(rows):
    """The solution of linear equations, each row its factors and then its right side."""
    n = len(rows)
    for k in range(n):
        pivot = max(range(k, n), key=lambda r: abs(rows[r][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for r in range(k + 1, n):
            factor = rows[r][k] / rows[k][k]
            rows[r] = [x - factor * y for x, y in zip(rows[r], rows[k])]
    x = [0.0] * n
    for k in reversed(range(n)):
        x[k] = (rows[k][n] - sum(rows[k][j] * x[j] for j in range(k + 1, n))) / rows[k][k]
    return x


def fitted(f, size, half_width, degree):
    """Coefficients in t, |t| <= half_width, of a polynomial for f; its error is a share of size(t)."""
    rows = []
    for i in range(degree + 2):
        t = half_width * math.cos(math.pi * i / (degree + 1))
        rows.append([t**k for k in range(degree + 1)] + [(-1) ** i * size(t), f(t)])
    return solved(rows)[:-1]


def shifted(c, middle):
    """The coefficients in b of the quadratic with coefficients c in b - middle."""
    return [c[0] - c[1] * middle + c[2] * middle * middle, c[1] - 2 * c[2] * middle, c[2]]


def segments():
    """The middle and half the width of each segment, in the order of b's bits: by octave modulo 4."""
    for octave in (1, 2, 3, 0):
        for eighth in range(8):
            width = 2.0**octave / 8
            yield 2.0**octave + (eighth + 0.5) * width, width / 2


def literal(value):
    text = f"{value:.9g}"
    return (text if "." in text or "e" in text else text + ".0") + "f"


def row(values):
    return "{" + ", ".join(literal(v) for v in values) + "}"


def print_table(name, columns):
    print(f"alignas(64) inline constexpr float {name}[{len(columns[0])}][32] = {{")
    for power in range(len(columns[0])):
        print(f"    {row(c[power] for c in columns)},")
    print("};")


def main():
    quartics, quadratics = [], []
    for middle, half in segments():
        ratio = lambda t, m=middle: tail_over_shape(m - 1 + t)
        logarithm = lambda t, m=middle: log2_tail(m - 1 + t)
        quartics.append(fitted(ratio, ratio, half, 4))
        quadratics.append(shifted(fitted(logarithm, lambda t: 1.0, half, 2), middle))
    print_table("kTailOverShape", quartics)
    print_table("kLog2Tail", quadratics)
    print(f"alignas(64) inline constexpr float kRoots[32] = {row(2.0 ** (j / 32) for j in range(32))};")


if __name__ == "__main__":
    main()
