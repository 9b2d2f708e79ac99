"""Selection, exploration, decisions and restarts of a population."""

import collections
import dataclasses
import itertools
import math
import pathlib
import random

from absl.testing import absltest, parameterized

from laser_tf.sweeps import lineage, population
from testing import folders, messages

RATE, ENTROPY = "learner.learning_rate", "agent.entropy_cost"
BOTH = {RATE: 1e-3, ENTROPY: 1e-2}
PBT = population.Config(method="pbt", ready_env_frames=100, tuned=(RATE, ENTROPY))
IMPALA = dataclasses.replace(
    PBT,
    truncation_fraction=1.0,
    copy_margin=0.05,
    perturbation_probability=0.33,
    explore_without_copy=True,
)


def _population(config: population.Config = PBT, **fitnesses: float) -> population.Population:
    """Returns a population whose members have reported once, with own hyper-parameters."""
    made = population.Population(config, pathlib.Path("missing.csv"))
    made.record = made.records.append
    for member, fitness in fitnesses.items():
        _decide(made, member, 0, fitness, _own(member))
    return made


def _decide(made: population.Population, *call) -> lineage.Record:
    """Returns a decision that is in force."""
    decided = made.decide(*call, others={})
    made.record(decided)
    return decided


def _own(member: str) -> dict[str, float]:
    """Returns different values for the members `a0`, `a1`, ..."""
    return {RATE: 1e-3 * 2 ** int(member[1:]), ENTROPY: 1e-2 * 3 ** int(member[1:])}


def _named(*fitnesses: float) -> dict[str, float]:
    return {f"a{i}": fitness for i, fitness in enumerate(fitnesses)}


class SelectionTest(parameterized.TestCase):
    def _parents(self, member: str, fitnesses: dict, config=PBT, draws: int = 2_000) -> dict:
        counts = collections.Counter(
            population.select_parent(member, fitnesses, config, random.Random(i))
            for i in range(draws)
        )
        return {parent: count / draws for parent, count in counts.items()}

    def test_lowest_fifth_copies_uniformly_from_the_highest(self):
        fitnesses = _named(*range(15))  # Three copy from three.
        for member in fitnesses:
            parents = self._parents(member, fitnesses)
            if member not in ("a0", "a1", "a2"):
                self.assertEqual(parents, {None: 1.0})
                continue
            self.assertCountEqual(parents, ["a12", "a13", "a14"])
            for share in parents.values():
                self.assertAlmostEqual(share, 1 / 3, delta=0.05)

    @parameterized.parameters(
        (4, 0.2, 1), (5, 0.2, 1), (6, 0.2, 2), (11, 0.2, 3),
        (100, 0.07, 7),  # 0.07 * 100 = 7.000000000000001
    )  # fmt: skip
    def test_fraction_is_rounded_up(self, members, fraction, count):
        fitnesses = _named(*range(members))
        config = dataclasses.replace(PBT, truncation_fraction=fraction)
        parents = [self._parents(member, fitnesses, config, draws=1) for member in fitnesses]
        copying = [member for member in parents if member != {None: 1.0}]
        self.assertLen(copying, count)

    def test_members_of_equal_fitness_share_the_lowest_places(self):
        fitnesses = _named(*[0.0] * 9, 1.0)  # Nine share two places.
        for member in ("a0", "a4", "a8"):
            parents = self._parents(member, fitnesses)
            self.assertAlmostEqual(parents["a9"], 2 / 9 / 2, delta=0.03)
            self.assertCountEqual(parents, [None, "a9"])

    def test_margin_prevents_copies_of_slightly_better_members(self):
        config = dataclasses.replace(PBT, copy_margin=0.05)
        self.assertEqual(self._parents("a0", _named(0.5, 0.54), config), {None: 1.0})
        self.assertEqual(self._parents("a0", _named(0.5, 0.56), config), {"a1": 1.0})

    def test_fraction_of_one_copies_any_better_member(self):
        fitnesses = _named(0.1, 0.12, 0.5, 0.9, 0.2)
        parents = self._parents("a1", fitnesses, IMPALA)
        self.assertCountEqual(parents, [None, "a2", "a3", "a4"])
        for share in parents.values():
            self.assertAlmostEqual(share, 1 / 4, delta=0.05)


class ExploreTest(parameterized.TestCase):
    def _factors(self, config: population.Config) -> collections.Counter:
        counts = collections.Counter()
        for seed in range(3_000):
            explored = population.explore(BOTH, config, random.Random(seed))
            self.assertCountEqual(explored, BOTH)
            counts[tuple(round(explored[name] / BOTH[name], 6) for name in BOTH)] += 1 / 3_000
        return counts

    def test_each_value_has_a_separate_factor(self):
        factors = self._factors(PBT)
        pairs = list(itertools.product((1.2, round(1 / 1.2, 6)), repeat=2))
        self.assertCountEqual(factors, pairs)
        for pair in pairs:
            self.assertAlmostEqual(factors[pair], 1 / 4, delta=0.04)

    def test_probability_leaves_some_values_unchanged(self):
        factors = self._factors(dataclasses.replace(IMPALA, perturbation_factors=(2.0,)))
        for pair in itertools.product((1.0, 2.0), repeat=2):
            expected = math.prod(0.33 if factor == 2 else 0.67 for factor in pair)
            self.assertAlmostEqual(factors[pair], expected, delta=0.04)

    @parameterized.parameters(1.2, 1 / 1.2)
    def test_values_stay_positive_and_finite(self, factor):
        config = dataclasses.replace(PBT, perturbation_factors=(factor,))
        values, generator = BOTH, random.Random(1)
        for _ in range(2_000):
            values = population.explore(values, config, generator)
        for value in values.values():
            self.assertBetween(value, population.SMALLEST, population.LARGEST)


class DecideTest(parameterized.TestCase):
    def _assert_unchanged(self, decided: lineage.Record, values: dict[str, float]) -> None:
        self.assertIsNone(decided.parent)
        self.assertEqual(decided.hyperparameters, values)

    def test_first_decision_changes_nothing(self):
        for config in (PBT, IMPALA):
            made = _population(config, a1=9.0)
            self._assert_unchanged(_decide(made, "a0", 500, 1.0, {**BOTH, "other": 1.0}), BOTH)

    def test_lowest_copies_the_highest_with_perturbed_values(self):
        made = _population(a0=0.0, a1=1.0, a2=2.0, a3=3.0)
        decision = _decide(made, "a0", 100, 0.5, _own("a0"))
        self.assertEqual(decision.parent, "a3")
        for name, value in _own("a3").items():
            ratio = decision.hyperparameters[name] / value
            self.assertTrue(math.isclose(ratio, 1.2) or math.isclose(ratio, 1 / 1.2), ratio)
        self._assert_unchanged(_decide(made, "a3", 100, 3.0, _own("a3")), _own("a3"))

    def test_newest_record_of_a_member_counts(self):
        made = _population(a0=0.0, a1=1.0, a2=2.0, a3=3.0)
        _decide(made, "a3", 100, 1.5, _own("a3"))  # Is now worse than a2.
        _decide(made, "a2", 100, 2.0, {RATE: 0.5, ENTROPY: 0.5})
        decision = _decide(made, "a0", 100, 0.0, _own("a0"))
        self.assertEqual(decision.parent, "a2")
        self.assertAlmostEqual(abs(math.log(decision.hyperparameters[RATE] / 0.5)), math.log(1.2))
        self.assertIsNone(_decide(made, "a2", 100, 5.0, _own("a2")).parent)
        self.assertIsNone(_decide(made, "a1", 100, 9.0, _own("a1")).parent)

    def test_present_fitness_of_others_ranks_them(self):
        made = _population(a0=0.0, a1=1.0, a2=2.0, a3=3.0)
        now = {"a1": 5.0, "a2": 6.0, "a3": 7.0, "a4": 0.0}  # a4 has no weights to give yet
        for others, parent in (
            (now, "a3"),
            (now | {"a1": 2.0}, None),  # below a0: not a0, but a1 is the last
            (now | {"a2": 9.0, "a3": math.nan}, None),  # a2's record, which it would get, is worse
        ):
            self.assertEqual(made.decide("a0", 100, 2.5, _own("a0"), others).parent, parent)

    @parameterized.product(unknown=(math.nan, math.inf, -math.inf), config=(PBT, IMPALA))
    def test_member_without_finite_fitness_is_no_copy_or_parent(self, unknown, config):
        made = _population(config, a0=unknown, a1=0.0, a2=unknown)
        for frames in (100, 200):
            for member in ("a0", "a2"):
                self._assert_unchanged(_decide(made, member, frames, unknown, BOTH), BOTH)
            self.assertIsNone(_decide(made, "a1", frames, -9.0, BOTH).parent)

    def test_silent_member_stays_in_the_ranking(self):
        made = _population(a0=5.0, a1=0.0, a2=1.0)
        for frames in range(100, 1_000, 100):  # a0 died after its first report
            self.assertEqual(_decide(made, "a1", frames, 0.0, BOTH).parent, "a0")
            self.assertIsNone(_decide(made, "a2", frames, 1.0, BOTH).parent)

    def test_members_explore_without_copies_if_configured(self):
        made = _population(IMPALA, a0=0.0, a1=1.0)
        changed = 0
        for frames in range(100, 30_100, 100):
            decision = _decide(made, "a1", frames, 1.0, BOTH)
            self.assertIsNone(decision.parent)
            changed += sum(decision.hyperparameters[name] != BOTH[name] for name in BOTH)
        self.assertAlmostEqual(changed / 600, 0.33, delta=0.06)


class ReadyTest(parameterized.TestCase):
    def test_decisions_are_due_on_a_grid(self):
        made = _population()
        self.assertEqual(made.next_decision_at("a0"), 0)
        for frames, following in ((0, 100), (130, 200), (200, 300), (577, 600)):
            _decide(made, "a0", frames, 1.0, BOTH)
            self.assertEqual(made.next_decision_at("a0"), following)

    def test_first_decision_follows_the_burn_in(self):
        made = _population(dataclasses.replace(PBT, burn_in_env_frames=450), a0=0.0, a1=1.0)
        self.assertEqual(made.next_decision_at("a0"), 450)
        _decide(made, "a1", 450, 1.0, BOTH)
        self.assertEqual(_decide(made, "a0", 450, 0.0, BOTH).parent, "a1")
        self.assertEqual(made.next_decision_at("a0"), 500)

    def test_decision_is_in_force_once_recorded(self):
        made = _population(a0=0.0, a1=1.0)
        decided = made.decide("a0", 120, 0.0, BOTH, {})
        self.assertEqual(decided.parent, "a1")
        self.assertEqual(made.next_decision_at("a0"), 100)
        self.assertEqual(made.latest("a0").env_frames, 0)
        made.record(decided)
        kept = _decide(made, "a0", 200, 2.0, BOTH)
        self.assertEqual(made.next_decision_at("a0"), 300)
        self.assertEqual((made.latest("a0"), made.latest_copy("a0")), (kept, decided))
        self.assertIsNone(made.latest_copy("a1"))
        self.assertIsNone(made.latest("a2"))


class RestartTest(folders.FolderTest):
    @parameterized.parameters(PBT, IMPALA)
    def test_restart_anywhere_changes_no_decision(self, config):
        calls, generator = [], random.Random(3)
        frames = dict.fromkeys(_named(*range(6)), 0)
        for _ in range(80):
            member = generator.choice(list(frames))
            fitness = generator.choice([math.nan, generator.random(), generator.random()])
            calls.append((member, frames[member], fitness, _own(member)))
            frames[member] += generator.randint(50, 250)
        made = _population(config)
        expected = [_decide(made, *call) for call in calls]
        path = self._folder / "lineage.csv"
        decided = [_decide(population.Population(config, path), *call) for call in calls]
        self.assertEqual(decided, expected)
        self.assertGreater(sum(record.parent is not None for record in decided), 3)
        other = _population(dataclasses.replace(config, seed=2))
        self.assertNotEqual([_decide(other, *call) for call in calls], expected)


class ConfigTest(parameterized.TestCase):
    @parameterized.parameters(
        ("method", "genetic"),
        ("ready_env_frames", 0),
        ("truncation_fraction", math.nan),
        ("copy_margin", -0.1),
        ("perturbation_factors", (1.2, 0.0)),
        ("perturbation_probability", 1.5),
        ("tuned", ()),
        ("tuned", (RATE, RATE)),
        ("tuned", ("fitness",)),
    )
    def test_invalid_value_is_rejected(self, name, value):
        with messages.raises(ValueError, name):
            population.Config(**{name: value})


if __name__ == "__main__":
    absltest.main()
