// Exact sums of floats: the sum of the rows' values, rounded once, whatever the order.
//
// Fast path: a value is written as three fixed-point lanes of FIXED_BITS bits below a scale that no value of the column
// exceeds; lanes are 64-bit integers, so sums of them are exact and free of order.  A value that does not fit sets the
// sticky flag and the pipeline runs again on the wide path: limbs of 32 bits over the whole exponent range.

#define FIXED_BITS 32
#define FLAG_INEXACT 0

/// Three lanes of x: x = (lane0 + lane1 / 2^32 + lane2 / 2^64) / scale, each below 2^33, so that 2^30 rows fit; returns
/// false if that is not exact.
DEVICE bool fixed_lanes(float64 x, float64 scale, int64& lane0, int64& lane1, int64& lane2) {
    const float64 magic = 6755399441055744.0;  // 1.5 x 2^52: adding it rounds to an integer held in the low bits
    const float64 step = 4294967296.0;         // 2^FIXED_BITS
    const float64 high = x * scale;
    const float64 t0 = high + magic;
    const float64 rest0 = (high - (t0 - magic)) * step;
    const float64 t1 = rest0 + magic;
    const float64 rest1 = (rest0 - (t1 - magic)) * step;
    const float64 t2 = rest1 + magic;
    lane0 = int64(float64_bits(t0)) - 0x4338000000000000ll;
    lane1 = int64(float64_bits(t1)) - 0x4338000000000000ll;
    lane2 = int64(float64_bits(t2)) - 0x4338000000000000ll;
    // |high| < 2^33, which NaN is not; and a scale below 1 has not made nothing of a tiny value.
    return (rest1 == t2 - magic) & (high * high < 0x1p66) & (high * (1.0 / scale) == x);
}

/// words p0, p0 + 1, p0 + 2 += lanes of p1 where p2, at scale p3.  Every lane must get here.
template <class T>
DEVICE void op_ReduceFixed(const Tile& tile, const Instruction& ins) {
    const float64* RESTRICT value = operand<float64>(tile, ins.p[1]);
    const Mask* RESTRICT keep = operand<Mask>(tile, ins.p[2]);
    const float64 scale = *operand<float64>(tile, ins.p[3]);
    const int rows = tile.rows;
    int64 total0 = 0, total1 = 0, total2 = 0;
    int64 inexact = 0;
    VECTORISE EACH_ROW(i, rows) {
        const float64 v = value[i];
        const float64 x = keep[i] ? v : 0.0;
        int64 lane0, lane1, lane2;
        inexact |= !fixed_lanes(x, scale, lane0, lane1, lane2);
        total0 += lane0;
        total1 += lane1;
        total2 += lane2;
    }
    if (inexact) tile.launch->flags[FLAG_INEXACT] = 1;
    total0 = block_sum(tile, total0);
    total1 = block_sum(tile, total1);
    total2 = block_sum(tile, total2);
    if (LANE == 0) {
        int64* words = tile.table->words + plain(ins.p[0]);
        accumulate_add(words, total0);
        accumulate_add(words + 1, total1);
        accumulate_add(words + 2, total2);
    }
}

/// r[p0] and the two registers after it = lanes of p1 where p2, at scale p3.  No lane waits.
template <class T, class V>
DEVICE void op_SplitFixed(const Tile& tile, const Instruction& ins) {
    const int64 stride = tile.launch->tile_rows;
    int64* RESTRICT out0 = result<int64>(tile, ins.p[0]);
    int64* RESTRICT out1 = out0 + stride;
    int64* RESTRICT out2 = out1 + stride;
    const float64* RESTRICT value = operand<float64>(tile, ins.p[1]);
    const Mask* RESTRICT keep = operand<Mask>(tile, ins.p[2]);
    const float64 scale = *operand<float64>(tile, ins.p[3]);
    const int rows = tile.rows;
    int64 inexact = 0;
    VECTORISE EACH_ROW(i, rows) {
        const float64 v = value[i];
        const float64 x = keep[i] ? v : 0.0;
        int64 lane0, lane1, lane2;
        inexact |= !fixed_lanes(x, scale, lane0, lane1, lane2);
        out0[i] = lane0;
        out1[i] = lane1;
        out2[i] = lane2;
    }
    if (inexact) tile.launch->flags[FLAG_INEXACT] = 1;
}

/// r[p0] and the five registers after it = lanes, the least first, of the product of the lanes p1.. and p2..  No lane waits.
template <class T, class X, class Y>
DEVICE void op_SplitProduct(const Tile& tile, const Instruction& ins) {
    const int64 stride = tile.launch->tile_rows;
    int64* RESTRICT out = result<int64>(tile, ins.p[0]);
    const int64* RESTRICT x = operand<int64>(tile, ins.p[1]);
    const int64* RESTRICT y = operand<int64>(tile, ins.p[2]);
    const int rows = tile.rows;
    EACH_ROW(i, rows) {
        const int64 a0 = x[i], a1 = x[i + stride], a2 = x[i + 2 * stride];
        const int64 b0 = y[i], b1 = y[i + stride], b2 = y[i + 2 * stride];
        int128 part = int128(a2) * b2;
        out[i] = int64(uint64(part) & 0xFFFFFFFFull);
        part = (part >> 32) + int128(a1) * b2 + int128(a2) * b1;
        out[i + stride] = int64(uint64(part) & 0xFFFFFFFFull);
        part = (part >> 32) + int128(a0) * b2 + int128(a1) * b1 + int128(a2) * b0;
        out[i + 2 * stride] = int64(uint64(part) & 0xFFFFFFFFull);
        part = (part >> 32) + int128(a0) * b1 + int128(a1) * b0;
        out[i + 3 * stride] = int64(uint64(part) & 0xFFFFFFFFull);
        part = (part >> 32) + int128(a0) * b0;
        out[i + 4 * stride] = int64(uint64(part) & 0xFFFFFFFFull);
        out[i + 5 * stride] = int64(part >> 32);
    }
}

/// limbs[i] x 2^(32 i) = the size of the sum of parts[i] x 2^(32 i), i < count, signed parts; count + 2 limbs.  True where
/// the sum is negative.
DEVICE bool carry_limbs(const int64* parts, int count, uint32* limbs) {
    // Carry from the lowest limb up, so that all but the top are 0 .. 2^32 - 1; a negative sum is negated first.
    for (int pass = 0; pass < 2; ++pass) {
        int64 carry = 0;
        for (int i = 0; i < count; ++i) {
            const int128 part = int128(pass ? -int128(parts[i]) : int128(parts[i])) + carry;
            limbs[i] = uint32(uint64(part));
            carry = int64(part >> 32);
        }
        limbs[count] = uint32(uint64(carry));
        limbs[count + 1] = uint32(uint64(carry) >> 32);
        if (carry >= 0) return pass == 1;
    }
    return true;  // not reached: either the sum or its negation is not negative
}

/// value x 2^power, rounded once where it becomes subnormal.
DEVICE float64 times_power(float64 value, int power) {
    while (power > 900) { value *= 0x1p900; power -= 900; }
    while (power < -900) { value *= float64_from_bits(uint64(1023 - 900) << 52); power += 900; }
    return value * float64_from_bits(uint64(power + 1023) << 52);
}

/// The highest limb that is not 0, or -1.
DEVICE int top_limb(const uint32* limbs, int count) {
    int top = count - 1;
    while (top >= 0 && limbs[top] == 0) --top;
    return top;
}

/// The sum of limbs[i] x 2^(32 i + exponent), i <= top, limbs[top] not 0: rounded once to nearest even.
DEVICE float64 round_size(const uint32* limbs, int top, int exponent) {
    uint64 mantissa = limbs[top];
    int shift = 0;
    for (uint32 t = limbs[top]; t < 0x80000000u; t <<= 1) ++shift;
    // 64 bits below and with the top one, and whether anything lies lower.
    const uint64 second = top > 0 ? limbs[top - 1] : 0, third = top > 1 ? limbs[top - 2] : 0;
    mantissa = (mantissa << 32) | second;
    if (shift) mantissa = (mantissa << shift) | (third >> (32 - shift));
    uint64 sticky = shift ? uint64(uint32(third << shift)) : third;
    for (int i = top - 3; i >= 0 && !sticky; --i) sticky |= limbs[i];
    const int power = 32 * (top - 1) - shift + exponent;  // of the mantissa's last bit
    // Round to 53 bits, or to fewer where the result is subnormal.
    int drop = 11;
    if (power + drop < -1074) drop = -1074 - power;
    if (drop > 64) return 0.0;
    uint64 kept = drop == 64 ? 0 : mantissa >> drop;
    const uint64 half = uint64(1) << (drop - 1);
    const uint64 rest = drop == 64 ? mantissa : mantissa & ((uint64(1) << drop) - 1);
    if (rest > half || (rest == half && (sticky || (kept & 1)))) ++kept;
    return times_power(float64(kept), power + drop);
}

/// sum of parts[i] x 2^(32 i + exponent), i < count, signed parts: rounded once to nearest even.
NOINLINE float64 round_limbs(const int64* parts, int count, int exponent) {
    uint32 limbs[140];
    const bool negative = carry_limbs(parts, count, limbs);
    const int top = top_limb(limbs, count + 2);
    if (top < 0) return 0.0;
    const float64 size = round_size(limbs, top, exponent);
    return negative ? -size : size;
}

/// (lane0 x 2^64 + lane1 x 2^32 + lane2) x 2^exponent, lanes below 2^62 and the result normal: rounded once to nearest even.
/// The last pipeline of a moving average over 2 M rows took 830 ms by limbs, 290 so.
DEVICE float64 fixed_value(const int64* lanes, int exponent) {
    // Unsigned, as a negative number's shift to the left is undefined.
    const int128 total = int128((uint128(lanes[0]) << 64) + (uint128(lanes[1]) << 32) + uint128(lanes[2]));
    const uint128 size = total < 0 ? -uint128(total) : uint128(total);
    const uint64 high = uint64(size >> 64), low = uint64(size);
    // Bits of the upper half, or one more: the conversion may round up to a power of two.
    const int shift = high ? int((float64_bits(float64(high)) >> 52) & 2047) - 1022 : 0;
    uint64 top = uint64(size >> shift);
    if (shift) top |= uint64((low << (64 - shift)) != 0);  // far below the bit that rounds
    const float64 value = times_power(float64(top), shift + exponent);
    return total < 0 ? -value : value;
}

/// r[p0] = the sum in lanes p2.. of the groups in r[p1], at scale p3, rounded once.  No lane waits.
template <class T, class I>
DEVICE void op_FixedToFloat(const Tile& tile, const Instruction& ins) {
    float64* RESTRICT out = result<float64>(tile, ins.p[0]);
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[1]);
    const float64 scale = *operand<float64>(tile, ins.p[3]);
    const int exponent = 1023 - int((float64_bits(scale) >> 52) & 2047);  // of 1 / scale
    const GroupTable& table = *tile.launch->source;
    const int rows = tile.rows;
    EACH_ROW(i, rows) {
        const int64* lanes = table.words + group[i] * table.stride + plain(ins.p[2]);
        out[i] = fixed_value(lanes, exponent - 2 * FIXED_BITS);
    }
}

// Wide sums: words are 3 counts (+infinity, -infinity, NaN), then WIDE_LIMBS limbs; limb k weighs 2^(32 k - 2176).
#define WIDE_LIMBS 134
#define WIDE_WORDS (WIDE_LIMBS + 3)
#define WIDE_EXPONENT (-2176)

/// *limb += piece.  SHARED: other lanes may add to it as well.
template <bool SHARED>
DEVICE void add_to_limb(int64* limb, int64 piece) {
    if (SHARED) accumulate_add(limb, piece); else *limb += piece;
}

/// limbs += x * y exactly, for finite x and y, or -= where `less` is set.
template <bool SHARED>
DEVICE void add_product(int64* limbs, float64 x, float64 y, bool less) {
    const uint64 xb = float64_bits(x), yb = float64_bits(y);
    const int xe = int((xb >> 52) & 2047), ye = int((yb >> 52) & 2047);
    const uint64 xm = (xb & 0xFFFFFFFFFFFFFull) | (xe ? 0x10000000000000ull : 0);
    const uint64 ym = (yb & 0xFFFFFFFFFFFFFull) | (ye ? 0x10000000000000ull : 0);
    const uint128 product = uint128(xm) * ym;  // 106 bits, weighing 2^((xe or 1) + (ye or 1) - 2150)
    if (product == 0) return;
    const bool negative = (((xb ^ yb) >> 63) != 0) != less;
    const int position = (xe ? xe : 1) + (ye ? ye : 1) - 2150 - WIDE_EXPONENT;
    const int limb = position >> 5, shift = position & 31;
    const uint128 low = product << shift;
    const uint64 high = shift ? uint64(product >> (128 - shift)) : 0;
    for (int k = 0; k < 5; ++k) {
        const int64 piece = k < 4 ? int64(uint64(low >> (32 * k)) & 0xFFFFFFFFull) : int64(high);
        if (piece == 0) continue;
        add_to_limb<SHARED>(limbs + limb + k, negative ? -piece : piece);
    }
}

/// words of a wide sum += x * y exactly, or -= where `less` is set.
template <bool SHARED>
DEVICE void add_wide(int64* words, float64 x, float64 y, bool less) {
    const int xe = int((float64_bits(x) >> 52) & 2047), ye = int((float64_bits(y) >> 52) & 2047);
    if (xe == 2047 || ye == 2047) {
        const float64 product = x * y;
        add_to_limb<SHARED>(words + (product != product ? 2 : product > 0 ? 0 : 1), less ? -1 : 1);
        return;
    }
    add_product<SHARED>(words + 3, x, y, less);
}

/// group p0: words p1.. += p2 x p3 exactly, where p4.  Lanes meet only in the accumulators.
template <class I, class T>
DEVICE void op_GroupAddWide(const Tile& tile, const Instruction& ins) {
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[0]);
    const float64* RESTRICT left = operand<float64>(tile, ins.p[2]);
    const float64* RESTRICT right = operand<float64>(tile, ins.p[3]);
    const Mask* RESTRICT keep = operand<Mask>(tile, ins.p[4]);
    const GroupTable& table = *tile.table;
    const int rows = tile.rows;
    EACH_ROW(i, rows) {
        if (!keep[i]) continue;
        add_wide<true>(table.words + group[i] * table.stride + plain(ins.p[1]), left[i], right[i], false);
    }
}

/// The value of a wide sum: infinities and NaN by IEEE's rules, else rounded once.
DEVICE float64 wide_value(const int64* words) {
    const float64 infinity = float64_from_bits(0x7FF0000000000000ull);
    if (words[2] || (words[0] && words[1])) return float64_from_bits(0x7FF8000000000000ull);
    if (words[0]) return infinity;
    if (words[1]) return -infinity;
    return round_limbs(words + 3, WIDE_LIMBS, WIDE_EXPONENT);
}

/// r[p0] = the exact sum in words p2.. of the groups in r[p1], rounded once.  No lane waits.
template <class T, class I>
DEVICE void op_WideToFloat(const Tile& tile, const Instruction& ins) {
    float64* RESTRICT out = result<float64>(tile, ins.p[0]);
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[1]);
    const GroupTable& table = *tile.launch->source;
    const int rows = tile.rows;
    EACH_ROW(i, rows) out[i] = wide_value(table.words + group[i] * table.stride + plain(ins.p[2]));
}

/// A number of any size: value x 2^(32 limbs), value rounded once, 0 or at least 1.
struct Scaled { float64 value; int limbs; };

/// total += (negative ? -1 : 1) x y x 2^(32 at), for 32-bit limbs x and y.
DEVICE void add_limb_product(int64* total, int at, uint64 x, uint64 y, bool negative) {
    const uint64 product = x * y;
    const int64 low = int64(product & 0xFFFFFFFFull), high = int64(product >> 32);
    total[at] += negative ? -low : low;
    total[at + 1] += negative ? -high : high;
}

/// n * sum(x y) - sum(x) * sum(y), rounded once; NaN where a sum is not finite.
NOINLINE Scaled wide_covariance(const int64* x, const int64* y, const int64* xy, int64 n) {
    const int ZERO = -WIDE_EXPONENT / 32;  // the limb that weighs 1
    for (int k = 0; k < 3; ++k) if (x[k] | y[k] | xy[k]) return Scaled{float64_from_bits(0x7FF8000000000000ull), 0};
    uint32 a[WIDE_LIMBS + 2], b[WIDE_LIMBS + 2];
    int64 total[WIDE_LIMBS + 4];
    for (int k = 0; k < WIDE_LIMBS + 4; ++k) total[k] = 0;
    const bool below = carry_limbs(xy + 3, WIDE_LIMBS, a);
    for (int i = 0; i < WIDE_LIMBS + 2; ++i) {
        if (a[i] == 0) continue;
        add_limb_product(total, i, a[i], uint32(n), below);
        add_limb_product(total, i + 1, a[i], uint64(n) >> 32, below);
    }
    const bool same = carry_limbs(x + 3, WIDE_LIMBS, a) == carry_limbs(y + 3, WIDE_LIMBS, b);
    const int top = top_limb(b, WIDE_LIMBS + 2);
    for (int i = 0; i < WIDE_LIMBS + 2; ++i) {
        if (a[i] == 0) continue;  // the limbs of a sum weigh at least 2^-1088, so no product lies below limb 0
        for (int j = 0; j <= top; ++j) if (b[j]) add_limb_product(total, i + j - ZERO, a[i], b[j], same);
    }
    uint32 limbs[WIDE_LIMBS + 6];
    const bool negative = carry_limbs(total, WIDE_LIMBS + 4, limbs);
    const int highest = top_limb(limbs, WIDE_LIMBS + 6);
    if (highest < 0) return Scaled{0.0, 0};
    const float64 size = round_size(limbs, highest, -32 * highest);
    return Scaled{negative ? -size : size, highest - ZERO};
}

/// The covariance of `count` pairs from the sums of x, y and x y; divisor count - less.
DEVICE float64 covariance_of(const int64* x, const int64* y, const int64* xy, int64 count, int64 less) {
    if (count <= less) return 0.0;
    const Scaled both = wide_covariance(x, y, xy, count);
    return times_power(both.value / float64(count) / float64(count - less), 32 * both.limbs);
}

/// The correlation of `count` pairs from the sums of x, x x, y, y y and x y.
DEVICE float64 correlation_of(const int64* x, int64 count) {
    const int64 *xx = x + WIDE_WORDS, *y = xx + WIDE_WORDS, *yy = y + WIDE_WORDS, *xy = yy + WIDE_WORDS;
    const Scaled x_square = wide_covariance(x, x, xx, count), y_square = wide_covariance(y, y, yy, count);
    const Scaled both = wide_covariance(x, y, xy, count);
    const float64 ratio = both.value / exact_sqrt(x_square.value * y_square.value);
    return times_power(ratio, 32 * both.limbs - 16 * (x_square.limbs + y_square.limbs));
}

#define LANES_OF_PRODUCT 6

/// The same from sums of lanes: 3 words of x and of y, the greatest first, and 6 of x * y, the least first.
NOINLINE Scaled lane_covariance(const int64* x, const int64* y, const int64* xy, int64 n) {
    const int64 x_parts[3] = {x[2], x[1], x[0]}, y_parts[3] = {y[2], y[1], y[0]};
    uint32 a[8], b[5];
    int64 total[12];
    for (int k = 0; k < 12; ++k) total[k] = 0;
    const bool below = carry_limbs(xy, LANES_OF_PRODUCT, a);
    for (int i = 0; i < LANES_OF_PRODUCT + 2; ++i) {
        add_limb_product(total, i, a[i], uint32(n), below);
        add_limb_product(total, i + 1, a[i], uint64(n) >> 32, below);
    }
    const bool same = carry_limbs(x_parts, 3, a) == carry_limbs(y_parts, 3, b);
    for (int i = 0; i < 5; ++i) for (int j = 0; j < 5; ++j) add_limb_product(total, i + j, a[i], b[j], same);
    uint32 limbs[14];
    const bool negative = carry_limbs(total, 12, limbs);
    const int highest = top_limb(limbs, 14);
    if (highest < 0) return Scaled{0.0, 0};
    const float64 size = round_size(limbs, highest, -32 * highest);
    return Scaled{negative ? -size : size, highest - 4};  // lanes of 2^-64 each, so products of 2^-128
}

/// r[p0] = variance of the groups in r[p1] with count in word p2 and sums in words p3..; divisor n - p4.  No lane waits.
template <class T, class I>
DEVICE void op_WideVariance(const Tile& tile, const Instruction& ins) {
    float64* RESTRICT out = result<float64>(tile, ins.p[0]);
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[1]);
    const GroupTable& table = *tile.launch->source;
    const int64 less = plain(ins.p[4]);
    const int rows = tile.rows;
    EACH_ROW(i, rows) {
        const int64* words = table.words + group[i] * table.stride;
        const int64* sums = words + plain(ins.p[3]);
        out[i] = covariance_of(sums, sums, sums + WIDE_WORDS, words[plain(ins.p[2])], less);
    }
}

/// r[p0] = covariance of the groups in r[p1] with count in word p2 and sums in words p3..; divisor n - p4.  No lane waits.
template <class T, class I>
DEVICE void op_WideCovariance(const Tile& tile, const Instruction& ins) {
    float64* RESTRICT out = result<float64>(tile, ins.p[0]);
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[1]);
    const GroupTable& table = *tile.launch->source;
    const int64 less = plain(ins.p[4]);
    const int rows = tile.rows;
    EACH_ROW(i, rows) {
        const int64* words = table.words + group[i] * table.stride;
        const int64* sums = words + plain(ins.p[3]);
        out[i] = covariance_of(sums, sums + WIDE_WORDS, sums + 2 * WIDE_WORDS, words[plain(ins.p[2])], less);
    }
}

/// r[p0] = correlation of the groups in r[p1] with count in word p2 and sums in words p3...  No lane waits.
template <class T, class I>
DEVICE void op_WideCorrelation(const Tile& tile, const Instruction& ins) {
    float64* RESTRICT out = result<float64>(tile, ins.p[0]);
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[1]);
    const GroupTable& table = *tile.launch->source;
    const int rows = tile.rows;
    EACH_ROW(i, rows) {
        const int64* words = table.words + group[i] * table.stride;
        out[i] = correlation_of(words + plain(ins.p[3]), words[plain(ins.p[2])]);
    }
}

/// r[p0] = variance of the groups in r[p1] with count in word p2 and sums of lanes in words p3..; divisor n - p4.  No lane waits.
template <class T, class I>
DEVICE void op_LaneVariance(const Tile& tile, const Instruction& ins) {
    float64* RESTRICT out = result<float64>(tile, ins.p[0]);
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[1]);
    const GroupTable& table = *tile.launch->source;
    const int64 less = plain(ins.p[4]);
    const int rows = tile.rows;
    EACH_ROW(i, rows) {
        const int64* words = table.words + group[i] * table.stride;
        const int64 count = words[plain(ins.p[2])];
        const int64* sums = words + plain(ins.p[3]);
        if (count <= less) { out[i] = 0.0; continue; }
        const Scaled square = lane_covariance(sums, sums, sums + 3, count);
        out[i] = times_power(square.value / float64(count) / float64(count - less), 32 * square.limbs);
    }
}

/// r[p0] = covariance of the groups in r[p1] with count in word p2 and sums of lanes in words p3..; divisor n - p4.  No lane waits.
template <class T, class I>
DEVICE void op_LaneCovariance(const Tile& tile, const Instruction& ins) {
    float64* RESTRICT out = result<float64>(tile, ins.p[0]);
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[1]);
    const GroupTable& table = *tile.launch->source;
    const int64 less = plain(ins.p[4]);
    const int rows = tile.rows;
    EACH_ROW(i, rows) {
        const int64* words = table.words + group[i] * table.stride;
        const int64 count = words[plain(ins.p[2])];
        const int64* sums = words + plain(ins.p[3]);
        if (count <= less) { out[i] = 0.0; continue; }
        const Scaled both = lane_covariance(sums, sums + 3, sums + 6, count);
        out[i] = times_power(both.value / float64(count) / float64(count - less), 32 * both.limbs);
    }
}

/// r[p0] = correlation of the groups in r[p1] with count in word p2 and sums of lanes in words p3...  No lane waits.
template <class T, class I>
DEVICE void op_LaneCorrelation(const Tile& tile, const Instruction& ins) {
    float64* RESTRICT out = result<float64>(tile, ins.p[0]);
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[1]);
    const GroupTable& table = *tile.launch->source;
    const int rows = tile.rows;
    EACH_ROW(i, rows) {
        const int64* words = table.words + group[i] * table.stride;
        const int64 count = words[plain(ins.p[2])];
        const int64* x = words + plain(ins.p[3]);
        const int64 *y = x + 3, *xx = y + 3, *yy = xx + LANES_OF_PRODUCT, *xy = yy + LANES_OF_PRODUCT;
        const Scaled x_square = lane_covariance(x, x, xx, count), y_square = lane_covariance(y, y, yy, count);
        const Scaled both = lane_covariance(x, y, xy, count);
        const float64 ratio = both.value / exact_sqrt(x_square.value * y_square.value);
        out[i] = times_power(ratio, 32 * both.limbs - 16 * (x_square.limbs + y_square.limbs));
    }
}
