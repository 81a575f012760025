/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_tool.c - for tests/daemon/test_checkpoints_kill.py: what argusd does to checkpoints, without
 * argusd.
 *
 *   ckpt_tool keep ROOT JOB N    looks and removes again and again, until it is killed
 *   ckpt_tool settle ROOT JOB    prints the step that an attempt would go on from, 0: none */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fsroot/ckpt/ckpt.h"

static int keep_once(const char *root, const char *job, int64_t n, struct ckpt_list *known)
{
    struct ckpt_list found = {0};
    struct ckpt_policy policy = {.keep_last = n};
    int r = ckpt_look(root, job, known, 1, 0, &found, NULL);
    if (r < 0)
        return r;
    enum ckpt_keep *plan = xcalloc(found.n + 1, sizeof(*plan));
    ckpt_plan(&found, &policy, plan);
    for (size_t i = 0; i < found.n && r == 0; i++)
        if (plan[i] == CKPT_GOES)
            r = ckpt_remove(root, job, found.v[i].step, NULL) < 0 ? -1 : 0;
    free(plan);
    ckpt_list_release(known);
    *known = found;
    return r;
}

static int settle(const char *root, const char *job)
{
    struct ckpt_torn torn;
    int64_t step = 0;
    struct err err = {0};
    int r = ckpt_settle(root, job, NULL, &step, &torn, &err);
    if (r < 0)
        (void)fprintf(stderr, "%s\n", err.text);
    else
        (void)printf("%" PRId64 "\n%s\n", step, torn.why);
    return r < 0;
}

int main(int argc, char **argv)
{
    struct ckpt_list known = {0};
    if (argc == 4 && !strcmp(argv[1], "settle"))
        return settle(argv[2], argv[3]);
    if (argc != 5 || strcmp(argv[1], "keep") != 0)
        return 2;
    while (keep_once(argv[2], argv[3], strtoll(argv[4], NULL, 10), &known) <= 0)
        ; /* a failure (the disk is full, a name went) is tried again */
}
