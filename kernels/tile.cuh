// What a block sees: the launch, one tile of it, and how operands are found.  gpudb/devices/launch.py packs the same structs.

/// An instruction: a variant's number and up to seven operands (see operand()).
struct Instruction { uint32 opcode; uint32 p[7]; };

/// A parameter slot: a value of any register type in its low bytes, or a pointer to a lookup table.
struct Slot { int64 low, high; };

/// The rows of one row group: how many, the numbers of its first row, of its first tile and of its first row in this launch,
/// its line in columns and slots.
struct RowGroup { int64 rows, first_row, first_tile, first_output, line; };

/// A table of groups: `words` is copies x (capacity + 1) x stride, the last group being the trash.  Hash and indexed tables
/// also have keys (capacity + 1) x key_words.  `heads` of a hash table are words with the entry's number + 1 in the low half
/// and hash in the high half; of an indexed table (`numbers` > 0) 32-bit entry numbers + 1 by dense key number, the last for
/// the trash; 0 is free.  An index of build rows has only `slots`, of 1 + key_words words: what Probe finds in the high half of
/// the first, or 0, and the key.  Of `parts` > 1 parts, a power of two, a hash table takes the keys of `part` only.
struct GroupTable {
    int64* words;
    int64* keys;
    uint64* heads;
    int64* used;
    const uint64* slots;
    int64 stride, capacity, copies, key_words, head_mask, numbers, parts, part;
};

/// Everything one launch of a pipeline needs.  Pointers are device pointers.  `tile_counts` and `tile_starts` say how many rows
/// a tile emitted and from where on, `output_rows` how many all did; null where every row is emitted in its place.  `tables`
/// has one table a block (CPU) or one; `source` is the finished table that GroupWord and its kin read.  `profile`, for EXPLAIN
/// ANALYZE, is blocks x instructions x 3: ticks, rows, and whether rows are the ones of the mask that the instruction makes
/// rather than those it ran over.
/// `top`, where only the first `top_rows` rows of an order are wanted, is blocks x (1 + top_rows): how many words, and a heap of
/// the least so far, its root the greatest of them.  Tile n * tile_step modulo num_tiles is the n-th to be worked on.
/// `arena` is where blocks have their registers, arena_bytes each; null on a GPU, where that many lie in shared memory.
/// `staged_bytes` of them, if any, hold the block's own copy of the program and of the parameters of its row group.
struct Launch {
    const Instruction* instructions;
    const RowGroup* groups;
    const void* const* columns;
    const Slot* slots;
    void* const* outputs;
    int32* tile_counts;
    int64* tile_starts;
    int64* output_rows;
    uint8* tile_done;
    GroupTable* tables;
    const GroupTable* source;
    uint8* arena;
    int64* next_tile;
    const int64* cancel;
    int64* error;
    int64* flags;
    int64* profile;
    int64* top;
    int64 num_instructions, num_groups, num_tiles, num_columns, num_slots, tile_rows, arena_bytes, top_rows, tile_step, staged_bytes;
};

struct Tile {
    const Launch* launch;
    const RowGroup* group;
    const Instruction* program;
    const void* const* columns;  // this row group's
    const Slot* slots;           // this row group's
    GroupTable* table;
    uint8* arena;
    int64* scratch;  // LANES + 1 words shared by the block
    int64 block;     // that works on it
    int64 index;     // number of the tile
    int64 row;       // its first row within the row group
    int rows;
    int64 output;          // where its first row goes in the output
    const uint32* picked;  // numbers of the rows that Compact went on with, or null for all
    bool overflow;  // a group table is full: the tile stays undone
};

/// The number that row i of those still worked on has in the source.
DEVICE int64 row_number(const Tile& tile, int i) {
    return tile.group->first_row + tile.row + (tile.picked ? int64(tile.picked[i]) : int64(i));
}

enum : uint32 { REGISTER = 0, COLUMN = 1, SLOT = 2, PLAIN = 3, KIND_SHIFT = 30, PAYLOAD = (1u << 30) - 1 };

/// The rows of an operand: a register at its offset in the arena, a column read in place, or the one value of a slot.
template <class T>
DEVICE const T* operand(const Tile& tile, uint32 p) {
    const uint32 payload = p & PAYLOAD;
    if (p >> KIND_SHIFT == REGISTER) return (const T*)(tile.arena + payload);
    if (p >> KIND_SHIFT == COLUMN) return (const T*)tile.columns[payload] + tile.row;
    return (const T*)&tile.slots[payload];
}

template <class T>
DEVICE T* result(const Tile& tile, uint32 p) { return (T*)(tile.arena + (p & PAYLOAD)); }

DEVICE uint32 plain(uint32 p) { return p & PAYLOAD; }

/// WIDTH consecutive values, loaded and stored as one, or 16 bytes at a time: registers are aligned to no more on a GPU.
template <class T, int WIDTH>
struct alignas(sizeof(T) * WIDTH < 16 ? sizeof(T) * WIDTH : 16) Pack { T at[WIDTH]; };

/// One value behind the same interface, but no array: g++ copies a struct around a byte array whole, and then no loop over
/// masks or other bytes vectorises.
template <class T>
struct Pack<T, 1> {
    struct One {
        T value;
        DEVICE_MEMBER T& operator[](int) { return value; }
        DEVICE_MEMBER const T& operator[](int) const { return value; }
    } at;
};

template <class T>
struct Vector {
    const T* values;
    DEVICE_MEMBER Vector(const Tile& tile, uint32 p) : values(operand<T>(tile, p)) {}
};

template <class T>
struct Scalar {
    T value;
    DEVICE_MEMBER Scalar(const Tile& tile, uint32 p) : value(*operand<T>(tile, p)) {}
};

template <class T>
struct Table {
    const T* values;
    DEVICE_MEMBER Table(const Tile& tile, uint32 p) : values((const T*)operand<Slot>(tile, p)->low) {}
};

template <int WIDTH, class T> DEVICE Pack<T, WIDTH> load(const T* values, int i) { return *(const Pack<T, WIDTH>*)(values + i); }
template <int WIDTH, class T> DEVICE Pack<T, WIDTH> fetch(const Vector<T>& vector, int i) { return load<WIDTH>(vector.values, i); }
template <int WIDTH, class T> DEVICE Scalar<T> fetch(const Scalar<T>& scalar, int) { return scalar; }
template <int WIDTH, class T> DEVICE Table<T> fetch(const Table<T>& table, int) { return table; }
template <class T, int WIDTH> DEVICE T at(const Pack<T, WIDTH>& pack, int k) { return pack.at[k]; }
template <class T> DEVICE T at(const Scalar<T>& scalar, int) { return scalar.value; }
template <class T> DEVICE const T* at(const Table<T>& table, int) { return table.values; }

/// Types for overloads that differ in what they return.
template <class T> struct TypeTag {};

#define EACH_PACK(i, rows, width) VECTORISE for (int i = LANE * width; i < rows; i += LANES * width)
#define EACH_ROW(i, rows) for (int i = LANE; i < rows; i += LANES)

/// Sum over the lanes of a block, wrapping, given to every lane.  Every lane must get here: it syncs.
DEVICE int64 block_sum(const Tile& tile, int64 value) {
    if (LANES == 1) return value;
    tile.scratch[LANE] = value;
    sync_lanes();
    if (LANE == 0) {
        uint64 total = 0;
        for (int lane = 0; lane < LANES; ++lane) total += uint64(tile.scratch[lane]);
        tile.scratch[LANES] = int64(total);
    }
    sync_lanes();
    const int64 total = tile.scratch[LANES];
    sync_lanes();
    return total;
}

/// Sum over the lanes before this one.  Every lane must get here: it syncs.
DEVICE int64 block_prefix(const Tile& tile, int64 value) {
    if (LANES == 1) return 0;
    tile.scratch[LANE] = value;
    sync_lanes();
    if (LANE == 0) {
        int64 total = 0;
        for (int lane = 0; lane < LANES; ++lane) { const int64 own = tile.scratch[lane]; tile.scratch[lane] = total; total += own; }
    }
    sync_lanes();
    const int64 before = tile.scratch[LANE];
    sync_lanes();
    return before;
}
