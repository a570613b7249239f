// Probing: looking keys up in a hash table that an earlier pipeline finished.

/// The entry of a key in a finished table, -1 where it has none.  `key` has key_words words, `step` apart.
DEVICE int64 find_entry(const GroupTable& table, const int64* key, int64 step) {
    const int64 words = table.key_words;
    uint64 hash = 0;
    for (int64 w = 0; w < words; ++w) hash = hash_step(hash, uint64(key[w * step]));
    for (uint64 slot = hash & uint64(table.head_mask);; slot = (slot + 1) & uint64(table.head_mask)) {
        const uint64 head = table.heads[slot];
        if (head == 0) return -1;
        if ((head ^ hash) >> 32) continue;
        const int64 entry = int64(head & 0xFFFFFFFFull) - 1;
        bool same = true;
        for (int64 w = 0; w < words; ++w) same &= table.keys[entry * words + w] == key[w * step];
        if (same) return entry;
    }
}

/// What an index has for a key, 0 where it does not know it.
template <int WORDS>
DEVICE uint32 find_in_slots(const GroupTable& table, const int64* key, int64 step) {
    const int64 words = WORDS ? WORDS : table.key_words;
    uint64 hash = 0;
    for (int64 w = 0; w < words; ++w) hash = hash_step(hash, uint64(key[w * step]));
    for (uint64 at = hash & uint64(table.head_mask);; at = (at + 1) & uint64(table.head_mask)) {
        const uint64* slot = table.slots + at * uint64(words + 1);
        if (slot[0] == 0) return 0;
        bool same = true;
        for (int64 w = 0; w < words; ++w) same &= slot[1 + w] == uint64(key[w * step]);
        if (same) return uint32(slot[0] >> 32);
    }
}

/// find_in_slots() for a tile on a CPU, which asks for all slots before it needs the first.
template <int WORDS>
DEVICE void probe_slots(const GroupTable& table, const int64* keys, const Mask* alive, uint32* out, int rows, int64 step) {
    const int64 words = WORDS ? WORDS : table.key_words;
    for (int i = 0; i < rows; ++i) {
        uint64 hash = 0;
        for (int64 w = 0; w < words; ++w) hash = hash_step(hash, uint64(keys[w * step + i]));
        PREFETCH(table.slots + (hash & uint64(table.head_mask)) * uint64(words + 1));
    }
    for (int i = 0; i < rows; ++i) out[i] = alive[i] ? find_in_slots<WORDS>(table, keys + i, step) : 0;
}

/// r[p0] = 1 + entry of the key in r[p1].. in the table that slot p4 points to, where p2; 0 where there is none.  The table
/// is finished and only read: no lane waits.
template <class T, class K>
DEVICE void op_Probe(const Tile& tile, const Instruction& ins) {
    uint32* RESTRICT out = result<uint32>(tile, ins.p[0]);
    const int64* RESTRICT keys = operand<int64>(tile, ins.p[1]);
    const Mask* RESTRICT alive = operand<Mask>(tile, ins.p[2]);
    const GroupTable table = *(const GroupTable*)operand<Slot>(tile, ins.p[4])->low;
    const int64 step = tile.launch->tile_rows;
    const int rows = tile.rows;
    if (table.slots) {
        if (LANES > 1) EACH_ROW(i, rows) out[i] = alive[i] ? find_in_slots<0>(table, keys + i, step) : 0;
        else if (table.key_words == 1) probe_slots<1>(table, keys, alive, out, rows, step);
        else probe_slots<0>(table, keys, alive, out, rows, step);
        return;
    }
    if (LANES == 1) {
        // Heads and keys come from L2 or beyond: ask for all of a tile's before the first is needed.  Almost every key is that of
        // its first head.
        const uint64 mask = uint64(table.head_mask);
        const int64 words = table.key_words;
        for (int i = 0; i < rows; ++i) {
            uint64 hash = 0;
            for (int64 w = 0; w < words; ++w) hash = hash_step(hash, uint64(keys[w * step + i]));
            PREFETCH(table.heads + (hash & mask));
        }
        for (int i = 0; i < rows; ++i) {
            uint64 hash = 0;
            for (int64 w = 0; w < words; ++w) hash = hash_step(hash, uint64(keys[w * step + i]));
            out[i] = uint32(table.heads[hash & mask]);
            PREFETCH(table.keys + (int64(out[i]) - (out[i] != 0)) * words);
        }
        for (int i = 0; i < rows; ++i) {
            if (!alive[i] || out[i] == 0) { out[i] = 0; continue; }
            const int64* key = table.keys + (int64(out[i]) - 1) * words;
            bool same = true;
            for (int64 w = 0; w < words; ++w) same &= key[w] == keys[w * step + i];
            if (!same) out[i] = uint32(find_entry(table, keys + i, step) + 1);
        }
        return;
    }
    EACH_ROW(i, rows) out[i] = alive[i] ? uint32(find_entry(table, keys + i, step) + 1) : 0;
}
