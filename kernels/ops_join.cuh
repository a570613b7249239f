// Joins by runs of matches: which rows a pair is of, and which match of a row is nearest.  A pair's number says its place in
// the order of (probe row, build row).

/// r[p0] = probe row of each pair: the last whose first pair, in column p1, is not behind it; slot p2 = number of probe rows.
/// A block of one lane walks on from the row before.  No lane waits.
template <class I>
DEVICE void op_MatchProbe(const Tile& tile, const Instruction& ins) {
    uint32* RESTRICT out = result<uint32>(tile, ins.p[0]);
    const int64* RESTRICT offsets = (const int64*)tile.columns[plain(ins.p[1])];
    const int64 probes = operand<Slot>(tile, ins.p[2])->low;
    const int rows = tile.rows;
    int64 at = 0;
    EACH_ROW(i, rows) {
        const int64 pair = row_number(tile, i);
        if (LANES > 1 || i == 0) {
            int64 end = probes;  // the row lies in at .. end
            for (at = 0; end - at > 1;) {
                const int64 middle = at + (end - at) / 2;
                if (offsets[middle] <= pair) at = middle; else end = middle;
            }
        } else {
            while (offsets[at + 1] <= pair) ++at;
        }
        out[i] = uint32(at);
    }
}

/// r[p0] = 1 + build row of each pair, 0 where its probe row has no match: probe row r[p1], its first pair in column p2, its
/// first match in p3 and how many in p4, the matches' build rows in p5.  No lane waits.
template <class I>
DEVICE void op_MatchBuild(const Tile& tile, const Instruction& ins) {
    uint32* RESTRICT out = result<uint32>(tile, ins.p[0]);
    const uint32* RESTRICT probe = operand<uint32>(tile, ins.p[1]);
    const int64* RESTRICT offsets = (const int64*)tile.columns[plain(ins.p[2])];
    const uint32* RESTRICT begins = (const uint32*)tile.columns[plain(ins.p[3])];
    const uint32* RESTRICT counts = (const uint32*)tile.columns[plain(ins.p[4])];
    const uint32* RESTRICT matches = (const uint32*)tile.columns[plain(ins.p[5])];
    const int rows = tile.rows;
    if (LANES == 1) for (int i = 0; i < rows; ++i) PREFETCH(matches + begins[probe[i]]);
    EACH_ROW(i, rows) {
        const uint32 row = probe[i];
        const int64 k = row_number(tile, i) - offsets[row];
        out[i] = k < int64(counts[row]) ? matches[begins[row] + k] + 1 : 0;
    }
}

/// r[p0] = 1 + the first build row, of the r[p2] in column p4 from r[p1] on, whose word in column p5 is not below r[p3]; 0 where
/// there is none.  Their words do not fall.  No lane waits.
template <class I>
DEVICE void op_Nearest(const Tile& tile, const Instruction& ins) {
    uint32* RESTRICT out = result<uint32>(tile, ins.p[0]);
    const uint32* RESTRICT begins = operand<uint32>(tile, ins.p[1]);
    const uint32* RESTRICT counts = operand<uint32>(tile, ins.p[2]);
    const int64* RESTRICT word = operand<int64>(tile, ins.p[3]);
    const uint32* RESTRICT matches = (const uint32*)tile.columns[plain(ins.p[4])];
    const int64* RESTRICT words = (const int64*)tile.columns[plain(ins.p[5])];
    const int rows = tile.rows;
    EACH_ROW(i, rows) {
        const uint32* run = matches + begins[i];
        const int64 least = word[i];
        uint32 at = 0, end = counts[i];  // those before `at` lie below, those from `end` on do not
        while (at < end) {
            const uint32 middle = at + (end - at) / 2;
            if (words[run[middle]] < least) at = middle + 1; else end = middle;
        }
        out[i] = at < counts[i] ? run[at] + 1 : 0;
    }
}
