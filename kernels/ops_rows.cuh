// Opcodes that load rows or report on them: validity bits, row numbers, gathers, failures.

/// r[p0] = validity bits of column p1 as a mask.  No lane waits.
template <class T>
DEVICE void op_ExpandValidity(const Tile& tile, const Instruction& ins) {
    Mask* RESTRICT out = result<Mask>(tile, ins.p[0]);
    const uint8* RESTRICT bits = (const uint8*)tile.columns[plain(ins.p[1])] + (tile.row >> 3);
    const int bytes = (tile.rows + 7) >> 3;
    // Eight mask bytes from eight bits: copies of the byte, one bit kept in each, moved to its byte's bit 0.
    for (int i = LANE; i < bytes; i += LANES) {
        const uint64 spread = (uint64(bits[i]) * 0x0101010101010101ull) & 0x8040201008040201ull;
        *(uint64*)(out + i * 8) = ((spread + 0x7F7F7F7F7F7F7F7Full) >> 7) & 0x0101010101010101ull;
    }
}

/// r[p0] = numbers of the rows in their source.  No lane waits.
template <class T>
DEVICE void op_RowNumber(const Tile& tile, const Instruction& ins) {
    int64* RESTRICT out = result<int64>(tile, ins.p[0]);
    const int rows = tile.rows;
    EACH_ROW(i, rows) out[i] = row_number(tile, i);
}

/// r[p0] = column p1 at the row numbers in r[p2].  No lane waits.
template <class T, class U, class I>
DEVICE void op_Gather(const Tile& tile, const Instruction& ins) {
    T* RESTRICT out = result<T>(tile, ins.p[0]);
    const T* RESTRICT column = (const T*)tile.columns[plain(ins.p[1])];
    const uint32* RESTRICT at = operand<uint32>(tile, ins.p[2]);
    const int rows = tile.rows;
    EACH_ROW(i, rows) out[i] = column[at[i]];
}

/// Fail with message p2 at the first row where p0 and p1.  No lane waits; the smallest (row, instruction) wins.
DEVICE void op_Fail(const Tile& tile, const Instruction& ins, int64 pc) {
    const Mask* RESTRICT bad = operand<Mask>(tile, ins.p[0]);
    const Mask* RESTRICT alive = operand<Mask>(tile, ins.p[1]);
    const int rows = tile.rows;
    Mask any = 0;
    VECTORISE EACH_ROW(i, rows) any |= bad[i] & alive[i];
    if (!any) return;
    EACH_ROW(i, rows) {
        if (bad[i] & alive[i]) {
            atomic_min(tile.launch->error, (row_number(tile, i) << 16) | pc);
            break;
        }
    }
}

/// False where no row of the tile is alive: the pipeline ends for it.  Every lane must get here.
DEVICE bool op_SkipIfNone(const Tile& tile, const Instruction& ins) {
    const Mask* RESTRICT alive = operand<Mask>(tile, ins.p[0]);
    const int rows = tile.rows;
    Mask any = 0;
    VECTORISE EACH_ROW(i, rows) any |= alive[i];
    return block_sum(tile, any) != 0;
}
