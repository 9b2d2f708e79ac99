"""Ranks and ratings by hand, and Reactor's own tables.

`reactor_table_5.csv` holds what the paper's table 5 prints: scores on 57 Atari games from no-op
starts. Its table 2 is what those come to.
"""

import csv
import pathlib
import statistics

from absl.testing import absltest, parameterized

from laser_tf.scores import ranking, reference
from testing import messages

TABLE_5 = pathlib.Path(__file__).with_name("reactor_table_5.csv")
# Table 2: median human-normalised score, mean rank, Elo. ACER's 1.9 has no scores in table 5.
TABLE_2 = {
    "random": (0.00, 10.93, -673),
    "human": (1.00, 6.89, 0),
    "dqn": (0.79, 8.65, -167),
    "ddqn": (1.18, 7.28, -27),
    "duel": (1.51, 5.19, 143),
    "prior": (1.24, 6.11, 70),
    "prior_duel": (1.72, 5.44, 126),
    "rainbow": (2.31, 3.63, 270),
    "reactor_nd": (1.80, 4.53, 195),
    "reactor": (1.87, 4.46, 196),
    "reactor_500m": (2.30, 3.47, 280),
}


def _table_5() -> dict[str, dict[str, float]]:
    with TABLE_5.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {agent: {row["game"]: float(row[agent]) for row in rows} for agent in TABLE_2}


class ReactorTest(parameterized.TestCase):
    def test_mean_ranks_are_table_2s(self):
        ranks = ranking.mean_ranks(_table_5())
        for agent, (_, published, _) in TABLE_2.items():
            # Three games' places each: Reactor's own scores, means of 200 episodes, are printed to
            # a tenth, and some that are ties in print were none.
            ties = 3 / 57 if agent in ("reactor", "reactor_500m") else 0
            self.assertAlmostEqual(ranks[agent] - ties, published, delta=0.0055, msg=agent)

    def test_elo_ratings_are_table_2s(self):
        ratings = ranking.elo_ratings(_table_5(), zero="human")
        for agent, (_, _, published) in TABLE_2.items():
            # Random play wins 3% of its comparisons: a tie more or less moves it.
            delta = 12.5 if agent == "random" else 2
            self.assertAlmostEqual(ratings[agent], published, delta=delta, msg=agent)

    def test_medians_are_table_2s(self):
        scores = _table_5()
        normalised = {
            agent: reference.normalised_scores("atari", of_agent)
            for agent, of_agent in scores.items()
        }
        for agent, standing in ranking.standings(scores, normalised).items():
            self.assertAlmostEqual(standing.median, TABLE_2[agent][0], delta=0.0055, msg=agent)
            mean = statistics.fmean(normalised[agent].values())
            self.assertAlmostEqual(standing.mean, mean)

    def test_the_best_mean_rank_stands_first(self):
        standings = ranking.standings(_table_5())
        self.assertEqual(list(standings)[:3], ["reactor_500m", "rainbow", "reactor"])
        self.assertEqual(list(standings)[-1], "random")
        self.assertIsNone(standings["rainbow"].median)

    def test_swapping_two_scores_on_any_game_changes_both_measures(self):
        # "swapping scores of two algorithms on any game would result in the change of both".
        scores = _table_5()
        ranks, ratings = ranking.mean_ranks(scores), ranking.elo_ratings(scores)
        for game in ("pong", "montezuma_revenge", "video_pinball"):
            swapped = _table_5()
            rainbow, dqn = swapped["rainbow"], swapped["dqn"]
            rainbow[game], dqn[game] = dqn[game], rainbow[game]
            self.assertGreater(ranking.mean_ranks(swapped)["rainbow"], ranks["rainbow"])
            self.assertLess(ranking.elo_ratings(swapped)["rainbow"], ratings["rainbow"])


class MeanRankTest(absltest.TestCase):
    def test_the_best_is_first_and_a_tie_is_the_last_of_its_places(self):
        scores = {
            "a": {"x": 3.0, "y": -1.0, "z": 5.0},
            "b": {"x": 1.0, "y": -1.0, "z": 4.0},
            "c": {"x": 2.0, "y": -2.0, "z": 4.0},
        }
        # x: 1, 3, 2; y: 2, 2, 3; z: 1, 3, 3.
        expected = {"a": 4 / 3, "b": 8 / 3, "c": 8 / 3}
        self.assertEqual(ranking.mean_ranks(scores), expected)


class EloTest(absltest.TestCase):
    def test_ten_to_one_is_400(self):
        scores = {
            "good": {str(task): float(task > 0) for task in range(11)},
            "bad": {str(task): float(task == 0) for task in range(11)},
        }
        ratings = ranking.elo_ratings(scores)
        self.assertAlmostEqual(ratings["good"], 200.0)
        self.assertAlmostEqual(ratings["bad"], -200.0)
        self.assertAlmostEqual(ranking.elo_ratings(scores, zero="bad")["good"], 400.0)

    def test_expected_wins_are_those_that_there_were(self):
        # What the likeliest ratings come to: the gradient is zero.
        scores = _table_5()
        ratings = ranking.elo_ratings(scores)
        for one, of_one in scores.items():
            won = expected = 0.0
            for other, of_other in scores.items():
                if other != one:
                    expected += len(of_one) / (1 + 10 ** ((ratings[other] - ratings[one]) / 400))
                    for game, score in of_one.items():
                        won += (score > of_other[game]) + (score == of_other[game]) / 2
            self.assertAlmostEqual(expected, won, places=6, msg=one)

    def test_ties_alone_are_equal_ratings(self):
        scores = {agent: {"x": 1.0, "y": 2.0} for agent in "abc"}
        for rating in ranking.elo_ratings(scores).values():
            self.assertAlmostEqual(rating, 0.0)

    def test_there_are_none_if_some_always_win(self):
        scores = {"a": {"x": 9.0, "y": 8.0}, "b": {"x": 8.0, "y": 9.0}, "c": {"x": 0.0, "y": 0.0}}
        self.assertIsNone(ranking.elo_ratings(scores))
        self.assertIsNone(ranking.standings(scores)["a"].elo)
        self.assertIsNotNone(ranking.elo_ratings({name: scores[name] for name in "ab"}))

    def test_ratings_far_apart_are_found(self):
        # A chain of agents, each of which loses to the next on 199 of 200 tasks.
        scores = {
            str(agent): {str(task): -float(agent) if task else float(agent) for task in range(200)}
            for agent in range(4)
        }
        ratings = ranking.elo_ratings(scores)
        self.assertAlmostEqual(sum(ratings.values()), 0.0, places=6)
        self.assertGreater(ratings["0"] - ratings["3"], 900)
        self.assertGreater(ratings["0"], ratings["1"])

    def test_an_unknown_zero_is_refused(self):
        with messages.raises(ValueError, "zero", "human", "a", "b"):
            ranking.elo_ratings({"a": {"x": 1.0}, "b": {"x": 1.0}}, zero="human")


class RefusedTest(parameterized.TestCase):
    @parameterized.product(
        measure=(ranking.mean_ranks, ranking.elo_ratings, ranking.standings),
        case=(
            ({}, ("scores",)),
            ({"a": {}}, ("scores",)),
            ({"a": {"x": 1.0}, "b": {"y": 1.0}}, ("x",)),
            ({"a": {"x": float("nan")}}, ("a", "x", "nan")),
            ({"a": {"x": None}}, ("a", "x", "None")),
        ),
    )
    def test_what_cannot_be_compared(self, measure, case):
        with messages.raises(ValueError, *case[1]):
            measure(case[0])


if __name__ == "__main__":
    absltest.main()
