// SPDX-License-Identifier: Apache-2.0
import { pick } from "../../base/words";
import type { PageRoute } from "../../shell/pages";

export const route: PageRoute = {
    paths: ["/snapshots"],
    title: () => pick("Snapshots", "快照"),
    icon: "copy",
    nav: { group: "library", order: 34 },
    key: "g c",
    load: () => import("./page"),
};
