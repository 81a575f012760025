/* SPDX-License-Identifier: Apache-2.0 */
/* logindex_file.h - the index beside a log: <log>.idx, for its writer (logindexer.h) and its
 * reader (logindex.h).
 *
 * For each block of the log, some 256 KiB of whole lines, it has a filter of the trigrams in it
 * (trigrams.h), and one for each group of 64 blocks. Every record has its own place, which
 * follows from its number, and its own checksum: one that was not written or is torn says nothing,
 * and its part of the log is read. Numbers are little-endian, as on all machines we run on.
 *
 *   group 0: record of the group, 64 records of blocks; group 1: …
 *
 * Block i begins at byte i * 256 KiB of the log or behind it. */
#pragma once
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest/crc.h"

#define LOGINDEX_SUFFIX ".idx"
#define LOGINDEX_MAGIC 0x3178646941677241ULL /* "ArgAidx1" */

enum {
    LOGINDEX_BLOCK = 256 << 10,       /* bytes of log in a block, and up to as many more for */
    LOGINDEX_BLOCK_MAX = 512 << 10,   /* the end of its last line */
    LOGINDEX_LEAST = 64 << 10,        /* bytes of log of a last block that is worth a record */
    LOGINDEX_GROUP = 64,              /* blocks */
    LOGINDEX_BLOCK_RECORD = 4 << 10,  /* bytes of index */
    LOGINDEX_GROUP_RECORD = 16 << 10, /* the same */
    LOGINDEX_GROUP_BYTES = LOGINDEX_GROUP_RECORD + LOGINDEX_GROUP * LOGINDEX_BLOCK_RECORD,
    LOGINDEX_FIRST = 1 << 10, /* bytes at the log's beginning that tell whose index it is */
};

enum logindex_flags {
    LOGINDEX_IS_GROUP = 1 << 0,
    LOGINDEX_IS_TORN = 1 << 1, /* begins or ends within a line */
};

struct logindex_record {
    uint64_t magic;
    uint32_t crc;        /* of all that follows, and the filter */
    uint32_t first;      /* the checksum of the log's first bytes */
    uint64_t begin, end; /* of the log */
    uint64_t written;    /* wall time, of the log's last bytes */
    uint64_t flags;
    uint8_t filter[];
};
static_assert(sizeof(struct logindex_record) == 48, "as it is on disk");

static inline uint64_t logindex_group_place(uint64_t group)
{
    return group * LOGINDEX_GROUP_BYTES;
}

static inline uint64_t logindex_block_place(uint64_t block)
{
    return logindex_group_place(block / LOGINDEX_GROUP) + LOGINDEX_GROUP_RECORD +
           block % LOGINDEX_GROUP * LOGINDEX_BLOCK_RECORD;
}

/* n: of the whole record. */
static inline uint32_t logindex_crc(const struct logindex_record *r, size_t n)
{
    return crc32_add(0, &r->first, n - offsetof(struct logindex_record, first));
}
