"""The 13 queries of Bakkum and Skadron, "Accelerating SQL Database Operations on a GPU with CUDA" (2010), over their table."""
