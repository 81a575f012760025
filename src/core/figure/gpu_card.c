/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_card.c - cards and samples as JSON, and back; see gpu_card.h. The members stand in one table
 * each; numbers that are no numbers, or below 0, become "not told". */
#include "core/figure/gpu_card.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

enum { IN_BOOK = FIELD_OWN(0), IN_CARD = FIELD_OWN(1) };
static const double NUMBER_MAX = 1e18;

#define CARD(member, ftype, words, ...)                                                            \
    FIELD_AT(gpu_card, #member, ftype, member, .doc = words, __VA_ARGS__)
static const struct field card_rows[] = {
    CARD(index, FIELD_INT32, "on its node", .flags = IN_CARD),
    CARD(uuid, FIELD_TEXT, "GPU-…", .size = FIGURE_UUID_MAX, .flags = IN_CARD),
    CARD(name,
         FIELD_TEXT,
         "name of its kind",
         .size = sizeof(((struct gpu_card *)0)->name),
         .flags = IN_CARD),
    CARD(pci,
         FIELD_TEXT,
         "its PCI address, as the driver writes it",
         .size = sizeof(((struct gpu_card *)0)->pci),
         .flags = IN_CARD),
#define X(member, words) CARD(member, FIELD_REAL, words, .flags = IN_CARD | FIELD_NO_LIMIT),
    GPU_CARD_NUMBERS(X)
#undef X
#define X(member, words) CARD(member, FIELD_REAL, words, .flags = IN_BOOK | FIELD_NO_LIMIT),
        GPU_BOOK_NUMBERS(X)
#undef X
            FIELD_AT(gpu_card, "ours", FIELD_BOOL, is_ours, .flags = IN_BOOK),
};
static const struct field_table card_table = FIELD_TABLE("GpuCard", card_rows, gpu_card);

#define PROCESS(key, member, ftype, in) FIELD_AT(gpu_process, key, ftype, member, .flags = (in))
static const struct field process_rows[] = {
    PROCESS("pid", pid, FIELD_INT32, IN_CARD),
    PROCESS("util", util, FIELD_REAL, IN_CARD | FIELD_NO_LIMIT),
    PROCESS("mem_bytes", mem_bytes, FIELD_REAL, IN_CARD | FIELD_NO_LIMIT),
    PROCESS("mem_peak_bytes", mem_peak_bytes, FIELD_REAL, IN_CARD | FIELD_NO_LIMIT),
    PROCESS("ours", is_ours, FIELD_BOOL, IN_BOOK),
    PROCESS("another", is_anothers, FIELD_BOOL, IN_BOOK),
    PROCESS("lives", lives, FIELD_BOOL, IN_BOOK),
    PROCESS("rank", rank, FIELD_REAL, IN_BOOK | FIELD_NO_LIMIT),
    PROCESS("busy_s", busy_s, FIELD_REAL, IN_BOOK | FIELD_NO_LIMIT),
};
static const struct field_table process_table =
    FIELD_TABLE("GpuProcess", process_rows, gpu_process);

void gpu_card_init(struct gpu_card *c)
{
    memset(c, 0, sizeof(*c));
#define X(member, words) c->member = -1;
    GPU_CARD_NUMBERS(X)
#undef X
}

double gpu_card_own(const struct gpu_card *c, bool *ret_shared)
{
    double all = 0, theirs = 0;
    size_t n_all = 0, n_theirs = 0;
    bool is_told = false;
    for (size_t i = 0; i < c->n; i++) {
        const struct gpu_process *p = &c->v[i];
        double use = p->util > 0 ? p->util : 0;
        if (!p->lives)
            continue;
        n_all++;
        all += use;
        is_told |= p->util >= 0;
        n_theirs += p->is_anothers;
        theirs += p->is_anothers ? use : 0;
    }
    *ret_shared = n_theirs > 0;
    if (c->util < 0 || !c->is_ours)
        return -1;
    if (!*ret_shared)
        return c->util;
    if (!is_told)
        return -1;
    return all > 0 ? c->util * (all - theirs) / all
                   : c->util * (double)(n_all - n_theirs) / (double)n_all;
}

void gpu_card_put(const struct gpu_card *c, struct jout *j, bool with_book)
{
    unsigned which = with_book ? IN_CARD | IN_BOOK : IN_CARD;
    jout_open(j, NULL, '{');
    field_put_members(&card_table, c, which, FIELD_PAGE, j);
    jout_open(j, "processes", '[');
    for (size_t i = 0; i < c->n; i++)
        field_to_json(&process_table, &c->v[i], which, FIELD_PAGE, j, NULL);
    jout_close(j, ']');
    jout_close(j, '}');
}

static void gpu_card_clean(double *v)
{
    if (!(*v >= 0 && *v <= NUMBER_MAX))
        *v = -1;
}

/* A text of a peer goes into pages and files: printable ASCII. */
static void gpu_card_clean_text(char *text)
{
    for (; *text; text++)
        if (!isprint((unsigned char)*text) || (unsigned char)*text > 126)
            *text = '?';
}

static void gpu_process_read(const json_t *o, struct gpu_process *ret)
{
    *ret = (struct gpu_process){.util = -1, .mem_bytes = -1, .mem_peak_bytes = -1, .rank = -1};
    field_from_json(&process_table, o, FIELD_ALL, ret);
    gpu_card_clean(&ret->util);
    gpu_card_clean(&ret->mem_bytes);
    gpu_card_clean(&ret->mem_peak_bytes);
    gpu_card_clean(&ret->rank);
    gpu_card_clean(&ret->busy_s);
}

bool gpu_card_read(const json_t *o, struct gpu_card *ret)
{
    size_t i;
    json_t *item;
    gpu_card_init(ret);
    if (!json_is_object(o) || !json_is_integer(json_object_get(o, "index")))
        return false;
    field_from_json(&card_table, o, FIELD_ALL, ret);
#define X(member, words) gpu_card_clean(&ret->member);
    GPU_CARD_NUMBERS(X)
    GPU_BOOK_NUMBERS(X)
#undef X
    gpu_card_clean_text(ret->uuid);
    gpu_card_clean_text(ret->name);
    gpu_card_clean_text(ret->pci);
    json_array_foreach (json_object_get(o, "processes"), i, item)
        if (json_is_object(item) && ret->n < GPU_PROCESSES_MAX)
            gpu_process_read(item, &ret->v[ret->n++]);
    return ret->index >= 0 && ret->index < FIGURE_GPUS_MAX;
}

void gpu_sample_put(const struct gpu_sample *s, struct buf *out, bool with_book)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    jout_int(&j, "at", (int64_t)s->at);
    jout_str(&j, "driver", s->driver);
    jout_str(&j, "trouble", s->trouble);
    jout_open(&j, "gpus", '[');
    for (size_t i = 0; i < s->n; i++)
        gpu_card_put(&s->v[i], &j, with_book);
    jout_close(&j, ']');
    jout_close(&j, '}');
}

bool gpu_sample_read(const char *text, size_t n, struct gpu_sample *ret)
{
    size_t i;
    json_t *item;
    _cleanup_(json_unrefp) json_t *o = NULL;
    memset(ret, 0, sizeof(*ret));
    if (json_parse(text, n, GPU_BOOK_MAX_BYTES, &o, NULL) < 0 || !json_is_object(o))
        return false;
    int64_t at = json_get_int(o, "at", 0);
    ret->at = at > 0 ? (usec_t)at : 0;
    text_copy(ret->driver, json_get_str(o, "driver", ""));
    text_copy(ret->trouble, json_get_str(o, "trouble", ""));
    gpu_card_clean_text(ret->driver);
    gpu_card_clean_text(ret->trouble);
    json_array_foreach (json_object_get(o, "gpus"), i, item)
        if (ret->n < FIGURE_GPUS_MAX && gpu_card_read(item, &ret->v[ret->n]))
            ret->n++;
    return true;
}
