/* SPDX-License-Identifier: Apache-2.0 */
/* rootnames.c - see rootnames.h. Where the root lies within its file system is known from the mount
 * that it is reached by; each other mount of the same file system whose root lies above that place
 * reaches it, too, unless something is mounted over it: so each name is looked at. */
#include "argusd/ground/rootnames.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"

enum { MOUNTS_MAX = 4096, TEXT_MAX = 8 << 20 };

/* A line of /proc/self/mountinfo: which file system, what of it, and where. */
struct mount {
    char *device, *part, *at;
};

struct mounts {
    struct mount *v;
    size_t n;
};

static void mounts_release(struct mounts *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->v[i].device);
        free(m->v[i].part);
        free(m->v[i].at);
    }
    free(m->v);
    *m = (struct mounts){0};
}

/* "\040" is a blank. In place. */
static char *mounts_unescape(char *s)
{
    char *to = s;
    for (const char *p = s; *p; to++) {
        bool octal = *p == '\\' && isdigit((unsigned char)p[1]) && p[2] && p[3];
        int byte = octal ? (p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0') : *p;
        *to = (char)byte;
        p += octal ? 4 : 1;
    }
    *to = 0;
    return s;
}

static void mounts_read(struct mounts *ret)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t cap = 0;
    while (f && ret->n < MOUNTS_MAX && getline(&line, &cap, f) > 0) {
        char *field[5] = {0}, *at = line;
        for (int i = 0; i < 5 && *at; i++) {
            field[i] = at;
            at += strcspn(at, " ");
            if (*at)
                *at++ = 0;
        }
        if (!field[4])
            continue;
        ret->v = xrealloc(ret->v, ret->n + 1, sizeof(*ret->v));
        ret->v[ret->n++] = (struct mount){.device = xstrdup(field[2]),
                                          .part = xstrdup(mounts_unescape(field[3])),
                                          .at = xstrdup(mounts_unescape(field[4]))};
    }
    free(line);
    if (f)
        (void)fclose(f); /* it was only read */
}

/* What of the path follows dir, "" or with its slash; NULL: it does not lie there. */
static const char *rootnames_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    n -= n == 1; /* "/" */
    return !strncmp(path, dir, n) && (!path[n] || path[n] == '/') ? path + n : NULL;
}

static void rootnames_add(const char *path,
                          const char *root,
                          const struct stat *is,
                          struct strv *ret)
{
    struct stat st;
    if (strcmp(path, root) != 0 && strlen(path) > 1 && ret->n < ROOTNAMES_MAX &&
        !strv_has(ret, path) && stat(path, &st) == 0 && st.st_dev == is->st_dev &&
        st.st_ino == is->st_ino)
        strv_add(ret, path);
}

static void rootnames_add_mounts(const char *real,
                                 const char *root,
                                 const struct stat *is,
                                 struct strv *ret)
{
    struct mounts all = {0};
    const struct mount *own = NULL;
    mounts_read(&all);
    for (size_t i = 0; i < all.n; i++) /* of two at one place the later one is seen */
        if (rootnames_below(real, all.v[i].at) && (!own || strlen(all.v[i].at) >= strlen(own->at)))
            own = &all.v[i];
    _cleanup_(freep) char *inside = own ? xasprintf("%s%s", strcmp(own->part, "/") ? own->part : "",
                                                    rootnames_below(real, own->at))
                                        : NULL;
    for (size_t i = 0; inside && i < all.n; i++) {
        const struct mount *m = &all.v[i];
        const char *rest = str_eq(m->device, own->device) ? rootnames_below(inside, m->part) : NULL;
        _cleanup_(freep) char *path =
            rest ? xasprintf("%s%s", strcmp(m->at, "/") ? m->at : "", rest) : NULL;
        if (path)
            rootnames_add(path, root, is, ret);
    }
    mounts_release(&all);
}

void rootnames_find(const char *root, struct strv *ret)
{
    struct stat is;
    strv_release(ret);
    _cleanup_(freep) char *real = realpath(root, NULL);
    if (!real || stat(real, &is) < 0)
        return;
    rootnames_add(real, root, &is, ret);
    rootnames_add_mounts(real, root, &is, ret);
}

static bool rootnames_is_path_byte(char c)
{
    return isalnum((unsigned char)c) || (c & 0x80) || (c && strchr("_.-/", c));
}

/* The longest of them that begins here and ends with a part of a path; NULL: none. */
static const char *rootnames_at(const char *text, const char *at, const struct strv *names)
{
    const char *found = NULL;
    if (at > text && rootnames_is_path_byte(at[-1]))
        return NULL;
    for (size_t i = 0; i < names->n; i++) {
        size_t n = strlen(names->v[i]);
        bool ends = str_starts(at, names->v[i]) && (at[n] == '/' || !rootnames_is_path_byte(at[n]));
        if (ends && (!found || n > strlen(found)))
            found = names->v[i];
    }
    return found;
}

char *rootnames_respell(const char *text, const struct strv *names, const char *root)
{
    struct buf out = BUF_INIT(TEXT_MAX);
    bool any = false;
    for (const char *s = text; names->n && *s;) {
        const char *name = *s == '/' ? rootnames_at(text, s, names) : NULL;
        any |= name != NULL;
        if (name)
            (void)buf_adds(&out, root); /* a text that is too long stays as it is */
        else
            (void)buf_addc(&out, *s);
        s += name ? strlen(name) : 1;
    }
    char *respelled = any && !out.failed ? xstrdup(buf_str(&out)) : NULL;
    buf_release(&out);
    return respelled;
}
