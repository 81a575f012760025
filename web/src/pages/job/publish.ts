// SPDX-License-Identifier: Apache-2.0
// publish.ts - into the registry of models, under a name, with where it came from, which argusd itself writes down: what a
// merge made, or a checkpoint, merged by a job first; and on to a service that serves it.
import { signal, type Signal } from "@preact/signals";
import { h } from "preact";
import type { Job } from "../../made/api";
import { call } from "../../api/client";
import { num, visible } from "../../base/say";
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

/** What a model is called, and whether it is everybody's. */
const nameForm = (says: string, name: Signal<string>, common: Signal<boolean>) =>
    h("div", {}, [
        h("p", {}, says),
        h(
            "div",
            { class: "form in-dialog" },
            h("fieldset", {}, [
                h(Field, { label: w("publish_name"), code: "name", of: name, wide: 12, first: true }),
                h(Tick, { label: w("publish_common"), of: common }),
            ]),
        ),
    ]);

export function exportModel(job: Job, step: number) {
    const name = signal(`${modelName(jobName(job))}-${step}`);
    const common = signal(false);
    ask({
        title: w("export_title", num(step)),
        act: w("export_go"),
        missing: () => (name.value.trim() ? "" : w("publish_must")),
        cli: () =>
            `argus ckpt export ${shell(job.id)} ${step} --hf --name ${shell(name.value.trim() || "NAME")}` +
            (common.value ? " --common" : ""),
        body: nameForm(w("export_text", visible(jobName(job))), name, common),
        does: async () => {
            const made = await call("POST /v1/jobs/{id}/checkpoints/{step}:export", {
                path: { id: job.id, step: String(step) },
                body: { name: name.value.trim(), ...(common.value && { common: true }) },
            });
            go(`/jobs/${encodeURIComponent(made.job)}`);
        },
        done: () => w("export_done", name.value.trim()),
    });
}

/** Merged, registered and served, also when this page is closed: the service says what it waits for. */
export function serveStep(job: Job, step: number) {
    const name = signal(
        modelName(jobName(job))
            .replaceAll(/[_.]+/g, "-")
            .replace(/-[vr]\d+$/, "")
            .replace(/-+$/, ""),
    );
    const gpus = signal("1");
    ask({
        title: w("serve_title", num(step)),
        act: w("serve_go"),
        missing: () => (name.value.trim() ? "" : w("publish_must")),
        cli: () =>
            `argus serve --job ${shell(job.id)} --step ${step} --name ${shell(name.value.trim() || "NAME")}` +
            (gpus.value.trim() ? ` --gpus ${shell(gpus.value.trim())}` : ""),
        body: h("div", {}, [
            h("p", {}, w("serve_text", visible(jobName(job)))),
            h(
                "div",
                { class: "form in-dialog" },
                h("fieldset", {}, [
                    h(Field, { label: w("serve_name"), code: "name", of: name, wide: 8, first: true }),
                    h(Field, { label: w("serve_gpus"), code: "gpus", of: gpus, kind: "number", least: 0, wide: 4 }),
                ]),
            ),
        ]),
        does: async () => {
            const made = await call("POST /v1/services", {
                body: {
                    job: job.id,
                    step: String(step),
                    name: name.value.trim(),
                    ...(gpus.value.trim() && { gpus: Number(gpus.value) }),
                },
            });
            go(`/services/${encodeURIComponent(made.name)}`);
        },
        done: () => w("serve_done", name.value.trim()),
    });
}

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
        body: nameForm(w("publish_text", visible(jobName(job))), name, common),
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
