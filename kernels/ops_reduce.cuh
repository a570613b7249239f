// Aggregates without GROUP BY: words of the only group (group 0 of copy 0).

/// word p0 += sum of p1, wrapping.  Every lane must get here: block_sum() syncs.
template <class T>
DEVICE void op_ReduceAdd(const Tile& tile, const Instruction& ins) {
    const T* RESTRICT value = operand<T>(tile, ins.p[1]);
    const int rows = tile.rows;
    uint64 total = 0;
    if (sizeof(T) <= 2) {  // 32-bit partial sums: twice the SIMD lanes; 65,535 x 32,767 rows fit
        uint32 narrow = 0;
        VECTORISE EACH_ROW(i, rows) narrow += uint32(value[i]);
        total = narrow;
    } else {
        VECTORISE EACH_ROW(i, rows) total += uint64(int64(value[i]));
    }
    const int64 sum = block_sum(tile, int64(total));
    if (LANE == 0) accumulate_add(tile.table->words + plain(ins.p[0]), sum);
}

/// word p0 += rows where p2, word p0 + 1 += sum of p3 + p4 * p1 over them.  Every lane must get here: block_sum() syncs.
template <class T>
DEVICE void op_ReduceStored(const Tile& tile, const Instruction& ins) {
    const T* RESTRICT value = operand<T>(tile, ins.p[1]);
    const Mask* RESTRICT keep = operand<Mask>(tile, ins.p[2]);
    const int rows = tile.rows;
    int64 count, total;
    if (sizeof(T) <= 2) {
        uint32 few = 0, narrow = 0;
        VECTORISE EACH_ROW(i, rows) {
            narrow += uint32(value[i]) & (0u - uint32(keep[i]));
            few += keep[i];
        }
        count = few;
        total = narrow;
    } else {
        uint64 many = 0, wide = 0;
        VECTORISE EACH_ROW(i, rows) {
            wide += uint64(value[i]) & (0ull - uint64(keep[i]));
            many += keep[i];
        }
        count = int64(many);
        total = int64(wide);
    }
    count = block_sum(tile, count);
    total = block_sum(tile, total);
    if (LANE == 0) {
        const int64 base = *operand<int64>(tile, ins.p[3]), scale = *operand<int64>(tile, ins.p[4]);
        int64* words = tile.table->words + plain(ins.p[0]);
        accumulate_add(words, count);
        accumulate_add(words + 1, wrapping_add(wrapping_multiply(base, count), wrapping_multiply(scale, total)));
    }
}

/// word p0 = min of itself and p1.  Lanes meet only in the accumulator.
template <class T>
DEVICE void op_ReduceMin(const Tile& tile, const Instruction& ins) {
    const int64* RESTRICT value = operand<int64>(tile, ins.p[1]);
    const int rows = tile.rows;
    int64 least = 0x7FFFFFFFFFFFFFFFll;
    VECTORISE EACH_ROW(i, rows) { const int64 v = value[i]; least = v < least ? v : least; }
    accumulate_min(tile.table->words + plain(ins.p[0]), least);
}

/// word p0 = max of itself and p1.  Lanes meet only in the accumulator.
template <class T>
DEVICE void op_ReduceMax(const Tile& tile, const Instruction& ins) {
    const int64* RESTRICT value = operand<int64>(tile, ins.p[1]);
    const int rows = tile.rows;
    int64 greatest = -0x7FFFFFFFFFFFFFFFll - 1;
    VECTORISE EACH_ROW(i, rows) { const int64 v = value[i]; greatest = v > greatest ? v : greatest; }
    accumulate_max(tile.table->words + plain(ins.p[0]), greatest);
}
