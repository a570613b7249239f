// Emitting rows.  Where all rows are emitted their places are known.  Where some are, a tile packs its alive rows, takes the
// next places of the output for them and notes which; gpudb_compact then puts tiles in order, unless they came in order.

/// Puts a word into a heap of the `most` least: heap[0] counts them, heap[1] is the greatest.
DEVICE void push_least(int64* heap, int64 most, int64 word) {
    int64 at;
    if (heap[0] < most) {
        at = ++heap[0];
        for (; at > 1 && heap[at / 2] < word; at /= 2) heap[at] = heap[at / 2];
    } else {
        if (word >= heap[1]) return;
        at = 1;
        for (int64 child; (child = 2 * at) <= most; at = child) {
            child += child < most && heap[child + 1] > heap[child];
            if (heap[child] <= word) break;
            heap[at] = heap[child];
        }
    }
    heap[at] = word;
}

/// r[p0] = where p2, and the order word p1 may be among the first rows wanted: no greater than as many words seen before by
/// this block.  Which others it lets through too depends on the blocks; a sort and a limit follow.  Every lane must get here.
template <class T, class K, class A>
DEVICE void op_KeepTop(const Tile& tile, const Instruction& ins) {
    Mask* RESTRICT out = result<Mask>(tile, ins.p[0]);
    const int64* RESTRICT word = operand<int64>(tile, ins.p[1]);
    const Mask* RESTRICT alive = operand<Mask>(tile, ins.p[2]);
    const int64 most = tile.launch->top_rows;
    int64* heap = tile.launch->top ? tile.launch->top + tile.block * (most + 1) : nullptr;
    const int64 bound = heap && heap[0] == most ? heap[1] : 0x7FFFFFFFFFFFFFFFll;
    const int rows = tile.rows;
    VECTORISE EACH_ROW(i, rows) out[i] = Mask(alive[i] & Mask(word[i] <= bound));
    sync_lanes();
    if (heap && LANE == 0) {
        for (int i = 0; i < rows; ++i) if (out[i]) push_least(heap, most, word[i]);
    }
    sync_lanes();
}

/// Goes on with the rows alive in p1 only: r[p0] = their numbers in the tile.  False, the end for this tile, if there are none.
/// Every lane must get here.
template <class T>
DEVICE bool op_Compact(Tile& tile, const Instruction& ins) {
    uint32* RESTRICT list = result<uint32>(tile, ins.p[0]);
    const Mask* RESTRICT alive = operand<Mask>(tile, ins.p[1]);
    const int share = ((tile.rows + LANES - 1) / LANES + 7) & ~7;  // consecutive rows a lane, so that order is kept
    const int begin = LANE * share < tile.rows ? LANE * share : tile.rows;
    const int end = begin + share < tile.rows ? begin + share : tile.rows;
    sync_lanes();
    uint32 own = 0;
    VECTORISE for (int i = begin; i < end; ++i) own += alive[i];
    int64 at = block_prefix(tile, own);
    const int64 total = block_sum(tile, own);
    int i = begin;
    for (; own && i + 8 <= end; i += 8) {
        if (*(const uint64*)(alive + i) != 0) at = APPEND_ALIVE(list, at, alive, i);
    }
    if (i < end) append_one_by_one(list, at, alive, i, end - i);
    sync_lanes();
    if (tile.launch->tile_counts) {
        if (LANE == 0) {
            const int64 start = total ? atomic_add(tile.launch->output_rows, total) : 0;
            tile.launch->tile_counts[tile.index] = int32(total);
            tile.launch->tile_starts[tile.index] = start;
            tile.scratch[LANES] = start;
        }
        sync_lanes();
        tile.output = tile.scratch[LANES];
        sync_lanes();
    }
    tile.rows = int(total);
    tile.picked = list;
    return total != 0;
}

/// r[p0] = p1, a column or a register from before Compact, at the rows that it went on with, r[p2].  No lane waits.
template <class T, class U, class I>
DEVICE void op_Pick(const Tile& tile, const Instruction& ins) {
    T* RESTRICT out = result<T>(tile, ins.p[0]);
    const T* RESTRICT value = operand<T>(tile, ins.p[1]);
    const uint32* RESTRICT list = operand<uint32>(tile, ins.p[2]);
    const int rows = tile.rows;
    EACH_ROW(i, rows) out[i] = value[list[i]];
}

/// r[p0] = validity bits of column p1 at the same rows, r[p2].  No lane waits.
template <class T, class I>
DEVICE void op_PickValidity(const Tile& tile, const Instruction& ins) {
    Mask* RESTRICT out = result<Mask>(tile, ins.p[0]);
    const uint8* RESTRICT bits = (const uint8*)tile.columns[plain(ins.p[1])] + (tile.row >> 3);
    const uint32* RESTRICT list = operand<uint32>(tile, ins.p[2]);
    const int rows = tile.rows;
    EACH_ROW(i, rows) { const uint32 row = list[i]; out[i] = (bits[row >> 3] >> (row & 7)) & 1; }
}

/// Output column p0 = p1, a column or a register from before Compact, at the rows that it went on with, r[p2].  No lane waits.
template <class T, class I>
DEVICE void op_Emit(const Tile& tile, const Instruction& ins) {
    T* RESTRICT out = (T*)tile.launch->outputs[plain(ins.p[0])] + tile.output;
    const T* RESTRICT value = operand<T>(tile, ins.p[1]);
    const uint32* RESTRICT list = operand<uint32>(tile, ins.p[2]);
    const int rows = tile.rows;
    EACH_ROW(i, rows) out[i] = value[list[i]];
}

/// Output column p0 = every row of p1.  No lane waits.
template <class T>
DEVICE void op_EmitAll(const Tile& tile, const Instruction& ins) {
    T* RESTRICT out = (T*)tile.launch->outputs[plain(ins.p[0])] + tile.output;
    const T* RESTRICT value = operand<T>(tile, ins.p[1]);
    const int rows = tile.rows;
    // Whole packs only: the rows behind the last are another tile's, and a tile may start anywhere.
    const int whole = (uint64)out % (sizeof(T) * PACK) == 0 ? rows & ~(PACK - 1) : 0;
    EACH_PACK(i, whole, PACK) { *(Pack<T, PACK>*)(out + i) = load<PACK>(value, i); }
    for (int i = whole + LANE; i < rows; i += LANES) out[i] = value[i];
}
