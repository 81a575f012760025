/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - one round of looks at beats and exit files; see files.h. */
#include "argusd/evidence/files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "argusd/ground/work.h"
#include "base/mem.h"
#include "base/str.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/attempt/proof.h"
#include "fsroot/attempt/witness.h"
#include "fsroot/logs/logread.h"
#include "fsroot/tree/paths.h"

struct round {
    char *root;
    struct files_look *looks;
    size_t n;
    files_f done;
    void *arg;
};

enum { IMPORTS_MAX = 256 << 10, STEP_TAIL = 64 << 10 };

/* Most looks end at its time: a directory's time tells whether anything came. Two files may come
 * within one tick of the file system's clock, so a change is read once more at the next look. */
static void look_at_proof(const char *root, struct files_look *k)
{
    struct stat st;
    if (!fsroot_is_name(k->id))
        return;
    _cleanup_(freep) char *path = fsroot_attempt_dir(root, k->id, k->k, ATTEMPT_PROOF);
    _cleanup_(rootdir_release) struct rootdir proof = ROOTDIR_NONE;
    if (rootdir_open(root, path, 0, &proof, NULL) < 0 || fstat(proof.fd, &st) < 0)
        return;
    bool same =
        st.st_mtim.tv_sec == k->proof_mtime.tv_sec && st.st_mtim.tv_nsec == k->proof_mtime.tv_nsec;
    if (same && k->proof_is_settled)
        return;
    k->proof_mtime = st.st_mtim;
    k->proof_is_settled = same;
    struct buf out = BUF_INIT(IMPORTS_MAX);
    if (proof_summary(&proof, k->k, &out) && !out.failed)
        k->imports = buf_take(&out);
    buf_release(&out);
}

/* "step:7 - " is how every verl begins the line of a step; number 0 is a validation before the
 * first. The end of the log is enough, since whoever wants to know asks each second. */
static bool tells_of_step(const char *text)
{
    for (const char *p = text; (p = strstr(p, "step:")); p += 5)
        if (p[5] >= '1' && p[5] <= '9' && str_starts(p + 5 + strspn(p + 5, "0123456789"), " - "))
            return true;
    return false;
}

static void look_for_step(const char *root, struct files_look *k)
{
    struct logread_part part = {0};
    uint64_t from = k->beat.log_bytes > STEP_TAIL ? k->beat.log_bytes - STEP_TAIL : 0;
    _cleanup_(freep) char *text = xcalloc(STEP_TAIL + 1, 1);
    if (!k->want_step || k->beat.seen != FSROOT_PRESENT ||
        logread_at(root, k->id, k->k, ATTEMPT_LOG, from, text, STEP_TAIL, &part, NULL) < 0)
        return;
    for (size_t i = 0; i < part.n; i++)
        if (!text[i])
            text[i] = ' ';
    k->trains = tells_of_step(text);
}

static void files_run(void *arg)
{
    struct round *r = arg;
    for (size_t i = 0; i < r->n; i++) {
        struct files_look *k = &r->looks[i];
        fsroot_beat_read(r->root, k->id, k->k, &k->beat);
        fsroot_exit_read(r->root, k->id, k->k, &k->exit);
        look_at_proof(r->root, k);
        look_for_step(r->root, k);
    }
}

static void files_finish(void *arg)
{
    struct round *r = arg;
    r->done(r->looks, r->n, r->arg);
    for (size_t i = 0; i < r->n; i++) {
        free(r->looks[i].id);
        free(r->looks[i].imports);
    }
    free(r->looks);
    free(r->root);
    free(r);
}

void files_start(uv_loop_t *loop,
                 const char *root,
                 struct files_look *taken,
                 size_t n,
                 files_f done,
                 void *arg)
{
    struct round *r = xcalloc(1, sizeof(*r));
    *r = (struct round){.root = xstrdup(root), .looks = taken, .n = n, .done = done, .arg = arg};
    work_start(loop, files_run, files_finish, r);
}
