// The rows of a build side by key.
//
// Keys have numbers, or are words.  Numbers lead to a row by an array, words by a table of slots with the key and a row in one
// line.  Where all rows of a key are wanted, a counting sort gives them in row order.  The table and the sort run part by
// part: rows are first moved, in row order, into parts that lie in a core's second cache with what belongs to them; one
// block works on a part.  What is wanted of 6 M rows of 1.5 M keys in any order, in ns a row: all rows of numbers 16 (three
// passes of a radix sort and a look for the ends of runs: 72), all rows of words 32 (176).

#define MOST_PARTS 1024
#define SLOTS_AHEAD 16  // rows whose slots a CPU asks for before it needs them

/// An index of rows by key.  `entry` is a key's number, or the moved row that stands for its key.
struct IndexLaunch {
    const int64* word;          // numbers
    const int64* const* words;  // or columns of key words
    uint32* first;              // by 1 + number, from 1 on: 1 + one of its rows; 0 for none
    uint64* slots;              // of keys that are words: see GroupTable
    int64* repeated;            // set where two rows have one key
    int64* records;             // the moved rows: key words and row
    uint64* moved;              // the moved rows: entry and row, one a half
    uint32* starts;             // parts x blocks, and the end: how many rows a block has of a part; then where it moves them to
    uint32* own;                // blocks x MOST_PARTS: a block's own counts, and how far it has moved
    uint32* lanes;              // blocks x LANES, for lanes to meet in
    uint32* begins;             // by 1 + entry: where its rows begin in `order`
    uint32* counts;             // and how many they are
    uint32* order;              // rows
    int64 rows, size, key_words, slot_mask, shift, parts, blocks, all;
};

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

/// Key words of an index: WORDS, or as many as it says where that is ANY_WORDS; NUMBERS for keys that have numbers.
enum : int { NUMBERS = 0, ANY_WORDS = -1 };

template <int WORDS>
DEVICE int64 part_of_row(const IndexLaunch& index, int64 row) {
    if (WORDS == NUMBERS) return index.word[row] >> index.shift;
    const int64 words = WORDS == ANY_WORDS ? index.key_words : WORDS;
    uint64 hash = 0;
    for (int64 w = 0; w < words; ++w) hash = hash_step(hash, uint64(index.words[w][row]));
    return int64(hash & uint64(index.slot_mask)) >> index.shift;
}

/// Rows of each part in each block's share.  Every lane must get here: it syncs, as what follows does.
template <int WORDS>
DEVICE void count_parts(const IndexLaunch& index, int64 block, int64 blocks) {
    uint32* RESTRICT own = index.own + block * MOST_PARTS;
    for (int64 part = LANE; part < index.parts; part += LANES) own[part] = 0;
    sync_lanes();
    EACH_ROW_OF_BLOCK(i, index.rows) count_one(own + part_of_row<WORDS>(index, i));
    sync_lanes();
    for (int64 part = LANE; part < index.parts; part += LANES) index.starts[part * blocks + block] = own[part];
}

/// Rows to their parts, in row order: their numbers into `moved`, their words into `records`.
template <int WORDS>
DEVICE void move_to_parts(const IndexLaunch& index, int64 block, int64 blocks) {
    uint32* own = index.own + block * MOST_PARTS;
    uint32* lanes = index.lanes + block * LANES;
    for (int64 part = LANE; part < index.parts; part += LANES) own[part] = index.starts[part * blocks + block];
    sync_lanes();
    const int64 words = WORDS == ANY_WORDS ? index.key_words : WORDS;
    int64 begin, end;
    worker_share(index.rows, block, blocks, begin, end);
    for (int64 first = begin; first < end; first += LANES) {
        const int64 i = first + LANE;
        const uint32 place = place_in_order(lanes, own, i < end ? uint32(part_of_row<WORDS>(index, i)) : NO_CURSOR);
        if (i >= end) continue;
        if (WORDS == NUMBERS) { index.moved[place] = uint64(index.word[i]) << 32 | uint64(i); continue; }
        int64* record = index.records + int64(place) * (words + 1);
        for (int64 w = 0; w < words; ++w) record[w] = index.words[w][i];
        record[words] = i;
    }
}

template <int WORDS>
DEVICE uint64 hash_of_record(const int64* record, int64 words) {
    uint64 hash = 0;
    for (int64 w = 0; w < (WORDS == ANY_WORDS ? words : WORDS); ++w) hash = hash_step(hash, uint64(record[w]));
    return hash;
}

/// Keys that are words into their slots, part by part.  A slot is claimed by 1 + a moved row, whose record holds the key; the
/// other half is what Probe finds: 1 + that, or 1 + row where one row of each key will do.
template <int WORDS>
DEVICE void fill_slots(const IndexLaunch& index, int64 block, int64 blocks) {
    const int64 words = WORDS == ANY_WORDS ? index.key_words : WORDS, width = words + 1;
    const uint64 mask = uint64(index.slot_mask);
    bool repeated = false;
    for (int64 part = block; part < index.parts; part += blocks) {
        const int64 begin = index.starts[part * index.blocks], end = index.starts[(part + 1) * index.blocks];
        for (int64 i = begin + LANE; i < end; i += LANES) {
            const int64* record = index.records + i * width;
            if (LANES == 1 && i + SLOTS_AHEAD < end) {
                PREFETCH(index.slots + (hash_of_record<WORDS>(record + SLOTS_AHEAD * width, words) & mask) * uint64(width));
            }
            const uint64 mine = uint64(index.all ? i + 1 : record[words] + 1) << 32 | uint64(i + 1);
            int64 entry = i;
            for (uint64 at = hash_of_record<WORDS>(record, words) & mask;; at = (at + 1) & mask) {
                uint64* slot = index.slots + at * uint64(width);
                uint64 head = shared_load(slot);
                if (head == 0) head = compare_and_swap(slot, 0, mine);
                if (head == 0) {
                    for (int64 w = 0; w < words; ++w) slot[1 + w] = uint64(record[w]);
                    break;
                }
                entry = int64(head & 0xFFFFFFFFull) - 1;
                bool same = true;
                for (int64 w = 0; w < words; ++w) same &= index.records[entry * width + w] == record[w];
                if (same) { repeated = true; break; }
                entry = i;
            }
            if (index.all) index.moved[i] = uint64(entry) << 32 | uint64(record[words]);
        }
    }
    if (repeated) *(volatile int64*)index.repeated = 1;
}

DEVICE void gpudb_part_count_block(const IndexLaunch& index, int64 block, int64 blocks) {
    if (index.key_words == 0) count_parts<NUMBERS>(index, block, blocks);
    else if (index.key_words == 1) count_parts<1>(index, block, blocks);
    else count_parts<ANY_WORDS>(index, block, blocks);
}
ENTRY(gpudb_part_count, IndexLaunch)

/// Counts to starts, by one block for all.
DEVICE void gpudb_part_starts_block(const IndexLaunch& index, int64 block, int64 blocks) {
    const int64 count = index.parts * index.blocks;
    scan_by_block(index.lanes, index.starts, index.starts, count, 0);
    if (LANE == 0) index.starts[count] = uint32(index.rows);
}
ENTRY(gpudb_part_starts, IndexLaunch)

DEVICE void gpudb_part_move_block(const IndexLaunch& index, int64 block, int64 blocks) {
    if (index.key_words == 0) move_to_parts<NUMBERS>(index, block, blocks);
    else if (index.key_words == 1) move_to_parts<1>(index, block, blocks);
    else move_to_parts<ANY_WORDS>(index, block, blocks);
}
ENTRY(gpudb_part_move, IndexLaunch)

DEVICE void gpudb_index_words_block(const IndexLaunch& index, int64 block, int64 blocks) {
    if (index.key_words == 1) fill_slots<1>(index, block, blocks);
    else fill_slots<ANY_WORDS>(index, block, blocks);
}
ENTRY(gpudb_index_words, IndexLaunch)

/// The entries of each part: their counts, where they begin, and their rows.
DEVICE void gpudb_index_matches_block(const IndexLaunch& index, int64 block, int64 blocks) {
    uint32* lanes = index.lanes + block * LANES;
    uint32* RESTRICT begins = index.begins + 1;
    uint32* RESTRICT counts = index.counts + 1;
    const uint64* RESTRICT moved = index.moved;
    for (int64 part = block; part < index.parts; part += blocks) {
        const int64 begin = index.starts[part * index.blocks], end = index.starts[(part + 1) * index.blocks];
        const int64 behind = (part + 1) << index.shift;
        const int64 first = index.key_words ? begin : part << index.shift;
        const int64 last = index.key_words ? end : behind < index.size ? behind : index.size;
        for (int64 entry = first + LANE; entry < last; entry += LANES) counts[entry] = 0;
        sync_lanes();
        for (int64 i = begin + LANE; i < end; i += LANES) count_one(counts + (moved[i] >> 32));
        sync_lanes();
        scan_by_block(lanes, counts + first, begins + first, last - first, uint32(begin));
        for (int64 from = begin; from < end; from += LANES) {
            const int64 i = from + LANE;
            const uint64 pair = i < end ? moved[i] : 0;
            const uint32 place = place_in_order(lanes, begins, i < end ? uint32(pair >> 32) : NO_CURSOR);
            if (i < end) index.order[place] = uint32(pair);
        }
        sync_lanes();
        for (int64 entry = first + LANE; entry < last; entry += LANES) begins[entry] -= counts[entry];  // each stood at its end
        sync_lanes();
    }
    if (block == 0 && LANE == 0) index.begins[0] = index.counts[0] = 0;
}
ENTRY(gpudb_index_matches, IndexLaunch)
