// SPDX-License-Identifier: Apache-2.0
// load.ts - what is to be said beside the figures of a job's nodes: whose they are, and which nobody measures;
// and the figures as a table. Pure.
import type { JobNodeLoad } from "../../made/api";
import type { Cell } from "../../base/csv";

/** The nodes on which another job runs, too. */
export const shared = (rows: Pick<JobNodeLoad, "node" | "alone">[]) => rows.filter((h) => !h.alone).map((h) => h.node);

export type Unmeasured = "cpu_of_job" | "node_figures" | "infiniband";

/** What at least one of the nodes does not tell. Without any figure of a node its InfiniBand is not named again. */
export function unmeasured(
    rows: Pick<JobNodeLoad, "job_cpu_cores" | "cpu_util_ratio" | "net_rdma_sent_bytes_per_second">[],
): Unmeasured[] {
    const out: Unmeasured[] = [];
    if (rows.some((h) => h.job_cpu_cores === null)) out.push("cpu_of_job");
    if (rows.some((h) => h.cpu_util_ratio === null)) out.push("node_figures");
    if (rows.some((h) => h.cpu_util_ratio !== null && h.net_rdma_sent_bytes_per_second === null))
        out.push("infiniband");
    return out;
}

const TOLD = [
    "node",
    "job_cpu_cores",
    "job_mem_bytes",
    "cpu_util_ratio",
    "mem_used_bytes",
    "mem_total_bytes",
    "object_store_used_bytes",
    "net_received_bytes_per_second",
    "net_sent_bytes_per_second",
    "net_rdma_received_bytes_per_second",
    "net_rdma_sent_bytes_per_second",
    "disk_read_bytes_per_second",
    "disk_write_bytes_per_second",
    "disk_free_bytes",
] as const;

/** What the page shows, a figure a column: both ways of the network, InfiniBand and disk. */
export const loadCsv = (
    rows: Pick<JobNodeLoad, (typeof TOLD)[number]>[],
): { head: string[]; rows: () => Cell[][] } => ({
    head: [...TOLD],
    rows: () => rows.map((h) => TOLD.map((k) => h[k])),
});
