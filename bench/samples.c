/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c - how long a page of samples takes over dumps of many bytes, and how long their index.
 *
 *   bench-samples DIR GIB       makes GIB of dumps below DIR, indexes them, and asks
 *
 * Prints a line of JSON per question. The dumps stay, and are used again. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/str.h"
#include "bench.h"
#include "fsroot/samples/samplequery.h"

enum { STEPS = 1000, PROMPTS = 64, TEXT = 4000, ROUNDS = 7 };

/* A line of about TEXT bytes: words that do not repeat, as a model writes them. */
static void dumps_add_line(struct buf *out, int step, int i)
{
    (void)buf_addf(out, "{\"input\": \"prompt %d\", \"output\": \"", (step + i) % PROMPTS * 7);
    for (size_t begin = out->len, n = 0; out->len - begin < TEXT; n++)
        (void)buf_addf(out, "w%zx ",
                       (n * 2654435761u + (size_t)i * 40503 + (size_t)step) & 0xfffff);
    (void)buf_addf(out, "\", \"score\": %.3f, \"step\": %d, \"acc\": %d}\n", sin(step * 7 + i),
                   step, i & 1);
}

static void dumps_make(const char *root, uint64_t bytes_of_step)
{
    struct err err = {0};
    _cleanup_(freep) char *dir = xasprintf("%s/jobs/bench/samples/rollout", root);
    if (file_mkdirs(dir, 0755, &err) < 0)
        bench_die("samples", err.text);
    for (int step = 1; step <= STEPS; step++) {
        struct stat st;
        struct buf text = BUF_INIT(bytes_of_step + 2 * TEXT);
        _cleanup_(freep) char *path = xasprintf("%s/%d.jsonl", dir, step);
        if (stat(path, &st) == 0 && (uint64_t)st.st_size >= bytes_of_step)
            continue;
        for (int i = 0; text.len < bytes_of_step; i++)
            dumps_add_line(&text, step, i);
        if (file_write(path, text.data, text.len, 0644, 0, &err) < 0)
            bench_die("samples", err.text);
        buf_release(&text);
    }
}

static bool dumps_each(const struct samplequery_hit *hit, void *arg)
{
    size_t *left = arg;
    (void)hit;
    return --*left > 0;
}

static bool dumps_is_late(void *arg)
{
    (void)arg;
    return false;
}

static struct sampleindex_update dumps_update(const char *root, const char *path, uint64_t budget)
{
    struct sampleindex_update u = {.root = root, .job = "bench", .path = path, .budget = budget};
    struct err err = {0};
    if (sampleindex_run_update(&u, &err) < 0)
        bench_die("samples", err.text);
    return u;
}

/* As a request does it: what is new, the index, a page of 20. */
static uint64_t dumps_ask(const char *root, const char *path, struct samplequery q)
{
    struct sampleindex x = SAMPLEINDEX_NONE;
    struct err err = {0};
    size_t left = 20;
    uint64_t begin = bench_now();
    (void)dumps_update(root, path, 32 << 20);
    if (sampleindex_open(path, &x, &err) < 0)
        bench_die("samples", err.text);
    q.root = root;
    q.job = "bench";
    q.index = &x;
    q.at_step = -1;
    q.least = q.most = NAN;
    q.each = dumps_each;
    q.is_late = dumps_is_late;
    q.arg = &left;
    samplequery_run(&q);
    sampleindex_release(&x);
    return bench_now() - begin;
}

static void dumps_measure(const char *root,
                          const char *path,
                          const char *what,
                          struct samplequery q)
{
    struct samples took = {0};
    uint64_t all = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t ns = dumps_ask(root, path, q);
        samples_add(&took, ns);
        all += ns;
    }
    bench_print(what, 1, ROUNDS, all, &took);
    samples_release(&took);
}

static uint64_t dumps_prompt(const char *path)
{
    struct sampleindex x = SAMPLEINDEX_NONE;
    struct sample_place *v = NULL;
    uint64_t prompt = 0;
    if (sampleindex_open(path, &x, NULL) == 0 && x.n &&
        sampleindex_places(&x, &x.v[0], &v, NULL) == 0)
        prompt = v[0].prompt;
    free(v);
    sampleindex_release(&x);
    return prompt;
}

int main(int argc, char **argv)
{
    double gib = argc == 3 ? strtod(argv[2], NULL) : 0;
    if (gib <= 0) {
        (void)fprintf(stderr, "usage: bench-samples DIR GIB\n");
        return 2;
    }
    const char *root = argv[1];
    _cleanup_(freep) char *path = xasprintf("%s/state/samples/bench", root);
    struct sampleindex_update u;
    dumps_make(root, (uint64_t)(gib * (1 << 30) / STEPS));
    (void)remove(path); /* it is made anew */
    struct samples took = {0};
    uint64_t begin = bench_now();
    do
        u = dumps_update(root, path, 1ULL << 30);
    while (u.pending && u.read);
    samples_add(&took, bench_now() - begin);
    bench_print("index", 1, 1, took.ns[0], &took);
    samples_release(&took);
    dumps_measure(root, path, "newest step", (struct samplequery){.step = -1, .since = -1});
    dumps_measure(root, path, "worst of a step",
                  (struct samplequery){.step = 500, .since = -1, .order = SAMPLE_WORST});
    dumps_measure(root, path, "changed since a step",
                  (struct samplequery){.step = 500, .since = 100, .order = SAMPLE_CHANGED});
    dumps_measure(root, path, "a prompt over all steps",
                  (struct samplequery){.step = -1,
                                       .since = -1,
                                       .all_steps = true,
                                       .has_prompt = true,
                                       .prompt = dumps_prompt(path)});
    return 0;
}
