// The interpreter: blocks take tiles from a shared counter and run the program over each.

/// Adds what an instruction took and the rows it saw to the block's profile.  Every lane must get here.
NOINLINE void profile_instruction(const Tile& tile, const Instruction& ins, int64* entry, int64 took, int ran_over) {
    int64 rows = LANE == 0 ? ran_over : 0;
    if (entry[2]) {
        const Mask* mask = operand<Mask>(tile, ins.p[0]);
        rows = 0;
        EACH_ROW(i, tile.rows) rows += mask[i];
    }
    rows = block_sum(tile, rows);
    if (LANE == 0) {
        entry[0] += took;
        entry[1] += rows;
    }
}

/// Runs the program over one tile; a tile with no row alive at SkipIfNone or Compact ends early, with a count of 0.
DEVICE void run_tile(Tile& tile, const Launch& launch, int64* profile) {
    const Instruction* RESTRICT program = tile.program;
    const int64 count = launch.num_instructions;
    tile.overflow = false;
    if (launch.tile_counts && LANE == 0) launch.tile_counts[tile.index] = 0;
    for (int64 pc = 0; pc < count; ++pc) {
        const int64 began = profile ? ticks() : 0;
        const int rows = tile.rows;
        AT_INSTRUCTION(pc, program[pc].opcode);
        const bool more = execute(tile, program[pc], pc);
        sync_lanes();
        if (profile) profile_instruction(tile, program[pc], profile + 3 * pc, ticks() - began, rows);
        if (!more || tile.overflow) break;
    }
    if (launch.tile_done && LANE == 0) launch.tile_done[tile.index] = !tile.overflow;
}

/// to[..] = from[..], `bytes` of them, a multiple of 8; gives what lies behind.  No lane waits.
DEVICE uint8* stage(uint8* to, const void* from, int64 bytes) {
    for (int64 word = LANE; word < bytes / 8; word += LANES) ((int64*)to)[word] = ((const int64*)from)[word];
    return to + bytes;
}

/// A block's share of a pipeline.  Rows of one tile lie in one row group; the block moves on when cancelled or overflowing.
DEVICE void gpudb_pipeline_block(const Launch& launch, int64 block, int64 blocks) {
    Tile tile;
    tile.launch = &launch;
    tile.block = block;
    tile.table = launch.tables ? launch.tables + (PRIVATE_TABLES ? block : 0) : nullptr;
    tile.scratch = (int64*)BLOCK_ARENA(launch, block);
    uint8* copies = (uint8*)(tile.scratch + SCRATCH_WORDS);
    tile.arena = copies + launch.staged_bytes;
    tile.program = launch.instructions;
    if (launch.staged_bytes) {
        tile.program = (const Instruction*)copies;
        copies = stage(copies, launch.instructions, launch.num_instructions * int64(sizeof(Instruction)));
    }
    int64 line = 0, staged_line = -1;
    for (;;) {
        sync_lanes();
        // One lane looks at the cancel word for all: lanes that see it change at different times would part ways.
        if (LANE == 0) tile.scratch[LANES] = shared_load(launch.cancel) ? launch.num_tiles : atomic_add(launch.next_tile, GRAB);
        sync_lanes();
        const int64 first = tile.scratch[LANES];
        sync_lanes();
        if (first >= launch.num_tiles) return;
        const int64 last = first + GRAB < launch.num_tiles ? first + GRAB : launch.num_tiles;
        for (int64 turn = first; turn < last; ++turn) {
            const int64 index = turn * launch.tile_step % launch.num_tiles;
            if (launch.tile_done && launch.tile_done[index]) continue;
            if (launch.groups[line].first_tile > index) line = 0;
            while (line + 1 < launch.num_groups && launch.groups[line + 1].first_tile <= index) ++line;
            const RowGroup* group = launch.groups + line;
            tile.group = group;
            const void* const* columns = launch.columns + group->line * launch.num_columns;
            const Slot* slots = launch.slots + group->line * launch.num_slots;
            tile.columns = columns;
            tile.slots = slots;
            if (launch.staged_bytes) {
                tile.slots = (const Slot*)copies;
                tile.columns = (const void* const*)(copies + launch.num_slots * int64(sizeof(Slot)));
                if (line != staged_line) {  // no lane is still at the last tile: they met after its last instruction
                    stage(stage(copies, slots, launch.num_slots * int64(sizeof(Slot))), columns, launch.num_columns * 8);
                    staged_line = line;
                    sync_lanes();
                }
            }
            tile.index = index;
            tile.row = (index - group->first_tile) * launch.tile_rows;
            const int64 left = group->rows - tile.row;
            tile.rows = int(left < launch.tile_rows ? left : launch.tile_rows);
            tile.output = group->first_output + tile.row;
            tile.picked = nullptr;
            run_tile(tile, launch, launch.profile ? launch.profile + 3 * block * launch.num_instructions : nullptr);
            if (tile.overflow) return;
        }
    }
}
ENTRY(gpudb_pipeline, Launch)

/// All tables are combined into the first.  Those without keys group by group, and the first one's copies too.
/// Those with keys entry by entry, found or inserted by key: no two entries of one table have the same key, so that no two lanes
/// combine into one group while lanes are at the same table.
struct MergeLaunch {
    const GroupTable* tables;
    const uint8* kinds;  // one a word
    int64* full;         // set to 1 when the first table has no room; what was combined before is UNUSED_ENTRY then
    int64 num_tables, keyed;
};

/// Group by group, no lane waits.
DEVICE void merge_dense(const MergeLaunch& merge, int64 block, int64 blocks) {
    const GroupTable& into = merge.tables[0];
    const int64 stride = into.stride, copy = (into.capacity + 1) * stride;
    for (int64 g = block * LANES + LANE; g < into.capacity; g += blocks * LANES) {
        int64* words = into.words + g * stride;
        for (int64 c = 1; c < into.copies; ++c) combine_words(words, words + c * copy, merge.kinds, stride);
        for (int64 t = 1; t < merge.num_tables; ++t) {
            const GroupTable& from = merge.tables[t];
            for (int64 c = 0; c < from.copies; ++c) combine_words(words, from.words + g * stride + c * copy, merge.kinds, stride);
        }
    }
}

/// Entries begin .. begin + count of a table with keys, AHEAD at most; false if there is no room for all.  Their new groups lie
/// together, so that threads rarely meet at the counter.  (2.5 M groups, 2 threads: 0.25 s of processor time, 0.7 one by one.)
DEVICE bool merge_entries(const MergeLaunch& merge, const GroupTable& into, const GroupTable& from, int64 begin, int64 count) {
    const int64* keys = from.keys + begin * from.key_words;
    int64* words = from.words + begin * from.stride;
    uint64 hash[AHEAD] = {};
    int64 target[AHEAD], absent = 0;
    if (into.numbers == 0) hash_ahead(into, keys, count, hash);
    for (int64 k = 0; k < count; ++k) {
        if (words[k * from.stride] == UNUSED_ENTRY) continue;
        target[k] = entry_of(into, keys + k * from.key_words, hash[k]);
        if (target[k] < 0) ++absent; else PREFETCH(into.words + target[k] * into.stride);
    }
    const int64 oldest = absent ? atomic_add(into.used, absent) : into.capacity;
    int64 fresh = oldest;
    for (int64 k = 0; k < count; ++k) {
        if (words[k * from.stride] == UNUSED_ENTRY || target[k] >= 0) continue;
        target[k] = fresh++;
        if (target[k] >= into.capacity) continue;
        for (int64 w = 0; w < into.key_words; ++w) into.keys[target[k] * into.key_words + w] = keys[k * from.key_words + w];
    }
    if (absent) fence();  // no lane may find an entry before it can read its key
    for (int64 k = 0; k < count; ++k) {
        if (words[k * from.stride] != UNUSED_ENTRY && target[k] >= oldest && target[k] < into.capacity) enter(into, target[k], hash[k]);
    }
    bool fits = true;
    for (int64 k = 0; k < count; ++k) {
        int64* found = words + k * from.stride;
        if (*found == UNUSED_ENTRY) continue;
        if (target[k] >= into.capacity) { fits = false; continue; }
        combine_words(into.words + target[k] * into.stride, found, merge.kinds, into.stride);
        *found = UNUSED_ENTRY;
    }
    return fits;
}

/// More than two tables with keys need one block only, whose lanes wait for each other between them.
DEVICE void gpudb_merge_block(const MergeLaunch& merge, int64 block, int64 blocks) {
    if (!merge.keyed) return merge_dense(merge, block, blocks);
    const GroupTable into = merge.tables[0];
    for (int64 t = 1; t < merge.num_tables; ++t) {
        const GroupTable from = merge.tables[t];
        const int64 entries = entries_of(from);
        sync_lanes();
        for (int64 begin = (block * LANES + LANE) * AHEAD; begin < entries; begin += blocks * LANES * AHEAD) {
            if (!merge_entries(merge, into, from, begin, entries - begin < AHEAD ? entries - begin : AHEAD)) *merge.full = 1;
        }
    }
}
ENTRY(gpudb_merge, MergeLaunch)

/// Fills the heads of tables that have grown, or are new: their entries are kept, only their places change.
struct RehashLaunch { const GroupTable* tables; int64 num_tables; };
DEVICE void gpudb_rehash_block(const RehashLaunch& rehash, int64 block, int64 blocks) {
    for (int64 t = 0; t < rehash.num_tables; ++t) {
        const GroupTable table = rehash.tables[t];
        const int64 entries = entries_of(table);
        for (int64 begin = (block * LANES + LANE) * AHEAD; begin < entries; begin += blocks * LANES * AHEAD) {
            const int64 count = entries - begin < AHEAD ? entries - begin : AHEAD;
            uint64 hash[AHEAD] = {};
            if (table.numbers == 0) hash_ahead(table, table.keys + begin * table.key_words, count, hash);
            for (int64 k = 0; k < count; ++k) {
                if (table.words[(begin + k) * table.stride] != UNUSED_ENTRY) enter(table, begin + k, hash[k]);
            }
        }
        if (table.numbers && block == 0 && LANE == 0) ((uint32*)table.heads)[table.numbers] = uint32(table.capacity + 1);
    }
}
ENTRY(gpudb_rehash, RehashLaunch)

/// The initial words of every group and copy.
struct FillLaunch { int64* words; const int64* initial; int64 groups, stride; };
DEVICE void gpudb_fill_block(const FillLaunch& fill, int64 block, int64 blocks) {
    for (int64 g = block * LANES + LANE; g < fill.groups; g += blocks * LANES) {
        for (int64 w = 0; w < fill.stride; ++w) fill.words[g * fill.stride + w] = fill.initial[w];
    }
}
ENTRY(gpudb_fill, FillLaunch)

/// Numbers of the groups that occur, in order; worker w looks at 1 / workers of all: first it counts them (group null), then
/// it writes them from counts[w] on.
struct PresentLaunch { const int64* words; uint32* group; int64* counts; int64 groups, stride, workers; };
DEVICE void gpudb_present_block(const PresentLaunch& present, int64 block, int64 blocks) {
    for (int64 worker = block * LANES + LANE; worker < present.workers; worker += blocks * LANES) {
        const int64 end = present.groups * (worker + 1) / present.workers;
        int64 at = present.group ? present.counts[worker] : 0;
        for (int64 g = present.groups * worker / present.workers; g < end; ++g) {
            const bool occurs = is_group(present.words[g * present.stride]);
            if (occurs && present.group) present.group[at] = uint32(g);
            at += occurs;
        }
        if (!present.group) present.counts[worker] = at;
    }
}
ENTRY(gpudb_present, PresentLaunch)
