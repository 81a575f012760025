// SPDX-License-Identifier: Apache-2.0
// setup.ts - the few things of a browser that modules ask when they are loaded.
const nothing = () => undefined;
Object.assign(globalThis, {
    location: { pathname: "/", search: "", hash: "" },
    history: { pushState: nothing, replaceState: nothing },
    matchMedia: () => ({ matches: false, addEventListener: nothing }),
    document: { documentElement: { dataset: {} }, addEventListener: nothing },
    addEventListener: nothing,
});
