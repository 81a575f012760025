/* SPDX-License-Identifier: Apache-2.0 */
/* message_training.c - what is said of a training beside its verdict: its alerts, its slow rank,
 * what would make its step shorter; see message_rows.h. */
#include "base/catalogue/message_rows.h"

static const struct message_row rows[] = {
    /* ---- alerts of a job's own: core/training/metric_alarm.h ---- */
    SAY("metric_alert",
        "{alert}: '{metric}' is {value} since step {step}, {from} before",
        "{alert}：'{metric}' 从第 {step} 步起为 {value}，此前为 {from}"),
    SAY("metric_alert",
        "{alert}: '{metric}' is {value} since step {step}",
        "{alert}：'{metric}' 从第 {step} 步起为 {value}"),
    SAY("metric_alert_waits", "{alert}: it never held", "{alert}：从未成立"),

    /* ---- a slow rank, "rank_slow_" and its cause: core/training/rank.h ---- */
    SAY_FIX(
        "rank_slow_cpu_cap",
        "rank {rank} on {node} holds the others up: it works {factor} times as long as they do, and they wait {lost} % of the time; its limit of CPU holds it back",
        "{node} 上的 rank {rank} 拖慢了其他 rank：其工作时间为其他的 {factor} 倍，其他 rank 有 {lost} % 的时间在等待；受其 CPU 限额限制",
        "raise the limit of CPU of the container on that node, or take the node out: argus node drain {node}",
        "提高该节点上容器的 CPU 限额，或将其移出：argus node drain {node}"),
    SAY_FIX(
        "rank_slow_memory",
        "rank {rank} on {node} holds the others up: it works {factor} times as long as they do, and they wait {lost} % of the time; its memory comes back from the disk",
        "{node} 上的 rank {rank} 拖慢了其他 rank：其工作时间为其他的 {factor} 倍，其他 rank 有 {lost} % 的时间在等待；其内存页从磁盘读回",
        "see what else uses the memory of that node, raise the container's limit, or take the node out: argus node drain {node}",
        "查看该节点上还有什么占用内存，提高容器的内存限额，或将其移出：argus node drain {node}"),
    SAY_FIX(
        "rank_slow_disk",
        "rank {rank} on {node} holds the others up: it works {factor} times as long as they do, and they wait {lost} % of the time; it reads or writes while its processor rests",
        "{node} 上的 rank {rank} 拖慢了其他 rank：其工作时间为其他的 {factor} 倍，其他 rank 有 {lost} % 的时间在等待；它在读写而处理器空闲",
        "look at the disk of that node, and at where the job reads its data; take the node out: argus node drain {node}",
        "检查该节点的磁盘以及作业读取数据的位置；或将其移出：argus node drain {node}"),
    SAY_FIX(
        "rank_slow_network",
        "rank {rank} on {node} is far from the others: its connections take {factor} times as long as theirs, and all wait {lost} % of the time",
        "{node} 上的 rank {rank} 与其他 rank 的连接缓慢：往返时间为其他的 {factor} 倍，所有 rank 有 {lost} % 的时间在等待",
        "measure the network of that node, argus node check --net, or take the node out: argus node drain {node}",
        "测量该节点的网络：argus node check --net，或将其移出：argus node drain {node}"),
    SAY_FIX(
        "rank_slow_blocked",
        "rank {rank} on {node} holds the others up: it works {factor} times as long as they do, and they wait {lost} % of the time; its processor rests meanwhile",
        "{node} 上的 rank {rank} 拖慢了其他 rank：其工作时间为其他的 {factor} 倍，其他 rank 有 {lost} % 的时间在等待；其处理器此时空闲",
        "see what that process waits for (a disk, a lock, a device); where it is the machine take the node out: argus node drain {node}",
        "查看该进程在等待什么（磁盘、锁、设备）；若是机器的问题则移出：argus node drain {node}"),
    SAY_FIX(
        "rank_slow_computes",
        "rank {rank} on {node} holds the others up: it works {factor} times as long as they do, and they wait {lost} % of the time; it computes meanwhile",
        "{node} 上的 rank {rank} 拖慢了其他 rank：其工作时间为其他的 {factor} 倍，其他 rank 有 {lost} % 的时间在等待；它此时在计算",
        "see whether it has more to do than the others, and whether the clock of its processor or GPU is held back; take the node out: argus node drain {node}",
        "检查其任务是否多于其他 rank，以及其处理器或 GPU 是否被降频；或将其移出：argus node drain {node}"),

    /* ---- what is not measured ---- */
    SAY("unmeasured_entropy", "the entropy", "熵"),
    SAY("unmeasured_kl", "KL", "KL"),
    SAY("unmeasured_length",
        "how many answers end at the limit of their length",
        "有多少回答在长度上限处结束"),
    SAY("unmeasured_gap",
        "the gap between sampler and trainer (rollout_corr/*: bypass mode and some asynchronous trainers tell none)",
        "采样端与训练端的差距（rollout_corr/*：旁路模式和部分异步训练器不报告）"),
    SAY("unmeasured_staleness",
        "how old the weights are that answer (verl tells it from 0.9 on)",
        "回答所用权重的新旧（verl 从 0.9 起报告）"),
    SAY("unmeasured_validation", "the reward against a validation", "奖励与验证的对照"),
    SAY("unmeasured_memory",
        "the trend of memory (the memory of the machines is not known, or verl does not tell its own)",
        "内存趋势（机器的内存未知，或 verl 未报告自己的用量）"),

/* ---- levers: core/training/anatomy.h ---- */
#define LEVER(word, english, chinese, english_fix, chinese_fix)                                    \
    SAY_FIX("lever_" word,                                                                         \
            english ": at most {seconds} s of a step ({share} %), {hours} GPU-hours so far",       \
            chinese "：每步最多 {seconds} 秒（{share} %），至今 {hours} GPU 小时", english_fix,    \
            chinese_fix),                                                                          \
        SAY_FIX("lever_" word, english ": at most {seconds} s of a step ({share} %)",              \
                chinese "：每步最多 {seconds} 秒（{share} %）", english_fix, chinese_fix)
    LEVER(
        "tools",
        "each step waits for the tools of its slowest sample",
        "每步都在等待最慢样本的工具",
        "give the tool a timeout, or bound the turns (actor_rollout_ref.rollout.multi_turn.max_assistant_turns)",
        "为工具设置超时，或限制轮数（actor_rollout_ref.rollout.multi_turn.max_assistant_turns）"),
    LEVER("tail",
          "the longest answers keep the GPUs waiting",
          "最长的回答让 GPU 等待",
          "lower data.max_response_length, or use an asynchronous trainer",
          "降低 data.max_response_length，或使用异步训练器"),
    LEVER("reward",
          "the GPUs wait for the reward",
          "GPU 在等待奖励",
          "raise reward.num_workers, or make the reward function quicker",
          "提高 reward.num_workers，或加快奖励函数"),
    LEVER(
        "old_log_prob",
        "the log-probabilities are computed anew",
        "对数概率被重新计算",
        "algorithm.rollout_correction.bypass_mode=true uses those of the sampler (verl 0.7 and newer), and then the gap is not measured",
        "algorithm.rollout_correction.bypass_mode=true 使用采样端的值（verl 0.7 及以上），此时不再测量差距"),
    LEVER("reference",
          "the reference model computes",
          "参考模型的计算",
          "actor_rollout_ref.ref.log_prob_use_dynamic_bsz=true, or no KL term at all",
          "actor_rollout_ref.ref.log_prob_use_dynamic_bsz=true，或完全不用 KL 项"),
    LEVER("weights",
          "the weights go to the rollout",
          "权重传给 rollout",
          "raise actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes",
          "提高 actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes"),
    LEVER("save",
          "the GPUs wait for checkpoints",
          "GPU 在等待检查点",
          "raise save_freq, or save less (actor_rollout_ref.actor.checkpoint.save_contents)",
          "提高 save_freq，或减少保存内容（actor_rollout_ref.actor.checkpoint.save_contents）"),
    LEVER("validate",
          "validations run",
          "验证在运行",
          "raise test_freq, or take fewer rows (data.val_max_samples)",
          "提高 test_freq，或减少行数（data.val_max_samples）"),
    LEVER("rest",
          "no stage explains this time",
          "没有阶段能解释这段时间",
          "raise data.dataloader_num_workers, and look at what the driver does between the stages",
          "提高 data.dataloader_num_workers，并查看 driver 在各阶段之间做什么"),
};
const struct message_family message_training = MESSAGE_FAMILY(rows);
