// Row numbers, each as often as a count says, in two passes: `gpudb_repeat_count` leaves in `sums` how many rows each worker
// writes, the driver scans them, `gpudb_repeat_rows` writes.

struct RepeatLaunch {
    const int64* counts;  // one a row; none where it is not positive
    int64* sums;          // one a worker
    uint32* rows_out;
    int64 rows;
};

DEVICE void gpudb_repeat_count_block(const RepeatLaunch& repeat, int64 block, int64 blocks) {
    int64 begin, end, total = 0;
    worker_share(repeat.rows, block * LANES + LANE, blocks * LANES, begin, end);
    for (int64 i = begin; i < end; ++i) total += repeat.counts[i] > 0 ? repeat.counts[i] : 0;
    repeat.sums[block * LANES + LANE] = total;
}
ENTRY(gpudb_repeat_count, RepeatLaunch)

DEVICE void gpudb_repeat_rows_block(const RepeatLaunch& repeat, int64 block, int64 blocks) {
    int64 begin, end;
    worker_share(repeat.rows, block * LANES + LANE, blocks * LANES, begin, end);
    uint32* RESTRICT out = repeat.rows_out + repeat.sums[block * LANES + LANE];
    for (int64 i = begin; i < end; ++i) {
        const int64 count = repeat.counts[i];
        for (int64 k = 0; k < count; ++k) *out++ = uint32(i);
    }
}
ENTRY(gpudb_repeat_rows, RepeatLaunch)
