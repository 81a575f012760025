/* SPDX-License-Identifier: Apache-2.0 */
static const struct message_row rows[] = {
    SAY("full", "{room} is full", "{room} 已满"),
    SAY_FIX("gone", "it is gone", "已不在", "wait", "等待"),
    SAY("say_hello", "hello", "你好"),
    SAY("say_never", "not said", "不说"),
};
