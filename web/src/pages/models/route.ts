// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/models", "/models/{name}"],
    title: () => t("models"),
    icon: "models",
    nav: { group: "library", order: 32 },
    key: "g m",
    acts: [{ to: "/models?do=import", says: () => t("a_model") }],
    load: () => import("./page"),
};
