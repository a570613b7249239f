// The host side of the library: a thread pool that runs blocks, and nothing that knows of SQL.
//
// Every ENTRY(name, Arguments) becomes  extern "C" void name(const Arguments*, int64 blocks):  blocks are dealt to the pool's
// threads and the caller; the call returns when all have run.  Calls may come from several threads at once.

#include <pthread.h>
#include <unistd.h>

namespace {

struct Job {
    void (*run)(const void*, int64, int64);
    const void* arguments;
    int64 blocks, next, done;
    Job* following;
};

pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t pool_work = PTHREAD_COND_INITIALIZER;
pthread_cond_t pool_done = PTHREAD_COND_INITIALIZER;
Job* pool_jobs = nullptr;
int64 pool_threads = 0;

/// Takes the next block of a job; called and returns with the lock held.
void run_one_block(Job* job) {
    const int64 block = job->next++;
    pthread_mutex_unlock(&pool_lock);
    job->run(job->arguments, block, job->blocks);
    pthread_mutex_lock(&pool_lock);
    if (++job->done == job->blocks) pthread_cond_broadcast(&pool_done);
}

void* pool_main(void*) {
    pthread_mutex_lock(&pool_lock);
    for (;;) {
        Job* job = pool_jobs;
        while (job && job->next >= job->blocks) job = job->following;
        if (job) run_one_block(job);
        else pthread_cond_wait(&pool_work, &pool_lock);
    }
    return nullptr;
}

/// A forked child has no pool threads and nobody's jobs.
void pool_after_fork() {
    pthread_mutex_init(&pool_lock, nullptr);
    pthread_cond_init(&pool_work, nullptr);
    pthread_cond_init(&pool_done, nullptr);
    pool_jobs = nullptr;
    pool_threads = 0;
}

__attribute__((constructor)) void pool_register() { pthread_atfork(nullptr, nullptr, pool_after_fork); }

}  // namespace

void run_blocks(void (*run)(const void*, int64, int64), const void* arguments, int64 blocks) {
    if (blocks <= 1) {
        run(arguments, 0, 1);
        return;
    }
    Job job = {run, arguments, blocks, 0, 0, nullptr};
    pthread_mutex_lock(&pool_lock);
    while (pool_threads < blocks - 1 && pool_threads < 255) {
        pthread_t thread;
        if (pthread_create(&thread, nullptr, pool_main, nullptr) != 0) break;
        pthread_detach(thread);
        ++pool_threads;
    }
    job.following = pool_jobs;
    pool_jobs = &job;
    pthread_cond_broadcast(&pool_work);
    while (job.next < job.blocks) run_one_block(&job);
    while (job.done < job.blocks) pthread_cond_wait(&pool_done, &pool_lock);
    Job** link = &pool_jobs;
    while (*link != &job) link = &(*link)->following;
    *link = job.following;
    pthread_mutex_unlock(&pool_lock);
}

/// Sizes of the structs, so that the Python side can check that it packs the same ones.
extern "C" int64 gpudb_struct_size(int which) {
    const int64 sizes[] = {sizeof(Launch), sizeof(GroupTable), sizeof(RowGroup), sizeof(Slot), sizeof(Instruction), sizeof(SortLaunch)};
    return sizes[which];
}
