// Windows, between pipelines: sums, extremes and exact float sums over the frames of sorted rows.
//
// A frame is up to three runs of rows.  Sums are differences of running sums, which are exact modulo 2^64.  Extremes come from
// a tree, WINDOW_FANOUT children to a node; a frame that begins where the last row's did goes on from what that one found, so
// that running ones take a step a row.  Exact sums of floats move with the frame: what leaves it is taken off again.

#define WINDOW_FANOUT 16
#define MOST_RUNS 3

/// One word of all rows.  Workers are lanes of blocks; each has consecutive rows.
struct WindowLaunch {
    const int64* column;          // the word that is summed up, or the leaves of the tree
    const float64* x;             // of exact sums
    const float64* y;
    const uint8* keep;            // mask of the rows that count
    const uint32* const* bounds;  // begin and end of each run
    int64* sums;                  // workers + 1
    int64* prefix;                // rows + 1: the running sum before each row
    int64* nodes;                 // of the tree, level by level, without the leaves
    int64* words;                 // of the table: word of row i at i * stride
    const int64* cancel;          // not 0: the statement is to end
    int64 rows, stride, runs, workers, greatest, kind, less;
};

/// The words of the order: each row's place.
struct InvertLaunch { const uint32* order; uint32* places; int64 rows; };
DEVICE void gpudb_invert_block(const InvertLaunch& invert, int64 block, int64 blocks) {
    EACH_ROW_OF_BLOCK(i, invert.rows) invert.places[invert.order[i]] = uint32(i);
}
ENTRY(gpudb_invert, InvertLaunch)

/// Running sums, in three launches: each worker adds up its rows, the sums become where each begins, the rest is written.
DEVICE void gpudb_window_sums_block(const WindowLaunch& window, int64 block, int64 blocks) {
    const int64 worker = block * LANES + LANE;
    int64 begin, end;
    worker_share(window.rows, worker, window.workers, begin, end);
    uint64 total = 0;
    for (int64 i = begin; i < end; ++i) total += uint64(window.column[i]);
    window.sums[worker] = int64(total);
}
ENTRY(gpudb_window_sums, WindowLaunch)

DEVICE void gpudb_window_scan_block(const WindowLaunch& window, int64 block, int64 blocks) {
    if (block != 0 || LANE != 0) return;
    uint64 total = 0;
    for (int64 w = 0; w < window.workers; ++w) { const uint64 own = uint64(window.sums[w]); window.sums[w] = int64(total); total += own; }
    window.prefix[window.rows] = int64(total);
}
ENTRY(gpudb_window_scan, WindowLaunch)

DEVICE void gpudb_window_prefix_block(const WindowLaunch& window, int64 block, int64 blocks) {
    const int64 worker = block * LANES + LANE;
    int64 begin, end;
    worker_share(window.rows, worker, window.workers, begin, end);
    uint64 total = uint64(window.sums[worker]);
    for (int64 i = begin; i < end; ++i) { window.prefix[i] = int64(total); total += uint64(window.column[i]); }
}
ENTRY(gpudb_window_prefix, WindowLaunch)

/// Differences of running sums.
DEVICE void gpudb_window_add_block(const WindowLaunch& window, int64 block, int64 blocks) {
    EACH_ROW_OF_BLOCK(i, window.rows) {
        uint64 total = 0;
        for (int64 r = 0; r < window.runs; ++r) {
            total += uint64(window.prefix[window.bounds[2 * r + 1][i]]) - uint64(window.prefix[window.bounds[2 * r][i]]);
        }
        window.words[i * window.stride] = int64(total);
    }
}
ENTRY(gpudb_window_add, WindowLaunch)

DEVICE int64 better_word(const WindowLaunch& window, int64 x, int64 y) { return (x < y) != (window.greatest != 0) ? x : y; }
DEVICE int64 neutral_word(const WindowLaunch& window) {
    return window.greatest ? -0x7FFFFFFFFFFFFFFFll - 1 : 0x7FFFFFFFFFFFFFFFll;
}

/// One level of the tree from the one below, `column` with `rows` nodes.
DEVICE void gpudb_window_level_block(const WindowLaunch& window, int64 block, int64 blocks) {
    const int64 nodes = (window.rows + WINDOW_FANOUT - 1) / WINDOW_FANOUT;
    EACH_ROW_OF_BLOCK(i, nodes) {
        int64 found = neutral_word(window);
        const int64 end = (i + 1) * WINDOW_FANOUT < window.rows ? (i + 1) * WINDOW_FANOUT : window.rows;
        for (int64 k = i * WINDOW_FANOUT; k < end; ++k) found = better_word(window, found, window.column[k]);
        window.nodes[i] = found;
    }
}
ENTRY(gpudb_window_level, WindowLaunch)

/// The best word of rows begin .. end.
DEVICE int64 best_of_run(const WindowLaunch& window, int64 begin, int64 end) {
    int64 found = neutral_word(window);
    const int64* level = window.column;
    const int64* above = window.nodes;
    int64 size = window.rows;
    while (begin < end) {
        while (begin < end && begin % WINDOW_FANOUT) found = better_word(window, found, level[begin++]);
        while (begin < end && end % WINDOW_FANOUT) found = better_word(window, found, level[--end]);
        begin /= WINDOW_FANOUT;
        end /= WINDOW_FANOUT;
        size = (size + WINDOW_FANOUT - 1) / WINDOW_FANOUT;
        level = above;
        above += size;
    }
    return found;
}

DEVICE void gpudb_window_extreme_block(const WindowLaunch& window, int64 block, int64 blocks) {
    int64 begin, end;
    worker_share(window.rows, block * LANES + LANE, window.workers, begin, end);
    int64 first[MOST_RUNS], last[MOST_RUNS], best[MOST_RUNS];
    for (int r = 0; r < MOST_RUNS; ++r) first[r] = -1;
    for (int64 i = begin; i < end; ++i) {
        int64 found = neutral_word(window);
        for (int64 r = 0; r < window.runs; ++r) {
            const int64 from = window.bounds[2 * r][i], to = window.bounds[2 * r + 1][i];
            if (from != first[r] || to < last[r]) {
                first[r] = last[r] = from;
                best[r] = neutral_word(window);
            }
            if (last[r] < to) best[r] = better_word(window, best[r], best_of_run(window, last[r], to));
            last[r] = to;
            found = better_word(window, found, best[r]);
        }
        window.words[i * window.stride] = found;
    }
}
ENTRY(gpudb_window_extreme, WindowLaunch)

enum : int64 { WINDOW_SUM = 0, WINDOW_VARIANCE = 1, WINDOW_CORRELATION = 2, WINDOW_COVARIANCE = 3 };

/// A frame's exact sums: of x; of x and x x; of x, x x, y, y y and x y; or of x, y and x y.
struct FrameSums { int64 words[5 * WIDE_WORDS]; int64 count; };

DEVICE void add_rows(const WindowLaunch& window, FrameSums& sums, int64 begin, int64 end, bool less) {
    for (int64 i = begin; i < end; ++i) {
        if (!window.keep[i]) continue;
        const float64 x = window.x[i];
        sums.count += less ? -1 : 1;
        int64* words = sums.words;
        add_wide<false>(words, x, 1.0, less);
        if (window.kind == WINDOW_SUM) continue;
        if (window.kind != WINDOW_COVARIANCE) add_wide<false>(words += WIDE_WORDS, x, x, less);
        if (window.kind == WINDOW_VARIANCE) continue;
        const float64 y = window.y[i];
        add_wide<false>(words += WIDE_WORDS, y, 1.0, less);
        if (window.kind != WINDOW_COVARIANCE) add_wide<false>(words += WIDE_WORDS, y, y, less);
        add_wide<false>(words += WIDE_WORDS, x, y, less);
    }
}

DEVICE float64 value_of_frame(const WindowLaunch& window, const FrameSums& sums) {
    const int64* x = sums.words;
    switch (window.kind) {
        case WINDOW_SUM: return wide_value(x);
        case WINDOW_VARIANCE: return covariance_of(x, x, x + WIDE_WORDS, sums.count, window.less);
        case WINDOW_CORRELATION: return correlation_of(x, sums.count);
        default: return covariance_of(x, x + WIDE_WORDS, x + 2 * WIDE_WORDS, sums.count, window.less);
    }
}

DEVICE void gpudb_window_exact_block(const WindowLaunch& window, int64 block, int64 blocks) {
    int64 begin, end;
    worker_share(window.rows, block * LANES + LANE, window.workers, begin, end);
    if (begin >= end) return;
    FrameSums sums;
    for (int64 w = 0; w < 5 * WIDE_WORDS; ++w) sums.words[w] = 0;
    sums.count = 0;
    int64 first[MOST_RUNS] = {0, 0, 0}, last[MOST_RUNS] = {0, 0, 0};
    for (int64 i = begin; i < end && *(const volatile int64*)window.cancel == 0; ++i) {  // frames that jump take long
        for (int64 r = 0; r < window.runs; ++r) {
            const int64 from = window.bounds[2 * r][i], to = window.bounds[2 * r + 1][i];
            if (from >= last[r] || to <= first[r]) {  // nothing stays
                add_rows(window, sums, first[r], last[r], true);
                add_rows(window, sums, from, to, false);
            } else {
                add_rows(window, sums, first[r], from, true);
                add_rows(window, sums, to, last[r], true);
                add_rows(window, sums, from, first[r], false);
                add_rows(window, sums, last[r], to, false);
            }
            first[r] = from;
            last[r] = to;
        }
        window.words[i * window.stride] = order_word(value_of_frame(window, sums));
    }
}
ENTRY(gpudb_window_exact, WindowLaunch)
