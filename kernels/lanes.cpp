// The host side of the library that tests lanes: every lane of every block is a fiber, and a barrier is a real one.
//
// Fibers of all blocks are alive at once and take turns in random order: at barriers, now and then at an atomic operation
// and, where the library is watched, at any access to memory.  So a step that is not safe against another lane's shows as
// wrong rows.  What a launch reports as an error: lanes that do not meet at one barrier, or end while others wait; and, where
// watched, two lanes that touch one byte of shared memory with no barrier between, one of them writing, and an access beside it.
//
// Watched is a library compiled by -fsanitize=thread: the compiler then calls __tsan_read8() and its kin before every access,
// and here they are ours.  What is ours is itself UNWATCHED.
//
// Fibers are kept for the next launch.  A switch between two costs 20 ns: no call of the system, as swapcontext() makes.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

// AddressSanitizer must know of every change of stack; these are there where it is.
extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** own_fake_stack, const void* bottom, size_t bytes);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* own_fake_stack, const void** bottom_before, size_t* bytes_before);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* begin, size_t bytes);
}

#define UNWATCHED __attribute__((no_sanitize("thread")))
#define UNSEEN __attribute__((noinline, no_sanitize("thread"), no_sanitize("address")))  // changes stacks

namespace {

const size_t STACK_BYTES = 256 << 10;  // AddressSanitizer's frames are large
const size_t GUARD_BYTES = 4 << 10;    // at a stack's lower end: one that is used up stops there
const int DRIFT_ONE_IN = 8;            // atomic operations at which another fiber goes on
const int ACCESSES = 64;               // at most, from one at which another fiber goes on to the next
const int GARBAGE = 0xA5;              // in shared memory that nobody has written
const int64 BESIDE_BYTES = 4 << 10;    // before and behind a block's shared memory, where watched: nobody's
const int16 MANY = -2;                 // lanes

/// A stack and where its owner stopped.
struct Stack {
    void* stopped[5];  // as __builtin_setjmp leaves it
    const void* bottom;
    size_t bytes;
    void* fake;  // AddressSanitizer's
};

struct Fiber {
    Stack stack;
    int64 block;
    int lane;
    bool started;  // it stands at its end, or before the next launch, and can be used again
    bool ended;
    const char* file;  // of the barrier that it waits at
    int line;
    int64 pc;  // of the instruction that it came to last, or -1
    uint32 opcode;
};

/// Who last wrote and read one byte of shared memory, and after how many of the block's barriers.
struct Trace {
    uint32 written, read;
    int16 writer, reader;
};

struct Block {
    int waiting, ended;
    uint32 barriers;  // that its lanes have met at, and one
    uint8* allocated;
    uint8* shared;  // memory, once a lane has asked for it
    int64 shared_bytes;
    Trace* traces;  // one a byte, where watched
};

pthread_mutex_t launches = PTHREAD_MUTEX_INITIALIZER;  // one launch at a time: what follows has no other guard
Fiber* fibers = nullptr;
int64 num_fibers = 0;
Block* states = nullptr;
Stack scheduler;
Fiber* current = nullptr;
bool waits = false;    // the current fiber has come to a barrier
bool watched = false;  // the compiler calls us at every access
int until_drift = 1;   // accesses at which nobody else goes on
void (*body)(const void*, int64, int64) = nullptr;
const void* body_arguments = nullptr;
int64 body_blocks = 0;
uint64 random_state = 1;
char error[512] = "";

UNWATCHED uint64 random_below(uint64 count) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % count;
}

UNSEEN void resume(void** stopped) { __builtin_longjmp(stopped, 1); }

/// Goes on where `to` stopped, or begins it; returns when somebody comes back to `from`.
UNSEEN void change(Stack& from, Stack& to, const ucontext_t* beginning) {
    if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(&from.fake, to.bottom, to.bytes);
    if (__builtin_setjmp(from.stopped) == 0) {
        if (beginning) setcontext(beginning);
        resume(to.stopped);
    }
}

/// What a fiber does first whenever it is its turn.
UNWATCHED void arrive(void* fake) {
    if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(fake, &scheduler.bottom, &scheduler.bytes);
}

UNWATCHED void yield() {
    change(current->stack, scheduler, nullptr);
    arrive(current->stack.fake);
}

UNWATCHED void fiber_main() {
    arrive(nullptr);
    for (;;) {  // once a launch; between two, fibers may move
        body(body_arguments, current->block, body_blocks);
        current->ended = true;
        yield();
    }
}

/// It is a fiber's turn: returns when it waits, has ended, or lets another one go first.
UNWATCHED void run(Fiber& fiber) {
    current = &fiber;
    waits = false;
    if (fiber.started) {
        change(scheduler, fiber.stack, nullptr);
    } else {
        fiber.started = true;
        ucontext_t beginning;
        getcontext(&beginning);
        beginning.uc_stack.ss_sp = (void*)fiber.stack.bottom;
        beginning.uc_stack.ss_size = fiber.stack.bytes;
        beginning.uc_link = nullptr;
        makecontext(&beginning, fiber_main, 0);
        change(scheduler, fiber.stack, &beginning);
    }
    if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(scheduler.fake, nullptr, nullptr);
}

/// So many fibers, with stacks.
UNWATCHED void have_fibers(int64 count) {
    if (count <= num_fibers) return;
    fibers = (Fiber*)realloc(fibers, count * sizeof(Fiber));
    for (; num_fibers < count; ++num_fibers) {
        uint8* lowest = (uint8*)mmap(nullptr, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (lowest == MAP_FAILED || mprotect(lowest, GUARD_BYTES, PROT_NONE) != 0) abort();
        memset(&fibers[num_fibers], 0, sizeof(Fiber));
        fibers[num_fibers].stack.bottom = lowest + GUARD_BYTES;
        fibers[num_fibers].stack.bytes = STACK_BYTES;
    }
}

/// Where a fiber is, in words.
UNWATCHED void tell(const Fiber& fiber, char* text, size_t size) {
    char place[128] = "its end";
    if (!fiber.ended) snprintf(place, sizeof place, "%s:%d", fiber.file, fiber.line);
    if (fiber.pc < 0) snprintf(text, size, "%s", place);
    else snprintf(text, size, "%s, %s (instruction %lld)", place, gpudb_opcode_names[fiber.opcode], fiber.pc);
}

/// All lanes of a block have come to a barrier or to their end: false, and `error`, where they should not.
UNWATCHED bool met(const Fiber* lanes, const Block& block) {
    if (block.waiting == 0) return true;
    const Fiber* first = lanes;
    while (first->ended) ++first;
    const Fiber* other = nullptr;
    int count = 0;
    for (int lane = 0; lane < GPUDB_LANES; ++lane) {
        const Fiber& fiber = lanes[lane];
        if (!fiber.ended && fiber.line == first->line && fiber.file == first->file && fiber.pc == first->pc) continue;
        if (!other || (fiber.ended && !other->ended)) other = &fiber;
        ++count;
    }
    if (!other) return true;
    char one[192], two[192];
    tell(*first, one, sizeof one);
    tell(*other, two, sizeof two);
    snprintf(error, sizeof error, "%d of %d lanes wait at %s, lane %d at %s", GPUDB_LANES - count, GPUDB_LANES, one, other->lane, two);
    return false;
}

/// A lane has done what no lane may: the launch ends here.
UNWATCHED void wrong(const char* what, int64 byte, const char* more) {
    char place[128] = "no instruction";
    if (current->pc >= 0) snprintf(place, sizeof place, "%s (instruction %lld)", gpudb_opcode_names[current->opcode], current->pc);
    snprintf(error, sizeof error, "lane %d %s byte %lld of shared memory%s, in %s", current->lane, what, byte, more, place);
    yield();
}

/// A lane is about to read or write memory.
UNWATCHED void touch(const void* where, int64 bytes, bool writes) {
    if (!current) return;
    if (--until_drift <= 0) {
        until_drift = 1 + int(random_below(ACCESSES));
        yield();
    }
    const Block& block = states[current->block];
    const int64 first = (const uint8*)where - block.shared;
    if (!block.shared || first < -BESIDE_BYTES || first >= block.shared_bytes + BESIDE_BYTES) return;
    if (first < 0 || first + bytes > block.shared_bytes) return wrong(writes ? "writes" : "reads", first, ", which has not so many");
    const int16 lane = int16(current->lane);
    const uint32 now = block.barriers;
    for (Trace* trace = block.traces + first; trace < block.traces + first + bytes; ++trace) {
        const bool after_write = trace->written == now && trace->writer != lane;
        const bool after_read = trace->read == now && trace->reader != lane;
        if (after_write || (after_read && writes)) {
            char more[96];
            snprintf(more, sizeof more, ", which lane %d %s since the last barrier", after_write ? trace->writer : trace->reader, after_write ? "wrote" : "read");
            return wrong(writes ? "writes" : "reads", trace - block.traces, more);
        }
        if (writes) { trace->written = now; trace->writer = lane; }
        else { trace->reader = after_read ? MANY : lane; trace->read = now; }
    }
}

}  // namespace

#define OURS extern "C" __attribute__((visibility("hidden"))) UNWATCHED
#define TOUCHES(bytes) \
    OURS void __tsan_read##bytes(void* where) { touch(where, bytes, false); } \
    OURS void __tsan_write##bytes(void* where) { touch(where, bytes, true); } \
    OURS void __tsan_volatile_read##bytes(void*) {} \
    OURS void __tsan_volatile_write##bytes(void*) {}
TOUCHES(1)
TOUCHES(2)
TOUCHES(4)
TOUCHES(8)
TOUCHES(16)
OURS void __tsan_read_range(void* where, size_t bytes) { touch(where, int64(bytes), false); }
OURS void __tsan_write_range(void* where, size_t bytes) { touch(where, int64(bytes), true); }
OURS void __tsan_init() { watched = true; }
OURS void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

#define ATOMICS(bits) \
    OURS uint##bits __tsan_atomic##bits##_load(const volatile void* where, int) { return __atomic_load_n((const volatile uint##bits*)where, __ATOMIC_SEQ_CST); } \
    OURS uint##bits __tsan_atomic##bits##_fetch_add(volatile void* where, uint##bits value, int) { \
        return __atomic_fetch_add((volatile uint##bits*)where, value, __ATOMIC_SEQ_CST); \
    } \
    OURS uint##bits __tsan_atomic##bits##_fetch_and(volatile void* where, uint##bits value, int) { \
        return __atomic_fetch_and((volatile uint##bits*)where, value, __ATOMIC_SEQ_CST); \
    } \
    OURS uint##bits __tsan_atomic##bits##_fetch_xor(volatile void* where, uint##bits value, int) { \
        return __atomic_fetch_xor((volatile uint##bits*)where, value, __ATOMIC_SEQ_CST); \
    } \
    OURS bool __tsan_atomic##bits##_compare_exchange_strong(volatile void* where, void* expected, uint##bits desired, int, int) { \
        return __atomic_compare_exchange_n((volatile uint##bits*)where, (uint##bits*)expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    } \
    OURS bool __tsan_atomic##bits##_compare_exchange_weak(volatile void* where, void* expected, uint##bits desired, int, int) { \
        return __atomic_compare_exchange_n((volatile uint##bits*)where, (uint##bits*)expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    }
ATOMICS(32)
ATOMICS(64)

extern "C" UNWATCHED int gpudb_lane() { return current->lane; }

extern "C" UNWATCHED void gpudb_sync(const char* file, int line) {
    current->file = file;
    current->line = line;
    waits = true;
    yield();
}

extern "C" UNWATCHED void gpudb_drift() {
    if (random_below(DRIFT_ONE_IN) == 0) yield();
}

extern "C" UNWATCHED void gpudb_at_instruction(int64 pc, uint32 opcode) {
    current->pc = pc;
    current->opcode = opcode;
}

/// Memory that a block's lanes share, as a GPU has it on the chip: full of garbage when the block begins, and nothing beside it.
extern "C" UNWATCHED uint8* gpudb_shared_memory(int64 bytes) {
    Block& block = states[current->block];
    if (!block.shared) {
        const int64 beside = watched ? BESIDE_BYTES : 0;
        block.allocated = (uint8*)aligned_alloc(64, size_t((beside + bytes + beside + 63) & ~63));
        block.shared = block.allocated + beside;
        block.shared_bytes = bytes;
        if (watched) block.traces = (Trace*)calloc(size_t(bytes), sizeof(Trace));
        memset(block.shared, GARBAGE, size_t(bytes));
    }
    return block.shared;
}

UNWATCHED void run_blocks(void (*run_block)(const void*, int64, int64), const void* arguments, int64 blocks) {
    body = run_block;
    body_arguments = arguments;
    body_blocks = blocks;
    const int64 count = blocks * GPUDB_LANES;
    have_fibers(count);
    states = (Block*)calloc(blocks, sizeof(Block));
    int64* ready = (int64*)malloc(count * sizeof(int64));
    int64 num_ready = 0;
    for (int64 i = 0; i < count; ++i) {
        fibers[i].block = i / GPUDB_LANES;
        fibers[i].lane = int(i % GPUDB_LANES);
        fibers[i].ended = false;
        fibers[i].pc = -1;
        ready[num_ready++] = i;
    }
    for (int64 b = 0; b < blocks; ++b) states[b].barriers = 1;
    while (num_ready > 0 && !error[0]) {
        const int64 place = int64(random_below(uint64(num_ready)));
        run(fibers[ready[place]]);
        if (!waits && !current->ended) continue;  // it only let another one go first
        ready[place] = ready[--num_ready];
        Block& block = states[current->block];
        if (current->ended) ++block.ended; else ++block.waiting;
        if (block.waiting + block.ended < GPUDB_LANES) continue;
        const int64 first = current->block * GPUDB_LANES;
        if (met(fibers + first, block) && block.waiting) {
            for (int lane = 0; lane < GPUDB_LANES; ++lane) ready[num_ready++] = first + lane;
            block.waiting = 0;
            ++block.barriers;
        }
    }
    current = nullptr;
    for (int64 i = 0; i < count; ++i) {  // those that an error left in the middle begin anew
        if (fibers[i].ended) continue;
        fibers[i].started = false;
        if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(fibers[i].stack.bottom, fibers[i].stack.bytes);
    }
    for (int64 b = 0; b < blocks; ++b) {
        free(states[b].allocated);
        free(states[b].traces);
    }
    free(states);
    free(ready);
}

/// Runs a kernel, an ENTRY.  `seed`, any number but 0, is of the order in which lanes take turns; `told` gets what they did
/// wrong, or "".
extern "C" UNWATCHED void gpudb_lanes_launch(void (*entry)(const void*, int64), const void* arguments, int64 blocks, uint64 seed, char* told, int64 bytes) {
    pthread_mutex_lock(&launches);
    random_state = seed;
    until_drift = 1;
    error[0] = 0;
    entry(arguments, blocks);
    snprintf(told, size_t(bytes), "%s", error);
    pthread_mutex_unlock(&launches);
}
