// Joins, between pipelines: the rows of a build side by key, and how many pairs there are.

/// Rows of a build side.  Numbered keys: `first` has 1 + one of its rows for each number, from 1 on, 0 for none.  Other keys
/// are copied to `keys`, and `heads` is a hash table as in GroupTable whose entries are rows: one stands for all of its key,
/// and `entry` says which for each row.  `repeated` is set where two rows have one key.
struct IndexLaunch {
    const int64* word;  // numbers, or the key word number `at`
    uint32* first;
    int64* keys;  // rows x key_words
    uint64* heads;
    int64* entry;
    int64* repeated;
    int64 rows, key_words, at, head_mask;
};

#define PROBE_AHEAD 16  // rows whose heads a CPU asks for before it needs them

/// Consecutive rows for each block, shared out to its lanes one by one.
#define EACH_ROW_OF_BLOCK(i, rows)                                                                     \
    const int64 share_ = ((rows) + blocks - 1) / blocks;                                               \
    const int64 end_ = (block + 1) * share_ < (rows) ? (block + 1) * share_ : (rows);                  \
    for (int64 i = block * share_ + LANE; i < end_; i += LANES)

/// Two launches: each row writes itself, and then looks whether it is still there.  6 M numbers in any order: 21 ns a row where
/// a compare-and-swap takes 37.
DEVICE void gpudb_index_numbers_block(const IndexLaunch& index, int64 block, int64 blocks) {
    EACH_ROW_OF_BLOCK(i, index.rows) *(volatile uint32*)&index.first[index.word[i] + 1] = uint32(i + 1);
}
ENTRY(gpudb_index_numbers, IndexLaunch)

DEVICE void gpudb_index_repeated_block(const IndexLaunch& index, int64 block, int64 blocks) {
    EACH_ROW_OF_BLOCK(i, index.rows) {
        if (index.first[index.word[i] + 1] != uint32(i + 1)) { *(volatile int64*)index.repeated = 1; return; }
    }
}
ENTRY(gpudb_index_repeated, IndexLaunch)

DEVICE void gpudb_index_keys_block(const IndexLaunch& index, int64 block, int64 blocks) {
    EACH_ROW_OF_BLOCK(i, index.rows) index.keys[i * index.key_words + index.at] = index.word[i];
}
ENTRY(gpudb_index_keys, IndexLaunch)

DEVICE uint64 hash_of_row(const IndexLaunch& index, int64 row) {
    uint64 hash = 0;
    for (int64 w = 0; w < index.key_words; ++w) hash = hash_step(hash, uint64(index.keys[row * index.key_words + w]));
    return hash;
}

DEVICE void gpudb_index_rows_block(const IndexLaunch& index, int64 block, int64 blocks) {
    const int64 words = index.key_words;
    const uint64 mask = uint64(index.head_mask);
    bool repeated = false;
    EACH_ROW_OF_BLOCK(i, index.rows) {
        if (LANES == 1 && i + PROBE_AHEAD < end_) {
            if (i + 2 * PROBE_AHEAD < end_) PREFETCH(index.heads + (hash_of_row(index, i + 2 * PROBE_AHEAD) & mask));
            const uint32 head = uint32(shared_load(index.heads + (hash_of_row(index, i + PROBE_AHEAD) & mask)));
            PREFETCH(index.keys + (int64(head) - (head != 0)) * words);
        }
        const uint64 hash = hash_of_row(index, i);
        const uint64 mine = (hash & 0xFFFFFFFF00000000ull) | uint64(i + 1);
        for (uint64 slot = hash & mask;; slot = (slot + 1) & mask) {
            uint64 head = shared_load(index.heads + slot);
            if (head == 0) head = compare_and_swap(&index.heads[slot], 0, mine);
            if (head == 0) { index.entry[i] = i; break; }
            if ((head ^ hash) >> 32) continue;
            const int64 entry = int64(head & 0xFFFFFFFFull) - 1;
            bool same = true;
            for (int64 w = 0; w < words; ++w) same &= index.keys[entry * words + w] == index.keys[i * words + w];
            if (same) { index.entry[i] = entry; repeated = true; break; }
        }
    }
    if (repeated) *(volatile int64*)index.repeated = 1;
}
ENTRY(gpudb_index_rows, IndexLaunch)

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
