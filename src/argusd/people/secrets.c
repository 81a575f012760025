/* SPDX-License-Identifier: Apache-2.0 */
/* secrets.c - see secrets.h. Rows are entries of kind "secret", named by their key. */
#include "argusd/people/secrets.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/keyfile.h"
#include "base/digest/hash.h"
#include "base/digest/seal.h"
#include "base/file.h"
#include "base/json.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "core/job/access.h"

enum { ROW_MAX = 256 << 10, SPEC_MAX = 16 << 20 };
static const usec_t USE_NOTED_EVERY = 5 * USEC_MIN;

struct secrets {
    struct store *store;
    char *key_path;
    unsigned char key[SEAL_KEY_BYTES];
    bool has_key;
    struct map *by_key;
};

struct secrets *secrets_new(struct store *store, const char *state_dir)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct secrets *s = xcalloc(1, sizeof(*s));
    s->store = store;
    s->key_path = xasprintf("%s/secrets.key", state_dir);
    s->by_key = map_new(seed);
    return s;
}

static void secret_free(struct secret *k)
{
    char *texts[] = {k->key, k->owner, k->name, k->sealed, k->changed_by};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    free(k);
}

void secrets_free(struct secrets *s)
{
    struct secret *k;
    if (!s)
        return;
    for (size_t pos = 0; (k = map_next(s->by_key, &pos, NULL));)
        secret_free(k);
    map_free(s->by_key);
    seal_forget(s->key, sizeof(s->key));
    free(s->key_path);
    free(s);
}

/* ---- the key ---- */

static int read_key(struct secrets *s, struct err *err)
{
    int r = keyfile_read(s->key_path, s->key, err);
    s->has_key = r == 0;
    return r;
}

int secrets_need_key(struct secrets *s, struct err *err)
{
    if (s->has_key)
        return 0;
    int r = keyfile_make(s->key_path, s->key, err);
    s->has_key = r == 0;
    return r;
}

/* ---- rows ---- */

static char *secrets_key_of(bool of_project, const char *owner, const char *name)
{
    return xasprintf("%s/%s/%s", of_project ? "project" : "user", owner, name);
}

#define ROW(key, ftype, ...)                                                                       \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct secret, key), __VA_ARGS__           \
    }
enum { WHOLE = FIELD_STORED | FIELD_SHOWN };
static const struct field secret_rows[] = {
    ROW(name, FIELD_STR, .flags = FIELD_SHOWN | FIELD_ALWAYS),
    ROW(sealed, FIELD_STR, .flags = FIELD_STORED),
    ROW(bytes, FIELD_COUNT, .flags = WHOLE, .doc = "size of the value"),
    ROW(created_at, FIELD_TIME, .flags = WHOLE),
    ROW(changed_at, FIELD_TIME, .flags = WHOLE),
    ROW(changed_by, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS, .doc = "user who changed it last"),
    ROW(last_use_at, FIELD_TIME, .flags = WHOLE, .doc = "when a job last used it"),
};
const struct field_table secret_table = {.name = "Secret",
                                         .rows = secret_rows,
                                         .n = array_len(secret_rows),
                                         .size = sizeof(struct secret)};

static void secrets_save(const struct secrets *s, const struct secret *k)
{
    _cleanup_(freep) char *body = field_to_text(&secret_table, k, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {
        .kind = SECRETS_ENTRY, .name = k->key, .body = body, .at = k->changed_at};
    store_put_entry(s->store, &row);
}

/* The parts of "user/alice/NAME". */
static struct secret *new_secret(const char *key)
{
    const char *owner = strchr(key, '/'), *name = owner ? strchr(owner + 1, '/') : NULL;
    if (!name)
        return NULL;
    struct secret *k = xcalloc(1, sizeof(*k));
    k->key = xstrdup(key);
    k->of_project = str_starts(key, "project/");
    k->owner = xstrndup(owner + 1, (size_t)(name - owner - 1));
    k->name = xstrdup(name + 1);
    k->sealed = xstrdup("");
    k->changed_by = xstrdup("");
    return k;
}

void secrets_restore_entry(struct secrets *s, const struct store_entry *entry)
{
    struct secret *k = new_secret(entry->name);
    if (k && field_from_text(&secret_table, entry->body, FIELD_STORED, k))
        map_set(s->by_key, k->key, k);
    else if (k)
        secret_free(k);
}

static int open_value(const struct secrets *s,
                      const struct secret *k,
                      struct buf *out,
                      struct err *err)
{
    return seal_open(s->key, k->key, k->sealed, out, err);
}

static int try_one(const struct secrets *s, struct err *err)
{
    size_t pos = 0;
    const struct secret *k = map_next(s->by_key, &pos, NULL);
    struct buf value = BUF_INIT(SECRET_VALUE_MAX);
    int r = k ? open_value(s, k, &value, err) : 0;
    seal_forget(value.data, value.len);
    buf_release(&value);
    return r < 0 ? err_set(err, ERR_USAGE,
                           "'%s' is not the key that the store's secrets were sealed with: bring "
                           "back the one of a backup",
                           s->key_path)
                 : 0;
}

int secrets_restored(struct secrets *s, bool has_sealed_specs, struct err *err)
{
    bool has_file = false;
    int r = file_look_for(s->key_path, &has_file, err);
    if (r == 0 && has_file) {
        r = read_key(s, err);
        return r < 0 ? r : try_one(s, err);
    }
    if (r < 0) /* it may be there: the first secret would write another key over it */
        return r;
    if (!map_count(s->by_key) && !has_sealed_specs)
        return 0;
    return err_set(err, ERR_USAGE,
                   "'%s' is missing, and the store holds what was sealed with it: bring it back "
                   "from a backup",
                   s->key_path);
}

/* ---- changes ---- */

static size_t secrets_count_of(const struct secrets *s, bool of_project, const char *owner)
{
    size_t n = 0;
    const struct secret *k;
    for (size_t pos = 0; (k = secrets_next(s, &pos));)
        n += k->of_project == of_project && str_eq(k->owner, owner);
    return n;
}

int secrets_set(struct secrets *s,
                bool of_project,
                const char *owner,
                const char *name,
                const char *value,
                const char *by,
                usec_t now,
                const struct secret **ret,
                struct err *err)
{
    _cleanup_(freep) char *key = secrets_key_of(of_project, owner, name);
    struct secret *k = map_find(s->by_key, key);
    if (!k && secrets_count_of(s, of_project, owner) >= SECRETS_OF_OWNER_MAX)
        return message_refuse(err, ERR_REFUSED, "secrets_full",
                              MESSAGE_ARGS(MESSAGE_STR("kind", of_project ? "project" : "user"),
                                           MESSAGE_STR("name", owner),
                                           MESSAGE_NUM("most", SECRETS_OF_OWNER_MAX)));
    int r = secrets_need_key(s, err);
    if (r < 0)
        return r;
    if (!k) {
        k = new_secret(key);
        k->created_at = now;
        map_set(s->by_key, k->key, k);
    }
    free(k->sealed);
    k->bytes = strlen(value);
    k->sealed = seal_close(s->key, key, value, k->bytes);
    k->changed_at = now;
    set_str(&k->changed_by, by);
    secrets_save(s, k);
    *ret = k;
    return 0;
}

void secrets_remove(struct secrets *s, const struct secret *k)
{
    struct secret *own = map_remove(s->by_key, k->key);
    store_remove_entry(s->store, SECRETS_ENTRY, own->key);
    secret_free(own);
}

void secrets_remove_all(struct secrets *s, bool of_project, const char *owner)
{
    struct strv keys = {0};
    const struct secret *k;
    for (size_t pos = 0; (k = secrets_next(s, &pos));)
        if (k->of_project == of_project && str_eq(k->owner, owner))
            strv_add(&keys, k->key);
    for (size_t i = 0; i < keys.n; i++)
        secrets_remove(s, map_find(s->by_key, keys.v[i]));
    strv_release(&keys);
}

const struct secret *secrets_find(const struct secrets *s,
                                  bool of_project,
                                  const char *owner,
                                  const char *name)
{
    _cleanup_(freep) char *key = secrets_key_of(of_project, owner, name);
    return map_find(s->by_key, key);
}

const struct secret *secrets_next(const struct secrets *s, size_t *pos)
{
    return map_next(s->by_key, pos, NULL);
}

/* ---- of a job ---- */

static struct secret *find_for(const struct secrets *s,
                               const char *user,
                               const char *project,
                               const char *name)
{
    _cleanup_(freep) char *own = secrets_key_of(false, user, name);
    const char *label = project && *project ? project : ACCESS_DEFAULT_PROJECT;
    _cleanup_(freep) char *shared = secrets_key_of(true, label, name);
    struct secret *k = map_find(s->by_key, own);
    return k ? k : map_find(s->by_key, shared);
}

static int missing(const char *name, const char *user, struct err *err)
{
    return message_refuse(err, ERR_BAD_SPEC, "secret_not_there",
                          MESSAGE_ARGS(MESSAGE_STR("secret", name), MESSAGE_STR("user", user)));
}

int secrets_check(const struct secrets *s,
                  const char *user,
                  const char *project,
                  const struct strv *names,
                  struct err *err)
{
    for (size_t i = 0; i < names->n; i++)
        if (!find_for(s, user, project, names->v[i]))
            return missing(names->v[i], user, err);
    return 0;
}

static int add_opened(const struct secrets *s,
                      const struct secret *k,
                      struct pairs *ret,
                      struct err *err)
{
    struct buf value = BUF_INIT(SECRET_VALUE_MAX);
    int r = open_value(s, k, &value, err);
    if (r == 0)
        pairs_set(ret, k->name, buf_str(&value));
    seal_forget(value.data, value.len);
    buf_release(&value);
    return r;
}

int secrets_take(struct secrets *s,
                 const char *user,
                 const char *project,
                 const struct strv *names,
                 usec_t now,
                 struct pairs *ret,
                 struct err *err)
{
    for (size_t i = 0; i < names->n; i++) {
        struct secret *k = find_for(s, user, project, names->v[i]);
        if (!k)
            return missing(names->v[i], user, err);
        int r = add_opened(s, k, ret, err);
        if (r < 0)
            return r;
        if (now > k->last_use_at + USE_NOTED_EVERY) {
            k->last_use_at = now;
            secrets_save(s, k);
        }
    }
    return 0;
}

void secrets_reveal(const struct secrets *s,
                    const char *user,
                    const char *project,
                    const struct strv *names,
                    struct pairs *ret)
{
    for (size_t i = 0; i < names->n; i++) {
        const struct secret *k = find_for(s, user, project, names->v[i]);
        if (k)
            (void)add_opened(s, k, ret, NULL); /* one that does not open was in no job */
    }
}

void secrets_reveal_of(const struct secrets *s,
                       const char *of,
                       const struct strv *names,
                       struct pairs *ret)
{
    const char *slash = of ? strchr(of, '/') : NULL;
    bool of_project = of && str_starts(of, "project/");
    if (slash)
        secrets_reveal(s, of_project ? "" : slash + 1, of_project ? slash + 1 : "", names, ret);
}

bool secrets_add_bearer(const struct secrets *s,
                        const char *of,
                        const char *name,
                        struct strv *headers)
{
    struct strv names = {0};
    struct pairs keys = {0};
    if (!name)
        return true;
    strv_add(&names, name);
    secrets_reveal_of(s, of, &names, &keys);
    const char *key = pairs_find(&keys, name);
    if (key)
        strv_addf(headers, "Authorization: Bearer %s", key);
    pairs_wipe(&keys);
    strv_release(&names);
    return key != NULL;
}

void secrets_derive(const struct secrets *s, const char *purpose, unsigned char ret[static 32])
{
    struct hash_running h;
    if (!s->has_key) {
        random_bytes(ret, HASH_BYTES);
        return;
    }
    hash_begin(&h);
    hash_add(&h, s->key, sizeof(s->key));
    hash_add(&h, purpose, strlen(purpose) + 1);
    hash_end(&h, ret);
    seal_forget(&h, sizeof(h));
}

/* ---- specs ---- */

int secrets_seal_spec(struct secrets *s,
                      const char *id,
                      const char *spec,
                      char **ret,
                      struct err *err)
{
    _cleanup_(freep) char *place = xasprintf("spec/%s", id);
    int r = secrets_need_key(s, err);
    if (r == 0)
        *ret = seal_close(s->key, place, spec, strlen(spec));
    return r;
}

static void secrets_open_with(const unsigned char *key, const char *id, char **spec)
{
    if (!seal_is_sealed(*spec))
        return;
    _cleanup_(freep) char *place = xasprintf("spec/%s", id);
    struct buf text = BUF_INIT(SPEC_MAX);
    int r = key ? seal_open(key, place, *spec, &text, NULL) : -EBADMSG;
    set_str(spec, r == 0 ? buf_str(&text) : "# sealed with a key that is not here any more\n");
    seal_forget(text.data, text.len);
    buf_release(&text);
}

void secrets_open_spec(const struct secrets *s, const char *id, char **spec)
{
    secrets_open_with(s->has_key ? s->key : NULL, id, spec);
}

void secrets_copy_key(const struct secrets *s, struct secrets_key *ret)
{
    ret->is_there = s->has_key;
    memcpy(ret->bytes, s->key, sizeof(ret->bytes));
}

void secrets_forget_key(struct secrets_key *k)
{
    seal_forget(k, sizeof(*k));
}

void secrets_key_open_spec(const struct secrets_key *k, const char *id, char **spec)
{
    secrets_open_with(k->is_there ? k->bytes : NULL, id, spec);
}
