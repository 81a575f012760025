// SPDX-License-Identifier: Apache-2.0
// publish.ts - what a merge made, into the registry of models: under a name, with where it came from, which argusd itself
// writes down.
import { signal } from "@preact/signals";
import { h } from "preact";
import type { Job } from "../../made/api";
import { call } from "../../api/client";
import { visible } from "../../base/say";
import { go } from "../../base/url";
import { Field, Tick } from "../../kit/form";
import { ask } from "../../kit/over";
import { shell } from "../../kit/parts";
import { jobName } from "../jobs/columns";
import { w } from "./words";

/** A merge that ended well has a model to publish. */
export const hasModel = (job: Job) => job.workload === "merge" && job.state === "SUCCEEDED";

/** Of a job's name: what a model may be called. */
export const modelName = (name: string) =>
    name
        .toLowerCase()
        .replaceAll(/[^a-z0-9_.-]+/g, "-")
        .replaceAll(/^[^a-z0-9]+|-+$/g, "")
        .slice(0, 40)
        .replace(/-+$/, "");

export function publish(job: Job) {
    const name = signal(modelName(jobName(job)));
    const common = signal(false);
    const source = `${job.output_dir}/output/model`;
    ask({
        title: w("publish_title"),
        act: w("publish_go"),
        missing: () => (name.value.trim() ? "" : w("publish_must")),
        cli: () =>
            `argus model import ${shell(source)} --name ${shell(name.value.trim() || "NAME")}` +
            (common.value ? " --common" : ""),
        body: h("div", {}, [
            h("p", {}, w("publish_text", visible(jobName(job)))),
            h(
                "div",
                { class: "form in-dialog" },
                h("fieldset", {}, [
                    h(Field, { label: w("publish_name"), code: "name", of: name, wide: 12, first: true }),
                    h(Tick, { label: w("publish_common"), of: common }),
                ]),
            ),
        ]),
        does: async () => {
            const made = await call("POST /v1/models", {
                body: {
                    name: name.value.trim(),
                    source,
                    ...(common.value && { common: true }),
                    ...(job.project && { project: job.project }),
                },
            });
            go(`/models/${encodeURIComponent(made.ref)}`);
        },
        done: () => w("publish_done", name.value.trim()),
    });
}
