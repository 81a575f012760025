// SPDX-License-Identifier: Apache-2.0
// advice.ts - what would have spared a job its waste, in words.
import type { JobWaste } from "../../made/api";
import { words } from "../../base/words";
import { short } from "../../kit/stack";

const w = words({
    fewer_gpus: ["{0} {0|GPU|GPUs} would have done: {1} GPU-h spared", "用 {0} 张 GPU 即可，可省 {1} GPU 时"],
    save_more_often: ["save every {0} steps: {1} GPU-h spared", "每 {0} 步保存一次，可省 {1} GPU 时"],
});

/** "": there is none. */
export const adviceOf = (j: JobWaste): string =>
    j.advice === "fewer_gpus"
        ? w("fewer_gpus", j.advised_gpus ?? "?", short(j.gain_hours))
        : j.advice === "save_more_often"
          ? w("save_more_often", j.save_freq ?? "?", short(j.gain_hours))
          : "";
