// From emitted columns to Arrow buffers: closing the gaps between tiles, packing bits, spelling out text.

struct CompactLaunch {
    const void* in;
    void* out;
    const int32* tile_counts;
    const int64* tile_starts;   // where a tile's rows are
    const int64* tile_offsets;  // where they belong: exclusive prefix sum of the counts
    int64 num_tiles, width;
};

template <class T>
DEVICE void compact_tile(const CompactLaunch& compact, int64 tile) {
    const int rows = compact.tile_counts[tile];
    if (rows == 0) return;  // then nothing says where
    const T* RESTRICT in = (const T*)compact.in + compact.tile_starts[tile];
    T* RESTRICT out = (T*)compact.out + compact.tile_offsets[tile];
    VECTORISE EACH_ROW(i, rows) out[i] = in[i];
}

/// The rows of each tile moved to where they belong.
DEVICE void gpudb_compact_block(const CompactLaunch& compact, int64 block, int64 blocks) {
    for (int64 tile = block; tile < compact.num_tiles; tile += blocks) {
        switch (compact.width) {
            case 1: compact_tile<uint8>(compact, tile); break;
            case 2: compact_tile<uint16>(compact, tile); break;
            case 4: compact_tile<uint32>(compact, tile); break;
            case 8: compact_tile<uint64>(compact, tile); break;
            default: compact_tile<uint128>(compact, tile); break;
        }
    }
}
ENTRY(gpudb_compact, CompactLaunch)

/// Prefix sum of tile counts; `result` is the total and how many tiles lie elsewhere than they belong.
struct OffsetsLaunch { const int32* tile_counts; const int64* tile_starts; int64* tile_offsets; int64* result; int64 num_tiles; };
DEVICE void gpudb_offsets_block(const OffsetsLaunch& offsets, int64 block, int64 blocks) {
    if (block != 0 || LANE != 0) return;
    int64 total = 0, astray = 0;
    for (int64 tile = 0; tile < offsets.num_tiles; ++tile) {
        const int32 count = offsets.tile_counts[tile];
        offsets.tile_offsets[tile] = total;
        astray += (count != 0) & (offsets.tile_starts[tile] != total);
        total += count;
    }
    offsets.result[0] = total;
    offsets.result[1] = astray;
}
ENTRY(gpudb_offsets, OffsetsLaunch)

/// Mask bytes to bits, low bit first; `ones` counts them.
struct BitsLaunch { const Mask* in; uint8* out; int64* ones; int64 rows; };
DEVICE void gpudb_pack_bits_block(const BitsLaunch& bits, int64 block, int64 blocks) {
    const int64 bytes = (bits.rows + 7) / 8;
    int64 begin, end;
    worker_share(bytes, block * LANES + LANE, blocks * LANES, begin, end);
    int64 ones = 0;
    for (int64 b = begin; b < end; ++b) {
        uint32 packed = 0;
        const int64 left = bits.rows - b * 8;
        const int count = left < 8 ? int(left) : 8;
        for (int k = 0; k < count; ++k) {
            packed |= uint32(bits.in[b * 8 + k] & 1) << k;
            ones += bits.in[b * 8 + k] & 1;
        }
        bits.out[b] = uint8(packed);
    }
    atomic_add(bits.ones, ones);
}
ENTRY(gpudb_pack_bits, BitsLaunch)

/// Dictionary codes to Arrow's offsets and bytes, in two passes: `gpudb_text_count` leaves each worker's bytes in `sums`,
/// the driver scans them, `gpudb_text_copy` writes.  NULL rows (validity 0) take no bytes.
struct TextLaunch {
    const uint32* codes;
    const Mask* validity;       // or null
    const int32* dictionary_offsets;
    const uint8* dictionary_bytes;
    int64* sums;  // one a worker
    int32* offsets;
    uint8* bytes;
    int64 rows;
};

DEVICE int64 text_length(const TextLaunch& text, int64 row) {
    if (text.validity && !text.validity[row]) return 0;
    const uint32 code = text.codes[row];
    return text.dictionary_offsets[code + 1] - text.dictionary_offsets[code];
}

DEVICE void gpudb_text_count_block(const TextLaunch& text, int64 block, int64 blocks) {
    int64 begin, end, total = 0;
    worker_share(text.rows, block * LANES + LANE, blocks * LANES, begin, end);
    for (int64 i = begin; i < end; ++i) total += text_length(text, i);
    text.sums[block * LANES + LANE] = total;
}
ENTRY(gpudb_text_count, TextLaunch)

DEVICE void gpudb_text_copy_block(const TextLaunch& text, int64 block, int64 blocks) {
    int64 begin, end;
    worker_share(text.rows, block * LANES + LANE, blocks * LANES, begin, end);
    int64 at = text.sums[block * LANES + LANE];
    for (int64 i = begin; i < end; ++i) {
        text.offsets[i] = int32(at);
        const int64 length = text_length(text, i);
        if (length) {
            const uint8* RESTRICT from = text.dictionary_bytes + text.dictionary_offsets[text.codes[i]];
            uint8* RESTRICT to = text.bytes + at;
            for (int64 k = 0; k < length; ++k) to[k] = from[k];
        }
        at += length;
        if (i == text.rows - 1) text.offsets[text.rows] = int32(at);
    }
}
ENTRY(gpudb_text_copy, TextLaunch)
