// Portable math: one implementation of the transcendental functions, the same bytes on every device.
//
// libm differs between C libraries and from CUDA's libdevice, so neither is used.  Everything here is built from
// operations that IEEE 754 rounds exactly one way: + - * / sqrt, comparisons, selects and integer bits.  Two flags keep
// it so: -ffp-contract=off on hosts, --fmad=false in NVRTC.  gpudb/portable.py is the same text in NumPy, operation by
// operation: change both together.  The file is long because the functions share cores: exp, ln, sine, arctangent.
//
// Conventions
//   * A PortablePair is an unevaluated sum high + low, about 106 bits; it carries what one float64 would round away.
//   * Error is at most 1 ulp where the comment says nothing else; gamma and lgamma state their own bound.
//   * Special values follow C99 annex F.  Every NaN that leaves is the canonical 0x7ff8000000000000.
//   * Selects, not branches, so that loops over rows vectorise; the exceptions (sin, cos, tan, cot beyond 2^20) say so.
//   * Polynomials are minimax (Remez, 300-bit arithmetic, relative weight); each states its interval and its error.
//   * rint, sqrt and fabs are one exact instruction on every target (SSE4.1 upwards and in PTX): platform.h's exact_*.
//     floor, ceil and trunc are too, but g++ vectorises only rint while traps are on: the others are built from it.

struct PortablePair {
    float64 high, low;
};

// ---- Building blocks ----

/// condition ? yes : no, by masks: g++ turns ?: back into a branch and then vectorises nothing (exp: 4x on AVX2).
DEVICE float64 portable_select(bool condition, float64 yes, float64 no) {
    const uint64 mask = 0 - uint64(condition);
    return float64_from_bits((float64_bits(yes) & mask) | (float64_bits(no) & ~mask));
}

DEVICE float64 portable_nan() { return float64_from_bits(0x7ff8000000000000ull); }

DEVICE float64 portable_infinity() { return float64_from_bits(0x7ff0000000000000ull); }

/// The one NaN pattern, whatever sign and payload the operations before left.
DEVICE float64 portable_canonical(float64 x) { return portable_select(x == x, x, portable_nan()); }

DEVICE PortablePair portable_select_pair(bool condition, PortablePair yes, PortablePair no) {
    return {portable_select(condition, yes.high, no.high), portable_select(condition, yes.low, no.low)};
}

/// |magnitude| with the sign bit of `sign`.
DEVICE float64 portable_copysign(float64 magnitude, float64 sign) {
    const uint64 sign_bit = 0x8000000000000000ull;
    return float64_from_bits((float64_bits(magnitude) & ~sign_bit) | (float64_bits(sign) & sign_bit));
}

/// x with its sign flipped where `condition`.
DEVICE float64 portable_negate_if(bool condition, float64 x) {
    return float64_from_bits(float64_bits(x) ^ (uint64(condition) << 63));
}

/// 2^exponent; -1022 <= exponent <= 1023.
DEVICE float64 portable_power_of_two(int64 exponent) { return float64_from_bits(uint64(exponent + 1023) << 52); }

/// x * 2^exponent, |exponent| <= 2044; two exact steps, so that only an underflowing result is rounded.
DEVICE float64 portable_scale(float64 x, int64 exponent) {
    const int64 first = int64(uint64(exponent + 4096) >> 1) - 2048;   // half of it; AVX2 shifts no negative int64
    return x * portable_power_of_two(first) * portable_power_of_two(exponent - first);
}

/// a + b exactly.
DEVICE PortablePair portable_two_sum(float64 a, float64 b) {
    const float64 sum = a + b;
    const float64 part = sum - a;
    return {sum, (a - (sum - part)) + (b - part)};
}

/// a + b exactly, where |a| >= |b| or a is 0.
DEVICE PortablePair portable_fast_sum(float64 a, float64 b) {
    const float64 sum = a + b;
    return {sum, b - (sum - a)};
}

/// a * b exactly (Dekker), unless a factor passes 2^996 or the error term underflows.
DEVICE PortablePair portable_product(float64 a, float64 b) {
    const float64 a_wide = 134217729.0 * a;   // 2^27 + 1
    const float64 b_wide = 134217729.0 * b;
    const float64 a_high = a_wide - (a_wide - a);
    const float64 b_high = b_wide - (b_wide - b);
    const float64 a_low = a - a_high;
    const float64 b_low = b - b_high;
    const float64 product = a * b;
    return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

/// a * b to about 2^-103.
DEVICE PortablePair portable_pair_product(PortablePair a, PortablePair b) {
    const PortablePair product = portable_product(a.high, b.high);
    return portable_fast_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

/// a / b to about 2^-103.
DEVICE PortablePair portable_pair_quotient(PortablePair a, PortablePair b) {
    const float64 quotient = a.high / b.high;
    const PortablePair back = portable_product(quotient, b.high);
    const float64 rest = ((a.high - back.high) - back.low) + (a.low - quotient * b.low);
    return portable_fast_sum(quotient, rest / b.high);
}

// ---- Exact rounding ----

/// To the nearest integer, ties to even.
DEVICE float64 portable_rint(float64 x) { return portable_canonical(exact_rint(x)); }

DEVICE float64 portable_floor(float64 x) {
    const float64 nearest = exact_rint(x);
    return portable_canonical(nearest - portable_select(nearest > x, 1.0, 0.0));
}

DEVICE float64 portable_ceil(float64 x) {
    const float64 nearest = exact_rint(x);
    return portable_canonical(portable_copysign(nearest + portable_select(nearest < x, 1.0, 0.0), x));
}

DEVICE float64 portable_trunc(float64 x) {
    return portable_canonical(portable_copysign(portable_floor(exact_abs(x)), x));
}

/// To the nearest integer, ties away from zero, as SQL's ROUND: the addend is the float64 below a half.
DEVICE float64 portable_round(float64 x) {
    return portable_canonical(portable_copysign(portable_floor(exact_abs(x) + 0.49999999999999994), x));
}

DEVICE float64 portable_sqrt(float64 x) { return portable_canonical(exact_sqrt(x)); }

// ---- Exponential ----

/// exp(high + low) = (1 + y) * 2^exponent; y = y_high + y_low lies in [-0.30, 0.42].
struct PortableExponential {
    float64 y_high, y_low;
    int64 exponent;
};

/// Cody-Waite reduction by ln 2, then expm1 of the rest.  |high| <= 1100, |low| tiny.  y's error is about 2^-60 of 1.
DEVICE PortableExponential portable_exponential(float64 high, float64 low) {
    const float64 shifted = high * 1.4426950408889634 + 6755399441055744.0;   // 1.5 * 2^52: integer in low bits
    const float64 count = shifted - 6755399441055744.0;
    const float64 coarse = high - count * 0.6931471805598903;   // 42 bits of ln 2: the product is exact
    const float64 fine = low - count * 5.497923018708371e-14;   // and the next 53
    const PortablePair r = portable_fast_sum(coarse, fine);
    // (exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2: 2^-64
    float64 p = 2.0926871503816418e-09;
    p = p * r.high + 2.5112239675158352e-08;
    p = p * r.high + 2.7557233591727085e-07;
    p = p * r.high + 2.755723423833053e-06;
    p = p * r.high + 2.480158737345591e-05;
    p = p * r.high + 0.00019841269897055903;
    p = p * r.high + 0.0013888888888858614;
    p = p * r.high + 0.00833333333331674;
    p = p * r.high + 0.04166666666666673;
    p = p * r.high + 0.16666666666666685;
    const float64 square = r.high * r.high;
    const float64 tail = square * r.high * p + (r.low + r.low * r.high);
    const PortablePair head = portable_fast_sum(r.high, 0.5 * square);
    const PortablePair y = portable_fast_sum(head.high, head.low + tail);
    return {y.high, y.low, int64(float64_bits(shifted) - 0x4338000000000000ull)};
}

/// (1 + y) as a pair.
DEVICE PortablePair portable_one_plus(float64 y_high, float64 y_low) {
    const PortablePair sum = portable_fast_sum(1.0, y_high);
    return portable_fast_sum(sum.high, sum.low + y_low);
}

DEVICE float64 portable_exp(float64 x) {
    float64 clamped = portable_select(x < 750.0, x, 750.0);
    clamped = portable_select(clamped > -750.0, clamped, -750.0);
    const PortableExponential e = portable_exponential(clamped, 0.0);
    const float64 result = portable_scale(portable_one_plus(e.y_high, e.y_low).high, e.exponent);
    return portable_select(x == x, result, portable_nan());
}

/// expm1 before its scale 2^exponent: (1 - 2^-exponent) + y.  exponent >= -1000.
DEVICE PortablePair portable_expm1_mantissa(PortableExponential e) {
    const int64 bounded = e.exponent < 64 ? e.exponent : 64;   // beyond, 1 - 2^-exponent rounds to 1
    const PortablePair sum = portable_two_sum(1.0 - portable_power_of_two(-bounded), e.y_high);
    return portable_fast_sum(sum.high, sum.low + e.y_low);
}

DEVICE float64 portable_expm1(float64 x) {
    float64 clamped = portable_select(x < 750.0, x, 750.0);
    clamped = portable_select(clamped > -50.0, clamped, -50.0);
    const PortableExponential e = portable_exponential(clamped, 0.0);
    const float64 result = portable_scale(portable_expm1_mantissa(e).high, e.exponent);
    const float64 signed_result = portable_select(exact_abs(x) < 5.551115123125783e-17, x, result);   // 2^-54
    return portable_select(x == x, signed_result, portable_nan());
}

// ---- Hyperbolic ----

DEVICE float64 portable_sinh(float64 x) {
    const float64 a = exact_abs(x);
    const float64 clamped = portable_select(a < 750.0, a, 750.0);
    const PortableExponential e = portable_exponential(clamped, 0.0);
    // sinh = (t + t / (1 + t)) / 2 with t = expm1: no cancellation.  Past 22 the second exponential vanishes.
    const PortablePair t = portable_expm1_mantissa(e);
    const float64 near_scale = portable_power_of_two(e.exponent < 64 ? e.exponent : 64);
    const PortablePair grown = {t.high * near_scale, t.low * near_scale};
    const PortablePair one_plus = portable_two_sum(1.0, grown.high);
    const PortablePair quotient = portable_pair_quotient(grown, {one_plus.high, one_plus.low + grown.low});
    const PortablePair sum = portable_fast_sum(grown.high, quotient.high);
    const float64 near = 0.5 * (sum.high + (sum.low + (grown.low + quotient.low)));
    const float64 far = portable_scale(portable_one_plus(e.y_high, e.y_low).high, e.exponent - 1);
    float64 result = portable_select(a < 22.0, near, far);
    result = portable_select(a < 3.725290298461914e-09, a, result);   // 2^-28: x^3 / 6 is below the last bit
    return portable_select(x == x, portable_copysign(result, x), portable_nan());
}

DEVICE float64 portable_cosh(float64 x) {
    const float64 a = exact_abs(x);
    const float64 clamped = portable_select(a < 750.0, a, 750.0);
    const PortableExponential e = portable_exponential(clamped, 0.0);
    const float64 half = portable_scale(portable_one_plus(e.y_high, e.y_low).high, e.exponent - 1);
    return portable_select(x == x, half + 0.25 / half, portable_nan());
}

DEVICE float64 portable_tanh(float64 x) {
    const float64 a = exact_abs(x);
    const float64 clamped = portable_select(a < 22.0, a, 22.0);
    const PortableExponential e = portable_exponential(2.0 * clamped, 0.0);
    const PortablePair mantissa = portable_expm1_mantissa(e);
    const float64 scale = portable_power_of_two(e.exponent);
    const PortablePair t = {mantissa.high * scale, mantissa.low * scale};
    const PortablePair sum = portable_two_sum(2.0, t.high);
    const PortablePair quotient = portable_pair_quotient(t, {sum.high, sum.low + t.low});
    const float64 result = portable_select(a < 3.725290298461914e-09, a, quotient.high);
    return portable_select(x == x, portable_copysign(result, x), portable_nan());
}

// ---- Logarithms ----

/// x = mantissa * 2^exponent, mantissa in [sqrt(1/2), sqrt(2)); x positive and finite, subnormals too.
struct PortableBinary {
    float64 exponent, mantissa;
};

DEVICE PortableBinary portable_binary(float64 x) {
    const bool subnormal = x < 2.2250738585072014e-308;
    const float64 normal = portable_select(subnormal, x * 18014398509481984.0, x);   // 2^54
    const float64 bias = portable_select(subnormal, 4503599627371573.0, 4503599627371519.0);   // 2^52 + 1023 (+ 54)
    const uint64 bits = float64_bits(normal) + (0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull);
    return {float64_from_bits((bits >> 52) | 0x4330000000000000ull) - bias,
            float64_from_bits((bits & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull)};
}

/// What a logarithm is where it is not finite: x is 0, negative, infinite or NaN.
DEVICE float64 portable_logarithm_specials(float64 x, float64 result) {
    result = portable_select(x < portable_infinity(), result, x);
    result = portable_select(x == 0.0, -portable_infinity(), result);
    return portable_select(x >= 0.0, result, portable_nan());
}

DEVICE float64 portable_ln(float64 x) {
    const PortableBinary b = portable_binary(x);
    const float64 f = b.mantissa - 1.0;
    const float64 s = f / (2.0 + f);
    const float64 z = s * s;
    // (2 atanh(s) / s - 2) / z on [0, 0.02944]: 2^-58.5
    float64 p = 0.147959798182115;
    p = p * z + 0.153140516411929;
    p = p * z + 0.18183564118226575;
    p = p * z + 0.2222219858027054;
    p = p * z + 0.28571428742292493;
    p = p * z + 0.3999999999941519;
    p = p * z + 0.6666666666666734;
    // ln(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + z p)): the leading term f is exact
    const float64 half_square = 0.5 * f * f;
    const float64 small = s * (half_square + z * p) + b.exponent * 5.497923018708371e-14;
    const float64 result = b.exponent * 0.6931471805598903 - ((half_square - small) - f);
    return portable_logarithm_specials(x, result);
}

/// ln(x) as a pair with about 2^-65 relative error; x positive and finite.  atanh series whose first terms are pairs.
DEVICE PortablePair portable_ln_pair(float64 x) {
    const PortableBinary b = portable_binary(x);
    const float64 f = b.mantissa - 1.0;
    const float64 sum = b.mantissa + 1.0;
    const PortablePair s = portable_pair_quotient({f, 0.0}, {sum, b.mantissa - (sum - 1.0)});
    const PortablePair square = portable_product(s.high, s.high);
    const PortablePair z = portable_fast_sum(square.high, square.low + 2.0 * s.high * s.low);
    // (atanh(s) / s - 1 - z / 3) / z^2 on [0, 0.02944]: 2^-73.5
    float64 p = 0.059944121833664626;
    p = p * z.high + 0.058374227435031074;
    p = p * z.high + 0.06668157915174598;
    p = p * z.high + 0.07692278460263538;
    p = p * z.high + 0.09090909434721252;
    p = p * z.high + 0.11111111108772494;
    p = p * z.high + 0.14285714285722534;
    p = p * z.high + 0.1999999999999999;
    const PortablePair third = portable_pair_product(z, {0.3333333333333333, 1.850371707708594e-17});
    const PortablePair series = portable_fast_sum(third.high, third.low + z.high * z.high * p);
    const PortablePair bend = portable_pair_product({2.0 * s.high, 2.0 * s.low}, series);
    const PortablePair head = portable_fast_sum(2.0 * s.high, bend.high);
    const float64 head_low = head.low + (bend.low + 2.0 * s.low);
    const PortablePair total = portable_fast_sum(b.exponent * 0.6931471805598903, head.high);
    return portable_fast_sum(total.high, total.low + (b.exponent * 5.497923018708371e-14 + head_low));
}

/// ln(x.high + x.low) as a pair.
DEVICE PortablePair portable_ln_of_pair(PortablePair x) {
    const PortablePair logarithm = portable_ln_pair(x.high);
    const PortablePair sum = portable_two_sum(logarithm.high, x.low / x.high);
    return portable_fast_sum(sum.high, sum.low + logarithm.low);
}

/// Exact at powers of two.
DEVICE float64 portable_log2(float64 x) {
    const PortablePair logarithm = portable_ln_pair(x);
    const PortablePair result = portable_pair_product(logarithm, {1.4426950408889634, 2.0355273740931033e-17});
    return portable_logarithm_specials(x, result.high);
}

/// Exact at powers of ten.
DEVICE float64 portable_log10(float64 x) {
    const PortablePair logarithm = portable_ln_pair(x);
    const PortablePair result = portable_pair_product(logarithm, {0.4342944819032518, 1.098319650216765e-17});
    return portable_logarithm_specials(x, result.high);
}

/// sqrt(a^2 + sign) + a as a pair, sign +1 or -1, for the inverse hyperbolic functions; a at most 2^28.
DEVICE PortablePair portable_area_argument(float64 a, float64 sign) {
    const PortablePair square = portable_product(a, a);
    const PortablePair sum = portable_two_sum(square.high, sign);
    const PortablePair radicand = portable_fast_sum(sum.high, sum.low + square.low);
    const float64 root = exact_sqrt(radicand.high);
    const PortablePair back = portable_product(root, root);
    const float64 rest = ((radicand.high - back.high) - back.low) + radicand.low;
    const float64 root_low = rest / portable_select(root > 0.0, 2.0 * root, 1.0);
    const PortablePair total = portable_two_sum(a, root);
    return portable_fast_sum(total.high, total.low + root_low);
}

/// ln(2a) for a past 2^28, else ln of the argument.
DEVICE float64 portable_area(float64 a, float64 sign) {
    const bool big = a > 268435456.0;
    const PortablePair argument = portable_area_argument(portable_select(big, 1.0, a), sign);
    const PortablePair chosen = {portable_select(big, a, argument.high), portable_select(big, 0.0, argument.low)};
    const PortablePair logarithm = portable_ln_of_pair(chosen);
    return logarithm.high + (logarithm.low + portable_select(big, 0.6931471805599453, 0.0));
}

DEVICE float64 portable_asinh(float64 x) {
    const float64 a = exact_abs(x);
    float64 result = portable_area(a, 1.0);
    result = portable_select(a < 3.725290298461914e-09, a, result);
    result = portable_select(a < portable_infinity(), result, a);
    return portable_select(x == x, portable_copysign(result, x), portable_nan());
}

DEVICE float64 portable_acosh(float64 x) {
    const float64 result = portable_select(x < portable_infinity(), portable_area(x, -1.0), x);
    return portable_select(x >= 1.0, result, portable_nan());
}

DEVICE float64 portable_atanh(float64 x) {
    const float64 a = exact_abs(x);
    const float64 inside = portable_select(a < 1.0, a, 0.0);
    const PortablePair quotient = portable_pair_quotient(portable_two_sum(1.0, inside), portable_two_sum(1.0, -inside));
    float64 result = 0.5 * portable_ln_of_pair(quotient).high;
    result = portable_select(a < 3.725290298461914e-09, a, result);
    result = portable_select(a == 1.0, portable_infinity(), result);
    return portable_select(a <= 1.0, portable_copysign(result, x), portable_nan());
}

// ---- Powers ----

DEVICE float64 portable_pow(float64 x, float64 y) {
    const float64 a = exact_abs(x);
    // past 2^65 every base but 1 over- or underflows, and the exact product below stays in range
    float64 exponent = portable_select(y < 36893488147419103232.0, y, 36893488147419103232.0);
    exponent = portable_select(exponent > -36893488147419103232.0, exponent, -36893488147419103232.0);
    const PortablePair product = portable_pair_product(portable_ln_pair(a), {exponent, 0.0});
    const bool inside = exact_abs(product.high) < 800.0;
    const float64 high = portable_select(inside, product.high, portable_select(product.high > 0.0, 800.0, -800.0));
    const PortableExponential e = portable_exponential(high, portable_select(inside, product.low, 0.0));
    float64 result = portable_scale(portable_one_plus(e.y_high, e.y_low).high, e.exponent);

    const bool extreme = (a == 0.0) | (a == portable_infinity());
    const bool grows = (y > 0.0) == (a > 1.0);
    result = portable_select(extreme, portable_select(grows, portable_infinity(), 0.0), result);
    const bool whole = portable_floor(y) == y;
    const bool odd = whole & (portable_floor(0.5 * y) != 0.5 * y);
    const bool negative = (float64_bits(x) >> 63) != 0;
    result = portable_negate_if(negative & odd, result);
    result = portable_select((x < 0.0) & !whole & (a < portable_infinity()), portable_nan(), result);
    result = portable_select((x == x) & (y == y), result, portable_nan());
    return portable_select((x == 1.0) | (y == 0.0), 1.0, result);
}

DEVICE float64 portable_cbrt(float64 x) {
    const float64 a = exact_abs(x);
    const bool subnormal = a < 2.2250738585072014e-308;
    const uint64 bits = float64_bits(portable_select(subnormal, a * 18014398509481984.0, a));   // 2^54
    const uint64 biased = bits >> 52;
    const uint64 third = (biased * 21846) >> 16;                          // biased / 3, and 1023 is 3 * 341
    const uint64 rest = biased - 3 * third;
    const float64 m = float64_from_bits((bits & 0x000fffffffffffffull) | ((rest + 1023) << 52));   // in [1, 8)
    // m^(1/3) on [1, 8]: 2^-10.4; one step of Halley to 2^-31; one of Newton with the exact residual to 2^-60
    float64 r = 8.813725863433583e-05;
    r = r * m - 0.0023085352472706675;
    r = r * m + 0.024185983208285806;
    r = r * m - 0.13454106706053937;
    r = r * m + 0.5261731113397572;
    r = r * m + 0.5871060605973989;
    const float64 cube = r * r * r;
    const float64 better = r * (cube + 2.0 * m) / (2.0 * cube + m);
    const PortablePair square = portable_product(better, better);
    const PortablePair whole = portable_pair_product(square, {better, 0.0});
    const float64 residual = (m - whole.high) - whole.low;
    const float64 root = better + residual / (3.0 * square.high);
    const uint64 exponent = third + (1023 - 341) - (subnormal ? 18 : 0);
    float64 result = root * float64_from_bits(exponent << 52);
    result = portable_select((a > 0.0) & (a < portable_infinity()), result, a);
    return portable_select(x == x, portable_copysign(result, x), portable_nan());
}

// ---- Sine and its kin ----

/// x = high + low + quadrant * pi / 2 (mod 2 pi); |high| <= pi / 4 and a little.
struct PortableAngle {
    float64 high, low;
    uint64 quadrant;
};

/// Cody-Waite with 152 bits of pi / 2: |x| <= 2^20.
DEVICE PortableAngle portable_reduce_near(float64 x) {
    const float64 shifted = x * 0.6366197723675814 + 6755399441055744.0;   // 1.5 * 2^52
    const float64 count = shifted - 6755399441055744.0;   // below 2^20, so its products with 33 bits are exact
    const float64 coarse = x - count * 1.5707963267341256;
    const PortablePair second = portable_two_sum(coarse, -(count * 6.077100506303966e-11));
    const PortablePair third = portable_two_sum(second.high, -(count * 2.0222662487111665e-21));
    const float64 low = (second.low + third.low) - count * 8.4784276603689e-32;
    const PortablePair angle = portable_fast_sum(third.high, low);
    return {angle.high, angle.low, float64_bits(shifted) & 3};
}

/// Payne-Hanek: 192 bits of x * 2 / pi (mod 4) from the bits of 2 / pi that matter; 2^20 <= |x|, finite or not.
DEVICE PortableAngle portable_reduce_far(float64 x) {
    static const uint32 two_over_pi[39] = {   // 64 zero bits, then the fraction
        0x00000000, 0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
        0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
        0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
        0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
        0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046};
    const uint64 bits = float64_bits(x);
    const uint64 position = ((bits >> 52) & 0x7ff) - 1013;   // first bit that is worth less than 4 in the product
    const uint64 word = position >> 5;
    const uint64 shift = 32 - (position & 31);
    const uint64 mantissa = (bits & 0x000fffffffffffffull) | 0x0010000000000000ull;
    const uint64 mantissa_low = mantissa & 0xffffffffull;
    const uint64 mantissa_high = mantissa >> 32;
    uint64 product[6];                                       // 32-bit digits, lowest first, modulo 2^192
    uint64 window[6];
    uint64 carry = 0;
    for (int i = 0; i < 6; i++) {
        const uint64 pair = (uint64(two_over_pi[word + 5 - i]) << 32) | two_over_pi[word + 6 - i];
        window[i] = (pair >> shift) & 0xffffffffull;
        const uint64 digit = mantissa_low * window[i] + carry;
        product[i] = digit & 0xffffffffull;
        carry = digit >> 32;
    }
    carry = 0;
    for (int i = 1; i < 6; i++) {
        const uint64 digit = product[i] + mantissa_high * window[i - 1] + carry;
        product[i] = digit & 0xffffffffull;
        carry = digit >> 32;
    }
    // two bits of quadrant, then a signed fraction of 190 bits: rounding to nearest adds its top bit to the quadrant
    const uint64 top = product[5];
    const uint64 negative = (top >> 29) & 1;
    const uint64 quadrant = ((top >> 30) + negative) & 3;
    const uint64 flip = negative != 0 ? 0xffffffffull : 0;
    PortablePair sum = {0.0, 0.0};
    float64 weight = 2.3283064365386963e-10;                 // 2^-32
    for (int i = 5; i >= 0; i--) {
        const uint64 below = i > 0 ? product[i - 1] >> 30 : 0;
        const uint64 digit = (((product[i] << 2) | below) & 0xffffffffull) ^ flip;   // minus 1 in 2^192, below the tail
        const float64 value = (float64_from_bits(digit | 0x4330000000000000ull) - 4503599627370496.0) * weight;
        const PortablePair step = portable_fast_sum(sum.high, value);
        sum = {step.high, sum.low + step.low};
        weight = weight * 2.3283064365386963e-10;
    }
    const PortablePair turns = portable_fast_sum(sum.high, sum.low);
    const PortablePair angle = portable_pair_product(turns, {1.5707963267948966, 6.123233995736766e-17});
    const bool x_negative = (bits >> 63) != 0;
    const bool flips = (negative != 0) != x_negative;
    return {portable_negate_if(flips, angle.high), portable_negate_if(flips, angle.low),
            x_negative ? (4 - quadrant) & 3 : quadrant};
}

/// Branches: rows past 2^20 are rare, and the far path costs more than all the rest.
DEVICE PortableAngle portable_reduce(float64 x) {
    if (exact_abs(x) < 1048576.0) return portable_reduce_near(x);
    return portable_reduce_far(x);
}

/// sin(high + low) as a pair, |high| <= pi / 4.
DEVICE PortablePair portable_sine_pair(float64 high, float64 low) {
    const float64 z = high * high;
    // (sin(r) / r - 1) / z on [0, pi^2 / 16]: 2^-68.8
    float64 p = -7.578765347098644e-13;
    p = p * z + 1.6058368016715333e-10;
    p = p * z - 2.505210492276086e-08;
    p = p * z + 2.7557319214234506e-06;
    p = p * z - 0.00019841269841255156;
    p = p * z + 0.008333333333333323;
    p = p * z - 0.16666666666666666;
    return portable_fast_sum(high, high * (z * p) + low * (1.0 - 0.5 * z));
}

/// cos(high + low) as a pair, |high| <= pi / 4.
DEVICE PortablePair portable_cosine_pair(float64 high, float64 low) {
    const float64 z = high * high;
    // (cos(r) - 1 + z / 2) / z^2 on [0, pi^2 / 16]: 2^-64.2
    float64 p = -1.1359665928103432e-11;
    p = p * z + 2.0875723632113495e-09;
    p = p * z - 2.755731435506915e-07;
    p = p * z + 2.4801587289492176e-05;
    p = p * z - 0.0013888888888874142;
    p = p * z + 0.0416666666666666;
    const PortablePair head = portable_fast_sum(1.0, -0.5 * z);
    return portable_fast_sum(head.high, head.low + (z * z * p - high * low));
}

DEVICE float64 portable_sin(float64 x) {
    const PortableAngle angle = portable_reduce(x);
    const float64 sine = portable_sine_pair(angle.high, angle.low).high;
    const float64 cosine = portable_cosine_pair(angle.high, angle.low).high;
    float64 result = portable_select((angle.quadrant & 1) != 0, cosine, sine);
    result = portable_negate_if((angle.quadrant & 2) != 0, result);
    result = portable_select(exact_abs(x) < 3.725290298461914e-09, x, result);   // 2^-28; keeps -0.0
    return portable_select(exact_abs(x) < portable_infinity(), result, portable_nan());
}

DEVICE float64 portable_cos(float64 x) {
    const PortableAngle angle = portable_reduce(x);
    const float64 sine = portable_sine_pair(angle.high, angle.low).high;
    const float64 cosine = portable_cosine_pair(angle.high, angle.low).high;
    float64 result = portable_select((angle.quadrant & 1) != 0, sine, cosine);
    result = portable_negate_if(((angle.quadrant + 1) & 2) != 0, result);
    return portable_select(exact_abs(x) < portable_infinity(), result, portable_nan());
}

/// sin / cos where `quadrant` is even, -cos / sin where it is odd, of one angle.
DEVICE float64 portable_tangent(PortableAngle angle, uint64 quadrant) {
    const PortablePair sine = portable_sine_pair(angle.high, angle.low);
    const PortablePair cosine = portable_cosine_pair(angle.high, angle.low);
    const bool swap = (quadrant & 1) != 0;
    const PortablePair upper = portable_select_pair(swap, cosine, sine);
    const PortablePair lower = portable_select_pair(swap, sine, cosine);
    return portable_negate_if(swap, portable_pair_quotient(upper, lower).high);
}

DEVICE float64 portable_tan(float64 x) {
    const PortableAngle angle = portable_reduce(x);
    const float64 tangent = portable_tangent(angle, angle.quadrant);
    const float64 result = portable_select(exact_abs(x) < 3.725290298461914e-09, x, tangent);
    return portable_select(exact_abs(x) < portable_infinity(), result, portable_nan());
}

/// 1 / tan(x): infinite with the sign of zero at 0.
DEVICE float64 portable_cot(float64 x) {
    const PortableAngle angle = portable_reduce(x);
    const float64 tangent = portable_tangent(angle, angle.quadrant + 1);
    const float64 result = portable_select(exact_abs(x) < 3.725290298461914e-09, 1.0 / x, -tangent);
    return portable_select(exact_abs(x) < portable_infinity(), result, portable_nan());
}

// ---- Inverse sine and its kin ----

/// atan(a / b) in [0, pi / 2], or pi minus that where `behind`; a, b >= 0 and the greater one lies in [2^-60, 2^120].
DEVICE float64 portable_arctangent(float64 a, float64 b, bool behind) {
    const bool flat = a <= 0.41421356237309503 * b;
    const bool steep = b < 0.41421356237309503 * a;
    const PortablePair difference = portable_two_sum(a, -b);
    const PortablePair sum = portable_two_sum(a, b);
    const bool middle = !(flat | steep);
    // atan(a / b) = base + atan(quotient), |quotient| <= tan(pi / 8)
    const float64 outer = portable_select(flat, a, -b);
    const float64 upper = portable_select(middle, difference.high, outer);
    const float64 upper_low = portable_select(middle, difference.low, 0.0);
    const float64 lower = portable_select(middle, sum.high, portable_select(flat, b, a));
    const float64 lower_low = portable_select(middle, sum.low, 0.0);
    const float64 quotient = upper / lower;
    const PortablePair back = portable_product(quotient, lower);
    const float64 rest = ((upper - back.high) - back.low) + (upper_low - quotient * lower_low);
    // below 2^-900 the product's error underflows, and the quotient is the answer
    const float64 quotient_low = portable_select(exact_abs(quotient) > 1.1830521861667747e-271, rest / lower, 0.0);
    const float64 z = quotient * quotient;
    // (atan(t) / t - 1) / z on [0, tan(pi / 8)^2]: 2^-59.5
    float64 p = -0.017920789795466307;
    p = p * z + 0.0380769888547199;
    p = p * z - 0.05039794244029394;
    p = p * z + 0.05847997810378537;
    p = p * z - 0.06663118896897963;
    p = p * z + 0.07692061509913486;
    p = p * z - 0.09090897829507444;
    p = p * z + 0.11111110785903767;
    p = p * z - 0.1428571428024397;
    p = p * z + 0.19999999999954038;
    p = p * z - 0.333333333333332;
    const float64 tail = quotient * (z * p) + quotient_low * (1.0 - z);
    const float64 end = portable_select(behind, 3.141592653589793, 0.0);
    const float64 diagonal = portable_select(behind, 2.356194490192345, 0.7853981633974483);
    const float64 base = portable_select(flat, end, portable_select(steep, 1.5707963267948966, diagonal));
    const float64 base_low = base * 3.8981718325193755e-17;   // pi's second half over its first, whatever the base
    const PortablePair total = portable_fast_sum(base, portable_negate_if(behind, quotient));
    return total.high + (total.low + (base_low + portable_negate_if(behind, tail)));
}

DEVICE float64 portable_atan(float64 x) {
    const float64 a = exact_abs(x);
    const float64 bounded = portable_select(a < 1.2676506002282294e+30, a, 1.2676506002282294e+30);   // 2^100
    const float64 result = portable_arctangent(bounded, 1.0, false);
    return portable_select(x == x, portable_copysign(result, x), portable_nan());
}

/// The angle of the point (x, y), in (-pi, pi].
DEVICE float64 portable_atan2(float64 y, float64 x) {
    float64 a = exact_abs(y);
    float64 b = exact_abs(x);
    const bool y_infinite = a == portable_infinity();
    const bool x_infinite = b == portable_infinity();
    const bool any_infinite = y_infinite | x_infinite;
    const bool origin = (a == 0.0) & (b == 0.0);
    a = portable_select(any_infinite, portable_select(y_infinite, 1.0, 0.0), a);
    b = portable_select(any_infinite, portable_select(x_infinite, 1.0, 0.0), b);
    b = portable_select(origin, 1.0, b);
    // bring the greater one near 1 by a power of two, so that nothing overflows and no residual underflows
    uint64 exponent = float64_bits(portable_select(a > b, a, b)) >> 52;
    exponent = exponent < 2045 ? exponent : 2045;
    const float64 scale = float64_from_bits((2046 - exponent) << 52);
    const float64 result = portable_arctangent(a * scale, b * scale, (float64_bits(x) >> 63) != 0);
    return portable_select((x == x) & (y == y), portable_copysign(result, y), portable_nan());
}

/// asin(s) - s of the reduced argument: s (asin(s) / s - 1), z = s^2 <= 1/4.
DEVICE float64 portable_arcsine_tail(float64 s, float64 z) {
    // (asin(s) / s - 1) / z on [0, 1/4]: 2^-59.8
    float64 p = 0.0327023107902627;
    p = p * z - 0.0211169801934631;
    p = p * z + 0.021790848638403807;
    p = p * z + 0.003672094867236857;
    p = p * z + 0.010789347081288337;
    p = p * z + 0.01139728804829167;
    p = p * z + 0.013981019191444385;
    p = p * z + 0.017351595442040135;
    p = p * z + 0.022372215909278428;
    p = p * z + 0.030381942675156853;
    p = p * z + 0.04464285717528865;
    p = p * z + 0.07499999999970096;
    p = p * z + 0.16666666666666763;
    return s * (z * p);
}

/// s = |x| and z = s^2 up to a half; beyond, z = (1 - |x|) / 2 and s its root, with what the root rounded away.
struct PortableArcsine {
    bool small;
    float64 s, low;
};

DEVICE PortableArcsine portable_arcsine(float64 a) {
    const bool small = a <= 0.5;
    const float64 z = portable_select(small, a * a, 0.5 * (1.0 - a));
    const float64 root = exact_sqrt(z);
    const PortablePair back = portable_product(root, root);
    const float64 rest = ((z - back.high) - back.low) / portable_select(root > 0.0, 2.0 * root, 1.0);
    const float64 s = portable_select(small, a, root);
    return {small, s, portable_select(small, 0.0, rest) + portable_arcsine_tail(s, z)};
}

DEVICE float64 portable_asin(float64 x) {
    const float64 a = exact_abs(x);
    const PortableArcsine part = portable_arcsine(a);
    const PortablePair total = portable_fast_sum(1.5707963267948966, -2.0 * part.s);
    const float64 large = total.high + (total.low + (6.123233995736766e-17 - 2.0 * part.low));
    const float64 result = portable_select(part.small, part.s + part.low, large);
    return portable_select(a <= 1.0, portable_copysign(result, x), portable_nan());
}

DEVICE float64 portable_acos(float64 x) {
    const float64 a = exact_abs(x);
    const PortableArcsine part = portable_arcsine(a);
    const bool negative = x < 0.0;
    // pi / 2 - asin(x) near 0, 2 asin(root) near 1, pi - 2 asin(root) near -1
    const float64 sign = portable_select(negative, 1.0, -1.0);
    const float64 factor = portable_select(part.small, sign, -2.0 * sign);
    const float64 outer = portable_select(negative, 3.141592653589793, 0.0);
    const float64 outer_low = portable_select(negative, 1.2246467991473532e-16, 0.0);
    const float64 base = portable_select(part.small, 1.5707963267948966, outer);
    const float64 base_low = portable_select(part.small, 6.123233995736766e-17, outer_low);
    const PortablePair total = portable_fast_sum(base, factor * part.s);
    return portable_select(a <= 1.0, total.high + (total.low + (base_low + factor * part.low)), portable_nan());
}

// ---- Gamma ----

/// What gamma and lgamma share, for a = |x| > 0: gamma(a) = exp(stirling) / rising.
struct PortableGamma {
    PortablePair stirling, rising;
};

/// Raises a to at least 12 by gamma(a + 1) = a gamma(a), in pairs; then nine terms of Stirling's series: 2^-60.
DEVICE PortableGamma portable_gamma_parts(float64 a) {
    PortablePair argument = {a, 0.0};
    PortablePair rising = {1.0, 0.0};
    for (int i = 0; i < 12; i++) {
        const bool raise = argument.high < 12.0;
        const PortablePair next = portable_pair_product(rising, argument);
        const PortablePair sum = portable_two_sum(argument.high, 1.0);
        rising = portable_select_pair(raise, next, rising);
        argument = portable_select_pair(raise, {sum.high, sum.low + argument.low}, argument);
    }
    const float64 inverse = 1.0 / argument.high;
    const float64 z = inverse * inverse;
    float64 p = 0.17964437236883057;   // B(2n) / (2n (2n - 1)), n = 9 .. 1
    p = p * z - 0.029550653594771242;
    p = p * z + 0.00641025641025641;
    p = p * z - 0.0019175269175269176;
    p = p * z + 0.0008417508417508417;
    p = p * z - 0.0005952380952380953;
    p = p * z + 0.0007936507936507937;
    p = p * z - 0.002777777777777778;
    p = p * z + 0.08333333333333333;
    // (a - 1/2) ln a - a + ln(2 pi) / 2 + p / a
    const PortablePair logarithm = portable_ln_of_pair(argument);
    const PortablePair half = portable_two_sum(argument.high, -0.5);
    const PortablePair product = portable_pair_product({half.high, half.low + argument.low}, logarithm);
    const PortablePair less = portable_two_sum(product.high, -argument.high);
    const PortablePair more = portable_two_sum(less.high, 0.9189385332046728);
    const float64 low = ((product.low - argument.low) + (less.low + more.low)) + (p * inverse - 3.8782941580672414e-17);
    const PortablePair stirling = portable_fast_sum(more.high, low);
    return {stirling, rising};
}

/// sin(pi a) for a >= 0: its magnitude as a pair and its sign; 0 at integers.
struct PortableHalfTurn {
    PortablePair magnitude;
    bool negative;
};

DEVICE PortableHalfTurn portable_half_turn(float64 a) {
    const float64 whole = exact_rint(a);
    const float64 rest = a - whole;
    const float64 u = exact_abs(rest);
    const bool near = u <= 0.25;
    const PortablePair angle =
        portable_pair_product({3.141592653589793, 1.2246467991473532e-16}, {portable_select(near, u, 0.5 - u), 0.0});
    const PortablePair sine = portable_sine_pair(angle.high, angle.low);
    const PortablePair cosine = portable_cosine_pair(angle.high, angle.low);
    const bool odd = portable_floor(0.5 * whole) != 0.5 * whole;
    return {portable_select_pair(near, sine, cosine), odd != (rest < 0.0)};
}

/// Within 2 ulp.  Infinite with the sign of zero at 0, NaN at the negative integers and at -infinity.
DEVICE float64 portable_gamma(float64 x) {
    const float64 a = exact_abs(x);
    float64 clamped = portable_select(a < 200.0, a, 200.0);
    clamped = portable_select(clamped > 8.673617379884035e-19, clamped, 8.673617379884035e-19);   // 2^-60
    const PortableGamma parts = portable_gamma_parts(clamped);
    const bool negative = x < 0.0;
    // gamma(-a) = -pi / (a sin(pi a) gamma(a))
    const PortableHalfTurn turn = portable_half_turn(a);
    const PortablePair upper = portable_pair_product({3.141592653589793, 1.2246467991473532e-16}, parts.rising);
    const PortablePair lower = portable_pair_product(turn.magnitude, {clamped, 0.0});
    const PortablePair ratio = portable_pair_quotient(portable_select_pair(negative, upper, {1.0, 0.0}),
                                                      portable_select_pair(negative, lower, parts.rising));
    const PortableExponential e = portable_exponential(portable_negate_if(negative, parts.stirling.high),
                                                       portable_negate_if(negative, parts.stirling.low));
    const PortablePair mantissa = portable_pair_product(ratio, portable_one_plus(e.y_high, e.y_low));
    float64 result = portable_scale(mantissa.high, e.exponent);
    result = portable_negate_if(negative & !turn.negative, result);
    result = portable_select(a < 8.673617379884035e-19, 1.0 / x, result);
    const bool pole = negative & (portable_floor(x) == x);
    result = portable_select(pole, portable_nan(), result);
    return portable_select(x == x, result, portable_nan());
}

/// ln |gamma(x)|.  Error at most 2 ulp for x > 0; for x < 0 at most 1e-14 * max(1, |result|).  Infinite at the poles.
DEVICE float64 portable_lgamma(float64 x) {
    const float64 a = exact_abs(x);
    float64 clamped = portable_select(a < 1.152921504606847e+18, a, 1.152921504606847e+18);   // 2^60
    clamped = portable_select(clamped > 8.673617379884035e-19, clamped, 8.673617379884035e-19);
    const PortableGamma parts = portable_gamma_parts(clamped);
    const PortablePair rising = portable_ln_of_pair(parts.rising);
    const PortablePair sum = portable_two_sum(parts.stirling.high, -rising.high);
    const PortablePair above = portable_fast_sum(sum.high, sum.low + (parts.stirling.low - rising.low));

    const PortableHalfTurn turn = portable_half_turn(clamped);
    const PortablePair lower = portable_pair_product(turn.magnitude, {clamped, 0.0});
    const bool pole = lower.high == 0.0;
    const PortablePair ratio = portable_pair_quotient({3.141592653589793, 1.2246467991473532e-16},
                                                      {portable_select(pole, 1.0, lower.high), lower.low});
    const PortablePair reflected = portable_ln_of_pair(ratio);
    const PortablePair difference = portable_two_sum(reflected.high, -above.high);
    const float64 below = difference.high + (difference.low + (reflected.low - above.low));

    // Taylor series at the zeros 1 and 2, |d| <= 1/32: above.high would cancel there
    const bool near_one = exact_abs(x - 1.0) <= 0.03125;
    const bool near_two = exact_abs(x - 2.0) <= 0.03125;
    const float64 d = portable_select(near_one, x - 1.0, x - 2.0);
    float64 p = portable_select(near_one, 0.083353840546109, 2.050721277567069e-05);   // zeta(n) / n, (zeta(n) - 1) / n
    p = p * d - portable_select(near_one, 0.09095401714582904, 4.492623673813314e-05);
    p = p * d + portable_select(near_one, 0.1000994575127818, 9.945751278180853e-05);
    p = p * d - portable_select(near_one, 0.11133426586956469, 0.00022315475845357939);
    p = p * d + portable_select(near_one, 0.12550966952474304, 0.0005096695247430425);
    p = p * d - portable_select(near_one, 0.1440498967688461, 0.001192753911703261);
    p = p * d + portable_select(near_one, 0.1695571769974082, 0.0028905103307415234);
    p = p * d - portable_select(near_one, 0.20738555102867398, 0.007385551028673986);
    p = p * d + portable_select(near_one, 0.27058080842778454, 0.020580808427784546);
    p = p * d - portable_select(near_one, 0.40068563438653143, 0.0673523010531981);
    p = p * d + portable_select(near_one, 0.8224670334241132, 0.3224670334241132);
    p = p * d + portable_select(near_one, -0.5772156649015329, 0.42278433509846713);

    const float64 logarithm = portable_ln(a);
    float64 result = portable_select(near_one | near_two, p * d + 0.0, above.high);   // + 0.0: never -0.0
    result = portable_select(a > 2.8823037615171174e+17, a * (logarithm - 1.0), result);   // 2^58
    result = portable_select(x < 0.0, below, result);
    result = portable_select(a < 8.673617379884035e-19, -logarithm, result);
    const bool infinite = ((x < 0.0) & (portable_floor(x) == x)) | (a == portable_infinity());
    result = portable_select(infinite, portable_infinity(), result);
    return portable_select(x == x, result, portable_nan());
}
