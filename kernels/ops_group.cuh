// Groups: finding a row's group and adding to its words.

/// Mixes the words of a key; the finaliser is David Stafford's variant 13 of MurmurHash3's.
DEVICE uint64 hash_step(uint64 hash, uint64 word) {
    uint64 x = (hash ^ word) + 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

/// First word of an entry that a lane took and then did not need, as another lane had inserted the same key: never a group.
#define UNUSED_ENTRY (-0x7FFFFFFFFFFFFFFFll - 1)

/// Whether an entry's first word, the first row, is a group's: some row had its key.
DEVICE bool is_group(int64 first_row) { return first_row != 0x7FFFFFFFFFFFFFFFll && first_row != UNUSED_ENTRY; }

/// The hash of a key of so many words, `step` apart.
DEVICE uint64 key_hash(const int64* key, int64 words, int64 step) {
    uint64 hash = 0;
    for (int64 w = 0; w < words; ++w) hash = hash_step(hash, uint64(key[w * step]));
    return hash;
}

/// Entries in use of a table with keys; a lane that found it full has counted its own too.
DEVICE int64 entries_of(const GroupTable& table) { return *table.used < table.capacity ? *table.used : table.capacity; }

/// The hashes of so many keys, one after the other; asks for their heads in a table, which is not one of numbers.
DEVICE void hash_ahead(const GroupTable& table, const int64* keys, int64 count, uint64* hash) {
    for (int64 k = 0; k < count; ++k) {
        hash[k] = key_hash(keys + k * table.key_words, table.key_words, 1);
        PREFETCH(table.heads + (hash[k] & uint64(table.head_mask)));
    }
}

/// The entry of a key, inserted if it is new; -1 if the table is full.  `key` has key_words words, `step` apart.
DEVICE int64 find_or_insert(const GroupTable& table, const int64* key, int64 step) {
    const int64 words = table.key_words;
    const uint64 hash = key_hash(key, words, step);
    const uint64 tag = hash & 0xFFFFFFFF00000000ull;
    int64 fresh = -1;
    for (uint64 slot = hash & uint64(table.head_mask);; slot = (slot + 1) & uint64(table.head_mask)) {
        uint64 head = shared_load(table.heads + slot);
        if (head == 0) {
            if (fresh < 0) {
                fresh = PRIVATE_TABLES ? (*table.used)++ : atomic_add(table.used, 1);
                if (fresh >= table.capacity) return -1;
                for (int64 w = 0; w < words; ++w) table.keys[fresh * words + w] = key[w * step];
                fence();
            }
            const uint64 mine = tag | uint64(fresh + 1);
            if (PRIVATE_TABLES) { table.heads[slot] = mine; return fresh; }
            head = compare_and_swap(&table.heads[slot], 0, mine);
            if (head == 0) return fresh;  // else another lane took the slot: see whose key it holds
        }
        if ((head & 0xFFFFFFFF00000000ull) != tag) continue;
        const int64 entry = int64(head & 0xFFFFFFFFull) - 1;
        bool same = true;
        for (int64 w = 0; w < words; ++w) same &= shared_load(table.keys + entry * words + w) == key[w * step];
        if (same) {
            if (fresh >= 0) table.words[fresh * table.stride] = UNUSED_ENTRY;
            return entry;
        }
    }
}

/// The entry + 1 of a dense key number, inserted as it is new; 0 if the table is full.
NOINLINE uint32 insert_number(const GroupTable& table, uint32 number) {
    const int64 fresh = PRIVATE_TABLES ? (*table.used)++ : atomic_add(table.used, 1);
    if (fresh >= table.capacity) return 0;
    table.keys[fresh] = int64(number);
    fence();
    uint32* head = (uint32*)table.heads + number;
    const uint32 seen = compare_and_swap(head, 0, uint32(fresh + 1));
    if (seen == 0) return uint32(fresh + 1);
    table.words[fresh * table.stride] = UNUSED_ENTRY;
    return seen;
}

/// The entry of a key of any table with keys while other lanes insert other keys; -1 where it has none.
DEVICE int64 entry_of(const GroupTable& table, const int64* key, uint64 hash) {
    if (table.numbers) return int64(volatile_load((const uint32*)table.heads + *key)) - 1;
    for (uint64 slot = hash & uint64(table.head_mask);; slot = (slot + 1) & uint64(table.head_mask)) {
        const uint64 head = volatile_load(table.heads + slot);
        if (head == 0) return -1;
        if ((head ^ hash) >> 32) continue;
        const int64 entry = int64(head & 0xFFFFFFFFull) - 1;
        bool same = true;
        for (int64 w = 0; w < table.key_words; ++w) same &= volatile_load(table.keys + entry * table.key_words + w) == key[w];
        if (same) return entry;
    }
}

/// Makes an entry, whose key is written and not yet in the table, one that is found, while other lanes do so for other keys.
DEVICE void enter(const GroupTable& table, int64 entry, uint64 hash) {
    if (table.numbers) { ((uint32*)table.heads)[table.keys[entry]] = uint32(entry + 1); return; }
    const uint64 head = (hash & 0xFFFFFFFF00000000ull) | uint64(entry + 1);
    uint64 slot = hash & uint64(table.head_mask);
    while (compare_and_swap(table.heads + slot, 0, head) != 0) slot = (slot + 1) & uint64(table.head_mask);
}

/// r[p0] = group of the key number in r[p1]; the number past the last is the trash group's.  Every lane must get here.
template <class T, class I>
DEVICE void op_GroupIndex(Tile& tile, const Instruction& ins) {
    uint32* RESTRICT out = result<uint32>(tile, ins.p[0]);
    const uint32* RESTRICT number = operand<uint32>(tile, ins.p[1]);
    const GroupTable& table = *tile.table;
    const uint32* RESTRICT heads = (const uint32*)table.heads;
    const int rows = tile.rows;
    uint32 fresh = 0;
    VECTORISE EACH_ROW(i, rows) {  // almost every row's group is there already
        const uint32 head = heads[number[i]];
        out[i] = head - 1;
        fresh |= head == 0;
    }
    int64 full = 0;
    if (fresh) {
        EACH_ROW(i, rows) {
            if (out[i] != 0xFFFFFFFFu) continue;
            const uint32 head = shared_load((const uint32*)table.heads + number[i]);
            const uint32 entry = head ? head : insert_number(table, number[i]);
            if (entry == 0) { full = 1; break; }
            out[i] = entry - 1;
        }
    }
    if (block_sum(tile, full)) tile.overflow = true;
}

/// Is a key another part's?  Parts go by bits of the hash that its place does not depend on.
DEVICE bool of_another_part(const GroupTable& table, const int64* key, int64 step) {
    if (table.parts <= 1) return false;
    return int64((key_hash(key, table.key_words, step) >> 48) & uint64(table.parts - 1)) != table.part;
}

/// r[p0] = group of the key in r[p1].. where p2, the trash group elsewhere, and where the key is another part's.  Every lane
/// must get here.
template <class T, class K>
DEVICE void op_GroupFind(Tile& tile, const Instruction& ins) {
    uint32* RESTRICT out = result<uint32>(tile, ins.p[0]);
    const int64* RESTRICT keys = operand<int64>(tile, ins.p[1]);
    const Mask* RESTRICT alive = operand<Mask>(tile, ins.p[2]);
    const GroupTable& table = *tile.table;
    const int64 step = tile.launch->tile_rows;
    const int rows = tile.rows;
    int64 full = 0;
    int64 last = -1;
    int last_row = -1;
    if (LANES == 1) {  // the heads come from L2 or beyond: ask for all of a tile's before the first is needed
        const uint64 mask = uint64(table.head_mask);
        for (int i = 0; i < rows; ++i) PREFETCH(table.heads + (key_hash(keys + i, table.key_words, step) & mask));
    }
    EACH_ROW(i, rows) {
        if (!alive[i] || of_another_part(table, keys + i, step)) { out[i] = uint32(table.capacity); continue; }
        if (LANES == 1 && last_row >= 0) {  // runs of one key are common in ordered data
            bool same = true;
            for (int64 w = 0; w < table.key_words; ++w) same &= keys[w * step + i] == keys[w * step + last_row];
            if (same) { out[i] = uint32(last); continue; }
        }
        const int64 entry = find_or_insert(table, keys + i, step);
        if (entry < 0) { full = 1; break; }
        out[i] = uint32(entry);
        PREFETCH(table.words + entry * table.stride);
        last = entry;
        last_row = i;
    }
    if (block_sum(tile, full)) tile.overflow = true;
}

/// first row of each row's group = min of itself and the row's number.  Lanes meet only in the accumulators.
template <class I>
DEVICE void op_GroupFirst(const Tile& tile, const Instruction& ins) {
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[0]);
    const GroupTable& table = *tile.table;
    int64* RESTRICT words = table.words;
    const int64 stride = table.stride;
    const int rows = tile.rows;
    EACH_ROW(i, rows) {
        int64* word = words + group[i] * stride;
        const int64 row = row_number(tile, i);
        if (row < *word) accumulate_min(word, row);
    }
}

/// words p1.. of each row's group += the K registers from p2 on; FIRST: and word 0 = min of itself and the row's number, while
/// the group's line is at hand.  Lanes meet only in the accumulators.
template <int K, bool FIRST>
DEVICE void group_add(const Tile& tile, const Instruction& ins) {
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[0]);
    const int64* RESTRICT value[K];
    for (int k = 0; k < K; ++k) value[k] = operand<int64>(tile, ins.p[2 + k]);
    const GroupTable& table = *tile.table;
    const int64 stride = table.stride;
    // Consecutive rows go to different copies, so that a run of one group does not wait for its own last store.
    const int64 copy = (table.capacity + 1) * stride;
    const int mask = int(table.copies) - 1;
    int64* RESTRICT words = table.words;
    const int64 at = plain(ins.p[1]);
    const int rows = tile.rows;
    EACH_ROW(i, rows) {
        int64* word = words + (i & mask) * copy + group[i] * stride;
        if (FIRST) {
            const int64 row = row_number(tile, i);
            if (row < *word) accumulate_min(word, row);
        }
        for (int k = 0; k < K; ++k) accumulate_add(word + at + k, value[k][i]);
    }
}
template <class I> DEVICE void op_GroupAdd1(const Tile& tile, const Instruction& ins) { group_add<1, false>(tile, ins); }
template <class I> DEVICE void op_GroupAdd2(const Tile& tile, const Instruction& ins) { group_add<2, false>(tile, ins); }
template <class I> DEVICE void op_GroupAdd3(const Tile& tile, const Instruction& ins) { group_add<3, false>(tile, ins); }
template <class I> DEVICE void op_GroupAdd4(const Tile& tile, const Instruction& ins) { group_add<4, false>(tile, ins); }
template <class I> DEVICE void op_GroupFirstAdd1(const Tile& tile, const Instruction& ins) { group_add<1, true>(tile, ins); }
template <class I> DEVICE void op_GroupFirstAdd2(const Tile& tile, const Instruction& ins) { group_add<2, true>(tile, ins); }
template <class I> DEVICE void op_GroupFirstAdd3(const Tile& tile, const Instruction& ins) { group_add<3, true>(tile, ins); }
template <class I> DEVICE void op_GroupFirstAdd4(const Tile& tile, const Instruction& ins) { group_add<4, true>(tile, ins); }

/// word p1 of each row's group = min of itself and p2.  Lanes meet only in the accumulators.
template <class I, class T>
DEVICE void op_GroupMin(const Tile& tile, const Instruction& ins) {
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[0]);
    const int64* RESTRICT value = operand<int64>(tile, ins.p[2]);
    int64* RESTRICT words = tile.table->words + plain(ins.p[1]);
    const int64 stride = tile.table->stride;
    const int rows = tile.rows;
    EACH_ROW(i, rows) accumulate_min(words + group[i] * stride, value[i]);
}

/// word p1 of each row's group = max of itself and p2.  Lanes meet only in the accumulators.
template <class I, class T>
DEVICE void op_GroupMax(const Tile& tile, const Instruction& ins) {
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[0]);
    const int64* RESTRICT value = operand<int64>(tile, ins.p[2]);
    int64* RESTRICT words = tile.table->words + plain(ins.p[1]);
    const int64 stride = tile.table->stride;
    const int rows = tile.rows;
    EACH_ROW(i, rows) accumulate_max(words + group[i] * stride, value[i]);
}

/// word p1 of each row's group &= p2.  Lanes meet only in the accumulators.
template <class I, class T>
DEVICE void op_GroupAnd(const Tile& tile, const Instruction& ins) {
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[0]);
    const int64* RESTRICT value = operand<int64>(tile, ins.p[2]);
    int64* RESTRICT words = tile.table->words + plain(ins.p[1]);
    const int64 stride = tile.table->stride;
    const int rows = tile.rows;
    EACH_ROW(i, rows) accumulate_and(words + group[i] * stride, value[i]);
}

/// word p1 of each row's group ^= p2.  Lanes meet only in the accumulators.
template <class I, class T>
DEVICE void op_GroupXor(const Tile& tile, const Instruction& ins) {
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[0]);
    const int64* RESTRICT value = operand<int64>(tile, ins.p[2]);
    int64* RESTRICT words = tile.table->words + plain(ins.p[1]);
    const int64 stride = tile.table->stride;
    const int rows = tile.rows;
    EACH_ROW(i, rows) accumulate_xor(words + group[i] * stride, value[i]);
}

/// r[p0] = key word p2 of the groups in r[p1].  No lane waits.
template <class T, class I>
DEVICE void op_GroupKey(const Tile& tile, const Instruction& ins) {
    int64* RESTRICT out = result<int64>(tile, ins.p[0]);
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[1]);
    const int64* RESTRICT keys = tile.launch->source->keys + plain(ins.p[2]);
    const int64 words = tile.launch->source->key_words;
    const int rows = tile.rows;
    EACH_ROW(i, rows) out[i] = keys[group[i] * words];
}

/// r[p0] = word p2 of the groups in r[p1].  No lane waits.
template <class T, class I>
DEVICE void op_GroupWord(const Tile& tile, const Instruction& ins) {
    int64* RESTRICT out = result<int64>(tile, ins.p[0]);
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[1]);
    const int64* RESTRICT words = tile.launch->source->words + plain(ins.p[2]);
    const int64 stride = tile.launch->source->stride;
    const int rows = tile.rows;
    EACH_ROW(i, rows) out[i] = words[group[i] * stride];
}

/// f() by one lane after the other (barriers), and where blocks share a table, by one block at a time: for words that change
/// together.  Every lane must get here.
template <class F>
DEVICE void in_turns(const GroupTable& table, F f) {
    for (int turn = 0; turn < LANES; ++turn) {
        if (LANE == turn) {
            uint64* lock = (uint64*)(table.used + 1);
            if (!PRIVATE_TABLES) {
                while (compare_and_swap(lock, 0, 1) != 0) {}
                fence();
            }
            f();
            fence();
            if (!PRIVATE_TABLES) compare_and_swap(lock, 1, 0);
        }
        sync_lanes();
    }
}

DEVICE void arg_min_update(int64* words, int64 key, int64 row, int64 payload) {
    if (key < words[0] || (key == words[0] && row < words[1])) {
        words[0] = key;
        words[1] = row;
        words[2] = payload;
    }
}

/// words p1, p1 + 1, p1 + 2 of each row's group = (key p2, row, payload p3) where that is less, by key then row; where p4.
/// Three words change together: lanes take turns (barriers).
template <class I, class T>
DEVICE void op_GroupArgMin(const Tile& tile, const Instruction& ins) {
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[0]);
    const int64* RESTRICT key = operand<int64>(tile, ins.p[2]);
    const int64* RESTRICT payload = operand<int64>(tile, ins.p[3]);
    const Mask* RESTRICT keep = operand<Mask>(tile, ins.p[4]);
    int64* words = tile.table->words + plain(ins.p[1]);
    const int64 stride = tile.table->stride;
    const int rows = tile.rows;
    in_turns(*tile.table, [&] {
        EACH_ROW(i, rows) if (keep[i]) arg_min_update(words + group[i] * stride, key[i], row_number(tile, i), payload[i]);
    });
}

DEVICE void arg_min_wide_update(int64* words, int64 high, int64 low, int64 row, int64 payload) {
    const bool same = high == words[0] && low == words[1];
    if (high < words[0] || (high == words[0] && low < words[1]) || (same && row < words[2])) {
        words[0] = high;
        words[1] = low;
        words[2] = row;
        words[3] = payload;
    }
}

/// words p1 .. p1 + 3 of each row's group = (key p2 and p3, row, payload p4) where that is less, by key then row; where p5.
/// Four words change together: lanes take turns (barriers).
template <class I, class T>
DEVICE void op_GroupArgMinWide(const Tile& tile, const Instruction& ins) {
    const uint32* RESTRICT group = operand<uint32>(tile, ins.p[0]);
    const int64* RESTRICT high = operand<int64>(tile, ins.p[2]);
    const int64* RESTRICT low = operand<int64>(tile, ins.p[3]);
    const int64* RESTRICT payload = operand<int64>(tile, ins.p[4]);
    const Mask* RESTRICT keep = operand<Mask>(tile, ins.p[5]);
    int64* words = tile.table->words + plain(ins.p[1]);
    const int64 stride = tile.table->stride;
    const int rows = tile.rows;
    in_turns(*tile.table, [&] {
        EACH_ROW(i, rows) if (keep[i]) arg_min_wide_update(words + group[i] * stride, high[i], low[i], row_number(tile, i), payload[i]);
    });
}

/// How the words of two tables combine.  The words of an arg_min, WORD_ARG_MIN and WORD_REST behind it, change together: the
/// first that differs decides, and two tables have no row in common.
enum : uint8 { WORD_ADD = 0, WORD_MIN = 1, WORD_MAX = 2, WORD_ARG_MIN = 3, WORD_REST = 4, WORD_AND = 5, WORD_XOR = 6 };

DEVICE void combine_words(int64* into, const int64* from, const uint8* kinds, int64 stride) {
    bool equal = true, less = false;
    for (int64 w = 0; w < stride; ++w) {
        const uint8 kind = kinds[w];
        switch (kind) {
            case WORD_ADD: into[w] = int64(uint64(into[w]) + uint64(from[w])); break;
            case WORD_MIN: into[w] = from[w] < into[w] ? from[w] : into[w]; break;
            case WORD_MAX: into[w] = from[w] > into[w] ? from[w] : into[w]; break;
            case WORD_AND: into[w] &= from[w]; break;
            case WORD_XOR: into[w] ^= from[w]; break;
            default:
                if (kind == WORD_ARG_MIN || equal) {
                    equal = from[w] == into[w];
                    less = from[w] < into[w];
                }
                if (less) into[w] = from[w];
        }
    }
}
