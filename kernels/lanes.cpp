// The host side of the library that tests lanes: every lane of every block is a fiber, and a barrier is a real one.
//
// Fibers of all blocks are alive at once and take turns in random order: at barriers, and now and then at an atomic
// operation.  So a missing barrier, or a step that is not safe against another lane's, shows as wrong rows; and lanes that
// do not meet at one barrier, or end while others wait, are reported as an error instead of hanging.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

namespace {

const size_t STACK_BYTES = 128 << 10;
const int DRIFT_ONE_IN = 8;  // atomic operations at which another fiber goes on

struct Fiber {
    ucontext_t context;
    int64 block;
    int lane;
    const char* file;  // of the barrier that it waits at
    int line;
    bool ended;
};

struct Block { int waiting, ended; };

pthread_mutex_t launches = PTHREAD_MUTEX_INITIALIZER;  // one launch at a time: what follows has no other guard
ucontext_t scheduler;
Fiber* current = nullptr;
bool waits = false;  // the current fiber has come to a barrier
void (*body)(const void*, int64, int64) = nullptr;
const void* body_arguments = nullptr;
int64 body_blocks = 0;
uint64 random_state = 1;
char error[512] = "";

uint64 random_below(uint64 count) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % count;
}

void fiber_main() {
    body(body_arguments, current->block, body_blocks);
    current->ended = true;
    swapcontext(&current->context, &scheduler);
}

/// All lanes of a block have come to a barrier or to their end: false, and `error`, where they should not.
bool met(const Fiber* fibers, const Block& block) {
    if (block.waiting == 0) return true;
    const Fiber* waiting = fibers;
    while (waiting->ended) ++waiting;
    if (block.ended > 0) {
        snprintf(error, sizeof error, "%d lanes of a block ended while others wait at %s:%d", block.ended, waiting->file, waiting->line);
        return false;
    }
    for (int lane = 0; lane < GPUDB_LANES; ++lane) {
        if (fibers[lane].line != waiting->line || fibers[lane].file != waiting->file) {
            snprintf(error, sizeof error, "lanes of a block wait at different barriers: %s:%d and %s:%d", waiting->file, waiting->line,
                     fibers[lane].file, fibers[lane].line);
            return false;
        }
    }
    return true;
}

}  // namespace

extern "C" int gpudb_lane() { return current->lane; }

extern "C" void gpudb_sync(const char* file, int line) {
    current->file = file;
    current->line = line;
    waits = true;
    swapcontext(&current->context, &scheduler);
}

extern "C" void gpudb_drift() {
    if (random_below(DRIFT_ONE_IN) == 0) swapcontext(&current->context, &scheduler);
}

void run_blocks(void (*run)(const void*, int64, int64), const void* arguments, int64 blocks) {
    pthread_mutex_lock(&launches);
    body = run;
    body_arguments = arguments;
    body_blocks = blocks;
    const int64 count = blocks * GPUDB_LANES;
    Fiber* fibers = (Fiber*)calloc(count, sizeof(Fiber));
    Block* states = (Block*)calloc(blocks, sizeof(Block));
    int64* ready = (int64*)calloc(count, sizeof(int64));
    uint8* stacks = (uint8*)malloc(count * STACK_BYTES);
    int64 num_ready = 0;
    for (int64 i = 0; i < count; ++i) {
        Fiber& fiber = fibers[i];
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = stacks + i * STACK_BYTES;
        fiber.context.uc_stack.ss_size = STACK_BYTES;
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, fiber_main, 0);
        fiber.block = i / GPUDB_LANES;
        fiber.lane = int(i % GPUDB_LANES);
        ready[num_ready++] = i;
    }
    while (num_ready > 0 && !error[0]) {
        const int64 place = int64(random_below(uint64(num_ready)));
        current = fibers + ready[place];
        waits = false;
        swapcontext(&scheduler, &current->context);
        if (!waits && !current->ended) continue;  // it only let another one go first
        ready[place] = ready[--num_ready];
        Block& block = states[current->block];
        if (current->ended) ++block.ended; else ++block.waiting;
        if (block.waiting + block.ended < GPUDB_LANES) continue;
        const int64 first = current->block * GPUDB_LANES;
        if (met(fibers + first, block) && block.waiting) {
            for (int lane = 0; lane < GPUDB_LANES; ++lane) ready[num_ready++] = first + lane;
            block.waiting = 0;
        }
    }
    free(fibers);
    free(states);
    free(ready);
    free(stacks);
    pthread_mutex_unlock(&launches);
}

/// Starts the order in which lanes take turns; any number but 0.
extern "C" void gpudb_lanes_seed(uint64 seed) { random_state = seed; }

/// What lanes did wrong in a launch since the last call, or "".
extern "C" void gpudb_lanes_error(char* text, int64 size) {
    pthread_mutex_lock(&launches);
    snprintf(text, size_t(size), "%s", error);
    error[0] = 0;
    pthread_mutex_unlock(&launches);
}
