"""Descriptions of all metrics, shown by TensorBoard and in `docs/metrics.md`."""

import re

# Metric or pattern (`*` stands for one part) -> description. Metrics of an update are means since
# the previous row. Units are in parentheses.
DESCRIPTIONS = {
    "episode/mean_return": "return of the training episodes since the previous row, mean",
    "episode/mean_return_last_100": "return of the last 100 training episodes, mean",
    "episode/mean_length_last_100": "length of the last 100 episodes (agent steps), mean",
    "episode/evaluation_mean_return": "return of the newest periodic evaluation, mean",
    "episode/median_*_normalised": "normalised returns of several tasks, median",
    "episode/mean_capped_*_normalised": "normalised returns of several tasks, capped at 1, mean",
    "episode/evaluation_median_*_normalised": "normalised returns in the newest evaluation, median",
    "episode/evaluation_mean_capped_*_normalised": "the same, capped at 1, mean",
    "evaluation/mean_return": "return after training or of launch.evaluate, mean",
    "task/*/mean_return": "return of one of several tasks since the previous row",
    "task/*/mean_return_last_100": "return of one of several tasks, last 100 episodes",
    "task/*/mean_length_last_100": "length of one of several tasks (agent steps), last 100",
    "task/*/evaluation_mean_return": "return of one of several tasks in the newest evaluation",
    "loss/total": "sum of all loss terms with their costs",
    "loss/policy": "policy loss; of ACER, A3C, TIS only its gradient matters",
    "loss/value": "value loss before its cost",
    "loss/entropy": "entropy loss before its cost",
    "loss/pixel_control": "loss of the pixel control task before its cost",
    "loss/q": "loss of action values before its cost",
    "loss/critic": "critic loss before its cost",
    "policy/entropy": "entropy of the target policy (nats)",
    "policy/kl_online": "KL(pi || mu) of online transitions (nats)",
    "policy/kl_replay": "KL(pi || mu) of replayed transitions (nats)",
    "policy/kl_own": "KL(pi || mu) of the member's own replayed transitions (nats)",
    "policy/kl_foreign": "KL(pi || mu) of other members' replayed transitions (nats)",
    "network/dead_features_fraction": "LASER: fraction of features that are 0 in a whole batch",
    "vtrace/value": "LASER: state value",
    "vtrace/rho_clipped_fraction": "LASER: fraction of importance ratios above rho_bar",
    "vtrace/advantage_own": "LASER: advantage of own replayed transitions (reward)",
    "vtrace/advantage_foreign": "LASER: advantage of other members' transitions (reward)",
    "trust_region/accepted_fraction": "LASER: fraction of transitions within the trust region",
    "trust_region/accepted_replay_fraction": "LASER: the same for replayed transitions",
    "trust_region/accepted_own_fraction": "LASER: the same for own replayed transitions",
    "trust_region/accepted_foreign_fraction": "LASER: the same for other members' transitions",
    "trust_region/kl_average": "ACER, A3C, TIS: KL(average policy || pi) (nats)",
    "trust_region/constrained_fraction": "ACER, A3C: fraction of steps beyond the trust region",
    "retrace/value": "ACER, Reactor: state value",
    "retrace/absolute_error": "ACER, Reactor: distance of Q from Retrace's target",
    "retrace/rho_truncated_fraction": "ACER: fraction of importance ratios above the truncation",
    "retrace/trace": "Reactor: trace coefficient c_t",
    "retrace/total_variation": "Reactor: distance of distributions from their targets",
    "retrace/mass_at_ends": "Reactor: probability of targets in the first and last bin",
    "n_step/value": "A3C, TIS: state value",
    "n_step/weight": "A3C, TIS: importance weight of a return",
    "q_learning/q_value": "R2D2: largest action value (rescaled)",
    "q_learning/absolute_error": "R2D2: absolute TD error (rescaled)",
    "staleness/delta_q_first": "R2D2: change of Q-values by stale states, first trained step",
    "staleness/delta_q_last": "R2D2: change of Q-values by stale states, last step",
    "learner/gradient_norm": "norm of the gradient before clipping",
    "learner/learning_rate": "learning rate after its schedule",
    "learner/new_steps": "new agent steps of an update",
    "learner/non_finite_updates": "updates skipped so far because they were not finite",
    "cluster/reporting_actors": "remote actors that have reported",
    "cluster/*/*": "measurements of a role, such as its memory (MiB)",
    "cluster/*/*/*": "metrics of a role, such as the fill of its queue",
    "replay/fill": "fraction of the capacity that is used",
    "replay/foreign_fraction": "fraction of replayed transitions from other members",
    "replay/importance_weight": "importance weight of prioritised replay",
    "replay/unknown_priorities": "contextual replay: fraction of sequences not sampled yet",
    "replay/bytes_per_agent_step": "contextual replay: compressed size of an agent step (bytes)",
    "replay/lost_unrolls": "online unrolls that were lost so far",
    "replay/duplicated_unrolls": "online unrolls that arrived twice so far",
    "replay/policy_lag_updates": "age of online unrolls (learner updates)",
    "replay/age_updates": "age of replayed unrolls (learner updates)",
    "run/wall_seconds": "training time of all commands of the run together (s)",
    "throughput/env_frames_per_second": "env frames per second",
    "throughput/updates_per_second": "learner updates per second",
    "throughput/learner_busy_fraction": "fraction of the time that the learner computes",
    "throughput/evaluation_seconds": "duration of the newest periodic evaluation (s)",
    "throughput/*_steps_per_second": "agent steps per second spent in a part of the actor",
    "environment/non_finite_rewards": "rewards that were not finite so far",
    "environment/non_finite_discounts": "discounts that were not finite so far",
    "environment/non_finite_observations": "observations that were not finite so far",
    "environment/restarted_environments": "environments that were restarted so far",
}

# Counters that rows leave out until they are not 0.
FAULT_COUNTERS = frozenset(
    {
        "learner/non_finite_updates",
        "replay/lost_unrolls",
        "replay/duplicated_unrolls",
        *(name for name in DESCRIPTIONS if name.startswith("environment/")),
    }
)

_PATTERNS = [
    (re.compile(re.escape(name).replace(r"\*", "[^/]+")), text)
    for name, text in DESCRIPTIONS.items()
    if "*" in name
]


def describe(name: str) -> str:
    """Returns the description of a metric; "" for a metric of a user's agent."""
    if name in DESCRIPTIONS:
        return DESCRIPTIONS[name]
    return next((text for pattern, text in _PATTERNS if pattern.fullmatch(name)), "")


def page() -> str:
    """Returns `docs/metrics.md`."""
    parts = [
        "# Metrics\n",
        "Look up what TensorBoard, `launch.plot --metric=NAME` and W&B show. `*` stands for "
        "a name.\n",
        "```bash\ntensorboard --logdir=runs\n```\n",
        "All metrics are logged over env frames, in one *row* per `run.metrics_seconds`. Metrics",
        "of an update are means since the previous row. `episode/mean_return_last_100` is called",
        "`charts/episodic_return` elsewhere; `episode/mean_return` shows a collapse sooner.",
        "Counters of faults appear once they are not 0.\n",
        "This page is generated: `python -m laser_tf.monitoring.metrics > docs/metrics.md`.",
    ]
    group = ""
    for name, text in DESCRIPTIONS.items():
        if name.split("/")[0] != group:
            group = name.split("/")[0]
            parts.append(f"\n## {group}\n\n| metric | description |\n|---|---|")
        cell = text.replace("|", r"\|")
        parts.append(f"| `{name}` | {cell} |")
    return "\n".join(parts)


if __name__ == "__main__":
    print(page())
