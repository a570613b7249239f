// The yardstick of the bandwidth figure: reads 8 bytes at a time and adds them up, as plainly as it can be written.
// Built by the same compiler with the same flags as the kernels.
extern "C" unsigned long long benchmark_read_loop(const unsigned long long* words, long long count) {
    unsigned long long total = 0;
    for (long long i = 0; i < count; ++i) total += words[i];
    return total;
}
