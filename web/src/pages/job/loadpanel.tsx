// SPDX-License-Identifier: Apache-2.0
// loadpanel.tsx - what a running job takes of its nodes: its own cores and memory, and what each node does in all.
import type { Job, JobNodeLoad } from "../../made/api";
import { useAsk } from "../../api/use";
import { bytes, num, visible } from "../../base/say";
import { words } from "../../base/words";
import { Pending } from "../../kit/blank";
import { CopyCsv, Dash, Panel, Text } from "../../kit/parts";
import { Table, type Col } from "../../kit/table";
import { t } from "../../words/shared";
import { loadCsv, shared, unmeasured } from "./load";
import { w } from "./words";

const g = words({
    cores: ["Job's CPU, cores", "作业 CPU，核"],
    memory: ["Job's memory", "作业内存"],
    node_cpu: ["Node's CPU", "节点 CPU"],
    node_memory: ["Node's memory", "节点内存"],
    objects: ["Object store", "对象存储"],
    network: ["Network in / out", "网络 收 / 发"],
    rdma: ["InfiniBand in / out", "InfiniBand 收 / 发"],
    disk: ["Disk read / write", "磁盘 读 / 写"],
    free: ["Disk free", "磁盘剩余"],
    of: ["{0} of {1}", "{0} / {1}"],
    rate: ["{0} / {1} a second", "每秒 {0} / {1}"],
    total: ["{0} cores, {1}", "{0} 核，{1}"],
    shared: [
        "Other jobs run on {0} too: network, disk and all that is the node's are of all of them.",
        "{0} 上还有其他作业：网络、磁盘等节点数据是所有作业之和。",
    ],
    alone: [
        "No other job of Argus runs on these nodes: what they do in network and disk is this job's.",
        "这些节点上没有其他 Argus 作业：节点的网络与磁盘数据即为该作业的。",
    ],
    own: [
        "The job's memory is what its processes have for themselves; Ray's objects are in the object store.",
        "作业内存只计进程独占部分；Ray 对象计入对象存储。",
    ],
    missing: ["Not measured: {0}", "未采集：{0}"],
    cpu_of_job: ["the job's CPU and memory", "作业的 CPU 与内存"],
    node_figures: ["the node's figures", "节点数据"],
    infiniband: [
        "InfiniBand (no such port, or the node is not registered)",
        "InfiniBand（没有此类端口，或节点未注册）",
    ],
});

const Bytes = ({ of }: { of: number | null }) => (of === null ? <Dash /> : <>{bytes(of)}</>);
const Rate = ({ in: a, out: b }: { in: number | null; out: number | null }) =>
    a === null && b === null ? <Dash /> : <>{g("rate", a === null ? "?" : bytes(a), b === null ? "?" : bytes(b))}</>;
const Part = ({ used, of }: { used: number | null; of: number | null }) =>
    used === null ? <Dash /> : <>{of === null ? bytes(used) : g("of", bytes(used), bytes(of))}</>;

const columns = (): Col<JobNodeLoad>[] => [
    { key: "node", title: t("nodes"), draw: (h) => <Text of={h.node} /> },
    {
        key: "job_cpu_cores",
        title: g("cores"),
        num: true,
        draw: (h) => (h.job_cpu_cores === null ? <Dash /> : num(h.job_cpu_cores, 1)),
    },
    {
        key: "job_mem_bytes",
        title: g("memory"),
        num: true,
        draw: (h) => <Bytes of={h.job_mem_bytes} />,
    },
    {
        key: "cpu_util_ratio",
        title: g("node_cpu"),
        num: true,
        draw: (h) => (h.cpu_util_ratio === null ? <Dash /> : `${num(h.cpu_util_ratio * 100)}%`),
    },
    {
        key: "mem_used_bytes",
        title: g("node_memory"),
        num: true,
        wide: true,
        draw: (h) => <Part used={h.mem_used_bytes} of={h.mem_total_bytes} />,
    },
    {
        key: "object_store_used_bytes",
        title: g("objects"),
        num: true,
        wide: "very",
        draw: (h) => <Bytes of={h.object_store_used_bytes} />,
    },
    {
        key: "net_received_bytes_per_second",
        title: g("network"),
        num: true,
        wide: true,
        draw: (h) => <Rate in={h.net_received_bytes_per_second} out={h.net_sent_bytes_per_second} />,
    },
    {
        key: "net_rdma_received_bytes_per_second",
        title: g("rdma"),
        num: true,
        wide: true,
        draw: (h) => <Rate in={h.net_rdma_received_bytes_per_second} out={h.net_rdma_sent_bytes_per_second} />,
    },
    {
        key: "disk_read_bytes_per_second",
        title: g("disk"),
        num: true,
        wide: "very",
        draw: (h) => <Rate in={h.disk_read_bytes_per_second} out={h.disk_write_bytes_per_second} />,
    },
    {
        key: "disk_free_bytes",
        title: g("free"),
        num: true,
        wide: "very",
        draw: (h) => <Bytes of={h.disk_free_bytes} />,
    },
];

export function Load({ job }: { job: Job }) {
    const asked = useAsk("GET /v1/jobs/{id}/load", { path: { id: job.id } }, { every: 15_000 });
    const rows = asked.data?.nodes ?? [];
    const others = shared(rows);
    const missing = unmeasured(rows);
    const total = asked.data && asked.data.job_cpu_cores !== null && asked.data.job_mem_bytes !== null;
    return (
        <Panel
            id="load"
            title={w("s_load")}
            count={
                total ? g("total", num(asked.data!.job_cpu_cores!, 1), bytes(asked.data!.job_mem_bytes!)) : undefined
            }
            bare
            end={rows.length > 0 && <CopyCsv {...loadCsv(rows)} />}
        >
            {asked.why || !asked.data ? (
                <Pending of={asked} lines={2} />
            ) : (
                <>
                    <Table label={w("s_load")} rows={rows} cols={columns()} keyOf={(h) => h.node} />
                    <p class="body small mid">
                        {others.length ? g("shared", others.map(visible).join(", ")) : g("alone")} {g("own")}
                        {missing.length > 0 && ` ${g("missing", missing.map((m) => g(m)).join(" · "))}`}
                    </p>
                </>
            )}
        </Panel>
    );
}
