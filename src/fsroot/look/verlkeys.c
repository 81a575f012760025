/* SPDX-License-Identifier: Apache-2.0 */
/* verlkeys.c - the keys of a configuration of verl, from its own YAML; see look.h.
 *
 * Releases bring the trainers' configurations composed (_generated_*.yaml); those are read as
 * they are. The others are put together as Hydra does it, as far as plain YAML goes: a
 * defaults list, groups, packages. What needs more makes the answer incomplete. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/look/look.h"
#include "fsroot/look/verlversion.h"
#include "fsroot/tree/rootdir.h"

enum {
    FILE_MAX = 1 << 20,
    DEEP_MAX = 8,
    KEYS_MAX = 20000,
    OPTIONS_MAX = 20000,
    NAME_MAX_BYTES = 256
};

struct composing {
    const struct rootdir *top;
    const char *dir; /* verl/trainer/config, below top */
    struct preflight_keys *out;
    int files;
    int trouble; /* the first failure that says nothing about what is there */
};

/* 1 or 0; a negative errno: that could not be found out. */
static int verlkeys_is_there(const struct rootdir *top, const char *below)
{
    _cleanup_(closep) int fd = rootdir_open_followed(top, below, O_PATH, NULL);
    return fd >= 0 ? 1 : rootdir_is_answer(fd) ? 0 : fd;
}

/* <tree>/verl/trainer/config, or the one beside an interpreter, in *ret. NULL: none. */
static int config_dir(const struct rootdir *top, const char *tree, char **ret)
{
    static const char DIR_NAME[] = "verl/trainer/config";
    char *dir = xasprintf("%s/%s", tree, DIR_NAME);
    int r = verlkeys_is_there(top, dir);
    if (r > 0) {
        *ret = dir;
        return 0;
    }
    free(dir);
    return r < 0 ? r : fsroot_beside_interpreter(top, tree, DIR_NAME, ret);
}

static void add_key(struct composing *c, const char *key, bool leaf)
{
    struct preflight_keys *k = c->out;
    if (!*key || k->keys.n >= KEYS_MAX)
        return;
    if (!strv_has(&k->keys, key))
        strv_add(&k->keys, key);
    if (leaf && !strv_has(&k->leaves, key))
        strv_add(&k->leaves, key);
}

static char *verlkeys_below(const char *package, const char *key)
{
    return *package ? xasprintf("%s.%s", package, key) : xstrdup(key);
}

static void verlkeys_add_tree(struct composing *c,
                              const struct node *n,
                              const char *package,
                              int depth)
{
    for (const struct node *v = n->first; v; v = v->next) {
        if (depth == 0 && !strcmp(v->key, "defaults"))
            continue;
        _cleanup_(freep) char *key = verlkeys_below(package, v->key);
        add_key(c, key, v->kind != NODE_MAP || !v->n);
        if (v->kind == NODE_MAP)
            verlkeys_add_tree(c, v, key, depth + 1);
    }
}

/* Everything above a package is there with it. */
static void add_package(struct composing *c, const char *package)
{
    char part[NAME_MAX_BYTES];
    for (const char *p = package; *p;) {
        const char *dot = strchr(p, '.');
        size_t n = dot ? (size_t)(dot - package) : strlen(package);
        text_printf(part, "%.*s", (int)n, package); /* cut: not asked for */
        add_key(c, part, false);
        p = dot ? dot + 1 : "";
    }
}

static bool verlkeys_compose(struct composing *c,
                             const char *group,
                             const char *name,
                             const char *package,
                             int depth);

/* "actor" and "../engine" to "engine"; "" and "actor" to "actor"; "/optim" to "optim". */
static char *join_group(const char *group, const char *given)
{
    if (*given == '/')
        return xstrdup(given + 1);
    while (str_starts(given, "../")) {
        given += 3;
        const char *slash = strrchr(group, '/');
        if (!slash)
            group = "";
        else
            return xasprintf("%.*s/%s", (int)(slash - group), group, given);
    }
    return *group ? xasprintf("%s/%s", group, given) : xstrdup(given);
}

/* "optional actor@actor_rollout_ref.actor: dp_actor" */
static bool compose_entry(struct composing *c,
                          const char *group,
                          const char *package,
                          const struct node *entry,
                          int depth)
{
    const char *given = entry->key, *option = entry->text;
    if (entry->kind != NODE_SCALAR || strstr(option, "${") || str_starts(given, "override "))
        return false;
    if (node_is_null(entry))
        return true;
    given += str_starts(given, "optional ") ? strlen("optional ") : 0;
    const char *at = strchr(given, '@');
    _cleanup_(freep) char *plain = at ? xstrndup(given, (size_t)(at - given)) : xstrdup(given);
    _cleanup_(freep) char *to = join_group(group, plain);
    const char *words = at ? at + 1 : strrchr(plain, '/') ? strrchr(plain, '/') + 1 : plain;
    bool here = at && (!strcmp(words, "_here_") || !*words);
    bool global = at && str_starts(words, "_global_");
    _cleanup_(freep) char *where = here     ? xstrdup(package)
                                   : global ? xstrdup("")
                                            : verlkeys_below(package, words);
    return verlkeys_compose(c, to, option, where, depth + 1);
}

static bool compose_defaults(struct composing *c,
                             const char *group,
                             const char *package,
                             const struct node *defaults,
                             int depth)
{
    bool whole = true;
    for (const struct node *d = defaults ? defaults->first : NULL; d; d = d->next) {
        if (d->kind == NODE_MAP && d->first)
            whole &= compose_entry(c, group, package, d->first, depth);
        else if (d->kind == NODE_SCALAR && strcmp(d->text, "_self_") != 0)
            whole &= verlkeys_compose(c, group, d->text, package, depth + 1);
    }
    return whole;
}

static void verlkeys_note(struct composing *c, int r)
{
    if (r < 0 && !rootdir_is_answer(r) && !c->trouble)
        c->trouble = r;
}

static int verlkeys_read(struct composing *c, const char *group, const char *name, struct buf *out)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s%s%s%s", c->dir, group, *group ? "/" : "", name,
                                            str_ends(name, ".yaml") ? "" : ".yaml");
    _cleanup_(closep) int fd = rootdir_open_followed(c->top, path, O_RDONLY, NULL);
    int r = fd < 0 ? fd : file_read_open(fd, path, out, NULL);
    verlkeys_note(c, r);
    return r;
}

static bool verlkeys_compose(struct composing *c,
                             const char *group,
                             const char *name,
                             const char *package,
                             int depth)
{
    enum { FILES_MAX = 200 };
    _cleanup_(buf_release) struct buf text = BUF_INIT(FILE_MAX);
    _cleanup_(problems_release) struct problems ps = {0};
    _cleanup_(doc_freep) struct doc *d = NULL;
    if (depth > DEEP_MAX || c->files++ > FILES_MAX || strstr(name, "..") ||
        verlkeys_read(c, group, name, &text) < 0 ||
        doc_parse(buf_str(&text), text.len, false, &d, &ps) < 0)
        return false;
    const struct node *root = doc_root(d);
    if (root->kind != NODE_MAP)
        return root->kind == NODE_SCALAR && node_is_null(root);
    const char *to = strstr(buf_str(&text), "# @package _global_") ? "" : package;
    bool whole = compose_defaults(c, group, to, node_find(root, "defaults"), depth);
    add_package(c, to);
    verlkeys_add_tree(c, root, to, 0);
    return whole;
}

static DIR *verlkeys_opendir(struct composing *c, const char *path)
{
    int fd = rootdir_open_followed(c->top, path, O_RDONLY | O_DIRECTORY, NULL);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        verlkeys_note(c, fd < 0 ? fd : -errno);
        closep(&fd);
    }
    return dir;
}

/* Directories are groups, the files in them options. */
static void add_groups(struct composing *c)
{
    DIR *dir = verlkeys_opendir(c, c->dir);
    for (struct dirent *e; dir && c->out->groups.n < OPTIONS_MAX && (e = readdir(dir));) {
        if (e->d_name[0] == '.' || e->d_name[0] == '_' || strchr(e->d_name, '.'))
            continue;
        _cleanup_(freep) char *path = xasprintf("%s/%s", c->dir, e->d_name);
        DIR *group = verlkeys_opendir(c, path);
        for (struct dirent *o; group && c->out->options.n < OPTIONS_MAX && (o = readdir(group));)
            if (str_ends(o->d_name, ".yaml"))
                strv_addf(&c->out->options, "%s=%.*s", e->d_name, (int)strlen(o->d_name) - 5,
                          o->d_name);
        if (group) {
            strv_add(&c->out->groups, e->d_name);
            (void)closedir(group); /* it was only read */
        }
    }
    if (dir)
        (void)closedir(dir); /* it was only read */
}

/* 1: there are keys. */
static int verlkeys_fill(struct composing *c, const char *name)
{
    _cleanup_(freep) char *generated = xasprintf("_generated_%s", name);
    _cleanup_(freep) char *made = xasprintf("%s/%s.yaml", c->dir, generated);
    int r = verlkeys_is_there(c->top, made);
    if (r < 0)
        return r;
    c->out->whole = verlkeys_compose(c, "", r ? generated : name, "", 0);
    c->out->name = xstrdup(name);
    if (c->out->keys.n)
        add_groups(c);
    return c->trouble ? c->trouble : c->out->keys.n > 0;
}

int fsroot_verl_keys(const char *root,
                     const char *tree,
                     const char *name,
                     struct preflight_keys *ret)
{
    *ret = (struct preflight_keys){0};
    _cleanup_(rootdir_release) struct rootdir top = ROOTDIR_NONE;
    _cleanup_(freep) char *dir = NULL;
    const char *below = rootdir_below(root, tree);
    int r = below ? rootdir_open(root, "", 0, &top, NULL) : 0;
    if (r == 0 && below)
        r = config_dir(&top, below, &dir);
    if (r < 0 || !dir)
        return r;
    struct composing c = {.top = &top, .dir = dir, .out = ret};
    r = verlkeys_fill(&c, name);
    if (r <= 0) {
        preflight_keys_release(ret);
        *ret = (struct preflight_keys){0};
    }
    return r;
}
