// Civil dates: the proleptic Gregorian calendar over day numbers, days since 1970-01-01.
//
// Right for every int32 day number, years -5877641 to 5881580 with a year 0, and never widened to 64 bits: division by
// a constant vectorises for 32-bit values, not for 64-bit ones.  The calendar repeats after 400 years; inside, years
// begin on 1 March, so that the leap day comes last and month lengths follow one line.
// Functions whose result may leave the range of day numbers wrap; calendar_fits tells beforehand.
// gpudb/calendar.py has the same functions in NumPy, without the prefix.

/// A day inside the calendar that begins in March.
struct CalendarDay {
    int32 year;         // civil year of the March that began it
    uint32 century;     // 0 .. 3 within 400 years
    uint32 of_century;  // year within the century, 0 .. 99
    uint32 from_march;  // days since 1 March, 0 .. 365
};

DEVICE CalendarDay calendar_split(int32 days) {
    // floor(days / 146097), then 0000-03-01 as origin: 719468 = 4 * 146097 + 135080
    int32 era = days / 146097;
    int32 rest = days - era * 146097;
    const int32 below = rest < 0 ? 1 : 0;
    rest += below * 146097 + 135080;
    const int32 above = rest >= 146097 ? 1 : 0;
    era += 4 + above - below;
    const uint32 of_era = uint32(rest - above * 146097);
    const uint32 century = (4 * of_era + 3) / 146097;
    const uint32 of_century = of_era - 146097 * century / 4;
    const uint32 year = (4 * of_century + 3) / 1461;
    return {400 * era + int32(100 * century + year), century, year, of_century - 1461 * year / 4};
}

/// Month from March = 0, by the line through month starts: 0, 31, 61, 92, 122, 153, ...
DEVICE uint32 calendar_month_from_march(uint32 from_march) { return (5 * from_march + 2) / 153; }

DEVICE int32 calendar_year(int32 days) {
    const CalendarDay day = calendar_split(days);
    return day.year + (day.from_march >= 306 ? 1 : 0);
}

/// 1 .. 12
DEVICE int32 calendar_month(int32 days) {
    const uint32 month = calendar_month_from_march(calendar_split(days).from_march);
    return int32(month < 10 ? month + 3 : month - 9);
}

/// 1 .. 31
DEVICE int32 calendar_day(int32 days) {
    const uint32 from_march = calendar_split(days).from_march;
    return int32(from_march - (153 * calendar_month_from_march(from_march) + 2) / 5 + 1);
}

/// 1 .. 4
DEVICE int32 calendar_quarter(int32 days) { return (calendar_month(days) + 2) / 3; }

/// 1 .. 366
DEVICE int32 calendar_day_of_year(int32 days) {
    const CalendarDay day = calendar_split(days);
    const uint32 leap = (day.of_century % 4 == 0) & ((day.of_century != 0) | (day.century == 0)) ? 1 : 0;
    return int32(day.from_march >= 306 ? day.from_march - 305 : day.from_march + 60 + leap);
}

/// 1 or 0.  16 divides a multiple of 25 where 400 does.
DEVICE int32 calendar_is_leap(int32 year) {
    return ((year & 3) == 0) & ((year % 25 != 0) | ((year & 15) == 0)) ? 1 : 0;
}

/// Sunday = 0 .. Saturday = 6; 1970-01-01 was a Thursday.
DEVICE int32 calendar_day_of_week(int32 days) { return (days % 7 + 11) % 7; }

/// Monday = 1 .. Sunday = 7
DEVICE int32 calendar_iso_day_of_week(int32 days) { return (days % 7 + 10) % 7 + 1; }

/// Day of the year of the Thursday in the same week, counted in the day's own year: it may lie before or after it.
DEVICE int32 calendar_thursday(int32 days) {
    return calendar_day_of_year(days) + 4 - calendar_iso_day_of_week(days);
}

/// The year that has the week's Thursday.
DEVICE int32 calendar_iso_year(int32 days) {
    const int32 year = calendar_year(days);
    const int32 thursday = calendar_thursday(days);
    return year + (thursday > 365 + calendar_is_leap(year) ? 1 : 0) - (thursday < 1 ? 1 : 0);
}

/// 1 .. 53
DEVICE int32 calendar_iso_week(int32 days) {
    const int32 year = calendar_year(days);
    const int32 thursday = calendar_thursday(days);
    const int32 length = 365 + calendar_is_leap(year);
    const int32 before = thursday < 1 ? 365 + calendar_is_leap(year - 1) : 0;
    const int32 after = thursday > length ? length : 0;
    return (thursday + before - after - 1) / 7 + 1;
}

/// Years divided by 10, towards 0 as DuckDB does: years -9 to 9 are decade 0.
DEVICE int32 calendar_decade(int32 days) { return calendar_year(days) / 10; }

/// Years 1 to 100 are century 1; years 0 to -99 are century -1, as in DuckDB.
DEVICE int32 calendar_century(int32 days) {
    const int32 year = calendar_year(days);
    return year > 0 ? (year - 1) / 100 + 1 : year / 100 - 1;
}

/// Years 1 to 1000 are millennium 1; years 0 to -999 are millennium -1, as in DuckDB.
DEVICE int32 calendar_millennium(int32 days) {
    const int32 year = calendar_year(days);
    return year > 0 ? (year - 1) / 1000 + 1 : year / 1000 - 1;
}

/// 28 .. 31 for month 1 .. 12
DEVICE int32 calendar_month_length(int32 year, int32 month) {
    return month == 2 ? 28 + calendar_is_leap(year) : 30 + ((month ^ (month >> 3)) & 1);
}

/// Whether a date (month 1 .. 12, day 1 .. 31) has a finite day number, -2147483646 .. 2147483646: beyond are DuckDB's
/// infinities.
DEVICE bool calendar_fits(int32 year, int32 month, int32 day) {
    const int32 in_year = month * 32 + day;
    const bool first = (year > -5877641) | ((year == -5877641) & (in_year >= 6 * 32 + 25));
    const bool last = (year < 5881580) | ((year == 5881580) & (in_year <= 7 * 32 + 10));
    return first & last;
}

/// The day number of a date whose month is 1 .. 12; wraps where it does not fit.
DEVICE int32 calendar_days(int32 year, int32 month, int32 day) {
    const int32 early = month <= 2 ? 1 : 0;
    const int32 march_year = year - early;
    int32 era = march_year / 400;
    int32 rest = march_year - 400 * era;
    const int32 below = rest < 0 ? 1 : 0;
    era -= below;
    const uint32 of_era = uint32(rest + 400 * below);
    const uint32 from_march = (153 * uint32(month - 3 + 12 * early) + 2) / 5 + uint32(day) - 1;
    const uint32 in_era = 365 * of_era + of_era / 4 - of_era / 100 + from_march;
    return int32(uint32(era) * 146097u + in_era - 719468u);
}

/// The last day of the day's month.
DEVICE int32 calendar_last_day(int32 days) {
    return int32(uint32(days) + uint32(calendar_month_length(calendar_year(days), calendar_month(days)) - calendar_day(days)));
}

/// Months since year 0, after `months` more; past 200 million either way every date is out of range.
DEVICE int32 calendar_month_number(int32 days, int32 months) {
    const int32 low = months > -200000000 ? months : -200000000;
    const int32 bounded = low < 200000000 ? low : 200000000;
    return calendar_year(days) * 12 + (calendar_month(days) - 1) + bounded;
}

/// A month number as year and month, 1 .. 12.
struct CalendarMonth {
    int32 year, month;
};

DEVICE CalendarMonth calendar_month_of(int32 number) {
    const int32 quotient = number / 12;
    const int32 rest = number - 12 * quotient;
    const int32 below = rest < 0 ? 1 : 0;
    return {quotient - below, rest + 12 * below + 1};
}

/// The same day `months` later, or the last of a month that is too short.
DEVICE int32 calendar_add_months(int32 days, int32 months) {
    const CalendarMonth target = calendar_month_of(calendar_month_number(days, months));
    const int32 day = calendar_day(days);
    const int32 length = calendar_month_length(target.year, target.month);
    return calendar_days(target.year, target.month, day < length ? day : length);
}

/// Whether calendar_add_months has a finite day number to give.
DEVICE bool calendar_add_months_fits(int32 days, int32 months) {
    const CalendarMonth target = calendar_month_of(calendar_month_number(days, months));
    const int32 day = calendar_day(days);
    const int32 length = calendar_month_length(target.year, target.month);
    return calendar_fits(target.year, target.month, day < length ? day : length);
}

/// Monday of the week.
DEVICE int32 calendar_trunc_week(int32 days) {
    return int32(uint32(days) - uint32(calendar_iso_day_of_week(days) - 1));
}

DEVICE int32 calendar_trunc_month(int32 days) { return int32(uint32(days) - uint32(calendar_day(days) - 1)); }

DEVICE int32 calendar_trunc_quarter(int32 days) {
    const int32 month = calendar_month(days);
    return calendar_days(calendar_year(days), month - (month - 1) % 3, 1);
}

DEVICE int32 calendar_trunc_year(int32 days) { return calendar_days(calendar_year(days), 1, 1); }

/// Years round towards 0, as in DuckDB: the year -5 truncates to the year 0.
DEVICE int32 calendar_trunc_decade(int32 days) { return calendar_days(calendar_year(days) / 10 * 10, 1, 1); }

/// To a year that ends in 00, not 01, as in DuckDB.
DEVICE int32 calendar_trunc_century(int32 days) { return calendar_days(calendar_year(days) / 100 * 100, 1, 1); }

DEVICE int32 calendar_trunc_millennium(int32 days) { return calendar_days(calendar_year(days) / 1000 * 1000, 1, 1); }
