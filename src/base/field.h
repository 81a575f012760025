/* SPDX-License-Identifier: Apache-2.0 */
/* field.h - one description of a struct's members, from which every form of the struct is made.
 *
 * A row names a member: its key, type, place, default, bounds, words for people and flags. From one
 * table come: YAML and JSON in (conf.h), JSON out, the JSON that a row of the store keeps and its
 * way back, what an audit event shows, the schema in openapi.json, reference text. A second list
 * of the same members is a defect.
 *
 * Dotted keys ("restart.max") are members of a nested object; rows of one object stand together.
 * Two forms exist. FIELD_PAGE is for people and programs outside: times are RFC 3339 text, spans
 * "90s". FIELD_ROW is for our own store: times and spans are whole microseconds. field_from_json()
 * reads both, so a form may change while old rows stay. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/strv.h"

enum field_type {
    FIELD_STR,    /* char * */
    FIELD_INT,    /* int64_t */
    FIELD_REAL,   /* double */
    FIELD_BOOL,   /* bool */
    FIELD_SPAN,   /* usec_t: 90s 30m 12h 2d */
    FIELD_SIZE,   /* uint64_t bytes: 512MiB */
    FIELD_ENUM,   /* int (or an enum): index into names */
    FIELD_STRV,   /* struct strv: a list of texts, or one text */
    FIELD_PAIRS,  /* struct pairs: a mapping of texts */
    FIELD_NODE,   /* const struct node *: as it is, borrowed from the doc; only for conf_read() */
    FIELD_INT32,  /* int */
    FIELD_COUNT,  /* uint64_t, a plain number in JSON */
    FIELD_TIME,   /* usec_t, wall time; 0 is null */
    FIELD_TEXT,   /* char[size] */
    FIELD_JSON,   /* char *: JSON text, NULL is null; `schema` says what it is */
    FIELD_OBJECT, /* a struct inside this one, described by `of` */
    FIELD_LIST,   /* struct field_list of structs described by `of` */
    FIELD_PART,   /* const struct *: one described by `of`, NULL is null; borrowed, JSON out only */
    FIELD_BITS,   /* uint64_t: a list of the names of the bits that are set, or of their numbers
                     where names is NULL; JSON out only */
    FIELD_REALS,  /* struct field_list of double: a list of numbers, null for NaN; JSON out only */
    FIELD_INLINE, /* a struct inside this one whose members, described by `of`, are this one's own
                     members: of no name ("") and no object in JSON; `which` picks among them */
};

enum field_flags {
    FIELD_REQUIRED = 1 << 0,
    FIELD_RELOADABLE = 1 << 1,
    FIELD_STORED = 1 << 3,    /* part of the row in the store, and of what an audit event shows */
    FIELD_SHOWN = 1 << 4,     /* part of the page */
    FIELD_LISTED = 1 << 5,    /* part of an item of a list */
    FIELD_ASKED = 1 << 6,     /* may stand in the body of a request */
    FIELD_SECRET = 1 << 7,    /* "***" in a page; values of FIELD_PAIRS by their names anyway */
    FIELD_NO_LIMIT = 1 << 8,  /* numbers: below 0 is "not set", null in JSON */
    FIELD_OMIT = 1 << 9,      /* left out of JSON while it is not set, in place of null or 0 */
    FIELD_BORROWED = 1 << 10, /* FIELD_STR, FIELD_JSON, FIELD_INLINE: neither copied nor freed with
                                 the struct */
    FIELD_ALWAYS = 1 << 11,   /* never null in a page, of a type that can be */
    FIELD_MAYBE = 1 << 13,    /* FIELD_REAL: no number (NaN) is "not set", null in a page; unlike
                                 FIELD_NO_LIMIT for values that may lie below 0, and 0 is a value */
    FIELD_OR_NONE = 1 << 12,  /* the word "none" may stand for the object that this row begins */
    /* From here on bits are a table's own: they say of which objects a row is, see `which`. Not
     * every object has such a row, so it is never required. */
    FIELD_OWN_FIRST = 1 << 16,
};
#define FIELD_OWN(n) ((unsigned)FIELD_OWN_FIRST << (n))
#define FIELD_OWN_ALL 0x7fff0000u

/* Which rows of a table are meant: any of these flags; 0 = all. */
#define FIELD_ALL 0u

struct field_table;

struct field {
    const char *name; /* "ray.head.port" */
    enum field_type type;
    size_t offset;
    const char *dflt;         /* as text, parsed like input; NULL = zero / empty */
    double min, max;          /* of numbers, spans in seconds, sizes in bytes; both 0 = none */
    const char *const *names; /* FIELD_ENUM: NULL-terminated; a NULL or "" entry is never shown.
                                 FIELD_BITS: of bit 0, bit 1, … */
    unsigned flags;
    const char *doc;
    size_t size;                  /* FIELD_TEXT: of the array */
    const struct field_table *of; /* FIELD_OBJECT, FIELD_LIST */
    /* In openapi.json: a schema's name ("Reason"), or a whole schema that begins with '{'. For
     * FIELD_JSON, and wherever the type alone says too little. */
    const char *schema;
};

struct field_table {
    const char *name; /* of the schema in openapi.json: "User"; NULL = none of its own */
    const struct field *rows;
    size_t n;
    size_t size;  /* of the struct */
    unsigned all; /* flags that every row has */
};

/* What FIELD_LIST points at: n structs in one block. Zeroed memory is an empty list. */
struct field_list {
    void *v;
    size_t n;
};
/* One more at the end, a copy of the item as it is: what its members point at is theirs. */
void field_list_add(struct field_list *list, const void *item, size_t size);

/* A row of a table, and the table: FIELD_AT(node, "name", FIELD_STR, name, .flags = …) is the
 * member `name` of struct node. */
#define FIELD_AT(of, key, ftype, member, ...)                                                      \
    {                                                                                              \
        .name = key, .type = ftype, .offset = offsetof(struct of, member), __VA_ARGS__             \
    }
#define FIELD_TABLE(schema, rows, of)                                                              \
    {                                                                                              \
        schema, rows, array_len(rows), sizeof(struct of), 0                                        \
    }

enum field_form { FIELD_PAGE, FIELD_ROW };

/* What `which` means inside a member described by `of`: nothing is left out there when no row of
 * `of` says in which forms it takes part. */
unsigned field_which_of(const struct field_table *of, unsigned which);

/* The rows of `which` as a JSON object under key (NULL inside arrays). */
void field_to_json(const struct field_table *t,
                   const void *object,
                   unsigned which,
                   enum field_form form,
                   struct jout *j,
                   const char *key);
/* The same members without the braces: into an object that is open. */
void field_put_members(const struct field_table *t,
                       const void *object,
                       unsigned which,
                       enum field_form form,
                       struct jout *j);

/* field_to_json() as text. Heap. */
char *field_to_text(const struct field_table *t,
                    const void *object,
                    unsigned which,
                    enum field_form form);

/* From our own store, in either form: what is missing or cannot be read stays as it is. Owned
 * members are replaced (object is zeroed memory, or whole). */
void field_from_json(const struct field_table *t, const json_t *v, unsigned which, void *object);

/* The rows of `which` are set from src, which owns its members as before; the others stay. dst and
 * src are two objects. */
void field_assign(const struct field_table *t, void *dst, const void *src, unsigned which);
/* field_from_json() of text. False: it is NULL or no JSON object, and nothing was changed. */
bool field_from_text(const struct field_table *t, const char *text, unsigned which, void *object);

/* Numbers with FIELD_NO_LIMIT become "not set"; the others stay. */
void field_clear_limits(const struct field_table *t, void *object);
/* The rows of `which` in one list, with those of FIELD_INLINE in their places. free() it. */
struct field *field_flatten(const struct field_table *t, unsigned which, size_t *ret_n);

/* Free what the rows own and zero the members. */
void field_release(const struct field_table *t, void *object);
/* A deep copy of the rows' members; dst is zeroed memory, other members stay zero. */
void field_copy(const struct field_table *t, void *dst, const void *src);
/* Do the rows of `which` read alike in both? */
bool field_equal(const struct field_table *t, const void *a, const void *b, unsigned which);

/* The JSON schema of the rows of `which`, closed (no other member is allowed). As a page all rows
 * but FIELD_OMIT ones are required; as a form those of FIELD_REQUIRED. */
void field_page_schema(const struct field_table *t,
                       unsigned which,
                       struct jout *j,
                       const char *key);
void field_form_schema(const struct field_table *t,
                       unsigned which,
                       struct jout *j,
                       const char *key);

/* Reference text: "key  type  default  doc" as YAML comments and keys. */
void field_describe(const struct field *rows, size_t n, struct buf *out);
