/* SPDX-License-Identifier: Apache-2.0 */
/* bed.h - what the store's tests stand on: a temporary directory, a real loop, a store
 * in it, and waiting for what it promises. */
#pragma once
#include "store/store.h"

struct bed {
    uv_loop_t loop;
    uv_async_t awake; /* keeps the loop waiting for news of the store */
    char *dir, *path;
    struct store *s;
    uint64_t durable; /* as told by on_durable */
    int troubles, recoveries;
    char why[512];
};

/* A new directory with an open store, or without one when vfs is BED_CLOSED. */
void bed_init(struct bed *b, const char *vfs);
#define BED_CLOSED ((const char *)-1)
void bed_open(struct bed *b, const char *vfs);
/* Opens and expects this error. */
void bed_open_fails(struct bed *b, int code, const char *part_of_sentence);
void bed_close(struct bed *b);
/* Closes what is open and removes the directory. */
void bed_release(struct bed *b);

/* Runs the loop until everything put so far is on disk. */
void bed_settle(struct bed *b);

/* A row with every member set from seq. Texts live in the buffer. */
struct bed_text {
    char id[64], name[64], spec[64], detail[64], word[8];
};
struct store_job bed_job(int64_t seq, struct bed_text *t);

/* Run one read to its end. The rows are copied into *ret: bed_answer_release(). */
struct bed_answer {
    bool done;
    struct err err;
    size_t njobs, nattempts, nevents;
    int64_t *job_seqs, *jobs_held, *event_seqs;
    char *first_spec, *first_detail, *first_event_job; /* of the first row */
    char *next;
    int64_t total;
    struct store_count counts[STORE_COUNTS_MAX];
    size_t ncounts;
};
void bed_answer_release(struct bed_answer *a);
void bed_list(struct bed *b, const struct store_job_query *q, struct bed_answer *ret);
void bed_find(struct bed *b, const char *ref, struct bed_answer *ret);
void bed_find_of(struct bed *b, const struct store_job_ref *ref, struct bed_answer *ret);
void bed_events(struct bed *b, const struct store_event_query *q, struct bed_answer *ret);
