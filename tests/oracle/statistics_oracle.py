"""Generates fixtures/statistics with scipy and statsmodels, and checks the published values in it by the same libraries.

    python statistics_oracle.py fixtures/statistics
"""

import json
import sys
from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99, 0.999999]
RESAMPLES = 200_000


def wilson(passes: int, attempts: int, level: float) -> tuple[float, float]:
    low, high = proportion_confint(passes, attempts, alpha=1 - level, method="wilson")
    return float(low), float(high)


def mcnemar_p(improved: int, regressed: int) -> float:
    # A test of nothing is not defined there. Nothing speaks against a hypothesis without data.
    if improved + regressed == 0:
        return 1.0
    return float(mcnemar([[0, improved], [regressed, 0]], exact=True).pvalue)


def quantiles() -> list[dict]:
    return [{"level": level, "z": float(stats.norm.isf((1 - level) / 2))} for level in [*LEVELS, 1e-6, 1 - 1e-15]]


def intervals() -> list[dict]:
    tallies = [(0, 1), (1, 1), (0, 5), (1, 5), (4, 5), (5, 5), (8, 10), (0, 20), (19, 20), (50, 100), (99, 100)]
    tallies += [(333, 1000), (1000, 1000), (70_001, 100_000), (1, 100_000)]
    cases = []
    for passes, attempts in tallies:
        for level in LEVELS:
            low, high = wilson(passes, attempts, level)
            cases.append({"passes": passes, "attempts": attempts, "level": level, "low": low, "high": high})
    return cases


def all_pass() -> list[dict]:
    cases = []
    for attempts, passes in [(1, 1), (4, 3), (5, 5), (8, 4), (8, 0), (10, 8), (100, 90), (1000, 998)]:
        for together in {0, 1, 2, 4, passes, attempts // 2, attempts}:
            if together <= attempts:
                chance = float(Fraction(comb(passes, together), comb(attempts, together)))
                cases.append({"passes": passes, "attempts": attempts, "together": together, "chance": chance})
    return sorted(cases, key=lambda case: (case["attempts"], case["passes"], case["together"]))


def needed() -> list[dict]:
    cases = []
    for level in [0.8, 0.95, 0.99]:
        for threshold in [0.01, 0.25, 0.5, 0.57, 0.8, 0.9, 0.95, 0.99]:
            attempts = next(n for n in range(1, 100_000) if wilson(n, n, level)[0] >= threshold)
            cases.append({"threshold": threshold, "level": level, "attempts": attempts})
    return cases


def verdicts() -> list[dict]:
    pairs = [(0, 0), (1, 0), (5, 0), (6, 0), (0, 6), (1, 7), (2, 9), (10, 2), (12, 12), (13, 12), (59, 6), (86, 150)]
    pairs += [(480, 520), (450, 550), (5000, 5300), (50_200, 49_800)]
    return [{"improved": b, "regressed": c, "p": mcnemar_p(b, c)} for b, c in pairs]


def differences() -> list[dict]:
    random = np.random.default_rng(19)
    # Round numbers would have few different means, and two bootstraps would differ by at least the distance of two.
    samples = {
        "small and clear": [0.113, 0.207, 0.048, 0.301, 0.152, 0.097, 0.256],
        "small and unclear": [0.113, -0.207, 0.048, 0.301, -0.152, 0.097, -0.256],
        "many zeros": [0.0] * 40 + [0.5, -0.25, 1.0, 0.75, 0.5, 0.25, -0.5, 0.5],
        "normal": [round(float(x), 3) for x in random.normal(-0.05, 0.2, 80)],
        "skewed": [round(float(x), 3) for x in random.exponential(0.1, 60) - 0.07],
        "verdicts": [float(x) for x in random.choice([-1, 0, 1], 200, p=[0.05, 0.8, 0.15])],
    }
    cases = []
    for name, values in samples.items():
        for level in [0.9, 0.95]:
            result = stats.bootstrap(
                (np.array(values),), np.mean, confidence_level=level, method="percentile",
                n_resamples=RESAMPLES, batch=10_000, rng=np.random.default_rng(7),
            )
            low, high = (float(end) for end in result.confidence_interval)
            mean = float(np.mean(values))
            cases.append({"name": name, "level": level, "values": values, "mean": mean, "low": low, "high": high})
    return cases


def check_published(path: Path) -> None:
    published = json.loads(path.read_text(encoding="utf-8"))
    for case in published["intervals"]:
        found = wilson(case["passes"], case["attempts"], case["level"])
        assert [round(end, case["digits"]) for end in found] == [case["low"], case["high"]], (case, found)
    for case in published["mcnemar"]:
        found = mcnemar_p(case["improved"], case["regressed"])
        assert round(found, case["digits"]) == case["p"], (case, found)


def main() -> None:
    folder = Path(sys.argv[1])
    check_published(folder / "published.json")
    files = {
        "quantiles": quantiles(),
        "intervals": intervals(),
        "all_pass": all_pass(),
        "needed": needed(),
        "mcnemar": verdicts(),
        "bootstrap": differences(),
    }
    for name, cases in files.items():
        lines = ",\n".join("  " + json.dumps(case) for case in cases)
        (folder / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        print(f"{name}.json: {len(cases)} cases")


if __name__ == "__main__":
    main()
