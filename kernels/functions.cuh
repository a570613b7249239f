// Functions of one row's values, as the C++ expressions of gpudb/functions/*.py call them; their NumPy bodies stand there.
// Those that no loop vectorises (128 bits, loops, many branches) are NOINLINE: inlined they took 25 s of NVRTC's time.
// All are total: rows that do not count are computed too, so that nothing here divides by zero or loops without end.

// ---- UUIDs (gpudb/functions/uuids.py) ----

DEVICE uint64 mixed_bits(uint64 word) {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
    return word ^ (word >> 31);
}

NOINLINE int128 random_uuid(int128 seed, int64 number) {
    const uint64 first = uint64(seed), second = uint64(seed >> 64);
    uint64 low = mixed_bits(mixed_bits(first + uint64(number)) + second);
    uint64 high = mixed_bits(mixed_bits(second + uint64(number)) + low);
    low = (low & 0x3fffffffffffffffull) | 0x8000000000000000ull;
    high = (high & 0xffffffffffff0fffull) | 0x4000ull;
    return int128(uint128(high ^ 0x8000000000000000ull) << 64 | low);
}

DEVICE int32 uuid_version(int128 x) { return int32((x >> 76) & 0xf); }
DEVICE int64 uuid_milliseconds(int128 x) { return int64((uint64(x >> 64) ^ 0x8000000000000000ull) >> 16); }

// ---- Numbers (gpudb/functions/math.py) ----

/// 10**exponent for 0 to 308, exact to 22; infinite above, 1 below.
DEVICE float64 power_of_ten(int64 exponent) {
    const uint64 bits = uint64(exponent < 0 ? 0 : exponent > 511 ? 511 : exponent);
    float64 power = 1.0;
    power *= bits & 1 ? 1e1 : 1.0;
    power *= bits & 2 ? 1e2 : 1.0;
    power *= bits & 4 ? 1e4 : 1.0;
    power *= bits & 8 ? 1e8 : 1.0;
    power *= bits & 16 ? 1e16 : 1.0;
    power *= bits & 32 ? 1e32 : 1.0;
    power *= bits & 64 ? 1e64 : 1.0;
    power *= bits & 128 ? 1e128 : 1.0;
    power *= bits & 256 ? 1e256 : 1.0;
    return power;
}

DEVICE float64 finite_or(float64 x, float64 otherwise) { return exact_abs(x) < portable_infinity() ? x : otherwise; }

/// x rounded, half away from zero, to `digits` decimals (tens where negative).
DEVICE float64 round_to_digits(float64 x, int32 digits) {
    const float64 power = power_of_ten(digits < 0 ? -int64(digits) : int64(digits));
    const float64 scaled = portable_round(digits < 0 ? x / power : x * power);
    return digits < 0 ? portable_canonical(finite_or(scaled * power, finite_or(x - x, x))) : portable_canonical(finite_or(scaled / power, x));
}

DEVICE float64 round_to_digits_even(float64 x, int32 digits) {
    const float64 power = power_of_ten(digits < 0 ? -int64(digits) : int64(digits));
    const float64 scaled = portable_rint(digits < 0 ? x / power : x * power);
    return digits < 0 ? portable_canonical(finite_or(scaled * power, finite_or(x - x, x))) : portable_canonical(finite_or(scaled / power, x));
}

DEVICE float64 trunc_to_digits(float64 x, int32 digits) {
    const float64 power = power_of_ten(digits < 0 ? -int64(digits) : int64(digits));
    const float64 scaled = portable_trunc(digits < 0 ? x / power : x * power);
    return portable_canonical(finite_or(digits < 0 ? scaled * power : scaled / power, x));
}

/// 10**-digits for -18 to 0, else 1.
DEVICE int64 integer_unit(int32 digits) {
    int64 unit = 1;
    for (int32 i = 0; i < 18; ++i) unit *= (digits < 0 && digits > -19 && i < -digits) ? 10 : 1;
    return unit;
}

/// An integer to a multiple of 10**-digits, wrapping.  MODE 0: half away from zero, 1: half to even, 2: towards zero.
template <int MODE> NOINLINE int64 integer_to_digits(int64 x, int32 digits) {
    const int64 unit = integer_unit(digits);
    const int64 rest = x % unit, cut = x - rest;
    const int64 distance = rest < 0 ? -rest : rest;
    const bool odd = (cut / unit) % 2 != 0;
    const bool up = unit > 1 && ((MODE == 0 && distance >= unit - distance)
                                 || (MODE == 1 && (distance > unit - distance || (distance == unit - distance && odd))));
    const int64 value = wrapping_add(cut, up ? (x < 0 ? -unit : unit) : int64(0));
    return digits < -18 ? 0 : value;
}

template <int MODE> NOINLINE bool integer_to_digits_fits(int64 x, int32 digits) {
    const int64 value = integer_to_digits<MODE>(x, digits);
    const uint64 magnitude = x < 0 ? uint64(0) - uint64(x) : uint64(x);
    if (digits == -19 && MODE != 2 && magnitude + (MODE == 0) > 5000000000000000000ull) return false;
    return !(value != 0 && (x < 0) != (value < 0));
}
template <int MODE> NOINLINE bool integer_to_digits_fits(int32 x, int32 digits) {
    const int64 value = integer_to_digits<MODE>(int64(x), digits);
    return value >= -2147483648ll && value <= 2147483647ll;
}

/// The next even number away from zero.
DEVICE float64 round_to_even(float64 x) {
    const float64 up = portable_ceil(exact_abs(x));
    const float64 odd = exact_floor(up / 2.0) * 2.0 < up ? 1.0 : 0.0;
    return portable_canonical(portable_copysign(up + odd, x));
}

/// Remainder with the sign of y.
DEVICE float64 floor_remainder(float64 x, float64 y) {
    const float64 rest = exact_fmod(x, y);
    return portable_canonical((rest < 0.0 && y > 0.0) || (rest > 0.0 && y < 0.0) ? rest + y : rest);
}

/// The next float from x towards y, as C's nextafter.
NOINLINE float64 next_after(float64 x, float64 y) {
    const uint64 bits = float64_bits(x);
    const bool away = (x < y) == (x > 0.0);
    const float64 smallest = portable_copysign(float64_from_bits(1), y);
    const float64 next = x == 0.0 ? smallest : float64_from_bits(away ? bits + 1 : bits - 1);
    return (x != x) | (y != y) ? portable_nan() : x == y ? y : next;
}
/// In float64, which holds every float32 and its neighbours exactly.
NOINLINE float32 next_after(float32 x, float32 y) {
    const float64 magnitude = exact_abs(float64(x));
    const uint64 bits = float64_bits(magnitude);
    const int64 exponent = int64(bits >> 52) - 1023;
    const float64 step = portable_power_of_two((exponent < -126 ? -126 : exponent > 127 ? 127 : exponent) - 23);
    const bool away = (x < y) == (x > 0.0f);
    const bool edge = (bits & 0xfffffffffffffull) == 0 && exponent > -126;   // below a power of two steps are half as wide
    const float64 below = magnitude == portable_infinity() ? 3.4028234663852886e38 : magnitude - (edge ? step / 2.0 : step);
    const float64 next = portable_copysign(away ? magnitude + step : below, float64(x));
    const float64 smallest = portable_copysign(1.401298464324817e-45, float64(y));
    return float32((x != x) | (y != y) ? portable_nan() : x == y ? float64(y) : x == 0.0f ? smallest : next);
}

/// Greatest common divisor, not negative; lowest int64 where that is it.  At most 93 steps.
NOINLINE int64 greatest_common_divisor(int64 x, int64 y) {
    uint64 a = x < 0 ? uint64(0) - uint64(x) : uint64(x), b = y < 0 ? uint64(0) - uint64(y) : uint64(y);
    while (b != 0) { const uint64 rest = a % b; a = b; b = rest; }
    return int64(a);
}

NOINLINE bool least_common_multiple_fits(int64 x, int64 y) {
    const int64 lowest = int64(uint64(1) << 63);
    if (x == 0 || y == 0) return true;
    if (x == lowest || y == lowest) return false;
    return !multiply_overflows(x / greatest_common_divisor(x, y), y);
}

NOINLINE int64 least_common_multiple(int64 x, int64 y) {
    const int64 divisor = greatest_common_divisor(x, y);
    return divisor <= 0 ? 0 : absolute(wrapping_multiply(int64(x / divisor), y));
}

// ---- Bits (gpudb/functions/bits.py) ----

template <class T> DEVICE T shift_left(T x, T count) {
    return count >= 0 && count < T(sizeof(T) * 8) ? T(unsigned_of<T>(x) << (count & T(sizeof(T) * 8 - 1))) : T(0);
}

/// Nothing negative, and no set bit shifted into or past the sign.
template <class T> DEVICE bool shift_left_fits(T x, T count, int width) {
    const T most = T((uint64(1) << (width - 1)) - 1);
    return count >= 0 && x >= 0 && (x == 0 || (count < T(width) && x <= most >> (count & T(sizeof(T) * 8 - 1))));
}

template <class T> DEVICE T shift_right(T x, T count, int width) {
    return count >= 0 && count < T(width) ? T(x >> (count & T(sizeof(T) * 8 - 1))) : T(0);
}

DEVICE int32 count_bits(int64 x) {
    uint64 bits = uint64(x);
    bits -= (bits >> 1) & 0x5555555555555555ull;
    bits = (bits & 0x3333333333333333ull) + ((bits >> 2) & 0x3333333333333333ull);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0full;
    return int32((bits * 0x0101010101010101ull) >> 56);
}
NOINLINE int128 shift_left(int128 x, int128 count) {
    return count >= 0 && count < 128 ? int128(uint128(x) << int32(count & 127)) : int128(0);
}
NOINLINE bool shift_left_fits(int128 x, int128 count, int) {
    const int128 most = int128(~uint128(0) >> 1);
    return count >= 0 && x >= 0 && (x == 0 || (count < 128 && x <= most >> int32(count & 127)));
}
DEVICE int32 count_bits(int128 x) { return count_bits(int64(x)) + count_bits(int64(x >> 64)); }
DEVICE int32 count_bits(int32 x) { return count_bits(int64(uint64(uint32(x)))); }

// ---- Dates and timestamps (gpudb/functions/date.py) ----

#define MICROSECONDS_A_DAY 86400000000ll

DEVICE bool is_infinite_date(int32 x) { return (x == 2147483647) | (x <= -2147483647); }
DEVICE bool is_infinite_timestamp(int64 x) { return (x == 9223372036854775807ll) | (x <= -9223372036854775807ll); }

/// Quotient rounded downwards.
template <int64 UNIT> DEVICE int64 floor_quotient(int64 x) { return x / UNIT - (x % UNIT < 0 ? 1 : 0); }

/// How many of UNIT microseconds have passed since COUNT of them last made a whole: minutes of the hour.
template <int64 UNIT, int64 COUNT> DEVICE int64 time_part(int64 x) {
    const int64 rest = x % (UNIT * COUNT);
    return (rest < 0 ? rest + UNIT * COUNT : rest) / UNIT;
}

/// The last multiple of UNIT microseconds not after x; infinities stay.
template <int64 UNIT> DEVICE int64 floor_timestamp(int64 x) {
    const int64 rest = x % UNIT;
    return is_infinite_timestamp(x) ? x : wrapping_subtract(x, rest < 0 ? rest + UNIT : rest);
}

DEVICE int64 date_as_timestamp(int32 x) {
    const int64 infinity = x > 0 ? 9223372036854775807ll : -9223372036854775807ll;
    return is_infinite_date(x) ? infinity : int64(uint64(int64(x)) * uint64(MICROSECONDS_A_DAY));
}

DEVICE int32 timestamp_as_date(int64 x) {
    const int32 infinity = x > 0 ? 2147483647 : -2147483647;
    return is_infinite_timestamp(x) ? infinity : int32(floor_quotient<MICROSECONDS_A_DAY>(x));
}

/// How far a zone is ahead at x, by its table: size, last, size - 1 rising times, size offsets; times from `last` on repeat
/// each 400 years.  Bisected in as many steps for every row.
NOINLINE int64 zone_offset(int64 x, const int64* RESTRICT table) {
    const int64 size = table[0], last = table[1];
    const int64 moment = x < last ? x : last + (x - last) % (146097 * MICROSECONDS_A_DAY);
    const int64* RESTRICT times = table + 2;
    int64 place = 0;
    for (int64 step = size >> 1; step > 0; step >>= 1) place += times[place + step - 1] <= moment ? step : 0;
    return is_infinite_timestamp(x) ? 0 : times[size - 1 + place];
}

/// An INTERVAL's 128 bits: months, days, microseconds, from the lowest (gpudb/functions/interval_values.py).
DEVICE int128 interval_of(int64 months, int64 days, int64 microseconds) {
    return int128(uint128(uint64(microseconds)) << 64 | uint128(uint64(uint32(days)) << 32 | uint32(months)));
}
DEVICE int32 interval_months(int128 x) { return int32(uint32(x)); }
DEVICE int32 interval_days(int128 x) { return int32(uint32(uint64(x) >> 32)); }
DEVICE int64 interval_microseconds(int128 x) { return int64(x >> 64); }

DEVICE int128 interval_order(int128 x) {
    return int128(int64(interval_months(x)) * 30 + interval_days(x)) * MICROSECONDS_A_DAY + interval_microseconds(x);
}

/// Whole days and the rest, both of the difference's sign.
NOINLINE int128 interval_between(int64 stop, int64 start) {
    const bool back = stop < start;
    const uint64 size = back ? uint64(start) - uint64(stop) : uint64(stop) - uint64(start);
    const int64 days = int64(size / uint64(MICROSECONDS_A_DAY)), rest = int64(size % uint64(MICROSECONDS_A_DAY));
    return back ? interval_of(0, -days, -rest) : interval_of(0, days, rest);
}

NOINLINE int32 year_week(int32 x) {
    const int32 year = calendar_iso_year(x), week = calendar_iso_week(x);
    return year * 100 + (year > 0 ? week : -week);
}

NOINLINE int32 iso_year_start(int32 x) {
    const int32 fourth = calendar_days(calendar_iso_year(x), 1, 4);
    return int32(uint32(fourth) - uint32(calendar_iso_day_of_week(fourth) - 1));
}

/// Microseconds since the day began that has this number; any time and day are defined.
DEVICE int64 since_midnight(int64 x, int64 day) { return wrapping_subtract(x, wrapping_multiply(day, int64(MICROSECONDS_A_DAY))); }

DEVICE float64 julian_timestamp(int64 x) {
    const int64 day = floor_quotient<MICROSECONDS_A_DAY>(x);
    return float64(since_midnight(x, day)) / 86400000000.0 + (float64(day) + 2440588.0);
}

/// Days of a timestamp that is not infinite: they fit.
DEVICE int32 timestamp_day(int64 x) { return int32(floor_quotient<MICROSECONDS_A_DAY>(x)); }

/// Whole months between two timestamps; negative where stop is earlier.
NOINLINE int64 months_between(int64 start, int64 stop) {
    const bool back = start > stop;
    const int64 first = back ? stop : start, last = back ? start : stop;
    const int32 first_days = timestamp_day(first), last_days = timestamp_day(last);
    const int64 first_time = since_midnight(first, first_days), last_time = since_midnight(last, last_days);
    const int32 year = calendar_year(last_days), month = calendar_month(last_days), day = calendar_day(last_days);
    int32 first_day = calendar_day(first_days);
    // the last day of a short month counts as the same day of a longer one
    if (day == calendar_month_length(year, month) && first_day > day) first_day = day;
    const int64 months = (int64(year) - calendar_year(first_days)) * 12 + month - calendar_month(first_days);
    const int64 whole = months - (day < first_day || (day == first_day && last_time < first_time) ? 1 : 0);
    return back ? -whole : whole;
}

/// x plus months (to the last day of a shorter month), then days, then microseconds, in full width.
NOINLINE int128 later(int64 x, int32 months, int32 days, int64 microseconds) {
    const int32 day = timestamp_day(x);
    const int64 rest = since_midnight(x, day);
    return (int128(months == 0 ? day : calendar_add_months(day, months)) + days) * MICROSECONDS_A_DAY + rest + microseconds;
}

NOINLINE int64 add_interval(int64 x, int32 months, int32 days, int64 microseconds) {
    return is_infinite_timestamp(x) ? x : int64(later(x, months, days, microseconds));
}

NOINLINE bool add_interval_fits(int64 x, int32 months, int32 days, int64 microseconds) {
    if (is_infinite_timestamp(x)) return true;
    if (months != 0 && !calendar_add_months_fits(timestamp_day(x), months)) return false;
    const int128 sum = later(x, months, days, microseconds);
    return sum < int128(9223372036854775807ll) && sum > int128(-9223372036854775807ll);
}

/// Start of the bucket that x lies in; buckets are `months` or `microseconds` wide and one starts at origin.
NOINLINE int128 wide_bucket_start(int64 x, int64 origin, int32 months, int128 microseconds) {
    if (months > 0) {
        const int32 day = timestamp_day(x), first = timestamp_day(origin);
        const int64 place = int64(calendar_year(day)) * 12 + calendar_month(day) - 1;
        const int64 zero = int64(calendar_year(first)) * 12 + calendar_month(first) - 1;
        const int64 rest = (place - zero) % months;
        const CalendarMonth month = calendar_month_of(int32(place - (rest < 0 ? rest + months : rest)));
        return int128(calendar_days(month.year, month.month, 1)) * MICROSECONDS_A_DAY;
    }
    const int128 width = microseconds > 0 ? microseconds : 1;
    const int128 rest = (int128(x) - origin) % width;
    return int128(x) - (rest < 0 ? rest + width : rest);
}

NOINLINE int64 bucket_start(int64 x, int64 origin, int32 months, int32 days, int64 microseconds) {
    if (is_infinite_timestamp(x)) return x;
    return int64(wide_bucket_start(x, origin, months, int128(days) * MICROSECONDS_A_DAY + microseconds));
}

NOINLINE bool bucket_fits(int64 x, int64 origin, int32 months, int32 days, int64 microseconds) {
    const int128 width = int128(days) * MICROSECONDS_A_DAY + microseconds;
    if (months != 0 ? (days != 0 || microseconds != 0 || months < 0) : width <= 0) return false;
    if (is_infinite_timestamp(x)) return true;
    const int128 start = wide_bucket_start(x, origin, months, width);
    return start < int128(9223372036854775807ll) && start > int128(-9223372036854775807ll);
}

/// Whether year, month and day name a finite date.
NOINLINE bool is_date(int64 year, int64 month, int64 day) {
    if (year < -5877641 || year > 5881580 || month < 1 || month > 12 || day < 1) return false;
    return day <= calendar_month_length(int32(year), int32(month)) && calendar_fits(int32(year), int32(month), int32(day));
}

NOINLINE int32 date_of(int64 year, int64 month, int64 day) {
    return is_date(year, month, day) ? calendar_days(int32(year), int32(month), int32(day)) : 0;
}

/// Microseconds of a day from hours, minutes and seconds; -1 where they are none.
NOINLINE int64 time_of(int64 hour, int64 minute, float64 second) {
    if (!(hour >= 0 && hour <= 24 && minute >= 0 && minute < 60 && second >= 0.0 && second < 61.0)) return -1;
    const float64 whole = exact_floor(second);
    const int64 time = (hour * 60 + minute) * 60000000 + int64(whole) * 1000000 + int64(portable_round((second - whole) * 1e6));
    return time <= MICROSECONDS_A_DAY ? time : -1;
}

DEVICE int128 wide_timestamp_of(int64 year, int64 month, int64 day, int64 hour, int64 minute, float64 second) {
    return int128(date_of(year, month, day)) * MICROSECONDS_A_DAY + time_of(hour, minute, second);
}

NOINLINE bool is_timestamp(int64 year, int64 month, int64 day, int64 hour, int64 minute, float64 second) {
    if (!is_date(year, month, day) || time_of(hour, minute, second) < 0) return false;
    const int128 wide = wide_timestamp_of(year, month, day, hour, minute, second);
    return wide < int128(9223372036854775807ll) && wide > int128(-9223372036854775807ll);
}

NOINLINE int64 timestamp_of(int64 year, int64 month, int64 day, int64 hour, int64 minute, float64 second) {
    return is_timestamp(year, month, day, hour, minute, second) ? int64(wide_timestamp_of(year, month, day, hour, minute, second)) : 0;
}
