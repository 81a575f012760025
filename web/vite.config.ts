// SPDX-License-Identifier: Apache-2.0
// vite.config.ts - how the pages are bundled. `argusd` serves what comes out: no inline script or style, no other host.
import { defineConfig } from "vitest/config";

declare const process: { env: Record<string, string | undefined> };
const argusd = process.env.ARGUS_URL ?? "http://127.0.0.1:8080"; // of tools/web/serve

export default defineConfig({
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: {
        target: "es2022",
        assetsInlineLimit: 0,
        cssCodeSplit: true,
        modulePreload: { polyfill: false },
        reportCompressedSize: false,
    },
    worker: { format: "es" },
    server: { proxy: { "/v1": argusd }, fs: { allow: [".", "../docs/sop"] } }, // of the page of SOPs
    test: { include: ["tests/*.test.ts"], setupFiles: ["tests/setup.ts"] },
});
