// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { w } from "./words";

export const route: PageRoute = {
    paths: ["/ops/sops", "/ops/sops/{name}"],
    title: () => w("sops"),
    icon: "ops",
    under: "/ops",
    load: () => import("./page"),
};
