// What differs between a GPU and a CPU, and nothing else: the only file with #ifdef.
//
// A kernel is a block function over a tile.  LANES threads run it together; on a CPU a block is one thread and LANES is 1.
// PACK consecutive rows are loaded, computed and stored by one lane at a time, so that a GPU issues wide loads; on a CPU
// PACK is 1 and the loop over the tile is one SIMD loop.

typedef signed char int8;
typedef unsigned char uint8;
typedef short int16;
typedef unsigned short uint16;
typedef int int32;
typedef unsigned int uint32;
typedef long long int64;
typedef unsigned long long uint64;
typedef __int128 int128;
typedef unsigned __int128 uint128;
typedef float float32;
typedef double float64;
typedef uint8 Mask;  // 0 or 1; never bool: bool stops the vectoriser

#define RESTRICT __restrict__
#define SCRATCH_WORDS ((LANES + 9) & ~7)  // LANES + 1 at least, and what follows them begins at a multiple of 64 bytes

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)

#define DEVICE __device__ inline
#define DEVICE_MEMBER __device__
#define NOINLINE __device__ __noinline__
#define LANE int(threadIdx.x)
#define LANES int(blockDim.x)
#define BLOCK_ARENA(launch, block) ((launch).arena ? (launch).arena + (block) * (launch).arena_bytes : gpudb_shared)
#define AT_INSTRUCTION(pc, opcode)
#define ENTRY(name, Arguments) \
    extern "C" __global__ void name(const Arguments arguments) { name##_block(arguments, int64(blockIdx.x), int64(gridDim.x)); }
extern __shared__ __align__(16) unsigned char gpudb_shared[];
#define PACK 8
#define VECTORISE
#define UNROLL _Pragma("unroll")
#define PREFETCH(address)
#define AHEAD 1
#define PRIVATE_TABLES 0
#define RADIX_BITS 4
#define GRAB 1
#define APPEND_ALIVE(list, at, alive, row) append_one_by_one(list, at, alive, row, 8)
#define CALL_HOST(function, ...)  // a GPU cannot: gpudb/devices/cuda.py refuses the program before

DEVICE void sync_lanes() { __syncthreads(); }
DEVICE void fence() { __threadfence(); }
DEVICE int64 atomic_add(int64* where, int64 value) { return (int64)atomicAdd((unsigned long long*)where, (unsigned long long)value); }
DEVICE uint32 atomic_add(uint32* where, uint32 value) { return atomicAdd(where, value); }
DEVICE void atomic_min(int64* where, int64 value) { atomicMin((long long*)where, (long long)value); }
DEVICE void atomic_max(int64* where, int64 value) { atomicMax((long long*)where, (long long)value); }
DEVICE void atomic_and(int64* where, int64 value) { atomicAnd((unsigned long long*)where, (unsigned long long)value); }
DEVICE void atomic_xor(int64* where, int64 value) { atomicXor((unsigned long long*)where, (unsigned long long)value); }
DEVICE uint64 compare_and_swap(uint64* where, uint64 expected, uint64 desired) { return atomicCAS((unsigned long long*)where, (unsigned long long)expected, (unsigned long long)desired); }
DEVICE uint32 compare_and_swap(uint32* where, uint32 expected, uint32 desired) { return atomicCAS(where, expected, desired); }
DEVICE uint64 float64_bits(float64 x) { return (uint64)__double_as_longlong(x); }
DEVICE float64 float64_from_bits(uint64 x) { return __longlong_as_double((int64)x); }
DEVICE int64 ticks() { return clock64(); }
DEVICE float64 exact_floor(float64 x) { return floor(x); }
DEVICE float64 exact_ceil(float64 x) { return ceil(x); }
DEVICE float64 exact_trunc(float64 x) { return trunc(x); }
DEVICE float64 exact_rint(float64 x) { return rint(x); }
DEVICE float64 exact_sqrt(float64 x) { return __dsqrt_rn(x); }
DEVICE float64 exact_abs(float64 x) { return fabs(x); }
DEVICE float64 exact_fmod(float64 x, float64 y) { return fmod(x, y); }

#else

#define DEVICE static inline
#define DEVICE_MEMBER inline
#define NOINLINE static __attribute__((noinline))
#define VECTORISE _Pragma("GCC ivdep")
#define UNROLL
#define PREFETCH(address) __builtin_prefetch(address)
#define CALL_HOST(function, ...) function(__VA_ARGS__)
#define ENTRY(name, Arguments) \
    extern "C" void name(const Arguments* arguments, int64 blocks) { \
        run_blocks([](const void* a, int64 block, int64 count) { name##_block(*(const Arguments*)a, block, count); }, arguments, blocks); \
    }
void run_blocks(void (*run)(const void*, int64, int64), const void* arguments, int64 blocks);

#ifdef GPUDB_LANES  // tests only: LANES threads of a block as fibers, kernels/lanes.cpp

#define LANE gpudb_lane()
#define LANES GPUDB_LANES
#define PACK 8
#define AHEAD 1
#define PRIVATE_TABLES 0
#define RADIX_BITS 4
#define GRAB 1
#define APPEND_ALIVE(list, at, alive, row) append_one_by_one(list, at, alive, row, 8)
#define DRIFT() gpudb_drift()  // another lane may run first
#define AT_INSTRUCTION(pc, opcode) gpudb_at_instruction(pc, opcode)  // for the error that names it
#define BLOCK_ARENA(launch, block) gpudb_shared_memory((launch).arena_bytes)
extern "C" int gpudb_lane();
extern "C" void gpudb_sync(const char* file, int line);
extern "C" void gpudb_drift();
extern "C" void gpudb_at_instruction(int64 pc, uint32 opcode);
extern "C" uint8* gpudb_shared_memory(int64 bytes);
DEVICE void sync_lanes(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { gpudb_sync(file, line); }

#else

#define LANE 0
#define LANES 1
#define PACK 1
#define AHEAD 16  // entries of a table that are looked up together, so that their cache lines come at once
#define PRIVATE_TABLES 1
#define RADIX_BITS 8
#define GRAB 8
#define DRIFT()
#define AT_INSTRUCTION(pc, opcode)
#define BLOCK_ARENA(launch, block) ((launch).arena + (block) * (launch).arena_bytes)
DEVICE void sync_lanes() {}
#define APPEND_ALIVE(list, at, alive, row) append_eight(list, at, alive, row)

/// Which of eight rows are alive, by the bits of the index: filled with the list's first places.
struct AlivePlaces {
    uint8 at[256][8];
    constexpr AlivePlaces() : at() {
        for (int bits = 0; bits < 256; ++bits) {
            int count = 0;
            for (int k = 0; k < 8; ++k) if (bits >> k & 1) at[bits][count++] = uint8(k);
        }
    }
};

/// append_one_by_one() for eight rows at once, by a table; list[at .. at + 8] is overwritten.  0.4 ns a row against 1.4.
DEVICE int64 append_eight(uint32* list, int64 at, const Mask* alive, int row) {
    static constexpr AlivePlaces places;
    const uint32 bits = uint32((*(const uint64*)(alive + row) * 0x0102040810204080ull) >> 56);
    for (int k = 0; k < 8; ++k) list[at + k] = uint32(row) + places.at[bits][k];
    return at + __builtin_popcount(bits);
}

#endif

DEVICE void fence() { DRIFT(); __atomic_thread_fence(__ATOMIC_SEQ_CST); }
DEVICE int64 atomic_add(int64* where, int64 value) { DRIFT(); return __atomic_fetch_add(where, value, __ATOMIC_RELAXED); }
DEVICE uint32 atomic_add(uint32* where, uint32 value) { DRIFT(); return __atomic_fetch_add(where, value, __ATOMIC_RELAXED); }
DEVICE void atomic_min(int64* where, int64 value) {
    DRIFT();
    int64 seen = __atomic_load_n(where, __ATOMIC_RELAXED);
    while (value < seen && !__atomic_compare_exchange_n(where, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
DEVICE void atomic_max(int64* where, int64 value) {
    DRIFT();
    int64 seen = __atomic_load_n(where, __ATOMIC_RELAXED);
    while (value > seen && !__atomic_compare_exchange_n(where, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
DEVICE void atomic_and(int64* where, int64 value) { DRIFT(); __atomic_fetch_and(where, value, __ATOMIC_RELAXED); }
DEVICE void atomic_xor(int64* where, int64 value) { DRIFT(); __atomic_fetch_xor(where, value, __ATOMIC_RELAXED); }
DEVICE uint64 compare_and_swap(uint64* where, uint64 expected, uint64 desired) {
    DRIFT();
    __atomic_compare_exchange_n(where, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}
DEVICE uint32 compare_and_swap(uint32* where, uint32 expected, uint32 desired) {
    DRIFT();
    __atomic_compare_exchange_n(where, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}
DEVICE uint64 float64_bits(float64 x) { uint64 bits; __builtin_memcpy(&bits, &x, 8); return bits; }
DEVICE float64 float64_from_bits(uint64 bits) { float64 x; __builtin_memcpy(&x, &bits, 8); return x; }
DEVICE int64 ticks() {
#if defined(__x86_64__)
    return int64(__builtin_ia32_rdtsc());
#elif defined(__aarch64__)
    int64 count;
    asm volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#endif
}
DEVICE float64 exact_floor(float64 x) { return __builtin_floor(x); }
DEVICE float64 exact_ceil(float64 x) { return __builtin_ceil(x); }
DEVICE float64 exact_trunc(float64 x) { return __builtin_trunc(x); }
DEVICE float64 exact_rint(float64 x) { return __builtin_rint(x); }
DEVICE float64 exact_sqrt(float64 x) { return __builtin_sqrt(x); }
DEVICE float64 exact_abs(float64 x) { return __builtin_fabs(x); }
DEVICE float64 exact_fmod(float64 x, float64 y) { return __builtin_fmod(x, y); }

#endif

// What other blocks may write meanwhile must not come from a cache of this one's multiprocessor.
template <class T> DEVICE T volatile_load(const T* where) { return *(const volatile T*)where; }
template <class T> DEVICE T shared_load(const T* where) { return PRIVATE_TABLES ? *where : volatile_load(where); }

// State of a group table is private to a block where PRIVATE_TABLES is 1, else shared by all lanes of all blocks.
DEVICE void accumulate_add(int64* where, int64 value) {
    if (PRIVATE_TABLES) *where = int64(uint64(*where) + uint64(value)); else atomic_add(where, value);
}
DEVICE void accumulate_min(int64* where, int64 value) {
    if (PRIVATE_TABLES) { if (value < *where) *where = value; } else atomic_min(where, value);
}
DEVICE void accumulate_max(int64* where, int64 value) {
    if (PRIVATE_TABLES) { if (value > *where) *where = value; } else atomic_max(where, value);
}
DEVICE void accumulate_and(int64* where, int64 value) {
    if (PRIVATE_TABLES) *where &= value; else atomic_and(where, value);
}
DEVICE void accumulate_xor(int64* where, int64 value) {
    if (PRIVATE_TABLES) *where ^= value; else atomic_xor(where, value);
}

// Compaction lists: the numbers row .. of those rows whose mask is 1 are put at list[at]; returns the place behind them.

DEVICE int64 append_one_by_one(uint32* list, int64 at, const Mask* alive, int row, int rows) {
    for (int k = 0; k < rows; ++k) {
        if (alive[row + k]) list[at] = uint32(row + k);
        at += alive[row + k];
    }
    return at;
}
