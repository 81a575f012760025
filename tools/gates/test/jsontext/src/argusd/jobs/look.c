#include <string.h>

#include "argusd/jobs/record.h"

bool look(const struct record_extra *x,
          const struct live *l,
          const char *body_json,
          const char *path)
{
    if (strstr(x->snapshots, "abc"))
        return true;
    if (strstr(l->extra.argv, "--fast") || strchr(l->extra.finding.json, '{'))
        return true;
    if (strstr(body_json, "\"rule\""))
        return true;
    /* strstr(x->argv, "in a comment") */
    return strstr(path, "json") || strstr(x->verl, "0.9") || strstr(l->extra.finding.rule, "oom") ||
           strstr(path + 1, "x->argv") || jsonish(x->argv);
}
