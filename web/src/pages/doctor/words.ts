// SPDX-License-Identifier: Apache-2.0
import { words } from "../../base/words";

export const w = words({
    doctor: ["Doctor", "体检"],
    again: ["Look again", "重新检查"],
    all_well: ["nothing is ill", "没有异常"],
    n_ill: ["{0} ill", "{0} 项异常"],
    check: ["Check", "检查项"],
    says: ["What was found, and what to do", "结果与处理办法"],
    none: ["No checks", "没有检查项"],
    none_text: ["This argusd made no check of itself.", "该 argusd 没有进行任何检查。"],
    admins: [
        "What argusd finds of its own state is for admins: it names machines, servers and people's tokens.",
        "argusd 的自检结果仅管理员可见：其中包含机器、服务器和用户令牌的信息。",
    ],
    s_well: ["well", "正常"],
    s_soon: ["soon", "即将异常"],
    s_ill: ["ill", "异常"],
    s_unknown: ["not known", "未知"],
    c_store: ["Store", "存储"],
    c_ray: ["Ray", "Ray"],
    c_root: ["Shared root", "共享目录"],
    c_root_test: ["Test of the shared root", "共享目录测试"],
    c_root_room: ["Room on the shared root", "共享目录空间"],
    c_state_room: ["Room for the store", "存储空间"],
    c_clocks: ["Clocks", "时钟"],
    c_ports: ["Ray's ports", "Ray 端口"],
    c_versions: ["Versions of Ray", "Ray 版本"],
    c_certificate: ["Certificate", "证书"],
    c_tokens: ["Tokens", "令牌"],
    c_receivers: ["Receivers of alerts", "告警接收方"],
    c_trackers: ["Trackers", "跟踪"],
    c_prometheus: ["Metrics", "指标"],
});

const CHECKS = [
    "store",
    "ray",
    "root",
    "root_test",
    "root_room",
    "state_room",
    "clocks",
    "ports",
    "versions",
    "certificate",
    "tokens",
    "receivers",
    "trackers",
    "prometheus",
] as const;
/** A check of a newer argusd keeps its name. */
export function checkSays(name: string): string {
    const known = CHECKS.find((c) => c === name);
    return known ? w(`c_${known}`) : name;
}
