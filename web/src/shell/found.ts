// SPDX-License-Identifier: Apache-2.0
// found.ts - what GET /v1/search answers, for the find box: its groups, what it is called, where it leads.
import { words } from "../base/words";
import { withQuery } from "../base/url";
import type { IconName } from "../kit/icons";
import type { SearchHit } from "../made/api";

export type Kind = SearchHit["kind"];

export const kindSays = words({
    job: ["Jobs", "作业"],
    node: ["Nodes", "节点"],
    user: ["Users", "用户"],
    project: ["Projects", "项目"],
    dataset: ["Data", "数据集"],
    model: ["Models", "模型"],
    service: ["Services", "服务"],
    pipeline: ["Pipelines", "流水线"],
    notebook: ["Notebooks", "笔记本"],
    snapshot: ["Snapshots", "快照"],
    preset: ["Presets", "预设"],
});

const ICONS: Record<Kind, IconName> = {
    job: "jobs",
    node: "nodes",
    user: "users",
    project: "users",
    dataset: "data",
    model: "models",
    service: "services",
    pipeline: "pipelines",
    notebook: "notebooks",
    snapshot: "copy",
    preset: "columns",
};
export const iconOf = (h: SearchHit): IconName => ICONS[h.kind];

/** What stands before the name in an id: "alice" of "alice/main"; "" where the name is the id. */
const scopeOf = (h: SearchHit) => (h.id.length > h.name.length ? h.id.slice(0, -h.name.length - 1) : "");

/** The address of its page, or of the list that shows it. */
export function pathOf(h: SearchHit): string {
    const id = encodeURIComponent(h.id);
    switch (h.kind) {
        case "job":
            return `/jobs/${id}`;
        case "node":
            return withQuery("/nodes", { node: h.id });
        case "user":
            return withQuery("/jobs", { user: h.id });
        case "project":
            return withQuery("/people", { project: h.id });
        case "dataset":
            return `/data/${id}`;
        case "model":
            return `/models/${id}`;
        case "service":
            return `/services/${id}`;
        case "pipeline":
            return withQuery(`/pipelines/${encodeURIComponent(h.name)}`, { user: scopeOf(h) });
        case "notebook":
            return withQuery("/notebooks", { name: h.id });
        case "snapshot":
            return withQuery("/snapshots", { name: `${scopeOf(h)}:${h.name}` });
        case "preset":
            return withQuery("/presets", { name: `${scopeOf(h)}:${h.name}` });
    }
}

/** The same, those of one kind side by side; the kind of the best one first. */
export function byKind(hits: SearchHit[]): SearchHit[] {
    const order = [...new Set(hits.map((h) => h.kind))];
    return order.flatMap((kind) => hits.filter((h) => h.kind === kind));
}

/** What of an older text's answer fits the text of now: shown until its own answer is there. */
export function narrowed(hits: SearchHit[], text: string): SearchHit[] {
    const low = text.trim().toLowerCase();
    return low ? hits.filter((h) => [h.id, h.name].some((x) => x.toLowerCase().includes(low))) : [];
}
