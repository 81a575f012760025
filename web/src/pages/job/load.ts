// SPDX-License-Identifier: Apache-2.0
// load.ts - what is to be said beside the figures of a job's nodes: whose they are, and which nobody measures. Pure.
import type { JobNodeLoad } from "../../made/api";

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
