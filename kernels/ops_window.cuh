// Windows, within pipelines: where an ordered column reaches a value.

/// r[p0] = first of r[p3] .. r[p4] at which column p1, rising there, is not below (PASSED: is above) r[p2], or r[p4].  No lane
/// waits.
template <bool PASSED>
DEVICE void first_bound(const Tile& tile, const Instruction& ins) {
    uint32* RESTRICT out = result<uint32>(tile, ins.p[0]);
    const int64* RESTRICT column = (const int64*)tile.columns[plain(ins.p[1])];
    const int64* RESTRICT value = operand<int64>(tile, ins.p[2]);
    const uint32* RESTRICT from = operand<uint32>(tile, ins.p[3]);
    const uint32* RESTRICT to = operand<uint32>(tile, ins.p[4]);
    const int rows = tile.rows;
    EACH_ROW(i, rows) {
        uint32 begin = from[i], end = to[i];
        const int64 wanted = value[i];
        while (begin < end) {
            const uint32 middle = begin + (end - begin) / 2;
            if (PASSED ? column[middle] <= wanted : column[middle] < wanted) begin = middle + 1; else end = middle;
        }
        out[i] = begin;
    }
}
template <class O, class C, class V, class B, class E>
DEVICE void op_FirstReached(const Tile& tile, const Instruction& ins) { first_bound<false>(tile, ins); }
template <class O, class C, class V, class B, class E>
DEVICE void op_FirstPassed(const Tile& tile, const Instruction& ins) { first_bound<true>(tile, ins); }
