// SPDX-License-Identifier: Apache-2.0
// load.test.ts - whose figures a node's are, what nobody measures, and the table of them.
import { expect, test } from "vitest";
import { loadCsv, shared, unmeasured } from "../src/pages/job/load";

const told = { job_cpu_cores: 0, cpu_util_ratio: 0, net_rdma_sent_bytes_per_second: 0 };

test("only the nodes on which others run are named", () => {
    expect(
        shared([
            { node: "a", alone: true },
            { node: "b", alone: false },
        ]),
    ).toEqual(["b"]);
    expect(shared([])).toEqual([]);
});

test("nothing is not zero", () => {
    expect(unmeasured([told, told])).toEqual([]);
    expect(unmeasured([told, { ...told, job_cpu_cores: null }])).toEqual(["cpu_of_job"]);
    expect(unmeasured([{ ...told, net_rdma_sent_bytes_per_second: null }])).toEqual(["infiniband"]);
});

test("of a node that tells nothing its InfiniBand is not named as well", () => {
    const silent = { job_cpu_cores: null, cpu_util_ratio: null, net_rdma_sent_bytes_per_second: null };
    expect(unmeasured([silent])).toEqual(["cpu_of_job", "node_figures"]);
});

test("the table has both ways of the network, InfiniBand and disk", () => {
    const row = {
        node: "a",
        job_cpu_cores: 1,
        job_mem_bytes: 2,
        cpu_util_ratio: 0.5,
        mem_used_bytes: 3,
        mem_total_bytes: 4,
        object_store_used_bytes: 5,
        net_received_bytes_per_second: 6,
        net_sent_bytes_per_second: 7,
        net_rdma_received_bytes_per_second: 8,
        net_rdma_sent_bytes_per_second: null,
        disk_read_bytes_per_second: 9,
        disk_write_bytes_per_second: 10,
        disk_free_bytes: 11,
    };
    const table = loadCsv([row]);
    expect([...table.head].sort()).toEqual(Object.keys(row).sort());
    expect(table.rows().map((r) => Object.fromEntries(r.map((v, i) => [table.head[i], v])))).toEqual([row]);
});
