// SPDX-License-Identifier: Apache-2.0
// load.test.ts - whose figures a node's are, and what nobody measures.
import { expect, test } from "vitest";
import { shared, unmeasured } from "../src/pages/job/load";

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
