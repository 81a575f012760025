// SPDX-License-Identifier: Apache-2.0
import { words } from "../../base/words";

export const w = words({
    ops: ["Ops", "运维"],
    plans: ["Plans", "计划"],
    plan: ["Plan", "计划"],
    target: ["Target", "对象"],
    by: ["Asked by", "提出者"],
    approvals: ["Approvals", "批准"],
    risk: ["GPU-hours at risk", "有风险的 GPU 时"],
    expires: ["Expires", "到期"],
    none: ["No plans", "没有计划"],
    none_text: [
        "What is dangerous is planned first: draining or removing a machine, restarting the head, cleaning up checkpoints, stopping many jobs. A plan shows what it would touch and does nothing by itself.",
        "危险操作先生成计划：排空或移除机器、重启头节点、清理检查点、停止多个作业。计划会显示影响范围，本身不执行任何操作。",
    ],
    gone: ["No such plan", "没有这个计划"],
    jobs: ["Jobs it touches", "涉及的作业"],
    no_jobs: ["It touches no job.", "不涉及任何作业。"],
    things: ["And", "以及"],
    steps: ["Steps", "步骤"],
    expected: ["Expected", "预期"],
    found: ["Found", "实际"],
    changed: [
        "The state has changed since: it cannot be applied. Make a new plan.",
        "状态已变化，无法执行。请重新生成计划。",
    ],
    apply: ["Apply", "执行"],
    apply_title: ["Apply {0}?", "执行 {0}？"],
    apply_text: [
        "Jobs: {0}, of {1}. GPU-hours that may be lost: {2}. After each step argusd looks whether it came to what was expected.",
        "作业：{0} 个（{1}）；可能损失的 GPU 时：{2}。argusd 会在每一步之后核对结果。",
    ],
    apply_done: ["The plan is under way", "计划正在执行"],
    nobody: ["nobody", "无人"],
    type_it: ["Type {0} to go on", "输入 {0} 以继续"],
    approve: ["Approve", "批准"],
    approve_title: ["Approve {0}?", "批准 {0}？"],
    approve_text: [
        "Then whoever may apply it can do so, while nothing has changed.",
        "之后在状态未变的情况下即可执行。",
    ],
    approve_done: ["Approved", "已批准"],
    s_waiting: ["waiting", "等待中"],
    s_expired: ["expired", "已过期"],
    s_applying: ["applying", "执行中"],
    s_running: ["running", "进行中"],
    s_done: ["done", "完成"],
    s_failed: ["failed", "失败"],
    s_broken_off: ["broken off", "中断"],
    remedies: ["What argusd puts right by itself", "argusd 自动补救"],
    remedy: ["Remedy", "补救措施"],
    is_on: ["on", "开启"],
    is_off: ["off", "关闭"],
    an_hour: ["Limit per hour", "每小时上限"],
    rests: ["Rests", "间歇"],
    last_hour: ["In the last hour", "最近一小时"],
    l_may: ["It may act again", "可以再次执行"],
    l_rests: ["It rests for a moment", "短暂间歇中"],
    l_spent: ["Its limit for an hour is reached", "一小时内的次数已用完"],
    r_stray_process: ["Processes of a job that is over", "已结束作业的残留进程"],
    r_dead_sessions: ["Dead Ray sessions on a full disk", "磁盘满时清理已结束的 Ray 会话"],
    r_raylet: ["A raylet that died", "raylet 意外结束"],
    acts: ["What it put right in the last 24 hours", "最近 24 小时的补救"],
    at: ["At", "时间"],
    machine: ["Machine", "机器"],
    what_for: ["What for", "原因"],
    came_to: ["Result", "结果"],
    o_under_way: ["under way", "进行中"],
    o_done: ["done", "完成"],
    o_failed: ["failed", "失败"],
    o_broken_off: ["broken off", "中断"],
    no_acts: ["Nothing had to be put right", "没有需要补救的情况"],
    no_acts_text: [
        "Each act would stand here with the machine, what it was for and what it came to.",
        "每次补救都会在这里列出：机器、原因和结果。",
    ],
    f_ends_before: ["ends before", "届时已结束"],
    f_stopped: ["stopped", "停止"],
    f_restarted: ["goes back to the queue", "回到队列"],
    f_waited_for: ["runs to its end", "运行到结束"],
});

const STATES = ["waiting", "expired", "applying", "running", "done", "failed", "broken_off"] as const;
/** Of a plan or a step; a word of a newer argusd stays as it is. */
export function stateSays(state: string): string {
    const known = STATES.find((s) => s === state);
    return known ? w(`s_${known}`) : state;
}

const FATES = ["ends_before", "stopped", "restarted", "waited_for"] as const;
export function fateSays(fate: string): string {
    const known = FATES.find((f) => f === fate);
    return known ? w(`f_${known}`) : fate;
}
