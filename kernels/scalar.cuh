// Functions of one row's values, as the opcode table's C++ expressions call them.

template <class T> DEVICE bool equal(T a, T b) { return a == b; }
DEVICE bool equal(float32 a, float32 b) { return (a == b) | ((a != a) & (b != b)); }
DEVICE bool equal(float64 a, float64 b) { return (a == b) | ((a != a) & (b != b)); }

template <class T> DEVICE bool less(T a, T b) { return a < b; }
DEVICE bool less(float32 a, float32 b) { return (a < b) | ((a == a) & (b != b)); }
DEVICE bool less(float64 a, float64 b) { return (a < b) | ((a == a) & (b != b)); }

template <class T> struct Unsigned { typedef T type; };
template <> struct Unsigned<int32> { typedef uint32 type; };
template <> struct Unsigned<int64> { typedef uint64 type; };
template <> struct Unsigned<int128> { typedef uint128 type; };
template <class T> using unsigned_of = typename Unsigned<T>::type;

template <class T> DEVICE T wrapping_add(T a, T b) { return T(unsigned_of<T>(a) + unsigned_of<T>(b)); }
template <class T> DEVICE T wrapping_subtract(T a, T b) { return T(unsigned_of<T>(a) - unsigned_of<T>(b)); }
template <class T> DEVICE T wrapping_multiply(T a, T b) { return T(unsigned_of<T>(a) * unsigned_of<T>(b)); }

/// scale * stored, wrapping.  In 64 bits by two multiplications of 32 bits, which SIMD has and of 64 it has not.
template <class S> DEVICE int32 scaled(int32 scale, S stored) { return wrapping_multiply(scale, int32(stored)); }
template <class S> DEVICE int64 scaled(int64 scale, S stored) {
    const uint64 low = uint64(uint32(stored)) * uint32(scale), high = uint64(uint32(stored)) * uint32(uint64(scale) >> 32);
    return int64(low + (high << 32));
}

/// A code as a double, by the conversion of signed integers that SIMD has.
template <class S> DEVICE float64 float_of_code(S code) { return float64(int32(code)); }
DEVICE float64 float_of_code(uint32 code) { return float64(int32(code ^ 0x80000000u)) + 2147483648.0; }

template <class T> DEVICE T wrapping_negate(T a) { return T(unsigned_of<T>(0) - unsigned_of<T>(a)); }
DEVICE float32 wrapping_negate(float32 a) { return -a; }
DEVICE float64 wrapping_negate(float64 a) { return -a; }
template <class T> DEVICE T absolute(T a) { return a < 0 ? wrapping_negate(a) : a; }
DEVICE float32 absolute(float32 a) { return float32(exact_abs(float64(a))); }
DEVICE float64 absolute(float64 a) { return exact_abs(a); }

template <class T> DEVICE bool add_overflows(T a, T b) { const T sum = wrapping_add(a, b); return ((a ^ sum) & (b ^ sum)) < 0; }
template <class T> DEVICE bool subtract_overflows(T a, T b) { const T rest = wrapping_subtract(a, b); return ((a ^ b) & (a ^ rest)) < 0; }
DEVICE bool multiply_overflows(int64 a, int64 b) { const int128 product = int128(a) * b; return product != int128(int64(product)); }
DEVICE bool multiply_overflows(int128 a, int128 b) {
    if (a == 0 || b == 0) return false;
    const int128 product = wrapping_multiply(a, b);
    const int128 lowest = int128(uint128(1) << 127);
    if ((a == -1 && b == lowest) || (b == -1 && a == lowest)) return true;
    return product / b != a;
}

template <class T> DEVICE T truncated_quotient(T a, T b) { return b == 0 ? T(0) : b == T(-1) ? wrapping_negate(a) : T(a / b); }
template <class T> DEVICE T truncated_remainder(T a, T b) { return (b == 0 || b == T(-1)) ? T(0) : T(a % b); }
DEVICE float64 float_remainder(float64 a, float64 b) { return exact_fmod(a, b); }
DEVICE float32 float_remainder(float32 a, float32 b) { return float32(exact_fmod(float64(a), float64(b))); }

template <class T> DEVICE T round_half_away(T x, T divisor) {
    const T quotient = T(x / divisor), rest = T(x % divisor);
    const T twice = rest < 0 ? -rest : rest;
    return twice >= divisor - twice ? T(quotient + (x < 0 ? -1 : 1)) : quotient;
}

DEVICE int64 floor_quotient(int64 x, int64 divisor) { const int64 q = x / divisor; return q - (x % divisor < 0); }
DEVICE float64 round_away(float64 x) {
    const float64 truncated = exact_trunc(x);
    return exact_abs(x - truncated) >= 0.5 ? truncated + (x < 0 ? -1.0 : 1.0) : truncated;
}

template <class In, class Out> DEVICE Out convert(In x, TypeTag<Out>) { return Out(x); }

/// int128 to double, rounded once to nearest even: the same code on every target.
DEVICE float64 float64_of_int128(int128 x) {
    const bool negative = x < 0;
    uint128 magnitude = negative ? uint128(0) - uint128(x) : uint128(x);
    int shift = 0;
    uint64 sticky = 0;
    while (magnitude >> 64) { sticky |= uint64(magnitude & 1); magnitude >>= 1; ++shift; }
    uint64 top = uint64(magnitude);  // 64 bits or fewer; a hardware conversion rounds once if the sticky bit is folded in
    if (shift > 0) top |= sticky;    // bit 0 is below the rounding position, as top has its bit 63 set
    float64 value = float64(top);
    for (; shift > 0; --shift) value *= 2.0;
    return negative ? -value : value;
}
/// x / divisor as a double, rounded once to nearest even; the divisor is 1 to 2^126.
NOINLINE float64 float64_of_ratio(int128 x, int128 divisor) {
    if (divisor == 1 || x == 0) return float64_of_int128(x);
    const bool negative = x < 0;
    const uint128 magnitude = negative ? uint128(0) - uint128(x) : uint128(x), d = uint128(divisor);
    if (magnitude < (1ull << 53) && d < (1ull << 53)) {  // two exact doubles
        const float64 quotient = float64(int64(magnitude)) / float64(int64(d));
        return negative ? -quotient : quotient;
    }
    uint128 quotient = magnitude / d, rest = magnitude % d;
    int shift = 0;
    for (; !(quotient >> 54); ++shift) {  // 55 bits and a sticky one are enough to round
        rest <<= 1;
        quotient <<= 1;
        if (rest >= d) { rest -= d; quotient |= 1; }
    }
    float64 value = float64_of_int128(int128(quotient << 1 | uint128(rest != 0)));
    for (; shift >= 0; --shift) value *= 0.5;
    return negative ? -value : value;
}
DEVICE float64 convert(int128 x, TypeTag<float64>) { return float64_of_int128(x); }
DEVICE float32 convert(int128 x, TypeTag<float32>) { return float32(float64_of_int128(x)); }

DEVICE int32 round_to_integer(float64 x, TypeTag<int32>) { const float64 r = exact_rint(x); return (r >= -2147483648.0) & (r <= 2147483647.0) ? int32(r) : 0; }
DEVICE int64 round_to_integer(float64 x, TypeTag<int64>) { const float64 r = exact_rint(x); return (r >= -9223372036854775808.0) & (r < 9223372036854775808.0) ? int64(r) : 0; }
DEVICE int128 round_to_integer(float64 x, TypeTag<int128>) {
    const float64 r = exact_rint(x);
    if (!((r >= -170141183460469231731687303715884105728.0) & (r < 170141183460469231731687303715884105728.0))) return 0;
    const uint64 bits = float64_bits(r);
    const int exponent = int((bits >> 52) & 2047) - 1075;
    const uint64 fraction = (bits & 0xFFFFFFFFFFFFFull) | 0x10000000000000ull;
    const uint128 magnitude = exponent >= 0 ? uint128(fraction) << exponent : uint128(exponent > -53 ? fraction >> -exponent : 0);
    return int128(r < 0 ? uint128(0) - magnitude : magnitude);
}

DEVICE float64 one_nan(float64 x) { return x != x ? float64_from_bits(0x7FF8000000000000ull) : x; }
DEVICE float32 one_nan(float32 x) { return x != x ? float32(float64_from_bits(0x7FF8000000000000ull)) : x; }

template <class T> DEVICE int64 order_word(T x) { return int64(x); }
DEVICE int64 order_word(float64 x) {
    const float64 y = x + 0.0;  // -0.0 + 0.0 is 0.0
    const int64 bits = y != y ? 0x7FF8000000000000ll : int64(float64_bits(y));
    return bits < 0 ? bits ^ 0x7FFFFFFFFFFFFFFFll : bits;
}
DEVICE int64 order_word(float32 x) { return order_word(float64(x)); }

template <class Out> DEVICE Out from_order_word(int64 x, TypeTag<Out>) { return Out(x); }
DEVICE float64 from_order_word(int64 x, TypeTag<float64>) { return float64_from_bits(uint64(x < 0 ? x ^ 0x7FFFFFFFFFFFFFFFll : x)); }
DEVICE float32 from_order_word(int64 x, TypeTag<float32>) { return float32(from_order_word(x, TypeTag<float64>())); }
