/* SPDX-License-Identifier: Apache-2.0 */
/* msg.h - the words that a person reads, in English and Chinese.
 *
 * The language is that of LC_ALL, LC_MESSAGES or LANG. Codes, state words, exit
 * statuses and everything in -o json stay as they are in every language. */
#pragma once

enum lang { LANG_EN, LANG_ZH };

/* X(enumerator, English, Chinese) */
#define MSG_TABLE(X)                                                                               \
    X(MSG_NONE, "", "")                                                                            \
    X(MSG_AT, "AT", "时间")                                                                        \
    X(MSG_ATTEMPT, "ATTEMPT", "尝试")                                                              \
    X(MSG_CHANGE, "CHANGE", "变化")                                                                \
    X(MSG_CLUSTER, "CLUSTER", "集群")                                                              \
    X(MSG_ETA, "ETA", "预计")                                                                      \
    X(MSG_GANG, "NODES×GPU", "节点×GPU")                                                           \
    X(MSG_GPUS, "GPUS(free/used/bad)", "GPU(空闲/使用/故障)")                                      \
    X(MSG_HEALTH, "HEALTH", "健康")                                                                \
    X(MSG_ID, "ID", "编号")                                                                        \
    X(MSG_IP, "IP", "地址")                                                                        \
    X(MSG_JOB, "JOB", "作业")                                                                      \
    X(MSG_JOBS, "JOBS", "作业")                                                                    \
    X(MSG_KIND, "KIND", "类别")                                                                    \
    X(MSG_NAME, "NAME", "名称")                                                                    \
    X(MSG_NODE, "NODE", "节点")                                                                    \
    X(MSG_POOL, "POOL", "资源池")                                                                  \
    X(MSG_POS, "POS", "位次")                                                                      \
    X(MSG_PRIO, "PRIO", "优先级")                                                                  \
    X(MSG_PROJECT, "PROJECT", "项目")                                                              \
    X(MSG_QUEUED, "QUEUED", "入队")                                                                \
    X(MSG_REASON, "REASON", "原因")                                                                \
    X(MSG_RESTARTS, "RESTARTS", "重启")                                                            \
    X(MSG_RUN, "RUN", "运行")                                                                      \
    X(MSG_SEQ, "SEQ", "序号")                                                                      \
    X(MSG_SINCE, "SINCE", "自")                                                                    \
    X(MSG_STATE, "STATE", "状态")                                                                  \
    X(MSG_STEP, "STEP", "步数")                                                                    \
    X(MSG_TEXT, "TEXT", "说明")                                                                    \
    X(MSG_USER, "USER", "用户")                                                                    \
    X(MSG_UTIL, "UTIL", "利用率")                                                                  \
    X(MSG_WAIT, "WAIT", "等待")                                                                    \
    X(MSG_WORKLOAD, "WORKLOAD", "类型")                                                            \
    X(MSG_L_ATTEMPTS, "attempts", "各次尝试")                                                      \
    X(MSG_L_CHECKPOINTS, "checkpoints", "检查点")                                                  \
    X(MSG_L_CONFIG, "config", "配置")                                                              \
    X(MSG_L_DEADLINE, "deadline", "期限")                                                          \
    X(MSG_L_DIR, "directory", "目录")                                                              \
    X(MSG_L_DRIVER, "driver", "驱动")                                                              \
    X(MSG_L_ENDED, "ended", "结束")                                                                \
    X(MSG_L_EXIT, "exit", "退出")                                                                  \
    X(MSG_L_FINDING, "finding", "诊断")                                                            \
    X(MSG_L_GANG, "gang", "资源")                                                                  \
    X(MSG_L_JOB, "job", "作业")                                                                    \
    X(MSG_L_LOG, "log", "日志")                                                                    \
    X(MSG_L_METRICS, "metrics", "指标")                                                            \
    X(MSG_L_NODES, "nodes", "节点")                                                                \
    X(MSG_L_OWNER, "owner", "所有者")                                                              \
    X(MSG_L_POSITION, "position", "队列位次")                                                      \
    X(MSG_L_PROOF, "proof", "证明")                                                                \
    X(MSG_L_QUEUED, "queued", "入队")                                                              \
    X(MSG_L_REASON, "reason", "原因")                                                              \
    X(MSG_L_STARTED, "started", "开始")                                                            \
    X(MSG_L_STATE, "state", "状态")                                                                \
    X(MSG_AGO, "%s ago", "%s前")                                                                   \
    X(MSG_IN, "in %s", "%s后")                                                                     \
    X(MSG_NO_JOBS,                                                                                 \
      "no jobs here: 'argus submit FILE' starts one, 'argus ls -a' shows everybody's",             \
      "没有作业：用 'argus submit FILE' 提交，用 'argus ls -a' 查看所有人的作业")                  \
    X(MSG_QUEUE_EMPTY, "nothing waits in the queue", "队列为空")                                   \
    X(MSG_NO_NODES, "no nodes are known: is the Ray cluster up?",                                  \
      "没有节点：Ray 集群是否已启动？")                                                            \
    X(MSG_NO_EVENTS, "no events yet", "还没有事件")                                                \
    X(MSG_COLUMNS_HIDDEN, "some columns do not fit: widen the terminal or use -o wide",            \
      "有些列放不下：加宽终端，或使用 -o wide")                                                    \
    X(MSG_MORE, "there are more: --limit N shows more of them", "还有更多：用 --limit N 查看")     \
    X(MSG_DETACHED, "detached; job %s goes on (argus logs -f %s, argus stop %s)",                  \
      "已断开，作业 %s 继续运行（argus logs -f %s，argus stop %s）")                               \
    X(MSG_LOST, "connection lost (%s), reconnecting", "连接中断（%s），正在重连")                  \
    X(MSG_BACK, "connected again", "已重新连接")                                                   \
    X(MSG_DRIVER_OK, "driver on worker %s (%s), not on the head (%s)",                             \
      "驱动位于工作节点 %s（%s），不在头节点（%s）")                                               \
    X(MSG_DRIVER_BAD, "the driver is ON THE HEAD (%s)", "驱动位于头节点（%s），不应如此")          \
    X(MSG_DRIVER_UNKNOWN, "not checked yet", "尚未检查")                                           \
    X(MSG_NEXT_STEPS, "next: argus logs -f %s | argus status %s | argus stop %s",                  \
      "下一步：argus logs -f %s | argus status %s | argus stop %s")                                \
    X(MSG_WATCH_EVERY, "every 2 s, Ctrl-C ends", "每 2 秒刷新，Ctrl-C 结束")

enum msg_id {
#define X(id, en, zh) id,
    MSG_TABLE(X)
#undef X
        MSG_COUNT
};

/* From a value such as "zh_CN.UTF-8"; NULL is English. */
enum lang lang_from_string(const char *locale);

/* Borrowed for ever. */
const char *msg(enum lang lang, enum msg_id id);

/* A message with up to three texts put in place of its %s, in order; for messages that take
 * texts only. Returns out, cut to fit. */
const char *msg_fill(enum lang lang,
                     enum msg_id id,
                     const char *const *texts,
                     char *out,
                     int out_size);
