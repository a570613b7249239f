// Stable least-significant-digit radix sort of row numbers by 64-bit order words.
//
// Rows are dealt to workers (a lane of a block) in consecutive stretches; a pass counts digits per worker, scans the counts
// in (digit, worker) order, and scatters.  A digit that all rows share costs no pass: the driver asks for the range first.

#define RADIX (1 << RADIX_BITS)

struct SortLaunch {
    const int64* word;      // order words by row number, `stride` apart
    const uint64* keys_in;  // in current order, less the word's minimum
    uint64* keys_out;
    const uint32* rows_in;
    uint32* rows_out;
    uint32* counts;  // RADIX x workers
    int64* range;    // minimum and maximum
    int64 rows, shift, minimum, stride;
};

DEVICE void worker_share(int64 rows, int64 worker, int64 workers, int64& begin, int64& end) {
    const int64 share = (rows + workers - 1) / workers;
    begin = worker * share < rows ? worker * share : rows;
    end = begin + share < rows ? begin + share : rows;
}

/// Least and greatest word.
DEVICE void gpudb_sort_range_block(const SortLaunch& sort, int64 block, int64 blocks) {
    int64 begin, end;
    worker_share(sort.rows, block * LANES + LANE, blocks * LANES, begin, end);
    int64 least = 0x7FFFFFFFFFFFFFFFll, greatest = -least - 1;
    for (int64 i = begin; i < end; ++i) {
        const int64 v = sort.word[i * sort.stride];
        least = v < least ? v : least;
        greatest = v > greatest ? v : greatest;
    }
    atomic_min(sort.range, least);
    atomic_max(sort.range + 1, greatest);
}
ENTRY(gpudb_sort_range, SortLaunch)

/// Row numbers 0, 1, 2 ...
DEVICE void gpudb_sort_start_block(const SortLaunch& sort, int64 block, int64 blocks) {
    for (int64 i = block * LANES + LANE; i < sort.rows; i += blocks * LANES) sort.rows_out[i] = uint32(i);
}
ENTRY(gpudb_sort_start, SortLaunch)

/// Keys of the rows in their current order.
DEVICE void gpudb_sort_load_block(const SortLaunch& sort, int64 block, int64 blocks) {
    for (int64 i = block * LANES + LANE; i < sort.rows; i += blocks * LANES) {
        sort.keys_out[i] = uint64(sort.word[sort.rows_in[i] * sort.stride]) - uint64(sort.minimum);
    }
}
ENTRY(gpudb_sort_load, SortLaunch)

/// Digits counted per worker.
DEVICE void gpudb_sort_count_block(const SortLaunch& sort, int64 block, int64 blocks) {
    const int64 worker = block * LANES + LANE, workers = blocks * LANES;
    int64 begin, end;
    worker_share(sort.rows, worker, workers, begin, end);
    uint32 counts[RADIX];
    for (int d = 0; d < RADIX; ++d) counts[d] = 0;
    for (int64 i = begin; i < end; ++i) ++counts[(sort.keys_in[i] >> sort.shift) & (RADIX - 1)];
    for (int d = 0; d < RADIX; ++d) sort.counts[d * workers + worker] = counts[d];
}
ENTRY(gpudb_sort_count, SortLaunch)

/// Counts to offsets; `minimum` holds the number of workers here.
DEVICE void gpudb_sort_scan_block(const SortLaunch& sort, int64 block, int64 blocks) {
    if (block != 0 || LANE != 0) return;
    uint32 total = 0;
    for (int64 i = 0; i < RADIX * sort.minimum; ++i) {
        const uint32 own = sort.counts[i];
        sort.counts[i] = total;
        total += own;
    }
}
ENTRY(gpudb_sort_scan, SortLaunch)

/// Rows to their places, each worker's in order: stable.
DEVICE void gpudb_sort_scatter_block(const SortLaunch& sort, int64 block, int64 blocks) {
    const int64 worker = block * LANES + LANE, workers = blocks * LANES;
    int64 begin, end;
    worker_share(sort.rows, worker, workers, begin, end);
    uint32 offsets[RADIX];
    for (int d = 0; d < RADIX; ++d) offsets[d] = sort.counts[d * workers + worker];
    for (int64 i = begin; i < end; ++i) {
        const uint64 key = sort.keys_in[i];
        const uint32 to = offsets[(key >> sort.shift) & (RADIX - 1)]++;
        sort.keys_out[to] = key;
        sort.rows_out[to] = sort.rows_in[i];
    }
}
ENTRY(gpudb_sort_scatter, SortLaunch)

// Few rows: one block merges runs of 1, 2, 4 ... rows, in one launch instead of five or more a word and pass.

struct SmallSortLaunch {
    const int64* const* words;  // order words by row number, `stride` apart, the first most significant
    const uint32* rows_in;      // null: 0, 1, 2 ...
    uint32* rows_out;
    uint32* spare;  // as large as rows_out
    int64 rows, num_words, stride;
};

/// Does row `a` go before row `b`, or, if they are equal, `equal`?
DEVICE bool goes_before(const SmallSortLaunch& sort, uint32 a, uint32 b, bool equal) {
    for (int64 w = 0; w < sort.num_words; ++w) {
        const int64 x = sort.words[w][a * sort.stride], y = sort.words[w][b * sort.stride];
        if (x != y) return x < y;
    }
    return equal;
}

/// Rows to their places: each row of a run searches for its place among the run beside.  Every lane must get here: it syncs.
DEVICE void gpudb_sort_small_block(const SmallSortLaunch& sort, int64 block, int64 blocks) {
    if (block != 0) return;
    const int64 rows = sort.rows;
    bool odd = false;
    for (int64 width = 1; width < rows; width *= 2) odd = !odd;
    uint32* from = odd ? sort.spare : sort.rows_out;  // so that the last merge writes rows_out
    uint32* to = odd ? sort.rows_out : sort.spare;
    for (int64 i = LANE; i < rows; i += LANES) from[i] = sort.rows_in ? sort.rows_in[i] : uint32(i);
    sync_lanes();
    for (int64 width = 1; width < rows; width *= 2) {
        for (int64 i = LANE; i < rows; i += LANES) {
            const int64 first = i & -(2 * width), middle = first + width < rows ? first + width : rows;
            const int64 end = middle + width < rows ? middle + width : rows;
            const bool left = i < middle;
            int64 least = left ? middle : first, most = left ? end : middle;
            const int64 begin = least;
            while (least < most) {  // ties: the left run's rows go first
                const int64 probe = (least + most) / 2;
                if (goes_before(sort, from[probe], from[i], !left)) least = probe + 1;
                else most = probe;
            }
            to[(left ? i : i - width) + least - begin] = from[i];
        }
        sync_lanes();
        uint32* const merged = to;
        to = from;
        from = merged;
    }
}
ENTRY(gpudb_sort_small, SmallSortLaunch)
