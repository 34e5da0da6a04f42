"""Owns the hook that torch calls at the end of its own import, and what waits there for rl_zoo3.
Must not know torch, Stable-Baselines3 or rl_zoo3: until rl_zoo3 is imported, nothing else is.

rl_zoo3 reads its table of algorithms while it parses the command line, so ours has to be there as soon
as rl_zoo3 is imported. Python binds a submodule in its package once it has run to its end; watching
the package for those bindings works whether torch was imported before rl_zoo3 or in the middle of it.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGE = "rl_zoo3"
AWAITED = ("utils", "hyperparams_opt", "exp_manager")


class WatchedPackage(ModuleType):
    """The rl_zoo3 package, for as long as one of its awaited submodules has not been imported."""

    def __setattr__(self, name: str, value: object) -> None:
        """Bind as any module does, and complete the registration that `name` makes possible."""
        super().__setattr__(name, value)
        if name in AWAITED and is_bound(self, name):
            complete_registration(self, name)


class WatchingLoader(Loader):
    """Runs the package through its own loader, watched from the first line on."""

    def __init__(self, spec: ModuleSpec, own_loader: Loader) -> None:
        self.spec = spec
        self.own_loader = own_loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave the creation of the module to its own loader."""
        return self.own_loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own loader back, watch it and run it."""
        self.spec.loader = self.own_loader
        module.__loader__ = self.own_loader
        watch(module)
        self.own_loader.exec_module(module)

    def __getattr__(self, name: str) -> object:
        # For whoever looks at the spec without importing: get_source, is_package, ...
        return getattr(self.own_loader, name)


class ZooFinder(MetaPathFinder):
    """Finds rl_zoo3 as the other finders do, with a loader that watches it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the watched specification of rl_zoo3, and None for any other module."""
        if fullname != PACKAGE:
            return None
        for finder in sys.meta_path:
            if isinstance(finder, ZooFinder) or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = WatchingLoader(spec, spec.loader)
                return spec
        return None


def autoload() -> None:
    """Entry point of the group `torch.backends`: wait for rl_zoo3, now half imported or not yet at all.

    Never raises: torch would turn that into a failure of `import torch`.
    """
    try:
        package = sys.modules.get(PACKAGE)
        if package is not None:
            watch(package)
        if not any(isinstance(finder, ZooFinder) for finder in sys.meta_path):
            sys.meta_path.insert(0, ZooFinder())
    except Exception as error:
        warn_unregistered(error)


def watch(package: ModuleType) -> None:
    """Complete what the submodules imported so far make possible, and wait for the others."""
    # Another class than a plain module's belongs to somebody else, who may rely on it.
    if type(package) is ModuleType:
        package.__class__ = WatchedPackage
    for name in AWAITED:
        if is_bound(package, name):
            complete_registration(package, name)


def is_bound(package: ModuleType, name: str) -> bool:
    """Tell whether the submodule has been imported to its end; `sys.modules` lists it from its beginning."""
    return isinstance(vars(package).get(name), ModuleType)


def complete_registration(package: ModuleType, name: str) -> None:
    """Register in a submodule that has just been bound; after the last one, or a failure, stop watching."""
    watched, failed = type(package) is WatchedPackage, False
    try:
        from sb3_ppo_from_scratch.zoo import registration

        registration.register_in(vars(package)[name])
    except Exception as error:
        failed = True
        warn_unregistered(error)
    if watched and (failed or all(is_bound(package, name) for name in AWAITED)):
        package.__class__ = ModuleType


def warn_unregistered(error: Exception) -> None:
    """Say, without raising even where warnings are errors, that rl_zoo3 will not know the algorithm."""
    message = (
        f"sb3_ppo_from_scratch could not register itself in {PACKAGE} ({type(error).__name__}: {error}); "
        "`python -m sb3_ppo_from_scratch.zoo train` shows the whole error"
    )
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        print(message, file=sys.stderr)
