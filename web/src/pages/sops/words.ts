// SPDX-License-Identifier: Apache-2.0
import { words } from "../../base/words";

export const w = words({
    sops: ["SOPs", "运维手册"],
    sub: ["What to do, step by step, with the answer that each step should give", "逐步操作，每一步都写明应看到的结果"],
    sop: ["SOP", "手册"],
    n_steps: ["Steps to take", "操作步数"],
    no_such: ["No such SOP", "没有这份手册"],
    no_such_text: ["This argusd was built without a page of that name.", "此版本的 argusd 中没有这个名字的页面。"],
    all: ["All SOPs", "全部手册"],
    only_english: ["There is no Chinese text of this page yet.", "此页暂无中文。"],
    expected: ["What you should see", "应看到的结果"],
    copy: ["Copy", "复制"],
    copy_of: ["Copy the command of {0}", "复制命令：{0}"],
    copy_values: ["Copy the values", "复制这些值"],
    example: ["example: {0}", "例：{0}"],
    look: ["Show the answer now", "查看现在的结果"],
    look_of: ["Show the answer now: {0}", "查看现在的结果：{0}"],
    says_now: ["What it says now", "现在的结果"],
    nothing: ["It lists nothing.", "没有内容。"],
    make_plan: ["Make this plan", "生成此计划"],
    set_first: ["Set {0} above first", "请先在上方填写 {0}"],
    at_ops: ["Plans", "计划"],
    at_nodes: ["On the page Nodes", "到“节点”页"],
    at_users: ["On the page Accounts", "到“项目与用户”页"],
    at_events: ["On the page Events", "到“事件”页"],
});
