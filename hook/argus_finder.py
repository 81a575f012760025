# SPDX-License-Identifier: Apache-2.0
"""Watches an import: finds the module as Python does, and has it changed at the end."""

from argus_say import _argus_note


class _ArgusFinder:
    """On sys.meta_path: finds a module as Python does, and has it changed at the end of its import."""

    def __init__(self, changes, watches):
        self.changes, self.watches = changes, watches

    def find_spec(self, name, path=None, target=None):
        change = self.changes.get(name)
        return self._find(name, path, target, change) if change else None

    def _find(self, name, path, target, change):
        spec = self._ask_others(name, path, target)
        if name in self.watches:
            self.watches[name](spec)
        if spec is not None and getattr(spec.loader, "exec_module", None):
            try:
                self._arm(spec.loader, name, change)
            except Exception as e:
                if name not in self.watches:
                    _argus_note(name, e)
        return spec

    def _ask_others(self, name, path, target):
        import sys

        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                return spec
        return None

    def _arm(self, loader, name, change):
        run = loader.exec_module

        def exec_module(module):
            run(module)
            try:
                change(module)
                self.changes.pop(name, None)
            except Exception as e:
                _argus_note(name, e)

        loader.exec_module = exec_module
