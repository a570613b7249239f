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

/// Tables of the blocks after the first are combined into the first: entry by entry, found or inserted by key.
struct MergeLaunch {
    GroupTable* tables;
    const uint8* kinds;  // one a word
    int64* full;         // set to 1 when the first table has no room; table `from` goes on at entry `done[from]`
    int64* done;
    int64 num_tables, keyed;
};
DEVICE void gpudb_merge_block(const MergeLaunch& merge, int64 block, int64 blocks) {
    if (block != 0 || LANE != 0) return;
    GroupTable& into = merge.tables[0];
    for (int64 t = 0; t < merge.num_tables; ++t) {
        const GroupTable& from = merge.tables[t];
        const int64 copy = (from.capacity + 1) * from.stride;
        for (int64 c = 1; c < from.copies; ++c) {
            for (int64 g = 0; g < from.capacity; ++g) combine_words(from.words + g * from.stride, from.words + c * copy + g * from.stride, merge.kinds, from.stride);
        }
        if (t == 0) continue;
        const int64 entries = merge.keyed ? (*from.used < from.capacity ? *from.used : from.capacity) : from.capacity;
        for (int64 g = merge.done[t]; g < entries; ++g) {
            int64 target = g;
            if (merge.keyed && from.words[g * from.stride] == UNUSED_ENTRY) continue;
            if (merge.keyed) target = entry_of(into, from.keys + g * from.key_words);
            if (target < 0) { *merge.full = 1; merge.done[t] = g; return; }
            combine_words(into.words + target * into.stride, from.words + g * from.stride, merge.kinds, into.stride);
        }
        merge.done[t] = entries;
    }
}
ENTRY(gpudb_merge, MergeLaunch)

/// Fills the heads of a table that has grown, or is new: its entries are kept, only their places change.
DEVICE void gpudb_rehash_block(const GroupTable& table, int64 block, int64 blocks) {
    if (block != 0 || LANE != 0) return;
    const int64 entries = *table.used < table.capacity ? *table.used : table.capacity;
    *table.used = entries;
    for (int64 entry = 0; entry < entries; ++entry) {
        if (table.words[entry * table.stride] == UNUSED_ENTRY) continue;
        if (table.numbers) { ((uint32*)table.heads)[table.keys[entry]] = uint32(entry + 1); continue; }
        uint64 hash = 0;
        for (int64 w = 0; w < table.key_words; ++w) hash = hash_step(hash, uint64(table.keys[entry * table.key_words + w]));
        uint64 slot = hash & uint64(table.head_mask);
        while (table.heads[slot] != 0) slot = (slot + 1) & uint64(table.head_mask);
        table.heads[slot] = (hash & 0xFFFFFFFF00000000ull) | uint64(entry + 1);
    }
    if (table.numbers) ((uint32*)table.heads)[table.numbers] = uint32(table.capacity + 1);
}
ENTRY(gpudb_rehash, GroupTable)

/// The initial words of every group and copy.
struct FillLaunch { int64* words; const int64* initial; int64 groups, stride; };
DEVICE void gpudb_fill_block(const FillLaunch& fill, int64 block, int64 blocks) {
    for (int64 g = block * LANES + LANE; g < fill.groups; g += blocks * LANES) {
        for (int64 w = 0; w < fill.stride; ++w) fill.words[g * fill.stride + w] = fill.initial[w];
    }
}
ENTRY(gpudb_fill, FillLaunch)

/// Numbers of the groups that occur: those whose word 0, the first row, was set by one.
struct PresentLaunch { const int64* words; uint32* group; int64* count; int64 groups, stride; };
DEVICE void gpudb_present_block(const PresentLaunch& present, int64 block, int64 blocks) {
    if (block != 0 || LANE != 0) return;
    int64 count = 0;
    for (int64 g = 0; g < present.groups; ++g) {
        present.group[count] = uint32(g);
        const int64 first_row = present.words[g * present.stride];
        count += (first_row != 0x7FFFFFFFFFFFFFFFll) & (first_row != UNUSED_ENTRY);
    }
    *present.count = count;
}
ENTRY(gpudb_present, PresentLaunch)
