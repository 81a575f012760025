/* SPDX-License-Identifier: Apache-2.0 */
/* alert_rule.h - a rule: when something of a kind is worth an alert, and what is said then.
 *
 * Shipped rules are lib/alerts.yaml; argus.yaml (alerts.rules) and the API change one by its name
 * or add others. Where rules come from decides who wins: the API, then argus.yaml, then the shipped
 * ones. Pure. */
#pragma once
#include "base/doc/doc.h"
#include "base/field.h"
#include "core/alert/alert_expr.h"

/* What a rule is about. X(enumerator, word). The words leave the process. */
#define ALERT_OF_TABLE(X)                                                                          \
    X(JOB, "job")                                                                                  \
    X(NODE, "node")                                                                                \
    X(GPU, "gpu")                                                                                  \
    X(CLUSTER, "cluster")                                                                          \
    X(ROOT, "root")                                                                                \
    X(QUEUE, "queue")                                                                              \
    X(QUOTA, "quota")                                                                              \
    X(ARGUSD, "argusd")                                                                            \
    X(PIPELINE, "pipeline")
#define X(e, word) ALERT_OF_##e,
enum alert_of { ALERT_OF_TABLE(X) ALERT_OF_END };
#undef X
enum alert_severity { ALERT_INFO, ALERT_WARNING, ALERT_CRITICAL };
extern const char *const alert_of_names[], *const alert_severity_names[];

struct alert_rule {
    char *name;
    int of; /* enum alert_of */
    char *when, *clear;
    usec_t hold, clear_hold; /* `for`, `clear_for` */
    usec_t keep;     /* of one that an event fires: so long it is open; 0 = while it holds */
    int severity;    /* enum alert_severity */
    char *text, *zh; /* sentences with {fact} */
    char *fix, *fix_zh;
    bool off;
    char *from; /* "shipped" "argus.yaml", or who added it */
    usec_t changed_at;
    struct alert_expr *when_expr, *clear_expr; /* clear NULL: not `when` */
};
/* Stored, shown and asked for; `name` and `from` are not asked for. */
extern const struct field_table alert_rule_table;
extern const struct field_table alert_rule_change_table; /* the same, and nothing must be given */

struct alert_rules {
    struct alert_rule *v; /* by name */
    size_t n;
};
enum { ALERT_RULES_MAX = 500, ALERT_RULE_NAME_MAX = 40, ALERT_SENTENCE_MAX = 500 };

void alert_rule_release(struct alert_rule *r);
/* The keys of a rule; all problems go to ps. ret: zeroed memory, or a copy of the rule that is
 * changed (is_change). -EINVAL if there is an error; *ret is to be released in any case. */
must_check int alert_rule_read(const struct node *map,
                               const char *name,
                               bool is_change,
                               struct alert_rule *ret,
                               struct problems *ps);
/* What argusd knows of each kind, words parted by blanks: docs/alerts.md says what they mean. */
extern const char *const alert_of_facts[];
/* Each fact of its expressions and sentences is one of its kind; the nearest is named. */
must_check int alert_rule_check_facts(const struct alert_rule *r,
                                      const struct node *map,
                                      struct problems *ps);
/* Is each of the shipped and given rules whole? Parses the expressions anew. A row of the store
 * that names a fact which is no more stays as it is. */
must_check int alert_rule_check(struct alert_rule *r, const struct node *map, struct problems *ps);
void alert_rule_copy(struct alert_rule *dst, const struct alert_rule *src);

void alert_rules_release(struct alert_rules *rules);
/* Adds, or replaces the one of that name. taken: zeroed after. ERR_REFUSED: there are too many. */
must_check int alert_rules_put(struct alert_rules *rules,
                               struct alert_rule *taken,
                               struct err *err);
void alert_rules_remove(struct alert_rules *rules, const char *name);
/* alert_expr_next() over the rules of this kind that are not off. */
double alert_rules_next(const struct alert_rules *rules,
                        enum alert_of of,
                        const char *fact,
                        double from);
struct alert_rule *alert_rules_find(const struct alert_rules *rules, const char *name);
/* Each rule below this mapping is put; one that is there already is changed by the keys given. */
must_check int alert_rules_read(const struct node *map,
                                const char *from,
                                struct alert_rules *rules,
                                struct problems *ps);
/* Those that are shipped. */
void alert_rules_add_shipped(struct alert_rules *rules);
