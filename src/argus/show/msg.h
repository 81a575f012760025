/* SPDX-License-Identifier: Apache-2.0 */
/* msg.h - the words that a person reads, in English and Chinese.
 *
 * The language is that of LC_ALL, LC_MESSAGES or LANG. Codes, state words, exit
 * statuses and everything in -o json stay as they are in every language. */
#pragma once
#include "base/message.h"

/* X(enumerator, English, Chinese) */
#define MSG_TABLE(X)                                                                                    \
    X(MSG_NONE, "", "")                                                                                 \
    X(MSG_CAPACITY, "CAPACITY", "总量")                                                                 \
    X(MSG_HELD_IDLE, "IDLE", "占而未用")                                                                \
    X(MSG_BLOCKED, "BLOCKED", "为大作业预留")                                                           \
    X(MSG_UNMEASURED, "UNKNOWN", "未测量")                                                              \
    X(MSG_REDONE, "REDONE", "重做")                                                                     \
    X(MSG_LOST_STEPS, "LOST", "失败损失")                                                               \
    X(MSG_BETWEEN, "DATA", "等数据")                                                                    \
    X(MSG_ADVICE_UNTRIED, "advice of the week before: no job of the last week to try it on",            \
      "上一周的建议：最近一周没有可检验的作业")                                                         \
    X(MSG_ADVICE_TRIED,                                                                                 \
      "advice of the week before, tried on %s jobs of the last week: %s GPU-hours saved; wrong for %s", \
      "上一周的建议用最近一周的 %s 个作业检验：可省 %s GPU时；不适用 %s 个")                            \
    X(MSG_GAIN, "GAIN", "可省")                                                                         \
    X(MSG_ADVICE, "ADVICE", "建议")                                                                     \
    X(MSG_NO_USAGE, "nothing was held in that time", "该时段内没有占用")                                \
    X(MSG_FEWER_GPUS, "%s GPUs would have done", "用 %s 块 GPU 即可")                                   \
    X(MSG_SAVE_EACH, "save every %s steps", "每 %s 步保存一次")                                         \
    X(MSG_LAST_WEEK, "LAST WEEK", "上周")                                                               \
    X(MSG_NEXT_WEEK, "NEXT WEEK", "下周")                                                               \
    X(MSG_FAR_WEEK, "LAST TOLD", "最远一周")                                                            \
    X(MSG_FULL_AT, "FULL", "将满")                                                                      \
    X(MSG_FULL_EARLY, "EARLIEST", "最早")                                                               \
    X(MSG_ERROR_GPUS, "ERROR", "误差")                                                                  \
    X(MSG_NAIVE_GPUS, "NAIVE", "照上周误差")                                                            \
    X(MSG_WEEK_FROM, "WEEK FROM", "周始")                                                               \
    X(MSG_DEMAND, "GPUS", "需求GPU")                                                                    \
    X(MSG_LOW, "LOW", "下限")                                                                           \
    X(MSG_HIGH, "HIGH", "上限")                                                                         \
    X(MSG_PLAYED_AGAIN, "%s jobs since %s, played again through the scheduler",                         \
      "重放了 %s 个作业（自 %s 起）")                                                                   \
    X(MSG_SHORT_HISTORY, "%s: not enough history: %s of %s days", "%s：历史不足：%s 天，需 %s 天")      \
    X(MSG_SATURATED, "%s: full on %s of the last 28 days: more may have been wanted",                   \
      "%s：最近 28 天有 %s 天已满：实际需求可能更高")                                                   \
    X(MSG_ADDRESS, "ADDRESS", "Ray地址")                                                                \
    X(MSG_AT, "AT", "时间")                                                                             \
    X(MSG_ATTEMPT, "ATTEMPT", "尝试")                                                                   \
    X(MSG_BAD, "BAD", "故障")                                                                           \
    X(MSG_CHANGE, "CHANGE", "变化")                                                                     \
    X(MSG_CHANGED, "CHANGED", "修改于")                                                                 \
    X(MSG_CHECKPOINTS, "CHECKPOINTS", "检查点")                                                         \
    X(MSG_CLUSTER, "CLUSTER", "集群")                                                                   \
    X(MSG_DRAINING, "DRAINING", "排空")                                                                 \
    X(MSG_ETA, "ETA", "预计")                                                                           \
    X(MSG_ETA_P90, "ETA P90", "预计P90")                                                                \
    X(MSG_FOREIGN, "FOREIGN", "外部")                                                                   \
    X(MSG_FRAGMENTED, "FRAGMENTED", "碎片")                                                             \
    X(MSG_FREE, "FREE", "空闲")                                                                         \
    X(MSG_GANG, "NODES×GPU", "节点×GPU")                                                                \
    X(MSG_GANG_GPUS, "GANG GPUS", "作业GPU数")                                                          \
    X(MSG_GPUS, "GPUS(free/used/bad)", "GPU(空闲/使用/故障)")                                           \
    X(MSG_HEAD, "HEAD", "头节点")                                                                       \
    X(MSG_HEALTH, "HEALTH", "健康")                                                                     \
    X(MSG_ID, "ID", "编号")                                                                             \
    X(MSG_IP, "IP", "地址")                                                                             \
    X(MSG_JOB, "JOB", "作业")                                                                           \
    X(MSG_JOBS, "JOBS", "作业")                                                                         \
    X(MSG_KIND, "KIND", "类别")                                                                         \
    X(MSG_LARGEST, "LARGEST-GANG", "最大作业")                                                          \
    X(MSG_LOAD, "LOAD", "负载")                                                                         \
    X(MSG_MAX, "MAX", "最长")                                                                           \
    X(MSG_MEAN_WAIT, "MEAN WAIT", "平均等待")                                                           \
    X(MSG_MEM, "MEM", "显存")                                                                           \
    X(MSG_URL, "URL", "URL")                                                                            \
    X(MSG_L_GPUS, "GPU memory", "显存")                                                                 \
    X(MSG_MEM_OF, "at most %s GiB on one GPU, which has %s", "单卡最多 %s GiB，容量 %s")                \
    X(MSG_MEM_PEAK, "at most %s GiB on one GPU", "单卡最多 %s GiB")                                     \
    X(MSG_NAME, "NAME", "名称")                                                                         \
    X(MSG_NEVER, "NEVER", "从未启动")                                                                   \
    X(MSG_NEXT_FREE, "NEXT-FREE", "下次空闲")                                                           \
    X(MSG_NODE, "NODE", "节点")                                                                         \
    X(MSG_NODES, "NODES", "节点数")                                                                     \
    X(MSG_P50, "P50", "P50")                                                                            \
    X(MSG_P95, "P95", "P95")                                                                            \
    X(MSG_POLICY, "POLICY", "策略")                                                                     \
    X(MSG_POOL, "POOL", "资源池")                                                                       \
    X(MSG_POS, "POS", "位次")                                                                           \
    X(MSG_PRIO, "PRIO", "优先级")                                                                       \
    X(MSG_PROJECT, "PROJECT", "项目")                                                                   \
    X(MSG_QUEUED, "QUEUED", "入队")                                                                     \
    X(MSG_RAY, "RAY", "RAY")                                                                            \
    X(MSG_REASON, "REASON", "原因")                                                                     \
    X(MSG_RESTARTS, "RESTARTS", "重启")                                                                 \
    X(MSG_RUN, "RUN", "运行")                                                                           \
    X(MSG_SEVERITY, "SEVERITY", "级别")                                                                 \
    X(MSG_RULE, "RULE", "规则")                                                                         \
    X(MSG_INCIDENT, "INCIDENT", "事件")                                                                 \
    X(MSG_ACKED, "ACKED BY", "确认人")                                                                  \
    X(MSG_FROM, "FROM", "来源")                                                                         \
    X(MSG_WHEN, "WHEN", "条件")                                                                         \
    X(MSG_UNTIL, "UNTIL", "至")                                                                         \
    X(MSG_ALERT, "ALERT", "告警")                                                                       \
    X(MSG_MBPS, "MBIT/S", "带宽Mb/s")                                                                   \
    X(MSG_PERCENT, "BASELINE%", "基线%")                                                                \
    X(MSG_SEQ, "SEQ", "序号")                                                                           \
    X(MSG_SINCE, "SINCE", "自")                                                                         \
    X(MSG_SLOWDOWN, "SLOWDOWN", "减速比")                                                               \
    X(MSG_STARVED, "STARVED", "饥饿")                                                                   \
    X(MSG_STATE, "STATE", "状态")                                                                       \
    X(MSG_STEP, "STEP", "步数")                                                                         \
    X(MSG_TEXT, "TEXT", "说明")                                                                         \
    X(MSG_TOTAL, "TOTAL", "总数")                                                                       \
    X(MSG_TYPE, "TYPE", "型号")                                                                         \
    X(MSG_USED, "USED", "使用")                                                                         \
    X(MSG_USER, "USER", "用户")                                                                         \
    X(MSG_UTIL, "UTIL", "利用率")                                                                       \
    X(MSG_WAIT, "WAIT", "等待")                                                                         \
    X(MSG_WAITING, "QUEUED", "排队")                                                                    \
    X(MSG_WORKLOAD, "WORKLOAD", "类型")                                                                 \
    X(MSG_BORROWED, "BORROWED", "借用")                                                                 \
    X(MSG_CPUS, "CPUS", "CPU")                                                                          \
    X(MSG_EXPIRES, "EXPIRES", "到期")                                                                   \
    X(MSG_GPU_HOURS, "GPU-H", "GPU时")                                                                  \
    X(MSG_GPU_USE, "GPUS", "GPU")                                                                       \
    X(MSG_GUARANTEED, "GUAR", "保证")                                                                   \
    X(MSG_ARCHITECTURE, "ARCHITECTURE", "结构")                                                         \
    X(MSG_EXAMPLE, "EXAMPLE", "示例")                                                                   \
    X(MSG_HOLE, "HOLE", "空位")                                                                         \
    X(MSG_REQUIRED, "REQUIRED", "必填")                                                                 \
    X(MSG_VALUE, "VALUE", "值")                                                                         \
    X(MSG_FIT, "FIT", "适用")                                                                           \
    X(MSG_FATE, "THEN", "之后")                                                                         \
    X(MSG_AT_RISK, "AT RISK GPU-H", "有损GPU时")                                                        \
    X(MSG_ENDS, "ENDS", "预计结束")                                                                     \
    X(MSG_OWNER, "OWNER", "所有者")                                                                     \
    X(MSG_PARAMETERS, "PARAMS", "参数量")                                                               \
    X(MSG_ROWS, "ROWS", "行数")                                                                         \
    X(MSG_FILES, "FILES", "文件数")                                                                     \
    X(MSG_HASH, "HASH", "哈希")                                                                         \
    X(MSG_VERL, "VERL", "VERL")                                                                         \
    X(MSG_SIZE, "SIZE", "大小")                                                                         \
    X(MSG_SOURCE, "SOURCE", "来源")                                                                     \
    X(MSG_MADE, "MADE", "创建")                                                                         \
    X(MSG_MEMBERS, "MEMBERS", "成员")                                                                   \
    X(MSG_NOTE, "NOTE", "备注")                                                                         \
    X(MSG_OF, "OF", "所属")                                                                             \
    X(MSG_PROJECTS, "PROJECTS", "项目")                                                                 \
    X(MSG_ROLE, "ROLE", "角色")                                                                         \
    X(MSG_RUNNING, "RUNNING", "运行")                                                                   \
    X(MSG_SHARE, "SHARE", "份额")                                                                       \
    X(MSG_TOKENS, "TOKENS", "令牌")                                                                     \
    X(MSG_LAST_USE, "LAST USE", "上次使用")                                                             \
    X(MSG_L_ATTEMPTS, "attempts", "各次尝试")                                                           \
    X(MSG_L_CHECKPOINTS, "checkpoints", "检查点")                                                       \
    X(MSG_L_CODE, "code", "代码")                                                                       \
    X(MSG_L_CONFIG, "config", "配置")                                                                   \
    X(MSG_L_DEADLINE, "deadline", "期限")                                                               \
    X(MSG_L_ARCHIVE, "archive", "归档")                                                                 \
    X(MSG_L_TRACKERS, "trackers", "跟踪")                                                               \
    X(MSG_L_DIR, "directory", "目录")                                                                   \
    X(MSG_L_DRIVER, "driver", "驱动")                                                                   \
    X(MSG_L_ENDED, "ended", "结束")                                                                     \
    X(MSG_L_EXIT, "exit", "退出")                                                                       \
    X(MSG_L_FINDING, "finding", "诊断")                                                                 \
    X(MSG_L_GOODPUT, "goodput", "有效时间")                                                             \
    X(MSG_L_GANG, "gang", "资源")                                                                       \
    X(MSG_L_HINT, "would help", "建议")                                                                 \
    X(MSG_L_UNFIT, "not fit", "不符合")                                                                 \
    X(MSG_L_UNSEEN, "not seen", "未知")                                                                 \
    X(MSG_L_JOB, "job", "作业")                                                                         \
    X(MSG_L_LOG, "log", "日志")                                                                         \
    X(MSG_L_METRICS, "metrics", "指标")                                                                 \
    X(MSG_L_NODES, "nodes", "节点")                                                                     \
    X(MSG_L_OWNER, "owner", "所有者")                                                                   \
    X(MSG_L_IMPORTS, "imports", "导入")                                                                 \
    X(MSG_L_POSITION, "position", "队列位次")                                                           \
    X(MSG_L_PROOF, "proof", "证明")                                                                     \
    X(MSG_L_QUEUED, "queued", "入队")                                                                   \
    X(MSG_L_RESTARTS, "restarts", "重启")                                                               \
    X(MSG_RESTARTS_OF, "%s of the %s that restart.max allows",                                          \
      "已重启 %s 次，restart.max 允许 %s 次")                                                           \
    X(MSG_L_REASON, "reason", "原因")                                                                   \
    X(MSG_L_STARTED, "started", "开始")                                                                 \
    X(MSG_L_STATE, "state", "状态")                                                                     \
    X(MSG_CURVE, "CURVE", "曲线")                                                                       \
    X(MSG_PROGRESS, "PROGRESS", "进度")                                                                 \
    X(MSG_REWARD, "REWARD", "奖励")                                                                     \
    X(MSG_STEP_TIME, "S/STEP", "每步")                                                                  \
    X(MSG_TOKENS_S, "TOKENS/S", "词元/秒")                                                              \
    X(MSG_L_PROGRESS, "progress", "进度")                                                               \
    X(MSG_L_REWARD, "reward", "奖励")                                                                   \
    X(MSG_L_LOSS, "loss", "损失")                                                                       \
    X(MSG_L_VALIDATION, "validation", "验证")                                                           \
    X(MSG_L_TROUBLE, "trouble", "异常")                                                                 \
    X(MSG_NOT_FINITE, "%s is not a number since step %s", "%s 自第 %s 步起不是数值")                    \
    X(MSG_COLLAPSE, "the reward fell back: %s at best, %s at step %s",                                  \
      "奖励回落：最高 %s，现为 %s（第 %s 步）")                                                         \
    X(MSG_UNREAD, "%s metrics could not be read as numbers, the first: %s at step %s",                  \
      "%s 个指标值无法读作数字，最先出现：%s（第 %s 步）")                                              \
    X(MSG_GOODPUT, "%s of %s were steps that count; %s steps were run again",                           \
      "%s 的时间（共 %s）为有效步；%s 步被重跑")                                                        \
    X(MSG_SAVE_EVERY, "save_freq %s would lose least: a save takes %s, a failure came every %s",        \
      "save_freq 取 %s 损失最少：保存耗时 %s，平均 %s 发生一次故障")                                    \
    X(MSG_SAVE_GUESS,                                                                                   \
      "save_freq %s may lose least: a save takes %s; one failure in %s is not enough to tell a rate",   \
      "save_freq 取 %s 或许损失最少：保存耗时 %s；%s 内仅一次故障，尚不足以估计频率")                   \
    X(MSG_NO_METRICS,                                                                                   \
      "it has told no metrics: they are verl's own, or lines of JSON that it prints, such as "          \
      "{\"step\": 1, \"loss\": 0.5}",                                                                   \
      "没有指标：来自 verl，或作业打印的 JSON 行，例如 {\"step\": 1, \"loss\": 0.5}")                   \
    X(MSG_NO_SUCH_METRICS, "it has told no such metrics: 'argus top %s' names them",                    \
      "没有这样的指标：用 'argus top %s' 查看名称")                                                     \
    X(MSG_NOTHING_RUNS, "none of your jobs runs now: 'argus ls' shows the others",                      \
      "没有正在运行的作业：用 'argus ls' 查看其他作业")                                                 \
    X(MSG_AGO, "%s ago", "%s前")                                                                        \
    X(MSG_IN, "in %s", "%s后")                                                                          \
    X(MSG_NO_JOBS,                                                                                      \
      "no jobs here: 'argus submit FILE' starts one, 'argus ls -a' shows everybody's",                  \
      "没有作业：用 'argus submit FILE' 提交，用 'argus ls -a' 查看所有人的作业")                       \
    X(MSG_QUEUE_EMPTY, "nothing waits in the queue", "队列为空")                                        \
    X(MSG_NO_NODES, "no machines are known: is the cluster up? 'argus node add' brings machines",       \
      "没有节点：集群是否已启动？用 'argus node add' 添加机器")                                         \
    X(MSG_NO_FOREIGN, "nobody else gave Ray a job", "没有其他人提交的 Ray 作业")                        \
    X(MSG_NO_POOLS, "no GPUs yet: 'argus node add' brings machines",                                    \
      "还没有 GPU：用 'argus node add' 添加机器")                                                       \
    X(MSG_NO_LABELS, "no pools: no machine carries a label; 'argus gpus' shows the whole cluster",      \
      "没有资源池：没有节点带标签；用 'argus gpus' 查看整个集群")                                       \
    X(MSG_NO_DATA, "no data sets yet: 'argus data import SOURCE --name NAME' brings one",               \
      "还没有数据集：用 'argus data import SOURCE --name NAME' 导入")                                   \
    X(MSG_NO_SIMULATIONS, "no simulations", "没有模拟")                                                 \
    X(MSG_NO_MODELS, "no models yet: 'argus model import SOURCE --name NAME' brings one",               \
      "还没有模型：用 'argus model import SOURCE --name NAME' 导入")                                    \
    X(MSG_NO_SERVICES, "no services yet: 'argus serve MODEL' starts one",                               \
      "还没有服务：用 'argus serve 模型' 启动")                                                         \
    X(MSG_SERVE_VERSION, "VERSION", "版本")                                                             \
    X(MSG_SERVE_READY, "READY", "就绪")                                                                 \
    X(MSG_SERVE_WHAT, "SERVES", "内容")                                                                 \
    X(MSG_SERVE_RATE, "REQ/MIN", "请求/分")                                                             \
    X(MSG_SERVE_REPLICA, "REPLICA", "副本")                                                             \
    X(MSG_SERVE_PATH, "REQUEST", "请求")                                                                \
    X(MSG_SERVE_STATUS, "STATUS", "状态码")                                                             \
    X(MSG_SERVE_MS, "MS", "毫秒")                                                                       \
    X(MSG_SERVE_TOKENS, "TOKENS", "令牌数")                                                             \
    X(MSG_SERVE_ROUTE, "ROUTE", "路由")                                                                 \
    X(MSG_SERVE_MADE_BY, "MADE BY", "来源")                                                             \
    X(MSG_NO_REQUESTS, "there was no request since argusd started", "argusd 启动以来没有请求")          \
    X(MSG_NO_APPLICATIONS, "there is nothing in Ray Serve", "Ray Serve 中没有应用")                     \
    X(MSG_NO_NOTEBOOKS, "no notebooks yet: 'argus notebook start' starts one",                          \
      "还没有笔记本：用 'argus notebook start' 启动")                                                   \
    X(MSG_OPS_ACTION, "ACTION", "操作")                                                                 \
    X(MSG_OPS_TARGET, "TARGET", "对象")                                                                 \
    X(MSG_OPS_APPROVALS, "APPROVALS", "批准")                                                           \
    X(MSG_OPS_NO_PLANS, "no plans: 'argus ops plan ACTION' makes one",                                  \
      "没有计划：用 'argus ops plan 操作' 生成")                                                        \
    X(MSG_OPS_EXPECTED, "expected: %s", "预期：%s")                                                     \
    X(MSG_OPS_FOUND, "found:    %s", "实际：%s")                                                        \
    X(MSG_OPS_CHANGED, "changed since: %s: %s -> %s", "已变化：%s：%s -> %s")                           \
    X(MSG_OPS_RISK, "%s jobs, %s GPU-hours at risk", "%s 个作业，%s GPU时有损失风险")                   \
    X(MSG_OPS_APPLY_NEXT, "next: argus ops apply %s", "下一步：argus ops apply %s")                     \
    X(MSG_OPS_APPROVE_NEXT, "next, by another admin: argus ops approve %s",                             \
      "下一步（由另一位管理员）：argus ops approve %s")                                                 \
    X(MSG_NOTEBOOK_IDLE, "IDLE", "空闲")                                                                \
    X(MSG_NOTEBOOK_STOPS, "STOPS IN", "停止倒计时")                                                     \
    X(MSG_NEXT_NOTEBOOK, "next: argus notebook show %s | argus notebook url %s",                        \
      "下一步：argus notebook show %s | argus notebook url %s")                                         \
    X(MSG_NEXT_SERVICE, "next: argus service status %s | argus service logs %s",                        \
      "下一步：argus service status %s | argus service logs %s")                                        \
    X(MSG_DONE_STOPPED, "%s stopped", "%s 已停止")                                                      \
    X(MSG_NO_PRESETS, "there are no presets", "没有预设")                                               \
    X(MSG_NO_CHECKPOINTS, "there are no checkpoints", "没有检查点")                                     \
    X(MSG_NO_SNAPSHOTS,                                                                                 \
      "no snapshots yet: 'argus snapshot add DIR --name NAME@VERSION' makes one",                       \
      "还没有快照：用 'argus snapshot add DIR --name NAME@VERSION' 创建")                               \
    X(MSG_NO_EVENTS, "no events yet", "还没有事件")                                                     \
    X(MSG_DRAIN_NO_JOBS, "no job holds anything there", "没有作业占用该节点")                           \
    X(MSG_DRAIN_PLAN, "%s GPU-hours at risk; empty at %s, at the latest %s",                            \
      "有 %s GPU 时将丢失；预计 %s 清空，最迟 %s")                                                      \
    X(MSG_FATE_ENDS, "ends before", "届时已结束")                                                       \
    X(MSG_FATE_STOPPED, "stopped", "停止")                                                              \
    X(MSG_FATE_RESTARTED, "restarted", "重启")                                                          \
    X(MSG_FATE_WAITED, "waited for", "等待结束")                                                        \
    X(MSG_STEPS, "STEPS", "步骤")                                                                       \
    X(MSG_STEP_NAME, "STEP", "步骤")                                                                    \
    X(MSG_SCHEDULE, "SCHEDULE", "计划")                                                                 \
    X(MSG_NEXT_AT, "NEXT", "下次")                                                                      \
    X(MSG_NEEDS, "NEEDS", "依赖")                                                                       \
    X(MSG_STARTED_AT, "STARTED", "开始")                                                                \
    X(MSG_ENDED_AT, "ENDED", "结束")                                                                    \
    X(MSG_WOULD, "WOULD", "将")                                                                         \
    X(MSG_SINCE_RUN, "COMPARED-WITH", "比较")                                                           \
    X(MSG_NO_PIPELINES, "no pipelines yet: 'argus pipe run FILE' stores and runs one",                  \
      "还没有流水线：'argus pipe run 文件' 保存并运行一条")                                             \
    X(MSG_NO_RUNS, "no runs yet: 'argus pipe run FILE' begins one",                                     \
      "还没有运行：'argus pipe run 文件' 开始一次")                                                     \
    X(MSG_NEXT_PIPE, "next: argus pipe show %s --watch | argus pipe cancel %s",                         \
      "接下来：argus pipe show %s --watch | argus pipe cancel %s")                                      \
    X(MSG_PIPE_SCHEDULED, "%s runs by itself, next at %s", "%s 将自动运行，下次在 %s")                  \
    X(MSG_DONE_MADE, "%s made", "%s 已创建")                                                            \
    X(MSG_DONE_BEGUN, "%s begun", "%s 已开始")                                                          \
    X(MSG_DONE_CHANGED, "%s changed", "%s 已修改")                                                      \
    X(MSG_DONE_REMOVED, "%s removed", "%s 已删除")                                                      \
    X(MSG_DONE_CANCELLED, "%s cancelled", "%s 已取消")                                                  \
    X(MSG_DONE_REVOKED, "%s revoked", "%s 已吊销")                                                      \
    X(MSG_DONE_STORED, "%s stored", "%s 已保存")                                                        \
    X(MSG_COLUMNS_HIDDEN, "some columns do not fit: widen the terminal or use -o wide",                 \
      "有些列放不下：加宽终端，或使用 -o wide")                                                         \
    X(MSG_MORE, "there are more: --limit N shows more of them", "还有更多：用 --limit N 查看")          \
    X(MSG_DETACHED, "detached; job %s goes on (argus logs -f %s, argus stop %s)",                       \
      "已断开，作业 %s 继续运行（argus logs -f %s，argus stop %s）")                                    \
    X(MSG_LOST, "connection lost (%s), reconnecting", "连接中断（%s），正在重连")                       \
    X(MSG_TRY_HELP, "try 'argus %s%s'", "请看 'argus %s%s'")                                            \
    X(MSG_BACK, "connected again", "已重新连接")                                                        \
    X(MSG_DRIVER_OK, "driver on worker %s (%s), not on the head (%s)",                                  \
      "驱动位于工作节点 %s（%s），不在头节点（%s）")                                                    \
    X(MSG_DRIVER_BAD, "the driver is ON THE HEAD (%s)", "驱动位于头节点（%s），不应如此")               \
    X(MSG_IMPORT_OK, "verl %s from %s, on %s", "verl %s 来自 %s，节点 %s")                              \
    X(MSG_DRIVER_UNKNOWN, "not checked yet", "尚未检查")                                                \
    X(MSG_NEXT_STEPS, "next: argus logs -f %s | argus status %s | argus stop %s",                       \
      "下一步：argus logs -f %s | argus status %s | argus stop %s")                                     \
    X(MSG_INIT_MADE, "made %s, and %s with this token, which is not shown again:",                      \
      "已生成 %s，以及保存此令牌的 %s（令牌不再显示）：")                                               \
    X(MSG_INIT_UNIT, "argusd is a service: systemctl enable --now argusd (%s)",                         \
      "argusd 是系统服务：systemctl enable --now argusd（%s）")                                         \
    X(MSG_INIT_SCRIPT, "argusd runs in the foreground, and again when it dies: %s",                     \
      "argusd 在前台运行，异常退出后自动重启：%s")                                                      \
    X(MSG_INIT_BY_HAND, "argusd is started by you: %s --config %s",                                     \
      "argusd 由您启动：%s --config %s")                                                                \
    X(MSG_INIT_NEXT, "then: argus login http://%s < %s", "然后：argus login http://%s < %s")            \
    X(MSG_INIT_ASK_ROOT, "directory that all machines share", "所有机器共享的目录")                     \
    X(MSG_INIT_ASK_STATE, "directory of argusd's own, on a local disk",                                 \
      "argusd 自己的目录，在本地磁盘上")                                                                \
    X(MSG_INIT_ASK_LISTEN, "address and port to answer at", "监听的地址和端口")                         \
    X(MSG_WATCH_EVERY, "every 2 s, Ctrl-C ends", "每 2 秒刷新，Ctrl-C 结束")

enum msg_id {
#define X(id, en, zh) id,
    MSG_TABLE(X)
#undef X
        MSG_COUNT
};

/* From a value such as "zh_CN.UTF-8"; NULL is English. */
enum message_language lang_from_string(const char *locale);

/* Borrowed for ever. */
const char *msg(enum message_language lang, enum msg_id id);

/* A message with up to three texts put in place of its %s, in order; for messages that take
 * texts only. Returns out, cut to fit. */
const char *msg_fill(enum message_language lang,
                     enum msg_id id,
                     const char *const *texts,
                     char *out,
                     int out_size);
