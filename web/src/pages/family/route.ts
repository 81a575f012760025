// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { w } from "./words";

export const route: PageRoute = {
    paths: ["/jobs/{id}/family"],
    title: () => w("family"),
    icon: "pipelines",
    under: "/jobs",
    load: () => import("./page"),
};
