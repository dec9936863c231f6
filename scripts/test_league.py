"""Pages that `league.py` fills. python3 scripts/test_league.py"""

import unittest

import league

PAGE = """
| case | number | `lastmile` | `nada` |
|---|---|---|---|
| `rfc8867-5.1` | rate, % of possible | - | - |
| `rfc8867-5.1` | P95 of queueing, ms | - | - |

| controller | Pareto | dominated |
|---|---|---|
| `nada` | 0 | 0 | 0 | 0 | 0 %, 0 ms | 0 % |

Words stay.
"""


def row(controller, possible, queue, **more):
    own = {"scenario": "rfc8867-5.1", "controller": controller, "of_possible": possible, "queueing_p95_ms": queue}
    around = {f"{name}_{side}": own[name] + by for name in ("of_possible", "queueing_p95_ms") for side, by in (("low", -0.5), ("high", 0.5))}
    standing = {"pareto": "true", "dominated": "false", "dominates": "true", "fair": "", "regret": "7", "regret_queue_ms": "9"}
    return own | around | standing | more


class Page(unittest.TestCase):
    def test_cells_have_means_and_intervals(self):
        page = league.filled(PAGE, [row("lastmile", 95.44, 64.2), row("nada", 88.0, 147.3)]).splitlines()
        self.assertIn("| `rfc8867-5.1` | rate, % of possible | 95.4 ± 0.5 | 88.0 ± 0.5 |", page)
        self.assertIn("| `rfc8867-5.1` | P95 of queueing, ms | 64.2 ± 0.5 | 147 ± 0.5 |", page)
        self.assertIn("| `nada` | 1 | 0 | 1 | 0 | 7.0 %, 9 ms | 7 % |", page)
        self.assertEqual(len(page), len(PAGE.splitlines()))
        self.assertEqual(page[-1], "Words stay.")

    def test_a_controller_that_is_missing_is_an_error(self):
        self.assertRaises(KeyError, league.filled, PAGE, [row("lastmile", 95.44, 64.2)])
        self.assertRaises(SystemExit, league.filled, "| `nada` | 0 | 0 | 0 | 0 | 0 %, 0 ms | 0 % |", [row("lastmile", 95.44, 64.2)])


if __name__ == "__main__":
    unittest.main()
