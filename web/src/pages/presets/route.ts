// SPDX-License-Identifier: Apache-2.0
import { pick } from "../../base/words";
import type { PageRoute } from "../../shell/pages";

export const route: PageRoute = {
    paths: ["/presets"],
    title: () => pick("Presets", "预设"),
    icon: "columns",
    nav: { group: "library", order: 35 },
    key: "g t",
    load: () => import("./page"),
};
