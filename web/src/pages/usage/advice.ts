// SPDX-License-Identifier: Apache-2.0
// advice.ts - what would have spared a job its waste, in words, and as a change of its spec. Nothing is drawn here.
import type { AdviceTaken, Job, JobWaste, JobWasteList } from "../../made/api";
import { NOTHING, num, span } from "../../base/say";
import { overrideOf, setAny } from "../../base/spectext";
import { words } from "../../base/words";
import { short } from "../../kit/stack";
import { TRAINS } from "../jobs/columns";

const w = words({
    fewer_gpus: ["{0} {0|GPU|GPUs} would have done: {1} GPU-h spared", "用 {0} 张 GPU 即可，可省 {1} GPU 时"],
    save_more_often: ["save every {0} steps: {1} GPU-h spared", "每 {0} 步保存一次，可省 {1} GPU 时"],
    faster_data: [
        "steps wait for data: {0} GPU-h spared, were each as quick as in its best tenth",
        "步间在等数据：若都如最快的十分之一，可省 {0} GPU 时",
    ],
    shorter_time_limit: [
        "a timeout of {0} would have done; how much sooner it starts depends on the queue",
        "运行上限 {0} 即可；能提前多少启动取决于队列",
    ],
    took_gpus: ["{0} {0|GPU|GPUs}", "{0} 张 GPU"],
    took_saves: ["save every {0} steps", "每 {0} 步保存一次"],
});

/** "": there is none. */
export function adviceOf(j: JobWaste): string {
    const gain = short(j.gain_hours ?? 0);
    if (j.advice === "fewer_gpus") return w("fewer_gpus", j.advised_gpus ?? "?", gain);
    if (j.advice === "save_more_often") return w("save_more_often", j.save_freq ?? "?", gain);
    if (j.advice === "faster_data") return w("faster_data", gain);
    if (j.advice === "shorter_time_limit") return w("shorter_time_limit", span((j.advised_timeout_s ?? 0) * 1000));
    return "";
}

/** What the advice said that a later job took; what it foresaw stands beside it. */
export function tookOf(p: AdviceTaken): string {
    if (p.advised_gpus !== null) return w("took_gpus", p.advised_gpus);
    return p.save_freq === null ? NOTHING : w("took_saves", p.save_freq);
}

/** How far what was got lies from what was foreseen, in the median; nothing where no advice was taken. */
export const medianOf = (list: Pick<JobWasteList, "taken_error">) =>
    list.taken_error === null ? NOTHING : `${num(list.taken_error * 100)}%`;

/** So many GPUs at least, on as few nodes as they take, each with the same number. */
export function shapeOf(gpus: number, most: number): { nnodes: number; each: number } {
    if (most < 1) return { nnodes: Math.max(1, Math.ceil(gpus / (most || 1))), each: most || 1 };
    const nnodes = Math.max(1, Math.ceil(gpus / most));
    return { nnodes, each: Math.ceil(gpus / nnodes) };
}

/** Whether a key of its spec says so: each workload has GPUs and a timeout, not each saves by steps. */
export function canTake(j: JobWaste): boolean {
    if (j.advice === "save_more_often") return TRAINS.includes(j.workload);
    return j.advice === "fewer_gpus" || j.advice === "shorter_time_limit";
}

/** As a spec says it, in minutes. */
export const timeoutOf = (seconds: number) => `${Math.round(seconds / 60)}m`;

/** What the button of an advice does; null: nothing that its reader can. A job that waits and held GPUs before may still
 * get another timeout, but keeps its shape and its spec: for these a new job is made. */
export function actOf(j: JobWaste, isViewer: boolean): "steps" | "change" | "submit" | null {
    if (j.advice === "faster_data") return "steps";
    if (!canTake(j) || isViewer) return null;
    return j.state === "QUEUED" && j.advice === "shorter_time_limit" ? "change" : "submit";
}

/** Hours that a table with one digit would show as none, as `argus report waste` does. */
export const isLittle = (hours: number) => hours < 0.05;

/** The text of a spec with the advice taken; as it was where no key of it says so. */
export function advised(text: string, j: JobWaste, job: Pick<Job, "n_gpus_per_node">): string {
    if (!canTake(j)) return text;
    if (j.advice === "fewer_gpus" && j.advised_gpus !== null) {
        const { nnodes, each } = shapeOf(j.advised_gpus, job.n_gpus_per_node);
        return setAny(setAny(text, "nnodes", String(nnodes)), "n_gpus_per_node", String(each));
    }
    if (j.advice === "save_more_often" && j.save_freq !== null) {
        const own = overrideOf(text, "trainer.save_freq") !== null;
        return setAny(text, own ? "overrides.trainer.save_freq" : "save_freq", String(j.save_freq));
    }
    if (j.advice === "shorter_time_limit" && j.advised_timeout_s !== null)
        return setAny(text, "timeout", timeoutOf(j.advised_timeout_s));
    return text;
}
