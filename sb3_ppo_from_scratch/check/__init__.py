"""``python -m sb3_ppo_from_scratch.check``: one rollout and one update of a model, examined before hours are spent.

Owns the command; the judgements are in ``core``, the measurements in ``callbacks``; never imports ``zoo``.
"""
