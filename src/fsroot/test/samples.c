/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of sampledump.h, sampleindex.h and samplequery.h: what a job dumps, and what a hostile one
 * puts there instead. */
#include "fsroot/samples/samplequery.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/file.h>

#include "base/unit_dir.h"
#include "fsroot/samples/samplefigures.h"

#define ROLLOUT "jobs/j/samples/rollout/"
#define VALIDATION "jobs/j/samples/validation/"

static char *index_path(const char *root)
{
    return xasprintf("%s/state/samples/u/j", root);
}

static struct sampleindex_update update(const char *root, uint64_t budget)
{
    _cleanup_(freep) char *path = index_path(root);
    struct sampleindex_update u = {.root = root, .job = "j", .path = path, .budget = budget};
    struct err err = {0};
    if (sampleindex_run_update(&u, &err) < 0)
        fail_msg("%s", err.text);
    u.path = NULL;
    return u;
}

static void open_index(const char *root, struct sampleindex *ret)
{
    _cleanup_(freep) char *path = index_path(root);
    assert_int_equal(sampleindex_open(path, ret, NULL), 0);
}

/* ---- what is told, as one text ---- */

struct told {
    struct buf out;
    size_t left; /* samples of the page */
    bool is_late;
};

static bool on_hit(const struct samplequery_hit *hit, void *arg)
{
    struct told *t = arg;
    (void)buf_addf(&t->out, "%s%lld.%d ", t->out.len ? ", " : "", (long long)hit->step,
                   (int)hit->rank);
    sample_text(hit->sample->output, &t->out);
    assert_false(t->out.failed);
    return --t->left > 0;
}

static bool is_late(void *arg)
{
    const struct told *t = arg;
    return t->is_late;
}

static struct samplequery query(void)
{
    return (struct samplequery){.step = -1, .since = -1, .at_step = -1, .least = NAN, .most = NAN};
}

/* One page of q, which goes on behind it. */
static char *ask(const char *root, struct samplequery *q, size_t page)
{
    struct sampleindex x = SAMPLEINDEX_NONE;
    struct told t = {.out = BUF_INIT(1 << 20), .left = page};
    open_index(root, &x);
    q->root = root;
    q->job = "j";
    q->index = &x;
    q->each = on_hit;
    q->is_late = is_late;
    q->arg = &t;
    samplequery_run(q);
    sampleindex_release(&x);
    return buf_take(&t.out);
}

static void assert_told(const char *root, struct samplequery q, const char *want)
{
    _cleanup_(freep) char *got = ask(root, &q, 100);
    assert_string_equal(got, want);
    assert_false(q.has_more);
}

#define LINE(input, output, score)                                                                 \
    "{\"input\": \"" input "\", \"output\": \"" output "\", \"score\": " score ", \"step\": 1}\n"

static uint64_t prompt_of(const char *root, int64_t step, size_t i)
{
    struct sampleindex x = SAMPLEINDEX_NONE;
    struct sample_place *v = NULL;
    open_index(root, &x);
    const struct sampleindex_dump *d = sampleindex_find(&x, SAMPLE_ROLLOUT, step);
    assert_non_null(d);
    assert_int_equal(sampleindex_places(&x, d, &v, NULL), 0);
    uint64_t prompt = v[i].prompt;
    free(v);
    sampleindex_release(&x);
    return prompt;
}

static void put_three_steps(const char *root)
{
    put(root, ROLLOUT "1.jsonl", LINE("p", "a", "0") LINE("p", "b", "1") LINE("q", "c", "NaN"));
    put(root, ROLLOUT "2.jsonl", LINE("p", "d", "1") LINE("q", "e", "0.5") "no sample\n");
    put(root, ROLLOUT "10.jsonl", LINE("p", "f", "1") LINE("p", "g", "1") LINE("r", "h", "-1"));
    put(root, VALIDATION "2.jsonl", LINE("v", "i", "1"));
}

static void questions(void **state)
{
    const char *root = *state;
    struct samplequery q = query();
    assert_told(root, q, ""); /* not even a job */
    put_three_steps(root);
    struct sampleindex_update u = update(root, 1 << 20);
    assert_int_equal(u.pending, 0);
    assert_told(root, q, "10.0 f, 10.1 g, 10.2 h");
    q.order = SAMPLE_WORST;
    assert_told(root, q, "10.0 h, 10.1 f, 10.2 g");
    q.step = 1;
    q.order = SAMPLE_BEST;
    assert_told(root, q, "1.0 b, 1.1 a");
    q.step = 7;
    assert_told(root, q, "");
    q = query();
    q.kind = SAMPLE_VALIDATION;
    assert_told(root, q, "2.0 i");
    q = query();
    q.least = 0;
    q.most = 1;
    assert_told(root, q, "10.0 f, 10.1 g");
    q = query();
    q.has_prompt = q.all_steps = true;
    q.prompt = prompt_of(root, 1, 0);
    assert_told(root, q, "10.0 f, 10.1 g, 2.0 d, 1.0 a, 1.1 b");
    q = query();
    q.step = 2;
    q.order = SAMPLE_CHANGED;
    q.since = 1;
    assert_told(root, q, "2.0 d"); /* q had no score in step 1 */
    q = query();
    q.all_steps = true;
    assert_int_equal(loggrep_new("^[ceh]$", &q.grep, NULL), 0);
    assert_told(root, q, "10.2 h, 2.1 e, 1.2 c");
    loggrep_free(q.grep);
}

static void pages_go_on(void **state)
{
    const char *root = *state;
    struct samplequery q = query();
    struct buf all = BUF_INIT(1000);
    put_three_steps(root);
    (void)update(root, 1 << 20);
    q.all_steps = true;
    for (int i = 0; i < 10; i++) {
        _cleanup_(freep) char *page = ask(root, &q, 2);
        (void)buf_addf(&all, "%s%s", i ? "; " : "", page);
        if (!q.has_more)
            break;
    }
    assert_string_equal(buf_str(&all), "10.0 f, 10.1 g; 10.2 h, 2.0 d; 2.1 e, 1.0 a; 1.1 b, 1.2 c");
    buf_release(&all);
}

static void sums_of_steps(void **state)
{
    const char *root = *state;
    struct sampleindex x = SAMPLEINDEX_NONE;
    put_three_steps(root);
    (void)update(root, 1 << 20);
    open_index(root, &x);
    assert_int_equal(x.n, 4);
    const struct sampleindex_dump *d = sampleindex_find(&x, SAMPLE_ROLLOUT, 10);
    assert_int_equal(d->n, 3);
    assert_int_equal(d->sum.groups, 1);
    assert_int_equal(d->sum.flat, 1);
    d = sampleindex_find(&x, SAMPLE_ROLLOUT, 2);
    assert_int_equal(d->unread, 1);
    assert_true(d->sum.mean > 0.74 && d->sum.mean < 0.76);
    assert_null(sampleindex_find(&x, SAMPLE_ROLLOUT, 3));
    assert_null(sampleindex_find(&x, SAMPLE_VALIDATION, 10));
    sampleindex_release(&x);
}

/* ---- an index that is behind ---- */

/* A record for each step, in their order, once they are in the index. */
static void figures_of_steps(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *path = index_path(root);
    struct samplefigures *f = samplefigures_new(path);
    struct metric_record r;
    assert_false(samplefigures_next(f, 0, 9, &r)); /* there is no index yet */
    put(root, ROLLOUT "1.jsonl",
        "{\"input\":\"a\",\"output\":\"x\",\"score\":0,\"step\":1}\n"
        "{\"input\":\"a\",\"output\":\"x\",\"score\":0,\"step\":1}\n"
        "{\"input\":\"b\",\"output\":\"\u597d\u597d\",\"score\":1,\"step\":1}\n"
        "{\"input\":\"b\",\"output\":\"y\",\"score\":0,\"step\":1}\n");
    put(root, ROLLOUT "3.jsonl",
        "{\"input\":\"a\",\"output\":\"x\",\"score\":1,\"step\":3}\n"
        "{\"input\":\"a\",\"output\":\"z\",\"score\":1,\"step\":3}\n");
    put(root, VALIDATION "2.jsonl", "{\"input\":\"a\",\"output\":\"x\",\"score\":1}\n");
    (void)update(root, UINT64_MAX);
    assert_true(samplefigures_next(f, 0, 9, &r));
    assert_int_equal(r.step, 1);
    assert_true(fabs(metric_value(&r, "samples/flat_groups") - 0.5) < 1e-9);
    assert_true(fabs(metric_value(&r, "samples/same_answers") - 0.5) < 1e-9);
    assert_true(fabs(metric_value(&r, "samples/solved_groups")) < 1e-9);
    assert_true(isnan(metric_value(&r, "samples/fresh_prompts")));
    /* Six of its eight bytes are those of two characters, the others are its quotes. */
    assert_true(fabs(metric_value(&r, "samples/wide_answers") - 0.75 / 4) < 1e-9);
    assert_false(metric_is_training(&r));
    metric_record_release(&r);
    assert_false(samplefigures_next(f, 1, 2, &r)); /* 2 is a validation's */
    assert_true(samplefigures_next(f, 1, 3, &r));
    assert_int_equal(r.step, 3);
    assert_true(fabs(metric_value(&r, "samples/solved_groups") - 1) < 1e-9);
    assert_true(fabs(metric_value(&r, "samples/fresh_prompts")) < 1e-9);
    metric_record_release(&r);
    assert_false(samplefigures_next(f, 3, 9, &r));
    put(root, ROLLOUT "4.jsonl", "{\"input\":\"c\",\"output\":\"x\\nuser\",\"score\":1}\n");
    (void)update(root, UINT64_MAX);
    assert_true(samplefigures_next(f, 3, 9, &r));
    assert_true(fabs(metric_value(&r, "samples/template_answers") - 1) < 1e-9);
    assert_true(fabs(metric_value(&r, "samples/blank_answers")) < 1e-9);
    assert_true(fabs(metric_value(&r, "samples/fresh_prompts") - 1) < 1e-9);
    assert_true(isnan(metric_value(&r, "samples/flat_groups")));
    metric_record_release(&r);
    samplefigures_free(f);
}

static void samples_to_look_at(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *path = index_path(root);
    struct samplefigures *f = samplefigures_new(path);
    struct sample_picks picks = {.stamp = 1};
    assert_int_equal(samplefigures_stamp(f), 0); /* there is no index yet */
    samplefigures_pick(f, SAMPLE_PICK_WORST, "j", 9, &picks);
    assert_int_equal(picks.stamp, 0);
    assert_int_equal(picks.n, 0);
    put(root, ROLLOUT "3.jsonl", LINE("p", "a", "1") LINE("q", "b", "0") LINE("p", "c", "0.5"));
    put(root, ROLLOUT "5.jsonl", LINE("p", "d", "1"));
    put(root, VALIDATION "4.jsonl", LINE("v", "e", "0"));
    (void)update(root, UINT64_MAX);
    picks.stamp = samplefigures_stamp(f);
    assert_true(picks.stamp != 0);
    samplefigures_pick(f, SAMPLE_PICK_WORST, "j", 4, &picks);
    assert_true(picks.is_last);
    assert_int_equal(picks.n, 2);
    assert_int_equal(picks.v[0].step, 3); /* 4 is a validation's */
    assert_true(fabs(picks.v[0].score) < 1e-9);
    assert_true(fabs(picks.v[1].score - 0.5) < 1e-9);
    samplefigures_pick(f, SAMPLE_PICK_BEST, "j", 6, &picks);
    assert_false(picks.is_last);
    assert_int_equal(picks.v[0].step, 5);
    uint64_t before = picks.stamp;
    put(root, ROLLOUT "6.jsonl", LINE("p", "f", "1"));
    (void)update(root, UINT64_MAX);
    assert_true(samplefigures_stamp(f) != before);
    samplefigures_pick(f, SAMPLE_PICK_WORST, "j", 2, &picks);
    assert_int_equal(picks.n, 0); /* none is so old */
    int writer = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(writer, LOCK_EX | LOCK_NB), 0);
    samplefigures_pick(f, SAMPLE_PICK_WORST, "j", 4, &picks);
    assert_int_equal(picks.n, 2);
    assert_true(picks.stamp != 0);
    assert_false(picks.is_last); /* a writer may add what is missing */
    (void)close(writer);
    samplefigures_pick(f, SAMPLE_PICK_WORST, "j", 4, &picks);
    assert_true(picks.is_last);
    samplefigures_free(f);
}

static void what_changes_is_read_anew(void **state)
{
    const char *root = *state;
    put_three_steps(root);
    struct sampleindex_update u = update(root, 1 << 20);
    assert_true(u.read > 0);
    u = update(root, 1 << 20);
    assert_int_equal(u.read, 0);
    put(root, ROLLOUT "10.jsonl", LINE("p", "anew", "1"));
    struct samplequery q = query();
    _cleanup_(freep) char *stale = ask(root, &q, 100);
    assert_string_equal(stale, "");
    assert_int_equal(q.changed, 1); /* the index speaks of another file */
    (void)update(root, 1 << 20);
    assert_told(root, query(), "10.0 anew");
    _cleanup_(freep) char *gone = xasprintf("%s/" ROLLOUT "10.jsonl", root);
    assert_int_equal(unlink(gone), 0);
    (void)update(root, 1 << 20);
    assert_told(root, query(), "2.0 d, 2.1 e");
    put(root, ROLLOUT "10.jsonl", LINE("p", "back", "1"));
    (void)update(root, 1 << 20);
    assert_told(root, query(), "10.0 back");
}

static void the_newest_is_read_first(void **state)
{
    const char *root = *state;
    put_three_steps(root);
    struct sampleindex_update u = update(root, 1);
    assert_true(u.pending > 0);
    assert_told(root, query(), "10.0 f, 10.1 g, 10.2 h");
    while (u.pending) {
        uint64_t before = u.pending;
        u = update(root, 1);
        assert_true(u.pending < before);
    }
}

static void an_index_that_is_damaged(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *path = index_path(root);
    struct stat st;
    put_three_steps(root);
    (void)update(root, 1 << 20);
    assert_int_equal(stat(path, &st), 0);
    for (off_t cut = st.st_size - 1; cut >= 0; cut -= 37) { /* torn at any place */
        assert_int_equal(truncate(path, cut), 0);
        (void)update(root, 1 << 20);
        assert_told(root, query(), "10.0 f, 10.1 g, 10.2 h");
    }
    for (off_t at = 0; at < st.st_size; at += 13) { /* or with another byte */
        int fd = open(path, O_RDWR | O_CLOEXEC);
        char c;
        assert_int_equal(pread(fd, &c, 1, at), 1);
        c = (char)(c ^ 0x55);
        assert_int_equal(pwrite(fd, &c, 1, at), 1);
        close(fd);
        (void)update(root, 1 << 20);
        struct samplequery q = query();
        _cleanup_(freep) char *told = ask(root, &q, 100); /* the truth, or nothing */
        assert_true(!*told || !strcmp(told, "10.0 f, 10.1 g, 10.2 h"));
        assert_int_equal(unlink(path), 0);
        (void)update(root, 1 << 20);
    }
}

static void another_writer_is_not_waited_for(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *path = index_path(root);
    put_three_steps(root);
    put(root, "state/samples/u/j", "");
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    struct sampleindex_update u = update(root, 1 << 20);
    assert_true(u.is_busy && !u.read);
    close(fd);
    u = update(root, 1 << 20);
    assert_true(!u.is_busy && u.read > 0);
}

static void old_blocks_go(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *path = index_path(root);
    struct buf text = BUF_INIT(4 << 20);
    struct stat st;
    for (int i = 0; i < 3000; i++)
        (void)buf_adds(&text, LINE("p", "a", "1"));
    off_t largest = 0;
    for (int i = 0; i < 30; i++) {
        (void)buf_adds(&text, LINE("p", "a", "1"));
        put(root, ROLLOUT "1.jsonl", buf_str(&text));
        (void)update(root, 1 << 30);
        (void)update(root, 1 << 30); /* one that has nothing to read makes room */
        assert_int_equal(stat(path, &st), 0);
        largest = st.st_size > largest ? st.st_size : largest;
    }
    assert_true(largest < 10 * 3000 * 40);
    struct sampleindex x = SAMPLEINDEX_NONE;
    open_index(root, &x);
    assert_int_equal(x.n, 1);
    assert_int_equal(x.v[0].n, 3030);
    sampleindex_release(&x);
    buf_release(&text);
}

/* ---- what a job may put there ---- */

static void hostile_names(void **state)
{
    const char *root = *state;
    static const char *const names[] = {"x.jsonl",      "01.jsonl", "1.json",
                                        "1.jsonl.part", "-1.jsonl", "99999999999999999999.jsonl",
                                        ".jsonl",       "+3.jsonl", "best.json"};
    for (size_t i = 0; i < array_len(names); i++) {
        _cleanup_(freep) char *name = xasprintf(ROLLOUT "%s", names[i]);
        put(root, name, LINE("p", "a", "1"));
    }
    put(root, "elsewhere", LINE("secret", "outside", "1"));
    _cleanup_(freep) char *fifo = xasprintf("%s/" ROLLOUT "3.jsonl", root);
    _cleanup_(freep) char *link = xasprintf("%s/" ROLLOUT "4.jsonl", root);
    _cleanup_(freep) char *dir = xasprintf("%s/" ROLLOUT "5.jsonl", root);
    assert_int_equal(mkfifo(fifo, 0644), 0);
    assert_int_equal(symlink("/etc/passwd", link), 0);
    assert_int_equal(mkdir(dir, 0755), 0);
    struct sampleindex_update u = update(root, 1 << 20);
    assert_int_equal(u.read, 0);
    put(root, ROLLOUT "6.jsonl", LINE("p", "good", "1"));
    (void)update(root, 1 << 20);
    assert_told(root, query(), "6.0 good");
    _cleanup_(freep) char *kind = xasprintf("%s/jobs/j/samples/validation", root);
    assert_int_equal(symlink("/etc", kind), 0); /* a directory that leads away has no dumps */
    (void)update(root, 1 << 20);
    assert_told(root, query(), "6.0 good");
    put(root, "jobs/k/samples", "a file");
    struct sampledumps none = {0};
    assert_int_equal(sampledumps_list(root, "k", &none, NULL), 0);
    assert_int_equal(none.n, 0);
    assert_true(sampledumps_list(root, "../j", &none, NULL) < 0);
}

static void a_swap_after_the_index(void **state)
{
    const char *root = *state;
    put_three_steps(root);
    (void)update(root, 1 << 20);
    _cleanup_(freep) char *path = xasprintf("%s/" ROLLOUT "10.jsonl", root);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0644), 0);
    struct samplequery q = query();
    _cleanup_(freep) char *told = ask(root, &q, 100);
    assert_string_equal(told, "");
    assert_int_equal(q.changed, 1);
}

static void lines_that_are_too_long_and_holes(void **state)
{
    const char *root = *state;
    put(root, ROLLOUT "1.jsonl", LINE("p", "a", "1"));
    _cleanup_(freep) char *path = xasprintf("%s/" ROLLOUT "1.jsonl", root);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    static const char more[] = "\n" LINE("p", "behind", "1");
    assert_int_equal(pwrite(fd, more, sizeof(more) - 1, 64 << 20),
                     sizeof(more) - 1); /* all zeros before */
    close(fd);
    (void)update(root, 1 << 30);
    assert_told(root, query(), "1.0 a, 1.1 behind");
    assert_int_equal(truncate(path, 1LL << 40), 0); /* a sparse file of a terabyte */
    (void)update(root, 1 << 30);
    struct sampleindex x = SAMPLEINDEX_NONE;
    open_index(root, &x);
    assert_true(x.v[0].is_cut);
    assert_int_equal(x.v[0].n, 2);
    sampleindex_release(&x);
}

/* One update with these ceilings. */
static struct sampleindex_update update_within(const char *root, struct sampleindex_update u)
{
    _cleanup_(freep) char *path = index_path(root);
    u.root = root;
    u.job = "j";
    u.path = path;
    u.budget = 1 << 30;
    assert_int_equal(sampleindex_run_update(&u, NULL), 0);
    u.path = NULL;
    return u;
}

static void a_file_of_many_names_is_none(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *from = xasprintf("%s/" ROLLOUT "1.jsonl", root);
    put_three_steps(root);
    for (int i = 20; i < 40; i++) {
        _cleanup_(freep) char *to = xasprintf("%s/" ROLLOUT "%d.jsonl", root, i);
        assert_int_equal(link(from, to), 0);
    }
    struct sampleindex_update u = update(root, 1 << 20);
    assert_int_equal(u.limits, SAMPLEINDEX_LINKED);
    struct sampleindex x = SAMPLEINDEX_NONE;
    open_index(root, &x);
    assert_int_equal(x.n, 3);
    assert_null(sampleindex_find(&x, SAMPLE_ROLLOUT, 1));
    sampleindex_release(&x);
    struct sampledumps list = {0};
    assert_int_equal(sampledumps_list(root, "j", &list, NULL), 0);
    _cleanup_(freep) char *ten = xasprintf("%s/" ROLLOUT "10.jsonl", root);
    _cleanup_(freep) char *eleven = xasprintf("%s/" ROLLOUT "11.jsonl", root);
    assert_int_equal(list.v[0].step, 10);
    assert_int_equal(link(ten, eleven), 0); /* between the list and its opening */
    assert_int_equal(sampledump_open(root, "j", &list.v[0], NULL), -ESTALE);
    sampledumps_release(&list);
}

static void an_index_has_ceilings(void **state)
{
    const char *root = *state;
    struct sampleindex x = SAMPLEINDEX_NONE;
    put_three_steps(root);
    struct sampleindex_update u =
        update_within(root, (struct sampleindex_update){.free_bytes = UINT64_MAX});
    assert_true(u.limits == SAMPLEINDEX_DISK_FULL && u.is_cut && !u.read);
    put(root, "state/samples/u/another", "0123456789");
    u = update_within(root, (struct sampleindex_update){.user_bytes = 10});
    assert_true(u.limits == SAMPLEINDEX_USER_FULL && !u.read);
    u = update_within(root, (struct sampleindex_update){.job_bytes = 300});
    assert_int_equal(u.limits, SAMPLEINDEX_JOB_FULL);
    open_index(root, &x);
    assert_int_equal(x.n, 2); /* each has 288 bytes or less: the newest ones */
    assert_int_equal(x.v[0].file.step, 10);
    assert_int_equal(x.v[1].file.step, 2);
    sampleindex_release(&x);
    put(root, ROLLOUT "11.jsonl", LINE("p", "newer", "1"));
    (void)update_within(root, (struct sampleindex_update){.job_bytes = 300});
    assert_told(root, query(), "11.0 newer"); /* the older ones make room */
    u = update_within(root, (struct sampleindex_update){.job_bytes = 300});
    assert_int_equal(u.read, 0); /* and are not read again */
    u = update(root, 1 << 20);
    assert_int_equal(u.limits, 0);
}

static void it_stops_between_two_dumps(void **state)
{
    const char *root = *state;
    atomic_bool stop;
    atomic_init(&stop, true);
    put_three_steps(root);
    struct sampleindex_update u = update_within(root, (struct sampleindex_update){.stop = &stop});
    assert_true(!u.read && u.pending);
}

static void a_dump_of_many_lines(void **state)
{
    const char *root = *state;
    struct buf text = BUF_INIT(4 << 20);
    for (int i = 0; i < SAMPLEDUMP_LINES_MAX + 100; i++)
        (void)buf_adds(&text, "{\"output\":1}\n");
    put(root, ROLLOUT "1.jsonl", buf_str(&text));
    (void)update(root, 1 << 30);
    struct sampleindex x = SAMPLEINDEX_NONE;
    open_index(root, &x);
    assert_true(x.n == 1 && x.v[0].is_cut);
    assert_true(x.v[0].n + x.v[0].unread <= SAMPLEDUMP_LINES_MAX + 1);
    sampleindex_release(&x);
    buf_release(&text);
}

static void secrets_are_masked_before_a_search(void **state)
{
    const char *root = *state;
    struct samplequery q = query();
    struct mask mask = {0};
    mask_add(&mask, "s3cr3t-value");
    put(root, ROLLOUT "1.jsonl", LINE("p", "the key is s3cr3t-value", "1") LINE("p", "none", "0"));
    (void)update(root, 1 << 20);
    q.mask = &mask;
    assert_told(root, q, "1.0 the key is ***, 1.1 none");
    assert_int_equal(loggrep_new("s3cr3t", &q.grep, NULL), 0);
    assert_told(root, q, "");
    loggrep_free(q.grep);
    mask_release(&mask);
}

static void unused_indexes_go(void **state)
{
    const char *root = *state;
    _cleanup_(freep) char *dir = xasprintf("%s/state/samples", root);
    _cleanup_(freep) char *path = index_path(root);
    put_three_steps(root);
    (void)update(root, 1 << 20);
    sampleindex_sweep(dir, 1000);
    assert_true(file_is_there(path));
    sampleindex_sweep(dir, INT64_MAX);
    assert_false(file_is_there(path));
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, root_setup, root_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(questions),
        UNIT(pages_go_on),
        UNIT(sums_of_steps),
        UNIT(figures_of_steps),
        UNIT(samples_to_look_at),
        UNIT(what_changes_is_read_anew),
        UNIT(the_newest_is_read_first),
        UNIT(an_index_that_is_damaged),
        UNIT(another_writer_is_not_waited_for),
        UNIT(old_blocks_go),
        UNIT(hostile_names),
        UNIT(a_swap_after_the_index),
        UNIT(lines_that_are_too_long_and_holes),
        UNIT(a_file_of_many_names_is_none),
        UNIT(an_index_has_ceilings),
        UNIT(it_stops_between_two_dumps),
        UNIT(a_dump_of_many_lines),
        UNIT(secrets_are_masked_before_a_search),
        UNIT(unused_indexes_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
