/* SPDX-License-Identifier: Apache-2.0 */
/* spec_table.h - the rows of the JobSpec and its checks, shared by spec*.c; preset.c reads the
 * names of keys. */
#pragma once
#include "base/doc/conf.h"
#include "core/spec/spec.h"

extern const struct field spec_keys[];
extern const size_t spec_keys_n;

/* What a check needs to say where it found something. */
struct spec_check {
    const struct node *root; /* may be NULL: no places */
    struct problems *ps;
    size_t n_read; /* of ps: what was told of keys whose value could not be read */
};

void spec_error(const struct spec_check *c,
                const char *field,
                const char *code,
                const struct message_arg *args);
void spec_warning(const struct spec_check *c,
                  const char *field,
                  const char *code,
                  const struct message_arg *args);
/* What another check says of the field. */
void spec_error_of(const struct spec_check *c, const char *field, const struct err *err);

/* One item of a list, told at its own place. */
struct spec_place {
    const struct spec_check *c;
    const char *field;
    size_t item;
};
void spec_problem_at(const struct spec_place *at,
                     enum problem_level level,
                     const char *code,
                     const struct message_arg *args);

/* True if the key was written and is not null. */
bool spec_is_given(const struct node *root, const char *path);

/* Everything that the table cannot say: keys that do not go together. */
void spec_check_all(struct spec *s, const struct spec_limits *lim, const struct spec_check *c);
void spec_check_overrides(const struct spec *s, const struct spec_check *c);
/* eval_on_save, by the checks of the spec that it becomes (evalspec.c). */
void spec_check_eval(const struct spec *s, const struct spec_check *c);
void spec_check_env(const struct spec *s, const struct spec_check *c);
/* Split reward_fn_path into reward_file or reward_module, and reward_function. */
void spec_read_reward(struct spec *s, const struct spec_check *c);
