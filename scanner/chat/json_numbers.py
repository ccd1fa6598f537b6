"""How llama.cpp's JSON library writes doubles.

It finds the digits with Grisu2 (Florian Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with
Integers", 2010): digits that read back as the same double, nearly always as few as possible. Python's `repr` always
finds the fewest, so the two differ now and then (`1e23` is written `9.999999999999999e+22`), and the whole computation
has to be done as it is there. Held against the real engine for some hundred thousand doubles.
"""

from __future__ import annotations

import functools
import math
import struct
from dataclasses import dataclass

WIDTH = 64
"""Bits of a significand while digits are looked for."""
LOWEST_EXPONENT = -60
"""The least binary exponent that a scaled number may have: its whole part then fits 32 bits."""
LOWEST_POWER, POWER_STEP = -300, 8
"""Powers of ten come in steps, as they do in the library's table."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """`significand` times two to the `exponent`; the significand has 64 bits."""

    significand: int
    exponent: int

    def times(self, other: Scaled) -> Scaled:
        """The product, rounded to 64 bits, halves up."""
        product = (self.significand * other.significand + (1 << (WIDTH - 1))) >> WIDTH
        return Scaled(product, self.exponent + other.exponent + WIDTH)


def float_text(number: float) -> str:
    """The JSON text of a double; `null` where it is not finite."""
    if not math.isfinite(number):
        return "null"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    if number == 0:
        return sign + "0.0"
    digits, exponent = _digits(abs(number))
    return sign + _layout("".join(map(str, digits)), exponent)


def _layout(digits: str, exponent: int) -> str:
    """`digits` times ten to the `exponent`, in figures from 0.0001 up to 999999999999999, else with an exponent."""
    point = len(digits) + exponent
    if len(digits) <= point <= 15:
        return digits + "0" * exponent + ".0"
    if 0 < point <= 15:
        return f"{digits[:point]}.{digits[point:]}"
    if -4 < point <= 0:
        return "0." + "0" * -point + digits
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+03}"


def _digits(number: float) -> tuple[list[int], int]:
    """Decimal digits of a positive double and the power of ten they are to be taken times."""
    exact, lower, upper = _neighbourhood(number)
    power, scale = _power_for(upper.exponent)
    # One unit less on either side: the products are off by up to that much.
    high = Scaled(upper.times(scale).significand - 1, upper.exponent + scale.exponent + WIDTH)
    delta = high.significand - (lower.times(scale).significand + 1)
    distance = high.significand - exact.times(scale).significand
    return _generated(high, delta, distance, -power)


def _neighbourhood(number: float) -> tuple[Scaled, Scaled, Scaled]:
    """A positive double, and the two points half way to its neighbours, all with the same exponent."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", number))
    fraction, biased = bits & ((1 << 52) - 1), bits >> 52
    significand = fraction | (1 << 52) if biased else fraction
    exponent = max(biased, 1) - 1075
    shift = WIDTH - (2 * significand + 1).bit_length()
    # Below a power of two the doubles lie twice as close.
    below = 4 * significand - 1 if fraction == 0 and biased > 1 else 4 * significand - 2
    common = exponent - 1 - shift
    return (
        Scaled(significand << (shift + 1), common),
        Scaled(below << shift >> 1, common),
        Scaled((2 * significand + 1) << shift, common),
    )


def _power_for(exponent: int) -> tuple[int, Scaled]:
    """The least power of ten of the table that lifts a number with this binary exponent to `LOWEST_EXPONENT`."""
    missing = LOWEST_EXPONENT - exponent - 1
    # 78913 / 2^18 is log10(2); the library rounds towards zero, and up where the quotient is positive.
    least = abs(missing * 78913) >> 18
    least = least + 1 if missing > 0 else -least
    index = (-LOWEST_POWER + least + POWER_STEP - 1) // POWER_STEP
    power = LOWEST_POWER + POWER_STEP * index
    return power, _power_of_ten(power)


@functools.cache
def _power_of_ten(power: int) -> Scaled:
    """Ten to the `power`, rounded to 64 bits."""
    top, bottom = (10**power, 1) if power >= 0 else (1, 10**-power)
    exponent = top.bit_length() - bottom.bit_length() - WIDTH
    while True:
        up, down = (top, bottom << exponent) if exponent >= 0 else (top << -exponent, bottom)
        significand = (2 * up + down) // (2 * down)
        if significand.bit_length() == WIDTH:
            return Scaled(significand, exponent)
        exponent += 1 if significand.bit_length() > WIDTH else -1


def _generated(high: Scaled, delta: int, distance: int, exponent: int) -> tuple[list[int], int]:
    """Digits from the left of `high`, until what is left of it is within `delta`; then nearer to the exact number."""
    one = 1 << -high.exponent
    whole, fraction = high.significand >> -high.exponent, high.significand & (one - 1)
    digits: list[int] = []
    for place in range(len(str(whole)) - 1, -1, -1):
        digit, whole = divmod(whole, 10**place)
        digits.append(digit)
        rest = whole * one + fraction
        if rest <= delta:
            _bring_nearer(digits, distance, delta, rest, 10**place * one)
            return digits, exponent + place
    while True:
        fraction, delta, distance, exponent = fraction * 10, delta * 10, distance * 10, exponent - 1
        digits.append(fraction >> -high.exponent)
        fraction &= one - 1
        if fraction <= delta:
            _bring_nearer(digits, distance, delta, fraction, one)
            return digits, exponent


def _bring_nearer(digits: list[int], distance: int, delta: int, rest: int, unit: int) -> None:
    """Lower the last digit while that stays within `delta` and comes nearer to the exact number."""
    while (
        rest < distance
        and delta - rest >= unit
        and (rest + unit < distance or distance - rest > rest + unit - distance)
    ):
        digits[-1] -= 1
        rest += unit
