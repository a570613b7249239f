// The build rows of every entry of an index, in row order: a counting sort of rows by entry that keeps what it counts.
//
// Rows are first put into parts by the high bits of their entries, so that the counts and the rows of a part fit a core's
// second cache; then each part is counted and sorted by one block.  Both steps move rows in order, LANES at a time: a lane
// asks how many before it go to the same place.  6 M rows of 1.5 M entries: 16 ns a row, where three passes of a radix sort and
// a look for the ends of runs took 72.

#define MATCH_PARTS 256  // at most; a part's rows are written as one stream, and more streams than this miss the TLB

struct MatchesLaunch {
    const int64* entry;  // of each row
    uint64* moved;       // entry and row, one a half, by part
    uint32* starts;      // parts x blocks, and the end: how many rows a block has of a part; then where it writes them
    uint32* own;         // blocks x MATCH_PARTS: a block's own counts, and how far it has written
    uint32* lanes;       // blocks x LANES, for lanes to meet in
    uint32* begins;      // of each entry, from 1 on: where its rows begin in `order`
    uint32* counts;      // and how many they are
    uint32* order;       // rows
    int64 rows, size, shift, parts;
};

DEVICE void count_one(uint32* where) {
    if (LANES == 1) ++*where; else atomic_add(where, 1);
}

/// How many lanes before this one have the same value, and how many of all.  Every lane must get here: it syncs.
DEVICE uint32 rank_among_lanes(uint32* lanes, uint32 value, uint32& same) {
    same = 1;
    if (LANES == 1) return 0;
    lanes[LANE] = value;
    sync_lanes();
    uint32 before = 0;
    same = 0;
    for (int lane = 0; lane < LANES; ++lane) {
        const uint32 equal = lanes[lane] == value;
        before += lane < LANE ? equal : 0;
        same += equal;
    }
    sync_lanes();
    return before;
}

/// A place in order for each lane's row, from a cursor that many rows may move; none for a lane whose cursor is NO_CURSOR.
/// Every lane must get here: it syncs.
#define NO_CURSOR 0xFFFFFFFFu
DEVICE uint32 place_in_order(uint32* lanes, uint32* cursors, uint32 cursor) {
    uint32 same;
    const uint32 before = rank_among_lanes(lanes, cursor, same);
    const uint32 place = cursor == NO_CURSOR ? 0 : cursors[cursor] + before;
    sync_lanes();
    if (before == 0 && cursor != NO_CURSOR) cursors[cursor] += same;
    return place;
}

/// to[k] = first + the sum of from[0 .. k - 1], for `count` numbers; both may be one array.  Every lane must get here: it syncs.
DEVICE void scan_by_block(uint32* lanes, const uint32* from, uint32* to, int64 count, uint32 first) {
    int64 begin, end;
    worker_share(count, LANE, LANES, begin, end);
    if (LANES > 1) {
        uint32 total = 0;
        for (int64 k = begin; k < end; ++k) total += from[k];
        lanes[LANE] = total;
        sync_lanes();
        for (int lane = 0; lane < LANE; ++lane) first += lanes[lane];
    }
    for (int64 k = begin; k < end; ++k) {
        const uint32 own = from[k];
        to[k] = first;
        first += own;
    }
    sync_lanes();
}

/// Rows of each part in each block's share.
DEVICE void gpudb_match_count_block(const MatchesLaunch& match, int64 block, int64 blocks) {
    uint32* RESTRICT own = match.own + block * MATCH_PARTS;
    for (int64 part = LANE; part < match.parts; part += LANES) own[part] = 0;
    sync_lanes();
    const int64* RESTRICT entry = match.entry;
    const int64 shift = match.shift;
    EACH_ROW_OF_BLOCK(i, match.rows) count_one(own + (entry[i] >> shift));
    sync_lanes();
    for (int64 part = LANE; part < match.parts; part += LANES) match.starts[part * blocks + block] = own[part];
}
ENTRY(gpudb_match_count, MatchesLaunch)

/// Counts to starts, by one block for all; `size` is the number of blocks here.
DEVICE void gpudb_match_starts_block(const MatchesLaunch& match, int64 block, int64 blocks) {
    const int64 count = match.parts * match.size;
    scan_by_block(match.lanes, match.starts, match.starts, count, 0);
    if (LANE == 0) match.starts[count] = uint32(match.rows);
}
ENTRY(gpudb_match_starts, MatchesLaunch)

/// Rows to their parts, in row order.
DEVICE void gpudb_match_move_block(const MatchesLaunch& match, int64 block, int64 blocks) {
    uint32* own = match.own + block * MATCH_PARTS;
    uint32* lanes = match.lanes + block * LANES;
    for (int64 part = LANE; part < match.parts; part += LANES) own[part] = match.starts[part * blocks + block];
    sync_lanes();
    const int64 shift = match.shift;
    int64 begin, end;
    worker_share(match.rows, block, blocks, begin, end);
    for (int64 first = begin; first < end; first += LANES) {
        const int64 i = first + LANE;
        const uint64 entry = i < end ? uint64(match.entry[i]) : 0;
        const uint32 place = place_in_order(lanes, own, i < end ? uint32(entry >> shift) : NO_CURSOR);
        if (i < end) match.moved[place] = entry << 32 | uint64(i);
    }
}
ENTRY(gpudb_match_move, MatchesLaunch)

/// The entries of each part: their counts, where they begin, and their rows.
DEVICE void gpudb_match_entries_block(const MatchesLaunch& match, int64 block, int64 blocks) {
    uint32* lanes = match.lanes + block * LANES;
    uint32* RESTRICT begins = match.begins + 1;
    uint32* RESTRICT counts = match.counts + 1;
    const uint64* RESTRICT moved = match.moved;
    for (int64 part = block; part < match.parts; part += blocks) {
        const int64 first = part << match.shift, behind = (part + 1) << match.shift;
        const int64 last = behind < match.size ? behind : match.size;
        const int64 begin = match.starts[part * blocks], end = match.starts[(part + 1) * blocks];
        for (int64 entry = first + LANE; entry < last; entry += LANES) counts[entry] = 0;
        sync_lanes();
        for (int64 i = begin + LANE; i < end; i += LANES) count_one(counts + (moved[i] >> 32));
        sync_lanes();
        scan_by_block(lanes, counts + first, begins + first, last - first, uint32(begin));
        for (int64 from = begin; from < end; from += LANES) {
            const int64 i = from + LANE;
            const uint64 pair = i < end ? moved[i] : 0;
            const uint32 place = place_in_order(lanes, begins, i < end ? uint32(pair >> 32) : NO_CURSOR);
            if (i < end) match.order[place] = uint32(pair);
        }
        sync_lanes();
        for (int64 entry = first + LANE; entry < last; entry += LANES) begins[entry] -= counts[entry];  // each stood at its end
        sync_lanes();
    }
    if (block == 0 && LANE == 0) match.begins[0] = match.counts[0] = 0;
}
ENTRY(gpudb_match_entries, MatchesLaunch)
