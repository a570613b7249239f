"""The 13 queries and the table of Bakkum and Skadron 2010, "Accelerating SQL Database Operations on a GPU"."""
