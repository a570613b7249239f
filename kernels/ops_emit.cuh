// Emitting rows.  A tile writes its alive rows to its own stretch of the output (its first row's number in the launch), so
// that rows keep their order; gpudb_compact closes the gaps.

DEVICE int64 output_row(const Tile& tile) { return tile.index * tile.launch->tile_rows; }

/// r[p0] = positions of the rows alive in p1; their number is the tile's count.  Every lane must get here.
template <class T>
DEVICE void op_EmitRows(const Tile& tile, const Instruction& ins) {
    uint32* RESTRICT list = result<uint32>(tile, ins.p[0]);
    const Mask* RESTRICT alive = operand<Mask>(tile, ins.p[1]);
    const int share = (tile.rows + LANES - 1) / LANES;  // consecutive rows a lane, so that order is kept
    const int begin = LANE * share < tile.rows ? LANE * share : tile.rows;
    const int end = begin + share < tile.rows ? begin + share : tile.rows;
    sync_lanes();
    int64 own = 0;
    for (int i = begin; i < end; ++i) own += alive[i];
    int64 at = block_prefix(tile, own);
    const int64 total = block_sum(tile, own);
    for (int i = begin; i < end; ++i) {  // branch-free: the slot past the end is overwritten by the next alive row
        if (LANES == 1 || alive[i]) list[at] = uint32(i);
        at += alive[i];
    }
    if (LANE == 0) tile.launch->tile_counts[tile.index] = int32(total);
    sync_lanes();
}

/// Output column p0 = p1 of the rows listed in r[p2].  No lane waits.
template <class T, class I>
DEVICE void op_Emit(const Tile& tile, const Instruction& ins) {
    T* RESTRICT out = (T*)tile.launch->outputs[plain(ins.p[0])] + output_row(tile);
    const T* RESTRICT value = operand<T>(tile, ins.p[1]);
    const uint32* RESTRICT list = operand<uint32>(tile, ins.p[2]);
    const int rows = tile.launch->tile_counts[tile.index];
    EACH_ROW(i, rows) out[i] = value[list[i]];
}

/// Output column p0 = every row of p1.  No lane waits.
template <class T>
DEVICE void op_EmitAll(const Tile& tile, const Instruction& ins) {
    T* RESTRICT out = (T*)tile.launch->outputs[plain(ins.p[0])] + output_row(tile);
    const T* RESTRICT value = operand<T>(tile, ins.p[1]);
    const int rows = tile.rows;
    EACH_PACK(i, rows, PACK) { *(Pack<T, PACK>*)(out + i) = load<PACK>(value, i); }
    if (LANE == 0) tile.launch->tile_counts[tile.index] = rows;
}
