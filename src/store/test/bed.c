/* SPDX-License-Identifier: Apache-2.0 */
/* bed.c - see bed.h. Waiting is running the loop until something is true: no test
 * sleeps, and a promise that is not kept shows as a test that hangs until Meson's limit. */
#include "store/test/bed.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void on_durable(uint64_t batch, void *arg)
{
    struct bed *b = arg;
    assert_true(batch > b->durable);
    b->durable = batch;
}

static void on_trouble(bool failing, const char *why, void *arg)
{
    struct bed *b = arg;
    if (!failing) {
        assert_null(why);
        b->recoveries++;
        return;
    }
    b->troubles++;
    (void)snprintf(b->why, sizeof(b->why), "%s", why);
}

static struct store_options options(struct bed *b, const char *vfs)
{
    return (struct store_options){.path = b->path,
                                  .loop = &b->loop,
                                  .on_durable = on_durable,
                                  .on_trouble = on_trouble,
                                  .arg = b,
                                  .vfs = vfs};
}

void bed_init(struct bed *b, const char *vfs)
{
    *b = (struct bed){0};
    b->dir = xasprintf("%s/argus-store-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(b->dir));
    b->path = xasprintf("%s/argus.db", b->dir);
    assert_int_equal(uv_loop_init(&b->loop), 0);
    assert_int_equal(uv_async_init(&b->loop, &b->awake, NULL), 0);
    if (vfs != BED_CLOSED)
        bed_open(b, vfs);
}

void bed_open(struct bed *b, const char *vfs)
{
    struct store_options opt = options(b, vfs);
    struct err err = {0};
    int r = store_open(&opt, &b->s, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(r, 0);
    b->durable = 0;
}

void bed_open_fails(struct bed *b, int code, const char *part)
{
    struct store_options opt = options(b, NULL);
    struct store *s = NULL;
    struct err err = {0};
    assert_int_equal(store_open(&opt, &s, &err), code);
    assert_null(s);
    assert_non_null(strstr(err.text, part));
}

void bed_close(struct bed *b)
{
    struct err err = {0};
    int r = store_close(b->s, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(r, 0);
    b->s = NULL;
    (void)uv_run(&b->loop, UV_RUN_NOWAIT);
}

static void remove_dir(const char *path)
{
    DIR *d = opendir(path);

    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            assert_int_equal(unlinkat(dirfd(d), e->d_name, 0), 0);
    assert_int_equal(closedir(d), 0);
    assert_int_equal(rmdir(path), 0);
}

void bed_release(struct bed *b)
{
    if (b->s)
        bed_close(b);
    uv_close((uv_handle_t *)&b->awake, NULL);
    (void)uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    remove_dir(b->dir);
    free(b->dir);
    free(b->path);
}

void bed_settle(struct bed *b)
{
    uint64_t want = store_batch(b->s);
    while (b->durable < want)
        (void)uv_run(&b->loop, UV_RUN_ONCE);
    assert_true(store_durable(b->s) >= want);
}

struct store_job bed_job(int64_t seq, struct bed_text *t)
{
    static const char *const words[] = {"red", "green", "blue"};
    const char *word = words[seq % 3];
    (void)snprintf(t->id, sizeof(t->id), "job-%06lld", (long long)seq);
    (void)snprintf(t->name, sizeof(t->name), "name-%lld", (long long)seq);
    (void)snprintf(t->spec, sizeof(t->spec), "name: name-%lld\n", (long long)seq);
    (void)snprintf(t->detail, sizeof(t->detail), "{\"seq\":%lld}", (long long)seq);
    return (struct store_job){.seq = seq,
                              .id = t->id,
                              .name = t->name,
                              .user = word,
                              .project = "p",
                              .workload = "grpo",
                              .cluster = "c",
                              .pool = "default",
                              .queued_at = 1000 * USEC_SEC + (usec_t)seq,
                              .spec = t->spec,
                              .state = "QUEUED",
                              .live = true,
                              .reason_code = "waiting",
                              .reason_text = "first in line",
                              .nnodes = 2,
                              .n_gpus_per_node = 0.5,
                              .priority = seq,
                              .detail = t->detail};
}

/* ---- reads ---- */

static char *dup_or_null(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

static void on_done(const struct store_result *r, void *arg)
{
    struct bed_answer *a = arg;
    assert_false(a->done);
    a->done = true;
    a->err = r->err;
    if (r->err.code)
        return;
    a->njobs = r->njobs;
    a->nattempts = r->nattempts;
    a->nevents = r->nevents;
    a->job_seqs = xcalloc(r->njobs + 1, sizeof(*a->job_seqs));
    a->event_seqs = xcalloc(r->nevents + 1, sizeof(*a->event_seqs));
    a->jobs_held = xcalloc(r->njobs + 1, sizeof(*a->jobs_held));
    for (size_t i = 0; i < r->njobs; i++) {
        a->job_seqs[i] = r->jobs[i].seq;
        a->jobs_held[i] = r->jobs[i].gpu_held;
    }
    for (size_t i = 0; i < r->nevents; i++)
        a->event_seqs[i] = r->events[i].seq;
    a->first_spec = r->njobs ? dup_or_null(r->jobs[0].spec) : NULL;
    a->first_detail = r->njobs ? dup_or_null(r->jobs[0].detail) : NULL;
    a->first_event_job = r->nevents ? dup_or_null(r->events[0].job) : NULL;
    a->next = dup_or_null(r->next);
    a->total = r->total;
    a->ncounts = r->ncounts;
    memcpy(a->counts, r->counts, sizeof(a->counts));
}

void bed_answer_release(struct bed_answer *a)
{
    free(a->job_seqs);
    free(a->jobs_held);
    free(a->event_seqs);
    free(a->first_spec);
    free(a->first_detail);
    free(a->first_event_job);
    free(a->next);
    *a = (struct bed_answer){0};
}

static void wait_for(struct bed *b, const struct bed_answer *a)
{
    assert_false(a->done);
    while (!a->done)
        (void)uv_run(&b->loop, UV_RUN_ONCE);
}

void bed_list(struct bed *b, const struct store_job_query *q, struct bed_answer *ret)
{
    *ret = (struct bed_answer){0};
    assert_non_null(store_list_jobs(b->s, q, &(struct store_then){.done = on_done, .arg = ret}));
    wait_for(b, ret);
}

void bed_find(struct bed *b, const char *ref, struct bed_answer *ret)
{
    bed_find_of(b, &(struct store_job_ref){.ref = ref}, ret);
}

void bed_find_of(struct bed *b, const struct store_job_ref *ref, struct bed_answer *ret)
{
    *ret = (struct bed_answer){0};
    assert_non_null(store_find_job(b->s, ref, &(struct store_then){.done = on_done, .arg = ret}));
    wait_for(b, ret);
}

void bed_events(struct bed *b, const struct store_event_query *q, struct bed_answer *ret)
{
    *ret = (struct bed_answer){0};
    assert_non_null(store_list_events(b->s, q, &(struct store_then){.done = on_done, .arg = ret}));
    wait_for(b, ret);
}
