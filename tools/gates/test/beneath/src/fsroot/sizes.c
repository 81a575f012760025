/* SPDX-License-Identifier: Apache-2.0 */
int whole(int fd)
{
    uint64_t size = fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
    for (uint64_t at = 0; at < size; at += n)
        file_read_at(fd, at, block, sizeof(block), &n);
    do {
        file_read_at(fd, at, block, sizeof(block), &n);
    } while ((at += n) < size);
    while (at < st.st_size && pread(fd, block, 1, at++) == 1)
        ;
    return 0;
}

void found(struct entry *e, const struct stat *st)
{
    e->length = (uint64_t)st->st_size;
}

int of_an_entry(int fd, const struct entry *e)
{
    uint64_t at = 0;
    while (at < e->length) {
        if (file_read_at(fd, at, block, sizeof(block), &n) < 0)
            return -1;
        at += n;
    }
    return 0;
}

int bounded(int fd, const struct entry *e)
{
    for (uint64_t at = 0; at < e->length && at < LENGTH_MAX; at += n)
        file_read_at(fd, at, block, sizeof(block), &n);
    return 0;
}

int as_it_came(int fd, uint64_t size)
{
    for (uint64_t at = 0; at < size; at += n)
        file_read_at(fd, at, block, sizeof(block), &n);
    bool same = st.st_size == (off_t)size;
    for (off_t low = 0, high = st.st_size; low < high; low++)
        same = same && low;
    return same;
}
