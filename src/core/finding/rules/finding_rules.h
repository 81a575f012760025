/* SPDX-License-Identifier: Apache-2.0 */
/* finding_rules.h - the rules of a finder: read from YAML, checked, compiled once.
 *
 * A file is a map {family: text, rules: [...]}; a rule is
 *
 *     id: torch-cuda-oom     [a-z0-9-], unique over all files
 *     class: gpu_oom         a word of finding.h, for a cause or a frame
 *     role: cause            or hint, frame, wrapper, cleanup, benign, progress, success
 *     pattern: 'CUDA out'    PCRE2, searched in a line without ANSI codes and prefixes
 *     find: [out of memory]  texts of which a matching line has one, in any case; only
 *                            where they cannot be read off the pattern
 *     weight: 90             1 to 99: how sure it is to be the root of what else is there
 *     outranks: [actor_died] classes and rules that are mere consequences beside it
 *     goes_on: 6             so many lines of the same process belong to the message
 *     lasting: true          steps that follow do not excuse it
 *     heals: true            lasting, unless steps follow the last of its lines
 *     head: true             only opens a traceback: the next line of its class says more
 *     stalls: true           counts where it came again and again up to the end of the log
 *     severe: true           counts only in a line of level ERROR or worse, and where no steps are
 *     quiet: true            counts in a line of level INFO or WARNING, too
 *     context: [data_error]  the frames of a traceback may name one of these instead
 *     last: true             a frame: counts where no place follows, for a lighter rule whose
 *                            context names its class
 *     or: host_oom           what it is as likely, where nothing else is there: the second
 *     advice: text
 *     advice_zh: text        the same in Chinese; rules of our own have both (tools/advicerows)
 *     patch: [{key, set | scale | add, from, min, max}]
 *     samples: {match: [lines], miss: [lines]}
 *
 * Immutable once compiled, and shared between threads. */
#pragma once
#include <stddef.h>

#include "base/buf.h"
#include "base/doc/problem.h"
#include "base/err.h"
#include "base/mem.h"

struct finding_rules;

struct finding_rules *finding_rules_new(void);
void finding_rules_free(struct finding_rules *r); /* NULL is fine */
void finding_rules_freep(struct finding_rules **r);

/* Add one file. Every problem goes into ps, its field being "<rule>.<key>"; -EINVAL if any. */
must_check int finding_rules_add(struct finding_rules *r,
                                 const char *text,
                                 size_t len,
                                 struct problems *ps);
/* After the last file. -EINVAL: no rules, or outranks names nothing. */
must_check int finding_rules_compile(struct finding_rules *r, struct err *err);

/* The rules that the program was built with, compiled. */
must_check int finding_rules_built_in(struct finding_rules **ret, struct err *err);

/* Every sample of every rule against its own pattern: one problem each that does not hold. */
void finding_rules_try(const struct finding_rules *r, struct problems *ps);
/* The page for people: classes, what they mean, their rules' advice. Markdown. */
void finding_rules_describe(const struct finding_rules *r, struct buf *out);
