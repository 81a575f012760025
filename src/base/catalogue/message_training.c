/* SPDX-License-Identifier: Apache-2.0 */
/* message_training.c - what is said of a training: its verdict, and what would make its step
 * shorter; see message_rows.h. */
#include "base/catalogue/message_rows.h"

static const struct message_row
    rows[] =
        {
            /* ---- the verdict: one for each kind, "verdict_" and its word: core/training/verdict.h
               ---- */
            SAY("verdict_early",
                "{steps} {steps|step is|steps are} too few for a verdict: it begins with {least}",
                "{steps} 步太少，不足以判断：从 {least} 步开始"),
            SAY("verdict_fine",
                "nothing wrong is seen in {steps} steps",
                "{steps} 步中没有看到问题"),
            SAY_FIX(
                "verdict_not_finite",
                "'{metric}' is not a number since step {step}",
                "'{metric}' 从第 {step} 步起不是数",
                "lower actor_rollout_ref.actor.optim.lr, keep actor_rollout_ref.actor.grad_clip at 1.0, and look at the samples of that step",
                "降低 actor_rollout_ref.actor.optim.lr，保持 actor_rollout_ref.actor.grad_clip 为 1.0，并查看该步的样本"),
            SAY_FIX(
                "verdict_reward_fell",
                "the reward fell back by step {step}: its mean was {base} at best and is {value}",
                "奖励到第 {step} 步已回落：均值最高为 {base}，现为 {value}",
                "go on from a checkpoint before that step with a lower actor_rollout_ref.actor.optim.lr",
                "从该步之前的检查点继续，并降低 actor_rollout_ref.actor.optim.lr"),
            SAY_FIX(
                "verdict_entropy_collapse",
                "the entropy collapsed from step {step} on: it is {value}, {base} was usual, and the reward does not rise",
                "熵从第 {step} 步起坍缩：现为 {value}，通常为 {base}，而奖励没有上升",
                "raise actor_rollout_ref.actor.entropy_coeff or actor_rollout_ref.actor.clip_ratio_high, or lower actor_rollout_ref.actor.optim.lr",
                "提高 actor_rollout_ref.actor.entropy_coeff 或 actor_rollout_ref.actor.clip_ratio_high，或降低 actor_rollout_ref.actor.optim.lr"),
            SAY_FIX(
                "verdict_entropy_rise",
                "the entropy rises from step {step} on: it is {value}, {base} was usual, and the reward does not rise",
                "熵从第 {step} 步起上升：现为 {value}，通常为 {base}，而奖励没有上升",
                "lower actor_rollout_ref.actor.entropy_coeff or actor_rollout_ref.actor.optim.lr, and look whether the answers still are text",
                "降低 actor_rollout_ref.actor.entropy_coeff 或 actor_rollout_ref.actor.optim.lr，并查看回答是否仍是文本"),
            SAY_FIX(
                "verdict_kl_spike",
                "'{metric}' jumped at step {step}: to {value}, where {base} was usual",
                "'{metric}' 在第 {step} 步跳变：达到 {value}，通常为 {base}",
                "lower actor_rollout_ref.actor.optim.lr or raise actor_rollout_ref.actor.kl_loss_coef, and look at the samples of that step",
                "降低 actor_rollout_ref.actor.optim.lr 或提高 actor_rollout_ref.actor.kl_loss_coef，并查看该步的样本"),
            SAY_FIX(
                "verdict_kl_high",
                "the policy moves too far in one step since step {step}: '{metric}' is {value}, more than {limit}",
                "从第 {step} 步起策略每步移动过大：'{metric}' 为 {value}，超过 {limit}",
                "lower actor_rollout_ref.actor.optim.lr or actor_rollout_ref.actor.ppo_epochs",
                "降低 actor_rollout_ref.actor.optim.lr 或 actor_rollout_ref.actor.ppo_epochs"),
            SAY_FIX(
                "verdict_grad_jump",
                "the norm of the gradient grew at step {step}: to {value}, where {base} was usual",
                "梯度范数在第 {step} 步变大：达到 {value}，通常为 {base}",
                "lower actor_rollout_ref.actor.optim.lr or actor_rollout_ref.actor.grad_clip",
                "降低 actor_rollout_ref.actor.optim.lr 或 actor_rollout_ref.actor.grad_clip"),
            SAY_FIX(
                "verdict_no_update",
                "nothing is learnt since step {step}: '{metric}' is zero",
                "从第 {step} 步起没有学到任何东西：'{metric}' 为零",
                "look at actor_rollout_ref.actor.optim.lr and its schedule; a gradient of zero also means that all answers to a prompt get the same score",
                "检查 actor_rollout_ref.actor.optim.lr 及其调度；梯度为零也意味着同一提示的所有回答得分相同"),
            SAY_FIX(
                "verdict_reward_flat",
                "the reward tells nothing: its mean is exactly {value} in each step since {step}",
                "奖励没有信息：从第 {step} 步起每步均值恰为 {value}",
                "see that reward_fn_path reads the answer and gives different scores to different answers",
                "检查 reward_fn_path 是否读取回答，并对不同的回答给出不同的分数"),
            SAY_FIX(
                "verdict_reward_noise",
                "the scores follow neither the prompt nor the answer since step {step}: both explain {value} % of their spread, as they would of random numbers",
                "从第 {step} 步起分数既不随提示也不随回答变化：两者只解释其差异的 {value} %，与随机数无异",
                "see that reward_fn_path reads this sample's answer and its own ground truth, and gives the same answer the same score twice",
                "检查 reward_fn_path 读取的是该样本的回答及其自己的标准答案，并且对同一回答两次给出相同的分数"),
            SAY_FIX(
                "verdict_groups_flat",
                "no group teaches anything since step {step}: all answers to a prompt get the same score",
                "从第 {step} 步起没有任何一组能带来学习：同一提示的所有回答得分相同",
                "set algorithm.filter_groups.enable=true, take prompts that are neither solved nor hopeless, or raise actor_rollout_ref.rollout.temperature and rollout.n",
                "设置 algorithm.filter_groups.enable=true，选用既未解决也非无望的提示，或提高 actor_rollout_ref.rollout.temperature 与 rollout.n"),
            SAY_FIX(
                "verdict_groups_wasted",
                "{value} % of the prompts teach nothing since step {step}: all answers to one get the same score",
                "从第 {step} 步起 {value} % 的提示没有带来学习：同一提示的所有回答得分相同",
                "set algorithm.filter_groups.enable=true, or take prompts that are neither solved nor hopeless: samples/solved_groups says how many are solved",
                "设置 algorithm.filter_groups.enable=true，或选用既未解决也非无望的提示：samples/solved_groups 说明其中已解决的比例"),
            SAY_FIX(
                "verdict_same_answers",
                "all answers to a prompt are the same text since step {step}: so it is for {value} % of the prompts",
                "从第 {step} 步起同一提示的所有回答是相同的文本：{value} % 的提示如此",
                "raise actor_rollout_ref.rollout.temperature, and see that actor_rollout_ref.rollout.do_sample is true; raise actor_rollout_ref.actor.entropy_coeff where the policy itself has lost its choices",
                "提高 actor_rollout_ref.rollout.temperature，并检查 actor_rollout_ref.rollout.do_sample 为 true；若策略本身已失去选择，则提高 actor_rollout_ref.actor.entropy_coeff"),
            SAY_FIX(
                "verdict_repetition",
                "the answers repeat themselves since step {step}: {value} % of an answer stood in it before, {base} % at first",
                "从第 {step} 步起回答自我重复：{value} % 的内容在同一回答中出现过，最初为 {base} %",
                "go on from a checkpoint before that step with a lower actor_rollout_ref.actor.optim.lr, and see that reward_fn_path does not pay for it",
                "从该步之前的检查点继续并降低 actor_rollout_ref.actor.optim.lr，并检查 reward_fn_path 没有为此给分"),
            SAY_FIX(
                "verdict_language",
                "the text is of another language or none since step {step}: '{metric}' is {value} %, {base} % at first",
                "从第 {step} 步起文本换成了另一种语言或不成文本：'{metric}' 为 {value} %，最初为 {base} %",
                "look at the samples of that step, and at the rows of data.train_files that it read",
                "查看该步的样本，以及它读取的 data.train_files 的行"),
            SAY_FIX(
                "verdict_data_repeats",
                "the same prompts come again and again since step {step}: {value} % of them are not those of the two steps before",
                "从第 {step} 步起反复使用同样的提示：只有 {value} % 不同于前两步的提示",
                "see how many different rows data.train_files has, that data.shuffle is true, and that data.train_batch_size is smaller than the data",
                "检查 data.train_files 有多少不同的行、data.shuffle 是否为 true，以及 data.train_batch_size 是否小于数据量"),
            SAY_FIX(
                "verdict_length_limit",
                "{value} % of the answers end at the limit of their length since step {step}; it was {base} % at first",
                "从第 {step} 步起 {value} % 的回答在长度上限处结束；最初为 {base} %",
                "raise data.max_response_length, or let the reward punish length (reward.reward_kwargs.overlong_buffer_cfg)",
                "提高 data.max_response_length，或让奖励惩罚长度（reward.reward_kwargs.overlong_buffer_cfg）"),
            SAY_FIX(
                "verdict_no_end",
                "no answer ends by itself since step {step}: {value} % end at the limit of their length",
                "从第 {step} 步起没有回答自行结束：{value} % 在长度上限处结束",
                "see that the end-of-sequence token of the model's generation_config.json is the one of its chat template, and that data.max_response_length is not too small",
                "检查模型 generation_config.json 的结束符是否与其对话模板一致，以及 data.max_response_length 是否过小"),
            SAY_FIX(
                "verdict_aborted",
                "{value} % of the answers were aborted since step {step}",
                "从第 {step} 步起 {value} % 的回答被中止",
                "lower actor_rollout_ref.rollout.max_num_seqs or raise actor_rollout_ref.rollout.gpu_memory_utilization, and see the log of the rollout server",
                "降低 actor_rollout_ref.rollout.max_num_seqs 或提高 actor_rollout_ref.rollout.gpu_memory_utilization，并查看 rollout 服务的日志"),
            SAY_FIX(
                "verdict_clipped",
                "{value} % of the tokens are clipped since step {step}: they teach nothing",
                "从第 {step} 步起 {value} % 的词元被裁剪：它们不带来学习",
                "lower actor_rollout_ref.actor.optim.lr or actor_rollout_ref.actor.ppo_epochs, or raise actor_rollout_ref.actor.clip_ratio",
                "降低 actor_rollout_ref.actor.optim.lr 或 actor_rollout_ref.actor.ppo_epochs，或提高 actor_rollout_ref.actor.clip_ratio"),
            SAY_FIX(
                "verdict_parted",
                "the reward rose from {base} to {value} since step {step}, and '{metric}' did not rise in {limit} validations: look at the samples",
                "从第 {step} 步起奖励从 {base} 升到 {value}，而 '{metric}' 在 {limit} 次验证中没有上升：请查看样本",
                "read the best answers of the newest step; see that reward_fn_path and the validation ask for the same thing",
                "阅读最新一步得分最高的回答；检查 reward_fn_path 与验证要求的是否一致"),
            SAY_FIX(
                "verdict_gap",
                "sampler and trainer disagree since step {step}: '{metric}' is {value}, the limit is {limit}",
                "从第 {step} 步起采样端与训练端不一致：'{metric}' 为 {value}，限值为 {limit}",
                "set algorithm.rollout_correction.rollout_is=token, and give rollout and actor the same dtype",
                "设置 algorithm.rollout_correction.rollout_is=token，并让 rollout 与 actor 使用相同的 dtype"),
            SAY_FIX(
                "verdict_stale",
                "answers come from weights that are up to {value} versions old since step {step}, more than {limit}",
                "从第 {step} 步起回答来自最多落后 {value} 个版本的权重，超过 {limit}",
                "lower trainer.v1.sampler.max_off_policy_threshold, or async_training.staleness_threshold of the fully asynchronous trainer",
                "降低 trainer.v1.sampler.max_off_policy_threshold，或全异步训练器的 async_training.staleness_threshold"),
            SAY_FIX(
                "verdict_memory",
                "out of memory near step {limit}: '{metric}' is {value} GB and grows by {base} GB a step",
                "约在第 {limit} 步内存耗尽：'{metric}' 为 {value} GB，每步增长 {base} GB",
                "lower actor_rollout_ref.actor.ppo_max_token_len_per_gpu or the micro-batch size, and save before that step",
                "降低 actor_rollout_ref.actor.ppo_max_token_len_per_gpu 或微批大小，并在该步之前保存"),
            SAY_FIX("verdict_loss_jump",
                    "the loss grew from step {step} on: it is {value}, {base} was usual",
                    "损失从第 {step} 步起变大：现为 {value}，通常为 {base}",
                    "lower optim.lr, and look at the rows of data that those steps read",
                    "降低 optim.lr，并查看这些步读取的数据行"),

            /* ---- alerts of a job's own: core/training/metric_alarm.h ---- */
            SAY("metric_alert",
                "{alert}: '{metric}' is {value} since step {step}, {from} before",
                "{alert}：'{metric}' 从第 {step} 步起为 {value}，此前为 {from}"),
            SAY("metric_alert",
                "{alert}: '{metric}' is {value} since step {step}",
                "{alert}：'{metric}' 从第 {step} 步起为 {value}"),
            SAY("metric_alert_waits", "{alert}: it never held", "{alert}：从未成立"),

            /* ---- a slow rank, "rank_slow_" and its cause: core/training/rank.h ---- */
            SAY_FIX("rank_slow_cpu_cap", "rank {rank} on {node} holds the others up: it works {factor} times as long as they do, and they wait {lost} % of the time; its limit of CPU holds it back", "{node} 上的 rank {rank} 拖慢了其他 rank：其工作时间为其他的 {factor} 倍，其他 rank 有 {lost} % 的时间在等待；受其 CPU 限额限制", "raise the limit of CPU of the container on that node, or take the node out: argus node drain {node}", "提高该节点上容器的 CPU 限额，或将其移出：argus node drain {node}"),
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
            LEVER(
                "weights",
                "the weights go to the rollout",
                "权重传给 rollout",
                "raise actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes",
                "提高 actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes"),
            LEVER(
                "save",
                "the GPUs wait for checkpoints",
                "GPU 在等待检查点",
                "raise save_freq, or save less (actor_rollout_ref.actor.checkpoint.save_contents)",
                "提高 save_freq，或减少保存内容（actor_rollout_ref.actor.checkpoint.save_contents）"),
            LEVER("validate",
                  "validations run",
                  "验证在运行",
                  "raise test_freq, or take fewer rows (data.val_max_samples)",
                  "提高 test_freq，或减少行数（data.val_max_samples）"),
            LEVER(
                "rest",
                "no stage explains this time",
                "没有阶段能解释这段时间",
                "raise data.dataloader_num_workers, and look at what the driver does between the stages",
                "提高 data.dataloader_num_workers，并查看 driver 在各阶段之间做什么"),
};
const struct message_family message_training = MESSAGE_FAMILY(rows);
