/* SPDX-License-Identifier: Apache-2.0 */
/* tracker.c - trackers as verl's loggers know them; see tracker.h. Why each limit is set: as the
 * libraries are, an MLflow server that refuses costs a start 762 s, and a W&B server that went away
 * makes an end wait for ever. The hook keeps the rest of it out of the training. */
#include "core/spec/tracker.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

#define X(name, word) word,
const char *const tracker_kind_words[] = {TRACKER_KIND_TABLE(X) NULL};
#undef X
const char *const tracker_mode_words[] = {"none", "offline", "online", NULL};

const char *tracker_kind_to_string(enum tracker_kind kind)
{
    return tracker_kind_words[kind];
}

size_t tracker_of_spec(const struct spec *s, enum tracker_kind ret[static 2])
{
    size_t n = 0;
    if (workload_is_verl((enum workload)s->workload) &&
        !workload_trains((enum workload)s->workload))
        return 0;
    if (s->wandb_enabled)
        ret[n++] = TRACKER_WANDB;
    for (int k = TRACKER_MLFLOW; s->tracking_backend && k < TRACKER_KINDS; k++)
        if (!strcmp(s->tracking_backend, tracker_kind_words[k]))
            ret[n++] = (enum tracker_kind)k;
    return n;
}

enum tracker_mode tracker_mode_of_spec(const struct spec *s, enum tracker_kind kind)
{
    switch (kind) {
    case TRACKER_WANDB: {
        const char *word = spec_wandb_mode_name(s->wandb_mode);
        return !strcmp(word, "online")    ? TRACKER_ONLINE
               : !strcmp(word, "offline") ? TRACKER_OFFLINE
                                          : TRACKER_NONE;
    }
    case TRACKER_MLFLOW:
        return TRACKER_ONLINE;
    default:
        return TRACKER_OFFLINE;
    }
}

const char *const *tracker_secrets(enum tracker_kind kind)
{
    static const char *const wandb[] = {"WANDB_API_KEY", NULL};
    static const char *const mlflow[] = {"MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME",
                                         "MLFLOW_TRACKING_PASSWORD", NULL};
    static const char *const swanlab[] = {"SWANLAB_API_KEY", NULL};
    static const char *const none[] = {NULL};
    return kind == TRACKER_WANDB     ? wandb
           : kind == TRACKER_MLFLOW  ? mlflow
           : kind == TRACKER_SWANLAB ? swanlab
                                     : none;
}

const char *tracker_project(const struct spec *s)
{
    const char *wandb = s->wandb_enabled ? s->wandb_project : NULL;
    const char *other = s->tracking_backend ? s->tracking_project : NULL;
    return str_or(str_or(wandb, other), s->project);
}

const char *tracker_run_name(const struct spec *s)
{
    const char *wandb = s->wandb_enabled ? s->wandb_run : NULL;
    return str_or(wandb, s->tracking_backend ? s->tracking_run : NULL);
}

bool tracker_is_url(const char *url)
{
    return (str_starts(url, "http://") || str_starts(url, "https://")) &&
           !url[strcspn(url, "?#@ \t\r\n\"'<>\\")];
}

/* Letters beyond ASCII are letters to MLflow, too. */
static bool mlflow_takes(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (unsigned char)c >= 0x80 || (c && strchr("_.- :/", c));
}

void tracker_mlflow_key(const char *key, char *ret, size_t size)
{
    size_t n = 0;
    for (; *key && n + 5 < size; key++) {
        if (*key == '@') {
            text_printf_to(ret + n, size - n, "_at_");
            n += 4;
        } else if (*key != '/' || !n || ret[n - 1] != '/') {
            ret[n++] = mlflow_takes(*key) ? *key : '_';
        }
    }
    ret[n] = 0;
}

static void tracker_set(struct pairs *env, const char *name, const char *value)
{
    if (value && !pairs_find(env, name))
        pairs_set(env, name, value);
}

static void wandb_env(const struct tracker *t, const struct tracker_place *at, struct pairs *ret)
{
    static const char *const modes[] = {"disabled", "offline", "online"};
    _cleanup_(freep) char *run = xasprintf("%s-%d", at->job, at->attempt);
    tracker_set(ret, "WANDB_MODE", modes[t->mode]);
    tracker_set(ret, "WANDB_DIR", at->attempt_dir);
    tracker_set(ret, "WANDB_BASE_URL", t->url);
    tracker_set(ret, "WANDB_RUN_ID", run);
    tracker_set(ret, "WANDB_RUN_GROUP", at->job);
    tracker_set(ret, "WANDB_TAGS", "argus");
    if (t->mode == TRACKER_ONLINE)
        tracker_set(ret, "WANDB_RESUME", "allow");
    tracker_set(ret, "WANDB_INIT_TIMEOUT", "20");
    tracker_set(ret, "WANDB_FINISH_TIMEOUT", "15");
    tracker_set(ret, "WANDB_CONSOLE", "off"); /* what the training prints may hold a secret */
}

static void mlflow_env(const struct tracker *t, const struct tracker_place *at, struct pairs *ret)
{
    _cleanup_(freep) char *tags =
        xasprintf("{\"argus.job\":\"%s\",\"argus.run\":\"%s-%d\"}", at->job, at->job, at->attempt);
    tracker_set(ret, "MLFLOW_TRACKING_URI", t->url);
    tracker_set(ret, "MLFLOW_RUN_ID", t->run);
    tracker_set(ret, "MLFLOW_RUN_CONTEXT", tags);
    tracker_set(ret, "MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1");
    tracker_set(ret, "MLFLOW_HTTP_REQUEST_TIMEOUT", "5");
}

/* Its documentation allows no longer one, and a client that refuses an id refuses the run.
 * Without one of ours SwanLab draws it, and the group says whose run it is. */
enum { SWANLAB_ID_MAX = 64 };

static void swanlab_env(const struct tracker *t,
                        const struct tracker_place *at,
                        const char *dir,
                        struct pairs *ret)
{
    _cleanup_(freep) char *run = xasprintf("%s-%d", at->job, at->attempt);
    if (strlen(run) <= SWANLAB_ID_MAX) {
        tracker_set(ret, "SWANLAB_RUN_ID", run);
        tracker_set(ret, "SWANLAB_RESUME", "allow"); /* without it a run has no id of ours */
    }
    tracker_set(ret, "SWANLAB_GROUP", at->job);
    tracker_set(ret, "SWANLAB_TERMINAL_PROXY_TYPE", "none"); /* as WANDB_CONSOLE */
    tracker_set(ret, "SWANLAB_MODE", t->mode == TRACKER_ONLINE ? "cloud" : "offline");
    tracker_set(ret, "SWANLAB_LOG_DIR", dir);
    tracker_set(ret, "SWANLAB_API_HOST", t->url);
    tracker_set(ret, "SWANLAB_WEB_HOST", t->url);
}

void tracker_env(const struct spec *s,
                 const struct tracker *t,
                 const struct tracker_place *at,
                 struct pairs *ret)
{
    _cleanup_(freep) char *own =
        xasprintf("%s/metrics/%s", at->job_dir, tracker_kind_words[t->kind]);
    _cleanup_(freep) char *dir =
        xasprintf("%s/%s-%d", str_or(s->tracking_uri, own), at->job, at->attempt);
    switch (t->kind) {
    case TRACKER_WANDB:
        wandb_env(t, at, ret);
        break;
    case TRACKER_MLFLOW:
        mlflow_env(t, at, ret);
        break;
    case TRACKER_TENSORBOARD:
        tracker_set(ret, "TENSORBOARD_DIR", dir);
        break;
    case TRACKER_SWANLAB:
        swanlab_env(t, at, dir, ret);
        break;
    case TRACKER_KINDS:
        break;
    }
}
