/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of which earlier item stands in for one: over random graphs, and against a walk through all
 * runs. Steps are preparations without a script, whose inputs are their `with` and the newest
 * version of the data set "raw"; what they made is an entry of the registry without a path, so that
 * nothing is looked at on a disk. */
#include <limits.h>
#include <stdlib.h>

#include "argusd/archive/archives.h"
#include "argusd/content/registry.h"
#include "argusd/pipes/pipes_state.h"
#include "base/str.h"
#include "base/text.h"
#include "base/unit.h"
#include "base/unit_message.h"

enum { STEPS_MAX = 12, GRAPHS = 300, TEXT_MAX = 64 << 10, WITH_MAX = 16 << 10, TURNS = 4000 };

struct earlier_world {
    uv_loop_t loop;
    struct settings settings;
    struct api a;
    struct pipes *ps;
    uint64_t seed;
    int64_t made; /* entries so far */
};

static unsigned earlier_random(struct earlier_world *w, unsigned below)
{
    w->seed = w->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(w->seed >> 33) % below;
}

static int earlier_nobody_needs(const char *job, void *arg, struct err *err)
{
    (void)job;
    (void)arg;
    (void)err;
    return 0;
}

/* From now on this version of what every step reads is there. */
static void earlier_make_raw(struct earlier_world *w, int version)
{
    _cleanup_(freep) char *key = xasprintf("raw@%d", version);
    struct registry_entry *e = xcalloc(1, sizeof(*e));
    *e = (struct registry_entry){.kind = REGISTRY_DATASET,
                                 .state = REGISTRY_ready,
                                 .name = xstrdup("raw"),
                                 .version = version,
                                 .is_common = true,
                                 .key = xstrdup(key)};
    assert_null(map_set(w->a.registry->tables[REGISTRY_DATASET], key, e));
}

static void earlier_world_init(struct earlier_world *w, uint64_t seed)
{
    static char root[] = "/nowhere";
    *w = (struct earlier_world){.settings = {.shared_root = root}, .seed = seed};
    assert_int_equal(uv_loop_init(&w->loop), 0);
    w->a = (struct api){.loop = &w->loop, .settings = &w->settings};
    w->a.archives = archives_new(&(struct archives_parts){
        .loop = &w->loop, .settings = &w->settings, .check_unused = earlier_nobody_needs});
    w->a.registry =
        registry_new(&(struct registry_parts){.loop = &w->loop, .settings = &w->settings});
    w->a.people = people_new(NULL);
    (void)people_add(w->a.people, "alice", HTTP_ROLE_USER, 1);
    (void)people_add(w->a.people, "bob", HTTP_ROLE_USER, 1);
    w->ps = pipes_new(&w->a);
    earlier_make_raw(w, 1);
}

static void earlier_world_release(struct earlier_world *w)
{
    pipes_free(w->ps);
    archives_close(w->a.archives);
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    archives_free(w->a.archives);
    registry_free(w->a.registry);
    people_free(w->a.people);
}

/* What this job made is there from now on. */
static void earlier_make_entry(struct earlier_world *w, const char *job)
{
    struct registry_entry *e = xcalloc(1, sizeof(*e));
    *e = (struct registry_entry){.kind = REGISTRY_DATASET,
                                 .state = REGISTRY_ready,
                                 .name = xstrdup("d"),
                                 .version = ++w->made,
                                 .job = xstrdup(job),
                                 .key = xstrdup(job)};
    assert_null(map_set(w->a.registry->tables[REGISTRY_DATASET], job, e));
}

static void earlier_lose_entry(struct earlier_world *w, const char *job)
{
    struct registry_entry *e = map_remove(w->a.registry->tables[REGISTRY_DATASET], job);
    assert_non_null(e);
    registry_entry_free(e);
}

/* A run of the pipeline, all of whose items wait. The world's. */
static struct pipe_life *earlier_run(struct earlier_world *w,
                                     const char *user,
                                     const char *text,
                                     const char *params)
{
    struct problems problems = {0};
    struct pipe_life *r = xcalloc(1, sizeof(*r));
    r->pipes = w->ps;
    r->number = ++w->ps->last_number;
    r->id = xasprintf("p-%d", (int)r->number);
    r->pipeline = xstrdup("p");
    r->owner = xstrdup(user);
    r->user = xstrdup(user);
    r->project = xstrdup("");
    r->text = xstrdup(text);
    r->params = xstrdup(params);
    r->pipe = pipes_read_text(text, &problems);
    for (size_t i = 0; i < problems.n; i++)
        print_message("%s: %s\n", problems.v[i].field, unit_problem(&problems.v[i]));
    problems_release(&problems);
    assert_non_null(r->pipe);
    pipes_open_run(r);
    pipes_add_run(w->ps, r);
    return r;
}

/* ---- random graphs ---- */

/* reads[a][b]: step a reads what step b left. A need alone makes no input of it. */
struct earlier_graph {
    int n;
    bool reads[STEPS_MAX][STEPS_MAX], needs[STEPS_MAX][STEPS_MAX];
};

/* Each step reads and needs steps of smaller numbers only. */
static void earlier_draw(struct earlier_world *w, struct earlier_graph *g)
{
    *g = (struct earlier_graph){.n = 2 + (int)earlier_random(w, STEPS_MAX - 1)};
    for (int a = 0; a < g->n; a++)
        for (int b = 0; b < a; b++) {
            unsigned drawn = earlier_random(w, 6);
            g->reads[a][b] = drawn < 2;
            g->needs[a][b] = drawn == 2;
        }
}

/* Heap. The steps stand in the file from the last to the first, each with a parameter of its own.
 */
static char *earlier_graph_text(const struct earlier_graph *g)
{
    struct buf out = BUF_INIT(TEXT_MAX);
    (void)buf_addf(&out, "name: p\nparams:\n"); /* a failure shows in out.failed */
    for (int a = 0; a < g->n; a++)
        (void)buf_addf(&out, "  p%d: {type: integer, default: 0}\n", a);
    (void)buf_addf(&out, "steps:\n");
    for (int a = g->n - 1; a >= 0; a--) {
        (void)buf_addf(&out,
                       "  s%d:\n    uses: prepare\n    with:\n      name: raw\n      with: "
                       "gsm8k\n      as: d%d\n      args:\n        - \"--p=${{ params.p%d }}\"\n",
                       a, a, a);
        for (int b = 0; b < a; b++)
            if (g->reads[a][b])
                (void)buf_addf(&out, "        - \"${{ steps.s%d.dataset }}\"\n", b);
        for (int b = 0, n = 0; b < a; b++)
            if (g->needs[a][b])
                (void)buf_addf(&out, "%s      - s%d\n", n++ ? "" : "    needs:\n", b);
    }
    assert_false(out.failed);
    return buf_take(&out);
}

/* A value for each step's parameter: 1 for this step (-1: none), else 0. Heap. */
static char *earlier_params(const struct earlier_graph *g, int changed)
{
    struct buf out = BUF_INIT(TEXT_MAX);
    for (int a = 0; a < g->n; a++)
        (void)buf_addf(&out, "%s\"p%d\":%d", a ? "," : "{", a, a == changed);
    (void)buf_addf(&out, "}");
    assert_false(out.failed);
    return buf_take(&out);
}

/* What reads, over any number of steps, what this one leaves; and itself. Bits by step. */
static unsigned earlier_descendants(const struct earlier_graph *g, int of)
{
    unsigned found = 1U << of;
    for (int a = of + 1; a < g->n; a++)
        for (int b = of; b < a; b++)
            if (g->reads[a][b] && (found >> b & 1))
                found |= 1U << a;
    return found;
}

/* The number behind the letter. */
static int earlier_number(const char *name)
{
    int64_t n = -1;
    assert_int_equal(str_to_int(name + 1, 0, INT_MAX, &n, NULL), 0);
    return (int)n;
}

static int earlier_number_of(const struct pipe_life *r, size_t item)
{
    return earlier_number(r->run.v[item].name);
}

/* Carries the run to its end, each step behind what it needs. Which steps ran; the others took what
 * an earlier run had made. */
static unsigned earlier_play(struct earlier_world *w, struct pipe_life *r)
{
    unsigned ran = 0;
    size_t item;
    while (pipe_run_next(&r->run, 1, &item) == PIPE_ACT_START) {
        const struct pipe_step *s = &r->pipe->steps[r->run.v[item].step];
        struct buf with = BUF_INIT(WITH_MAX);
        struct pipes_earlier e = {0};
        char left[200], job[64];
        pipe_run_started(&r->run, item, NULL, 1);
        assert_int_equal(pipe_run_fill(&r->run, item, &with, NULL), 0);
        assert_true(pipes_hash_inputs(r, item, buf_str(&with), NULL, NULL));
        pipes_find_earlier(r, s, r->run.v[item].hash, NULL, &e);
        assert_null(e.gone);
        if (e.item) {
            text_printf(left, "%s", e.item->left);
            text_printf(job, "%s", e.item->job);
        } else {
            text_printf(job, "j%d", (int)w->made);
            earlier_make_entry(w, job);
            text_printf(left, "{\"job\":\"%s\",\"dataset\":\"d@%d\"}", job, (int)w->made);
            ran |= 1U << earlier_number_of(r, item);
        }
        set_str(&r->run.v[item].job, job);
        pipe_run_ended(&r->run, item, PIPE_SUCCEEDED, left, NULL, NULL, 1);
        pipes_index_run(r);
        pipes_earlier_release(&e);
        buf_release(&with);
    }
    assert_int_equal(pipe_run_state(&r->run), PIPE_SUCCEEDED);
    return ran;
}

static const char *earlier_job_of(const struct pipe_life *r, int step)
{
    for (size_t i = 0; i < r->run.n; i++)
        if (earlier_number_of(r, i) == step)
            return r->run.v[i].job;
    fail_msg("no step %d", step);
    return NULL;
}

/* One parameter that is another one, then one output that is gone: in both cases that step runs and
 * what reads it, and nothing else. A new version of what all of them read runs all. */
static void one_change_runs_its_descendants(void **state)
{
    struct earlier_world w;
    (void)state;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        struct earlier_graph g;
        earlier_world_init(&w, seed);
        earlier_draw(&w, &g);
        int changed = (int)earlier_random(&w, (unsigned)g.n);
        int lost = (int)earlier_random(&w, (unsigned)g.n);
        unsigned all = (1U << g.n) - 1;
        _cleanup_(freep) char *text = earlier_graph_text(&g);
        _cleanup_(freep) char *before = earlier_params(&g, -1);
        _cleanup_(freep) char *after = earlier_params(&g, changed);
        assert_int_equal(earlier_play(&w, earlier_run(&w, "alice", text, before)), all);
        assert_int_equal(earlier_play(&w, earlier_run(&w, "alice", text, before)), 0);
        struct pipe_life *other = earlier_run(&w, "alice", text, after);
        assert_int_equal(earlier_play(&w, other), earlier_descendants(&g, changed));
        earlier_lose_entry(&w, earlier_job_of(other, lost));
        assert_int_equal(earlier_play(&w, earlier_run(&w, "alice", text, after)),
                         earlier_descendants(&g, lost));
        earlier_make_raw(&w, 2);
        assert_int_equal(earlier_play(&w, earlier_run(&w, "alice", text, after)), all);
        assert_int_equal(earlier_play(&w, earlier_run(&w, "alice", text, after)), 0);
        /* Nobody's work stands in for another user's. */
        assert_int_equal(earlier_play(&w, earlier_run(&w, "bob", text, after)), all);
        earlier_world_release(&w);
    }
}

/* ---- against a walk ---- */

enum { JOBS = 24, HASHES = 3, TRIED_MAX = 8, RUNS_MAX = 20 };

static bool earlier_is_ready(const char *job)
{
    return earlier_number(job) % 6 == 0;
}

/* What pipes_find_earlier() promises, in the plainest way: through every item of every run. */
static const struct pipe_item *earlier_walk(const struct pipe_life *r, const char *hash)
{
    const struct pipe_life *other;
    const char *job = NULL;
    int tried = 0;
    for (size_t pos = 0; (other = pipes_next_run(r->pipes, &pos));)
        for (size_t i = 0; str_eq(other->user, r->user) && i < other->run.n; i++) {
            const struct pipe_item *item = &other->run.v[i];
            if (item->state != PIPE_SUCCEEDED || !str_eq(item->hash, hash))
                continue;
            if (earlier_is_ready(item->job))
                return item;
            tried += !str_eq(item->job, job);
            job = item->job;
            if (tried == TRIED_MAX)
                return NULL;
        }
    return NULL;
}

static void earlier_shuffle_item(struct earlier_world *w, struct pipe_life *r)
{
    struct pipe_item *item = &r->run.v[earlier_random(w, (unsigned)r->run.n)];
    char job[16];
    text_printf(job, "j%u", earlier_random(w, JOBS));
    set_str(&item->job, job);
    item->state = earlier_random(w, 4) ? PIPE_SUCCEEDED : PIPE_RUNNING;
    text_printf(item->hash, "%u", earlier_random(w, HASHES));
    pipes_index_run(r);
    if (earlier_random(w, 5) == 0)
        item->state = PIPE_FAILED; /* and that is not written down yet */
}

static void earlier_remove_run(struct earlier_world *w, size_t at)
{
    struct pipes *ps = w->ps;
    struct pipe_life *r = ps->order[at];
    for (size_t i = at + 1; i < ps->n_order; i++)
        ps->order[i - 1] = ps->order[i];
    ps->n_order--;
    (void)map_remove(ps->runs, r->id); /* it was there */
    pipe_life_free(r);
}

static void the_index_finds_what_a_walk_finds(void **state)
{
    static const char text[] = "name: p\nsteps:\n"
                               "  a: {uses: prepare, with: {name: raw, as: a, with: gsm8k}}\n"
                               "  b: {uses: prepare, with: {name: raw, as: b, with: gsm8k}}\n"
                               "  c: {uses: prepare, with: {name: raw, as: c, with: gsm8k}}\n";
    struct earlier_world w;
    int found = 0, missed = 0;
    (void)state;
    earlier_world_init(&w, 7);
    for (int i = 0; i < JOBS; i += 6) { /* as earlier_is_ready() */
        char job[16];
        text_printf(job, "j%d", i);
        earlier_make_entry(&w, job);
    }
    for (int turn = 0; turn < TURNS; turn++) {
        unsigned drawn = earlier_random(&w, 10);
        if (w.ps->n_order < 2 || (drawn == 0 && w.ps->n_order < RUNS_MAX))
            (void)earlier_run(&w, earlier_random(&w, 2) ? "alice" : "bob", text, "{}");
        else if (drawn == 1)
            earlier_remove_run(&w, earlier_random(&w, (unsigned)w.ps->n_order));
        for (size_t i = 0; i < w.ps->n_order; i++)
            if (earlier_random(&w, 3) == 0)
                earlier_shuffle_item(&w, w.ps->order[i]);
        const struct pipe_life *r = w.ps->order[earlier_random(&w, (unsigned)w.ps->n_order)];
        for (int k = 0; k < HASHES; k++) {
            struct pipes_earlier e = {0};
            char hash[HASH_HEX];
            text_printf(hash, "%d", k);
            const struct pipe_item *expected = earlier_walk(r, hash);
            pipes_find_earlier(r, &r->pipe->steps[0], hash, NULL, &e);
            assert_ptr_equal(e.item, expected);
            found += expected != NULL;
            missed += !expected;
            pipes_earlier_release(&e);
        }
    }
    assert_true(found > 100 && missed > 100); /* both ends were reached */
    while (w.ps->n_order)
        earlier_remove_run(&w, w.ps->n_order - 1);
    assert_int_equal(map_count(w.ps->index), 0);
    earlier_world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_change_runs_its_descendants),
        cmocka_unit_test(the_index_finds_what_a_walk_finds),
    };
    return cmocka_run_group_tests_name("argusd/pipes_earlier", tests, NULL, NULL);
}
