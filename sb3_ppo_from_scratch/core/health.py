"""What is measured about a rollout and its update, and the limits beyond which a run is called unhealthy.

Owns records and default limits only; must not know how anything is measured, judged or shown.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple


@dataclass(frozen=True)
class Thresholds:
    """The limits of health; every default is met by settings that are known to work, with room to spare.

    :param ratio_tolerance: largest |π(a|s)/π_old(a|s) − 1| of a minibatch before any step; rounding makes 10⁻⁶ of it
        (in bf16 a hundred times as much is tolerated)
    :param min_entropy: share of the largest entropy, below which a policy has stopped exploring
    :param min_clip_fraction: of an update; less means that nothing was ever held back
    :param max_clip_fraction: of an update; more means that most of the gradient is held back
    :param min_explained_variance: of the critic, late in training
    :param late: share of the training that remains, below which it is late
    :param late_steps: environment steps over which the critic is judged once it is late
    :param max_kl: KL(π_old ‖ π) of an update, in nats, where the algorithm has no target (else 2 × that: ``target_kl``,
        ``desired_kl``, ``kl_target``)
    :param max_drift: growth of the root mean square of rewards or returns since the first updates
    :param max_return_scale: root mean square of the returns
    :param max_trunk_dominance: ‖value gradient‖ / ‖policy gradient‖ on parameters that both train
    :param min_clip_factor: what joint gradient clipping leaves of the step while the critic's gradient is ten times
        the actor's; LunarLander with raw rewards leaves less than 0.01, CartPole with tuned settings 0.02 and more
    :param max_horizons: length of an episode in units of 1/(1 − γ), where its last reward is more than a tenth of all
    :param max_horizons_at_all: the same wherever the rewards lie; Atari's usual settings have 30
    """

    ratio_tolerance: float = 0.001
    min_entropy: float = 0.03
    min_clip_fraction: float = 0.001
    max_clip_fraction: float = 0.3
    min_explained_variance: float = 0.3
    late: float = 0.5
    late_steps: float = 10_000.0
    max_kl: float = 0.05
    max_drift: float = 30.0
    max_return_scale: float = 200.0
    max_trunk_dominance: float = 50.0
    min_clip_factor: float = 0.011
    max_horizons: float = 3.0
    max_horizons_at_all: float = 100.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
                raise ValueError(f"{field.name}={value!r} must be a number that is not negative.")


class Finding(NamedTuple):
    """Something that is wrong with a run.

    :param cause: one of ``judgements.CAUSES``
    :param observation: what was seen, in numbers
    :param remedy: what to try
    """

    cause: str
    observation: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.observation} {self.remedy}"


class RolloutStatistics(NamedTuple):
    """What a finished rollout looks like to the update.

    :param advantage_mean: of Â, before any normalisation
    :param advantage_std: likewise
    :param advantage_max: largest |Â|
    :param return_mean: of R = Â + V
    :param return_std: likewise
    :param return_rms: root mean square, the scale that the critic has to reach
    :param reward_rms: root mean square of the rewards, as stored
    :param explained_variance: of the critic, NaN where the returns do not vary
    :param is_finite: whether every advantage and return is a number
    """

    advantage_mean: float
    advantage_std: float
    advantage_max: float
    return_mean: float
    return_std: float
    return_rms: float
    reward_rms: float
    explained_variance: float
    is_finite: bool


class FirstMinibatch(NamedTuple):
    """What an update sees before its first step.

    :param ratio_mean: of π(a|s)/π_old(a|s); 1 unless what was stored is not what was sampled or seen
    :param ratio_deviation: largest |ratio − 1|
    :param approx_kl: k3 estimate in nats; 0 likewise
    :param approx_kl_k1: k1 estimate in nats; 0 likewise
    :param clip_fraction: share of samples beyond the clip range; 0 likewise
    :param entropy: mean over the states, in nats
    :param max_entropy: of the uniform distribution over the actions (for a Box, over what lies within its bounds); NaN
        where the policy's entropy is but an estimate
    :param entropy_share: see ``judgements.entropy_share``
    """

    ratio_mean: float
    ratio_deviation: float
    approx_kl: float
    approx_kl_k1: float
    clip_fraction: float
    entropy: float
    max_entropy: float
    entropy_share: float


class GradientNorms(NamedTuple):
    """L2 norms of one minibatch's gradients before clipping, weighted by ``vf_coef`` and ``ent_coef``.

    :param actor: of policy loss and entropy bonus
    :param critic: of the value loss
    :param joint: of their sum, over which clipping happens
    :param shared_actor: the actor's on parameters that both train; 0 without any
    :param shared_critic: the critic's on the same
    :param clip_factor: in (0, 1], by which the step is scaled
    :param effective_learning_rate: of the actor, learning rate × clip_factor
    """

    actor: float
    critic: float
    joint: float
    shared_actor: float
    shared_critic: float
    clip_factor: float
    effective_learning_rate: float


class UpdateOutcome(NamedTuple):
    """How far one update moved the policy; NaN what is not known.

    :param approx_kl: k3 estimate of KL(π_old ‖ π) in nats
    :param approx_kl_k1: k1 estimate in nats
    :param clip_fraction: share of samples beyond the clip range
    """

    approx_kl: float
    approx_kl_k1: float
    clip_fraction: float


class Episodes(NamedTuple):
    """What the latest episodes were like, counted in steps of the agent; NaN what is not known.

    :param mean_length: steps
    :param last_reward_share: |reward of the last step| as a share of all |rewards| of an episode
    """

    mean_length: float
    last_reward_share: float
