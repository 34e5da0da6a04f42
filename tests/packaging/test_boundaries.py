"""The package is no wrapper: none of its modules reaches for Stable-Baselines3's PPO or rollout buffers.

import-linter cannot say this, since it sees another distribution as one module.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.packaging.source_tree import PACKAGE, REPOSITORY, python_files

FORBIDDEN = (
    "stable_baselines3.PPO",
    "stable_baselines3.ppo",
    "stable_baselines3.common.buffers.DictRolloutBuffer",
    "stable_baselines3.common.buffers.RolloutBuffer",
)
# Files saved by either side name the other's buffer class, and this module translates.
MAY_NAME_BUFFERS = REPOSITORY / PACKAGE / "interoperability.py"
BUFFERS = tuple(name for name in FORBIDDEN if ".buffers." in name)


def dotted_names(tree: ast.AST) -> Iterator[str]:
    """Full names of everything that is imported, or read as an attribute of something imported."""
    imports = list(imported_names(tree))
    yield from (name for _, name in imports)
    bound = dict(imports)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            root, *attributes = ast.unparse(node).split(".")
            if root in bound:
                yield ".".join([bound[root], *attributes])


def imported_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Local name and full name of everything that an import statement binds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.name if alias.asname else alias.name.split(".")[0]
                yield alias.asname or bound, bound
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def forbidden_names(source: str) -> set[str]:
    """Which of the forbidden names a module uses; a star import counts as all that it may bring."""
    used = set(dotted_names(ast.parse(source)))
    return {
        name
        for name in FORBIDDEN
        if any(use == name or use.startswith(f"{name}.") for use in used) or f"{name.rpartition('.')[0]}.*" in used
    }


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_module_uses_neither_stock_ppo_nor_stock_buffers(path):
    allowed = set(BUFFERS) if path == MAY_NAME_BUFFERS else set()
    assert forbidden_names(path.read_text(encoding="utf-8")) <= allowed


@pytest.mark.parametrize(
    "source",
    [
        "from stable_baselines3 import PPO",
        "def later():\n    from stable_baselines3 import PPO as Stock",
        "from stable_baselines3.ppo import MlpPolicy",
        "from stable_baselines3.ppo.ppo import PPO",
        "import stable_baselines3.ppo.ppo",
        "import stable_baselines3 as sb3\nmodel = sb3.PPO('MlpPolicy', 'CartPole-v1')",
        "import stable_baselines3\nstable_baselines3.ppo.ppo.PPO.train(model)",
        "from stable_baselines3 import *",
        "from stable_baselines3.common.buffers import BaseBuffer, RolloutBuffer",
        "from stable_baselines3.common import buffers\nclass Ours(buffers.DictRolloutBuffer): ...",
    ],
)
def test_each_way_to_reach_for_them_is_seen(source):
    assert forbidden_names(source)


@pytest.mark.parametrize(
    "source",
    [
        "from stable_baselines3.common.buffers import BaseBuffer, RolloutBufferSamples",
        "from sb3_ppo_from_scratch import PPO\nPPO.load('model.zip')",
        "from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm",
        "import stable_baselines3 as sb3\nprint(sb3.__version__)",
        "'''Takes the place of stable_baselines3.PPO.'''",
    ],
)
def test_what_is_allowed_is_not_taken_for_it(source):
    assert not forbidden_names(source)
