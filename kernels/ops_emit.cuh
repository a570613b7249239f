// Emitting rows.  Where all rows are emitted their places are known.  Where some are, a tile packs its alive rows, takes the
// next places of the output for them and notes which; gpudb_compact then puts tiles in order, unless they came in order.

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
