/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_tool.c - what the verdict says of recorded metrics: of each file that is named, a job's
 * merged metrics, the file logger of verl or its log, a line for each kind that was seen, to try a
 * rule on runs that were recorded, as those of bench/pathologies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/training/training.h"

static void tool_feed(FILE *f, struct training *t)
{
    struct metric_watch *w = metric_watch_new();
    struct metric_record r;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    while ((n = getline(&line, &room, f)) > 0) {
        n -= line[n - 1] == '\n';
        if (metric_read_line(line, (size_t)n, &r) != METRIC_RECORD)
            continue;
        metric_watch_add(w, &r);
        training_add(t, &r, w);
        metric_record_release(&r);
    }
    free(line);
    metric_watch_free(w);
}

static int tool_show(const char *path)
{
    struct verdict_item item;
    struct training *t = training_new();
    FILE *f = fopen(path, "re");
    if (!f) {
        perror(path);
        training_free(t);
        return 1;
    }
    tool_feed(f, t);
    (void)fclose(f);
    for (int k = 0; k < VERDICT_KINDS; k++)
        if (verdict_item(t->verdict, (enum verdict_kind)k, &item))
            (void)printf("%s\t%s\tsince %lld\tseen %lld\tended %lld\t%s\t%g\t%g\n", path,
                         verdict_kind_to_string(item.kind), (long long)item.onset,
                         (long long)item.told, (long long)item.ended, item.metric, item.value,
                         item.base);
    training_free(t);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= tool_show(argv[i]);
    return failed;
}
