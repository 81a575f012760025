// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { w } from "./words";

export const route: PageRoute = {
    paths: ["/ops"],
    title: () => w("ops"),
    icon: "ops",
    nav: { group: "watch", order: 46 },
    key: "g z",
    load: () => import("./page"),
};
