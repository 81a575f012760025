/* SPDX-License-Identifier: Apache-2.0 */
/* finding_finder.h - what a finder holds, for finder.c that reads and finding_judge.c that
 * decides; nobody else includes it. */
#pragma once
#include "core/finding/read/finding_mute.h"
#include "core/finding/read/finding_text.h"
#include "core/finding/read/finding_unwrap.h"
#include "core/finding/rules/finding_rule.h"

enum { EVENTS_FIRST = 3, STREAMS_MAX = 64 };

/* A line that a rule matched. */
struct finding_event {
    const struct finding_rule *rule, *frame; /* frame: the one that changed the class, or NULL */
    enum finding_class class;
    int weight;
    uint64_t at;       /* bytes of all sources before it */
    uint64_t progress; /* steps up to it */
    bool is_step;      /* it is a step itself */
    struct finding_quote quote;
    char *rank, *node, *actor, *pid, *time;
};

/* Those of one rule: the first ones and the last. */
struct rule_events {
    struct finding_event first[EVENTS_FIRST], last;
    uint64_t n; /* last is set when n > EVENTS_FIRST */
};

/* The traceback that one process is printing. */
struct stream {
    uint64_t key;
    uint64_t used; /* when last */
    bool open;     /* frames were seen and no exception yet */
    bool ignored;  /* this traceback means nothing */
    bool has_frame;
    size_t indent;              /* of its head, and so of its exception */
    uint64_t flat;              /* the line of a place that code follows without indent; 0: none */
    struct finding_event frame; /* the one that says most about what was being done */
    const struct finding_rule *last; /* that of the last place, if it has one; else NULL */
};

/* The code of an alternative; NULL until a line asks for it. */
struct branch_code {
    pcre2_code *code;
};

struct finder {
    const struct finding_rules *rules;
    struct rule_events *events; /* one per rule */
    struct stream streams[STREAMS_MAX];
    size_t n_streams;
    char **sources;
    size_t n_sources;

    uint64_t offset, line; /* of the next byte in its source */
    uint64_t total, lines; /* bytes and lines of all sources */
    uint64_t progress, progress_at, success_at;
    bool success, failed; /* something said so */

    struct unwrap unwrap; /* of the source that is fed */
    char carry[FINDING_LINE_MAX];
    size_t n_carry;
    uint64_t *found, *may; /* bits of needles, of branches */
    size_t n_found, n_may;
    struct needle_hits hits; /* of a stretch of what is read */
    struct mute mute;
    struct finding_event *goes_on; /* the next lines belong to it */
    int goes_on_for;               /* so many; one after a line that ends in a colon */
    uint64_t goes_on_key;          /* its stream */
    uint64_t goes_on_at;           /* bytes of all sources before the next line to look at */
    uint64_t mute_key;             /* of the line that is looked at; 0: it has none */
    struct branch_code *codes;     /* by branch */
    pcre2_match_data *match;
    pcre2_match_context *context;
    char *body;   /* of the line that is looked at */
    char *folded; /* the line in lower case */
    size_t n_folded;
};

void finding_event_release(struct finding_event *e);

/* That of a process, made when it says its first word; the longest silent one gives way. */
struct stream *finder_stream(struct finder *f, uint64_t key);
void stream_reset(struct stream *s);
/* A line of source code inside a traceback, or a place: its words are not what happened. */
/* A place in a traceback. */
bool stream_at_place(const struct finding_text *t);
bool stream_is_code(const struct stream *s, const struct finding_text *t, uint64_t line);
/* Note where a place in a traceback stands, which says how the lines after it are indented. */
void stream_place(struct stream *s, const struct finding_text *t, uint64_t line);
