/* none.c - a file that does not name its licence. */
