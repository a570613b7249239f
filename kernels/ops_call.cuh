// Calls of functions that the kernels' own text does not hold: Python functions, which numba compiled for the host.

enum { MOST_ARGUMENTS = 14, OPERANDS = 7 };

/// What a slot of Call points to, gpudb/functions/python.py packs it: a loop over rows, how many arguments it takes, and the
/// bytes that a row of its result and of each argument takes.  `every` says that all rows are alive; then `alive` is not read.
struct Callee {
    void (*rows)(const void* const* arguments, void* out, uint8* status, const Mask* alive, int64 every, int64 count);
    int64 num_arguments, out_width, widths[MOST_ARGUMENTS];
};

/// The arguments of the Call that follows, which reads them here.
DEVICE void op_Arguments(const Tile& tile, const Instruction& ins) {}

/// r[p0] and r[p1] = the result and the status of function p3 of the arguments before, where p2; 0 elsewhere.  No lane waits.
DEVICE void op_Call(const Tile& tile, const Instruction& ins) {
    const Callee& callee = *(const Callee*)operand<Slot>(tile, ins.p[3])->low;
    const Instruction* given = &ins - (callee.num_arguments + OPERANDS - 1) / OPERANDS;
    const Mask* alive = ins.p[2] >> KIND_SHIFT == PLAIN ? nullptr : operand<Mask>(tile, ins.p[2]);
    const int rows = tile.rows, step = LANES == 1 ? rows : 1;
    for (int first = LANE * step; first < rows; first += LANES * step) {
        const void* arguments[MOST_ARGUMENTS];
        for (int k = 0; k < callee.num_arguments; ++k) {
            const uint32 p = given[k / OPERANDS].p[k % OPERANDS];
            arguments[k] = operand<uint8>(tile, p) + (p >> KIND_SHIFT == COLUMN ? tile.row * (callee.widths[k] - 1) : 0) + first * callee.widths[k];
        }
        Mask every = 1;
        if (alive) VECTORISE for (int i = first; i < first + step; ++i) every &= alive[i];
        CALL_HOST(callee.rows, arguments, result<uint8>(tile, ins.p[0]) + first * callee.out_width, result<uint8>(tile, ins.p[1]) + first, alive ? alive + first : nullptr, every, step);
    }
}
