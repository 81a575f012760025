/* SPDX-License-Identifier: Apache-2.0 */
/* training_message.c - a message said in English, with its code and arguments beside it; see
 * training_message.h. */
#include "core/training/training_message.h"

#include "base/text.h"

void training_message_say(struct training_message *m,
                          const char *code,
                          const struct message_arg *args)
{
    char text[TRAINING_ARGS_MAX];
    message_write(text, sizeof(text), args);
    training_message_say_text(m, code, text);
}

void training_message_say_text(struct training_message *m, const char *code, const char *args)
{
    static const struct message_listener to = {.language = MESSAGE_ENGLISH};
    *m = (struct training_message){.code = code};
    text_copy(m->held_args, args);
    message_page(code, m->held_args, &to, &m->page);
    m->text = m->page.text;
    m->fix = m->page.fix;
    m->args = m->held_args;
}

void training_message_release(struct training_message *m)
{
    message_page_release(&m->page);
}
