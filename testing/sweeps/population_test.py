"""Who copies whom, what changes, what a restart knows, and that it helps."""

import collections
import dataclasses
import itertools
import math
import pathlib
import random
import statistics
import tempfile

from absl.testing import absltest, parameterized

from laser_tf.sweeps import lineage, population
from testing import messages

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


class PopulationTestCase(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)
        self._files = itertools.count()

    def _population(
        self, config: population.Config = PBT, file: str | None = None
    ) -> population.Population:
        path = self._folder / (file or f"{next(self._files)}.csv")
        return population.Population(config, lineage.Lineage(path, config.tuned))

    def _reported(
        self, fitnesses: dict[str, float], config: population.Config = PBT, file: str | None = None
    ) -> population.Population:
        """A population whose members have reported once, with hyper-parameters of their own."""
        made = self._population(config, file or "r.csv")
        for member, fitness in fitnesses.items():
            _decide(made, member, 0, fitness, _own(member))
        return made

    def _assert_goes_on(self, decided: lineage.Record, values: dict[str, float]) -> None:
        """It has kept its weights, and has these hyper-parameters."""
        self.assertIsNone(decided.parent)
        self.assertEqual(decided.hyperparameters, values)


def _decide(made: population.Population, *call) -> lineage.Record:
    """A decision that holds."""
    decided = made.decide(*call)
    made.record(decided)
    return decided


def _own(member: str) -> dict[str, float]:
    """Values that tell the members `a0`, `a1`, ... apart."""
    return {RATE: 1e-3 * 2 ** int(member[1:]), ENTROPY: 1e-2 * 3 ** int(member[1:])}


def _named(*fitnesses: float) -> dict[str, float]:
    return {f"a{i}": fitness for i, fitness in enumerate(fitnesses)}


class SelectionTest(PopulationTestCase):
    def _parents(self, member: str, fitnesses: dict, config=PBT, draws: int = 2_000) -> dict:
        counts = collections.Counter(
            population.select_parent(member, fitnesses, config, random.Random(i))
            for i in range(draws)
        )
        return {parent: count / draws for parent, count in counts.items()}

    def test_the_lowest_fifth_copies_uniformly_from_the_highest(self):
        fitnesses = _named(*range(15))  # three and three
        for low in ("a0", "a1", "a2"):
            parents = self._parents(low, fitnesses)
            self.assertCountEqual(parents, ["a12", "a13", "a14"])
            for share in parents.values():
                self.assertAlmostEqual(share, 1 / 3, delta=0.05)

    def test_nobody_else_copies(self):
        fitnesses = _named(*range(15))
        for member in list(fitnesses)[3:]:
            self.assertEqual(self._parents(member, fitnesses, draws=50), {None: 1.0})

    @parameterized.parameters((2, 1), (4, 1), (5, 1), (6, 2), (10, 2), (11, 3))
    def test_the_fraction_is_rounded_up(self, members, count):
        fitnesses = _named(*range(members))
        copying = [a for a in fitnesses if self._parents(a, fitnesses, draws=1) != {None: 1.0}]
        self.assertEqual(copying, list(fitnesses)[:count])

    def test_a_count_that_is_whole_is_not_rounded_up_by_floating_point(self):
        fitnesses = _named(*range(100))
        config = dataclasses.replace(PBT, truncation_fraction=0.07)  # * 100 = 7.000000000000001
        self.assertEqual(self._parents("a7", fitnesses, config, draws=5), {None: 1.0})

    def test_equals_never_copy_each_other(self):
        fitnesses = _named(*[1.0] * 10)
        for member in fitnesses:
            self.assertEqual(self._parents(member, fitnesses, draws=100), {None: 1.0})

    def test_equals_share_the_places_at_the_bottom(self):
        fitnesses = _named(*[0.0] * 9, 1.0)  # two places for nine; one of the two on top is better
        for member in ("a0", "a4", "a8"):
            parents = self._parents(member, fitnesses)
            self.assertAlmostEqual(parents["a9"], 2 / 9 / 2, delta=0.03)
            self.assertCountEqual(parents, [None, "a9"])

    def test_the_margin_holds_back_small_improvements(self):
        config = dataclasses.replace(PBT, copy_margin=0.05)
        self.assertEqual(self._parents("a0", _named(0.5, 0.54), config), {None: 1.0})
        self.assertEqual(self._parents("a0", _named(0.5, 0.56), config), {"a1": 1.0})

    def test_a_fraction_of_one_draws_any_other_and_copies_the_better(self):
        fitnesses = _named(0.1, 0.12, 0.5, 0.9, 0.2)
        parents = self._parents("a1", fitnesses, IMPALA)
        self.assertCountEqual(parents, [None, "a2", "a3", "a4"])
        for share in parents.values():
            self.assertAlmostEqual(share, 1 / 4, delta=0.05)

    def test_random_populations(self):
        generator = random.Random(1)
        for _ in range(500):
            members = generator.randint(1, 12)
            fitnesses = _named(*(generator.randint(-3, 3) for _ in range(members)))
            config = dataclasses.replace(
                PBT, truncation_fraction=1 - generator.random(), copy_margin=generator.random()
            )
            member = generator.choice(list(fitnesses))
            parent = population.select_parent(member, fitnesses, config, generator)
            better = [f for f in fitnesses.values() if f > fitnesses[member] + config.copy_margin]
            if parent is None:
                continue
            self.assertIn(fitnesses[parent], better)
            count = math.ceil(config.truncation_fraction * members)
            ranked = sorted(fitnesses.values())
            self.assertLessEqual(fitnesses[member], ranked[count - 1])
            self.assertGreaterEqual(fitnesses[parent], ranked[-count])


class ExploreTest(PopulationTestCase):
    def _factors(self, config: population.Config) -> collections.Counter:
        counts = collections.Counter()
        for seed in range(3_000):
            explored = population.explore(BOTH, config, random.Random(seed))
            self.assertCountEqual(explored, BOTH)
            counts[tuple(round(explored[name] / BOTH[name], 6) for name in BOTH)] += 1 / 3_000
        return counts

    def test_each_value_is_multiplied_by_a_factor_of_its_own(self):
        factors = self._factors(PBT)
        pairs = list(itertools.product((1.2, round(1 / 1.2, 6)), repeat=2))
        self.assertCountEqual(factors, pairs)
        for pair in pairs:
            self.assertAlmostEqual(factors[pair], 1 / 4, delta=0.04)

    def test_a_probability_leaves_values_as_they_are(self):
        factors = self._factors(dataclasses.replace(IMPALA, perturbation_factors=(2.0,)))
        for pair in itertools.product((1.0, 2.0), repeat=2):
            expected = math.prod(0.33 if factor == 2 else 0.67 for factor in pair)
            self.assertAlmostEqual(factors[pair], expected, delta=0.04)

    @parameterized.parameters((1.2,), (1 / 1.2,))
    def test_values_stay_positive_and_finite_for_ever(self, factor):
        config = dataclasses.replace(PBT, perturbation_factors=(factor,))
        values, generator = BOTH, random.Random(1)
        for _ in range(2_000):
            values = population.explore(values, config, generator)
        for value in values.values():
            self.assertBetween(value, population.SMALLEST, population.LARGEST)


class DecideTest(PopulationTestCase):
    def test_the_first_call_introduces_the_agent_and_changes_nothing(self):
        for config in (PBT, IMPALA):
            made = self._population(config)
            _decide(made, "a1", 500, 9.0, BOTH)
            self._assert_goes_on(_decide(made, "a0", 500, 1.0, {**BOTH, "other": 1.0}), BOTH)

    def test_the_lowest_copies_the_highest_with_its_hyperparameters_perturbed(self):
        made = self._reported(_named(0.0, 1.0, 2.0, 3.0))
        decision = _decide(made, "a0", 100, 0.5, _own("a0"))
        self.assertEqual(decision.parent, "a3")
        for name, value in _own("a3").items():
            ratio = decision.hyperparameters[name] / value
            self.assertTrue(math.isclose(ratio, 1.2) or math.isclose(ratio, 1 / 1.2), ratio)
        self._assert_goes_on(_decide(made, "a3", 100, 3.0, _own("a3")), _own("a3"))

    def test_the_newest_fitness_counts(self):
        made = self._reported(_named(0.0, 1.0, 2.0, 3.0))
        _decide(made, "a3", 100, 1.5, _own("a3"))  # has become worse than a2
        self.assertEqual(_decide(made, "a0", 100, 0.0, _own("a0")).parent, "a2")
        self.assertIsNone(_decide(made, "a2", 100, 5.0, _own("a2")).parent)
        self.assertIsNone(_decide(made, "a1", 100, 9.0, _own("a1")).parent)

    def test_who_is_asked_first_is_ranked_by_what_the_others_are_now(self):
        made = self._reported(_named(0.0, 1.0, 2.0, 3.0))
        now = {"a1": 5.0, "a2": 6.0, "a3": 7.0, "a4": 0.0}  # a4 has no weights to give yet
        for others, parent in (
            (now, "a3"),
            (now | {"a1": 2.0}, None),  # below a0: not a0, but a1 is the last
            (now | {"a2": 9.0, "a3": math.nan}, None),  # a2's record, which it would get, is worse
        ):
            self.assertEqual(made.decide("a0", 100, 2.5, _own("a0"), others).parent, parent)

    def test_the_parent_hands_on_what_it_goes_on_with(self):
        made = self._reported(_named(0.0, 1.0))
        _decide(made, "a1", 100, 1.0, {RATE: 0.5, ENTROPY: 0.5})
        decision = _decide(made, "a0", 100, 0.0, _own("a0"))
        self.assertAlmostEqual(abs(math.log(decision.hyperparameters[RATE] / 0.5)), math.log(1.2))

    @parameterized.parameters(math.nan, math.inf, -math.inf)
    def test_without_a_finite_fitness_nobody_copies_or_is_copied(self, unknown):
        for config in (PBT, IMPALA):
            file = f"{next(self._files)}.csv"
            made = self._reported(_named(unknown, 0.0, unknown), config, file)
            for frames in (100, 200):
                for member in ("a0", "a2"):
                    self._assert_goes_on(_decide(made, member, frames, unknown, BOTH), BOTH)
                self.assertIsNone(_decide(made, "a1", frames, -9.0, BOTH).parent)

    def test_a_fitness_that_is_lost_is_not_remembered(self):
        made = self._reported(_named(0.0, 1.0))
        _decide(made, "a1", 100, math.nan, BOTH)
        self.assertIsNone(_decide(made, "a0", 100, 0.0, BOTH).parent)

    def test_an_agent_alone_goes_on(self):
        made = self._reported(_named(0.0))
        for frames in (100, 200):
            self._assert_goes_on(_decide(made, "a0", frames, 1.0, BOTH), BOTH)

    def test_of_two_the_worse_copies_the_better(self):
        made = self._reported(_named(0.0, 1.0))
        self.assertEqual(_decide(made, "a0", 100, 0.0, BOTH).parent, "a1")
        self.assertIsNone(_decide(made, "a1", 100, 1.0, BOTH).parent)

    def test_a_silent_agent_blocks_nobody(self):
        made = self._reported(_named(5.0, 0.0, 1.0))
        for frames in range(100, 1_000, 100):  # a0 died after its first report
            self.assertEqual(_decide(made, "a1", frames, 0.0, BOTH).parent, "a0")
            self.assertIsNone(_decide(made, "a2", frames, 1.0, BOTH).parent)

    def test_those_that_do_not_copy_explore_where_the_config_says_so(self):
        made = self._reported(_named(0.0, 1.0), IMPALA)
        changed = 0
        for frames in range(100, 30_100, 100):
            decision = _decide(made, "a1", frames, 1.0, BOTH)
            self.assertIsNone(decision.parent)
            changed += sum(decision.hyperparameters[name] != BOTH[name] for name in BOTH)
        self.assertAlmostEqual(changed / 600, 0.33, delta=0.06)

    @parameterized.parameters(
        ("", 0, BOTH, ("name", "''")),
        ("a\nb", 0, BOTH, ("name",)),
        ("a0", -1, BOTH, ("env_frames", "a0", -1)),
        ("a0", 0, {RATE: 1e-3}, ("a0", ENTROPY, "population.tuned")),
        ("a0", 0, {**BOTH, ENTROPY: 0.0}, ("a0", ENTROPY, 0.0)),
        ("a0", 0, {**BOTH, RATE: math.nan}, ("a0", RATE, "nan")),
        ("a0", 0, {**BOTH, RATE: math.inf}, ("a0", RATE, "inf")),
    )
    def test_refuses_what_no_agent_can_have(self, member, env_frames, values, names):
        with messages.raises(ValueError, *names):
            self._population().decide(member, env_frames, 0.0, values)


class ReadyTest(PopulationTestCase):
    def test_ready_points_lie_on_a_grid(self):
        made = self._population()
        self.assertEqual(made.next_ready("a0"), 0)
        for frames, following in ((0, 100), (130, 200), (200, 300), (577, 600)):
            _decide(made, "a0", frames, 1.0, BOTH)
            self.assertEqual(made.next_ready("a0"), following)

    def test_nothing_happens_before_the_burn_in(self):
        made = self._population(dataclasses.replace(PBT, burn_in_env_frames=450))
        for member, fitness in _named(0.0, 1.0).items():
            _decide(made, member, 0, fitness, BOTH)
        self.assertEqual(made.next_ready("a0"), 450)
        _decide(made, "a1", 450, 1.0, BOTH)
        self.assertEqual(_decide(made, "a0", 450, 0.0, BOTH).parent, "a1")
        self.assertEqual(made.next_ready("a0"), 500)

    def test_a_decision_holds_when_it_is_recorded(self):
        made = self._reported(_named(0.0, 1.0))
        decided = made.decide("a0", 120, 0.0, BOTH)
        self.assertEqual(decided.parent, "a1")
        self.assertEqual(made.next_ready("a0"), 100)
        self.assertEqual(made.latest("a0").env_frames, 0)
        made.record(decided)
        kept = _decide(made, "a0", 200, 2.0, BOTH)
        for known in (made, self._population(file="r.csv")):
            self.assertEqual(known.next_ready("a0"), 300)
            self.assertEqual(known.latest("a0"), kept)
            self.assertEqual(known.latest_copy("a0"), decided)
            self.assertIsNone(known.latest_copy("a1"))
            self.assertIsNone(known.latest("a2"))


class RestartTest(PopulationTestCase):
    @parameterized.parameters(PBT, IMPALA)
    def test_a_restart_anywhere_changes_no_decision(self, config):
        calls, generator = [], random.Random(3)
        frames = dict.fromkeys(_named(*range(6)), 0)
        for _ in range(80):
            member = generator.choice(list(frames))
            fitness = generator.choice([math.nan, generator.random(), generator.random()])
            calls.append((member, frames[member], fitness, _own(member)))
            frames[member] += generator.randint(50, 250)
        through = self._population(config, "through.csv")
        expected = [_decide(through, *call) for call in calls]
        decided = [_decide(self._population(config, "restarted.csv"), *call) for call in calls]
        self.assertEqual(decided, expected)
        self.assertGreater(sum(record.parent is not None for record in decided), 3)
        self.assertEqual(
            (self._folder / "restarted.csv").read_text(), (self._folder / "through.csv").read_text()
        )
        other = self._population(dataclasses.replace(config, seed=2))
        self.assertNotEqual([_decide(other, *call) for call in calls], expected)

    def test_a_torn_row_is_decided_again(self):
        made = self._reported(_named(0.0, 1.0, 2.0))
        first = _decide(made, "a0", 100, 0.0, BOTH)
        path = self._folder / "r.csv"
        path.write_bytes(path.read_bytes()[:-5])
        again = self._population(file="r.csv")
        self.assertEqual(_decide(again, "a0", 100, 0.0, BOTH), first)

    def test_the_first_row_of_an_agent_has_no_parent(self):
        made = self._population()
        for frames in (0, 100, 200):
            for member in reversed(_named(0.0, 1.0, 2.0)):
                _decide(made, member, frames, float(member[1:]), _own(member))
        records = self._population(file="0.csv")._log.records
        starts = {record.member: record for record in reversed(records)}
        self.assertEqual([record.parent for record in starts.values()], [None] * 3)
        self.assertEqual([record.env_frames for record in starts.values()], [0] * 3)
        self.assertEqual({record.parent for record in records}, {None, "a2"})


class DemonstrationTest(PopulationTestCase):
    """Skill grows by 1 a generation at the best learning rate, which falls as the run goes on."""

    def _final_skills(
        self, config: population.Config, seed: int, is_left_alone: bool = False
    ) -> list[float]:
        generator = random.Random(seed)
        members = _named(*range(10))
        made = self._population(dataclasses.replace(config, seed=seed, tuned=(RATE,)))
        rates = {member: {RATE: 10 ** generator.uniform(-5, -1)} for member in members}
        skills = dict.fromkeys(members, 0.0)
        for generation in range(60):
            best_rate = 10 ** (-2 - 2 * generation / 60)
            for member in members:
                if not is_left_alone:
                    decided = _decide(made, member, 100 * generation, skills[member], rates[member])
                    rates[member] = decided.hyperparameters
                    skills[member] = skills[decided.parent or member]
                skills[member] += math.exp(-(math.log(rates[member][RATE] / best_rate) ** 2))
        return list(skills.values())

    @parameterized.named_parameters(("jaderberg", PBT), ("impala", IMPALA))
    def test_the_best_of_a_trained_population_beats_the_same_left_alone(self, config):
        best_trained, best_alone = [], []
        for seed in range(1, 11):
            alone = self._final_skills(config, seed, is_left_alone=True)
            trained = self._final_skills(config, seed)
            self.assertGreater(max(trained), 1.2 * statistics.mean(alone))
            best_trained.append(max(trained))
            best_alone.append(max(alone))
        # No fixed rate can follow the best one down.
        self.assertGreater(statistics.mean(best_trained), 1.5 * statistics.mean(best_alone))


class ConfigTest(parameterized.TestCase):
    @parameterized.parameters(
        ("method", "genetic"),
        ("ready_env_frames", 0),
        ("burn_in_env_frames", -1),
        ("truncation_fraction", 0.0),
        ("truncation_fraction", 1.1),
        ("truncation_fraction", math.nan),
        ("copy_margin", -0.1),
        ("copy_margin", math.inf),
        ("perturbation_factors", ()),
        ("perturbation_factors", (1.2, 0.0)),
        ("perturbation_factors", (math.nan,)),
        ("perturbation_probability", 0.0),
        ("perturbation_probability", 1.5),
        ("tuned", ()),
        ("tuned", (RATE, RATE)),
        ("tuned", ("fitness",)),
        ("tuned", ("",)),
    )
    def test_refuses_a_value_and_names_it(self, name, value):
        with messages.raises(ValueError, name):
            population.Config(**{name: value})


if __name__ == "__main__":
    absltest.main()
