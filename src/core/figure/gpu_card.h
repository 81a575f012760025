/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_card.h - a GPU as its driver tells of it, with the processes on it: one table for all who
 * pass it on. Pure.
 *
 * argus-gpus writes cards as lines of JSON, a look over ssh brings them to argusd, the scout adds
 * up what they say of its attempt and writes a book of them to the shared root. What was not told
 * is below 0, and null in JSON. Readers trust nothing: counts and texts have ceilings. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/field.h"
#include "core/figure/figure.h"

enum {
    GPU_PROCESSES_MAX = 32,         /* of one GPU; more are left out */
    GPU_LINE_MAX = 16 << 10,        /* bytes of a card as a line */
    GPU_BOOK_MAX_BYTES = 256 << 10, /* of the file */
};
/* The status of argus-gpus where there is no driver of NVIDIA. */
enum { GPU_STATUS_NONE = 3 };
#define GPU_EVERY (15 * USEC_SEC) /* from one sample to the next */

/* X(member, FIELD_REAL's words): of a GPU now. */
#define GPU_CARD_NUMBERS(X)                                                                        \
    X(util, "0 to 1: mean over the time since the sample before, by the driver's own buffer")      \
    X(mem_used_bytes, "now")                                                                       \
    X(mem_total_bytes, "memory that the GPU has")                                                  \
    X(power_watts, "now")                                                                          \
    X(temperature_celsius, "now")                                                                  \
    X(slowdown_celsius, "from which on the GPU slows itself down")                                 \
    X(energy_joules, "the driver's own counter, which begins when it is loaded")                   \
    X(ecc_uncorrected, "errors of memory since the driver was loaded")                             \
    X(rows_failed, "1: memory rows could not be replaced")                                         \
    X(rows_pending, "1: memory rows are replaced at the next reset")                               \
    X(xid, "the newest error of the driver that was told while it was watched; 0: none")           \
    X(throttle, "why its clock is held back: the driver's bits")                                   \
    X(nvlinks, "that are up")                                                                      \
    X(pcie_width, "lanes in use")                                                                  \
    X(pcie_width_max, "lanes of its slot")

/* X(member, words): what a scout has added up since the attempt began. */
#define GPU_BOOK_NUMBERS(X)                                                                        \
    X(watched_s, "seconds that were watched")                                                      \
    X(busy_s, "seconds of these in which the GPU worked")                                          \
    X(used_joules, "energy of these")                                                              \
    X(mem_peak_bytes, "the most that was in use at a sample")

struct gpu_process {
    int pid; /* as the driver's own namespace counts */
    double util, mem_bytes, mem_peak_bytes;
    /* By the scout. */
    bool is_ours, lives;
    bool is_anothers; /* of another job of Argus; else of the attempt, of nobody, or not known */
    double rank;      /* RANK of its environment */
    double busy_s;    /* its share of the GPU's */
};

struct gpu_card {
    int index;
    char uuid[FIGURE_UUID_MAX], name[64];
    char pci[32]; /* its address: "00000000:3B:00.0"; "": not told */
#define X(member, words) double member;
    GPU_CARD_NUMBERS(X)
    GPU_BOOK_NUMBERS(X)
#undef X
    bool is_ours; /* a process of the attempt is, or was, on it */
    struct gpu_process v[GPU_PROCESSES_MAX];
    size_t n;
};

/* One sample of a machine, or a book. */
struct gpu_sample {
    usec_t at; /* wall */
    char driver[32];
    char trouble[160]; /* why there are no cards; "": all went well */
    size_t n;          /* cards */
    struct gpu_card v[FIGURE_GPUS_MAX];
};

/* Nothing is told. */
void gpu_card_init(struct gpu_card *c);
/* The attempt's part of the GPU's use now, 0 to 1, by a card of its own book: all that processes of
 * other jobs leave, in proportion to what the driver tells of the processes; an equal part for each
 * where all are told as 0. What a process does whose job is not known counts for the attempt, which
 * is not to be called idle for it. Below 0: not known, since the use is not told, no process of the
 * attempt was ever seen there, or, as in a container, the use of no process is told.
 * *ret_shared: processes of other jobs live there now. */
double gpu_card_own(const struct gpu_card *c, bool *ret_shared);
/* One line of JSON, with its end. with_book: what the scout adds, too. */
void gpu_card_put(const struct gpu_card *c, struct jout *j, bool with_book);
/* False: it is none. */
bool gpu_card_read(const json_t *o, struct gpu_card *ret);

/* A whole sample as one JSON object: {"at", "driver", "trouble", "gpus": […]}. */
void gpu_sample_put(const struct gpu_sample *s, struct buf *out, bool with_book);
/* False: it is none, and ret is empty. */
bool gpu_sample_read(const char *text, size_t n, struct gpu_sample *ret);
