// Joins, between pipelines: runs of equal words, and how many pairs there are.

/// Consecutive rows for each block, shared out to its lanes one by one.
#define EACH_ROW_OF_BLOCK(i, rows)                                                                     \
    const int64 share_ = ((rows) + blocks - 1) / blocks;                                               \
    const int64 end_ = (block + 1) * share_ < (rows) ? (block + 1) * share_ : (rows);                  \
    for (int64 i = block * share_ + LANE; i < end_; i += LANES)

/// Runs of equal words among sorted rows: where each word's begins and how long it is, at plus + word.  `order` has the rows in
/// order, or null where they lie so.  Two launches, since a run's ends are found by different lanes.
struct RunsLaunch {
    const uint32* order;
    const int64* word;
    uint32* begins;
    uint32* counts;  // the ends, until gpudb_run_counts
    int64 rows, plus, size;
};
DEVICE int64 word_in_order(const RunsLaunch& runs, int64 i) { return runs.word[runs.order ? int64(runs.order[i]) : i]; }

DEVICE void gpudb_run_ends_block(const RunsLaunch& runs, int64 block, int64 blocks) {
    EACH_ROW_OF_BLOCK(i, runs.rows) {
        const int64 word = word_in_order(runs, i);
        if (i == 0 || word_in_order(runs, i - 1) != word) runs.begins[runs.plus + word] = uint32(i);
        if (i + 1 == runs.rows || word_in_order(runs, i + 1) != word) runs.counts[runs.plus + word] = uint32(i + 1);
    }
}
ENTRY(gpudb_run_ends, RunsLaunch)

DEVICE void gpudb_run_counts_block(const RunsLaunch& runs, int64 block, int64 blocks) {
    EACH_ROW_OF_BLOCK(i, runs.size) runs.counts[i] -= runs.begins[i];
}
ENTRY(gpudb_run_counts, RunsLaunch)

/// The number of each probe row's first pair, from the numbers of its matches; a row has `least` pairs at least.  Three launches:
/// each worker (a lane of a block) adds up its share, `sums` become where each begins, and offsets are written.
struct PairsLaunch {
    const uint32* counts;
    int64* sums;     // workers + 1
    int64* offsets;  // rows + 1
    int64 rows, least, workers;
};
DEVICE int64 pairs_of(const PairsLaunch& pairs, int64 row) {
    return int64(pairs.counts[row]) < pairs.least ? pairs.least : int64(pairs.counts[row]);
}

DEVICE void gpudb_pair_sums_block(const PairsLaunch& pairs, int64 block, int64 blocks) {
    const int64 worker = block * LANES + LANE;
    int64 begin, end, total = 0;
    worker_share(pairs.rows, worker, blocks * LANES, begin, end);
    for (int64 i = begin; i < end; ++i) total += pairs_of(pairs, i);
    pairs.sums[worker] = total;
}
ENTRY(gpudb_pair_sums, PairsLaunch)

DEVICE void gpudb_pair_scan_block(const PairsLaunch& pairs, int64 block, int64 blocks) {
    if (block != 0 || LANE != 0) return;
    int64 total = 0;
    for (int64 w = 0; w < pairs.workers; ++w) { const int64 own = pairs.sums[w]; pairs.sums[w] = total; total += own; }
    pairs.sums[pairs.workers] = total;
    pairs.offsets[pairs.rows] = total;
}
ENTRY(gpudb_pair_scan, PairsLaunch)

DEVICE void gpudb_pair_offsets_block(const PairsLaunch& pairs, int64 block, int64 blocks) {
    const int64 worker = block * LANES + LANE;
    int64 begin, end, at = pairs.sums[worker];
    worker_share(pairs.rows, worker, blocks * LANES, begin, end);
    for (int64 i = begin; i < end; ++i) { pairs.offsets[i] = at; at += pairs_of(pairs, i); }
}
ENTRY(gpudb_pair_offsets, PairsLaunch)
