"""What needs no browser: rules, files of the lab, statistics. python3 rivals/test_rivals.py"""

import json
import math
import struct
import tempfile
import tomllib
import unittest
from pathlib import Path

import call
import capture
import rivals
import table


def made(path, contender, seed, **numbers):
    known = dict(received_mbps=3.0, frame_rate=30.0, freezes=0, frozen_s=0.0, frozen_whole_s=0.0, p95_ms=100.0, queue_ms=10.0, queue_p95_ms=20.0,
                 late=0, packets=1000, tries=1, why=[])
    return dict(known, path=path, contender=contender, seed=seed, **numbers)


class Frames(unittest.TestCase):
    def test_a_freeze_is_libwebrtcs(self):
        steady = [n / 30 for n in range(60)]
        # With 29 intervals of 33 ms and the gap in the mean, a freeze begins at 33.33 + 150 / (1 - 1/30) = 188.5 ms.
        for gap, count in ((0.18, 0), (0.19, 1), (2.0, 1)):
            found = call.freezes([*steady, steady[-1] + gap])
            self.assertEqual(len(found), count, gap)
            if count:
                self.assertAlmostEqual(found[0][1], gap)
        self.assertEqual(call.freezes([0, 1, 2]), [])

    def test_latencies_are_above_the_least_and_of_what_is_judged(self):
        first = 2**32 - 90000
        frames = [(second + (0.05 if second == 12 else 0.01 * (second % 2)), (first + 90000 * second) % 2**32) for second in range(14)]
        found = call.latencies(frames)
        self.assertEqual([round(1e3 * age) for age in found], [10, 50, 10])


class Browsers(unittest.TestCase):
    def test_one_that_shows_nothing_is_judged(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for role in ("offer", "answer"):
                (folder / f"{role}.json").write_text(json.dumps({"version": "1", "frames": [], "rows": [[]] * 40}))
            facts, frames = call.of_browsers(folder)
        self.assertEqual((facts["frame_rate"], facts["encoded"], facts["frozen_s"], frames), (0.0, 0.0, 0, []))


class Lab(unittest.TestCase):
    def test_packets_of_a_capture(self):
        payload = bytes([0x80, 96]) + bytes(10)
        ip = bytes([0x45, 1]) + struct.pack(">H", 40) + bytes(5) + bytes([17]) + bytes(2) + bytes([10, 77, 0, 1, 10, 77, 0, 2]) + bytes(8) + payload
        ccfb = bytes([0x60, 0x20, 0, 0, 0, 20, 17, 64]) + bytes(15) + b"\2" + bytes(15) + b"\1" + bytes(8) + bytes([0x8B, 205]) + bytes(10)
        def block(packet, nanoseconds):
            body = struct.pack("<5I", 0, nanoseconds >> 32, nanoseconds & 0xFFFFFFFF, len(packet), len(packet)) + packet + bytes(-len(packet) % 4)
            return struct.pack("<II", 6, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
        data = struct.pack("<IIII", 1, 16, 101, 16) + block(ip, 6_000_000_000) + block(ccfb, 6_100_000_000)
        media, feedback = capture.packets(data, 2)
        self.assertEqual((media.at, media.sent, media.size, media.ecn), (6.0, False, 40, 1))
        self.assertTrue(capture.is_media(media) and not capture.is_ccfb(media))
        self.assertTrue(feedback.sent and capture.is_ccfb(feedback) and not capture.is_media(feedback))
        self.assertEqual(feedback.ecn, 2)
        # A file that breaks off.
        self.assertEqual([len(list(capture.packets(data[:-cut], 2))) for cut in (20, 75)], [1, 1])
        self.assertEqual(list(capture.packets(bytes(64), 2)), [])

    def test_queues_by_the_rate_of_the_time(self):
        scenario = tomllib.loads((rivals.HERE / "paths" / "step.toml").read_text())
        rows = [{"row": "link", "name": name, "at_s": at, "queue_mean_bytes": "5000"} for name in ("a>b", "b>a") for at in ("16.1", "20.0", "25.0", "35.0")]
        self.assertEqual(call.queues(scenario, rows, (16, 30), 3.0), [10.0, 10.0, 40.0])

    def test_the_queue_of_an_access_point_by_what_leaves_it(self):
        scenario = tomllib.loads((rivals.HERE / "paths" / "wifi.toml").read_text())
        rows = [{"row": "flow", "name": "download", "at_s": at, "goodput_bps": "7e6"} for at in ("17.0", "18.0")]
        rows += [{"row": "wlan", "name": "ap>b", "at_s": at, "queue_mean_bytes": "50000"} for at in ("17.0", "18.0")]
        self.assertEqual(call.queues(scenario, rows, (16, 30), 3.0), [40.0, 40.0])

    def test_all_paths_are_files_with_both_hosts(self):
        self.assertEqual(sorted(rivals.PATHS), sorted(file.stem for file in (rivals.HERE / "paths").glob("*.toml")))
        for name in rivals.PATHS:
            hosts = list(tomllib.loads((rivals.HERE / "paths" / f"{name}.toml").read_text())["host"])
            # Host b's addresses end in its place.
            self.assertEqual((hosts[0], hosts[call.RECEIVER - 1]), ("a", "b"), name)


class Table(unittest.TestCase):
    def test_intervals(self):
        middle, half = table.interval([1.0, 2.0, 3.0])
        self.assertAlmostEqual((middle, round(half, 2)), (2.0, 2.48))
        self.assertTrue(math.isnan(table.interval([1.0])[1]))
        off, half = table.difference([1.0, 2.0, 3.0], [11.0, 12.0, 13.0])
        self.assertEqual((off, round(half, 2)), (-10.0, 2.27))

    def test_calls_that_do_not_count_are_in_no_mean(self):
        calls = [made("loss-0", "googcc", 1), made("loss-0", "googcc", 2, received_mbps=1.0, why=["late packets"], tries=3)]
        text = table.markdown(calls, ["loss-0"], ["googcc", "lastmile"])
        self.assertIn("| loss-0 | googcc | 1 of 2 | 3.00 | 30.0 |", text)
        self.assertTrue(text.endswith("| 0 of 1000 | 4 |"))

    def test_bars(self):
        calls = [made(path, who, seed, p95_ms=latency, frozen_s=frozen, frame_rate=rate)
                 for path, who, latency, frozen, rate in (("loss-0", "googcc", 100, 0.0, 30), ("loss-0", "lastmile", 90, 0.1, 30),
                                                          ("loss-2", "googcc", 100, 0.0, 29), ("loss-2", "lastmile", 120, 0.2, 28))
                 for seed in (1, 2)]
        text = "\n".join(table.bars(calls, rivals.PATHS))
        self.assertIn("NOT met: worse than googcc in both frozen seconds and P95 latency in no row: 1 of 2 (loss-2)", text)
        self.assertIn("met: better in one of them in half of the rows: 1 of 2, clearly in ", text)
        self.assertIn("NOT met: a higher frame rate under wireless loss: loss-2 28.0 and 29.0", text)
        self.assertIn("met: a mean queue below 25 ms at 0 % of loss: 10.0 ms", text)

    def test_a_sitting_goes_on_from_the_documents_calls(self):
        with tempfile.TemporaryDirectory() as name:
            folder, documented = Path(name) / "rivals", Path(name) / "calls.json"
            rivals.restore(folder, documented, "b")
            calls = [made("loss-0", "googcc", seed, seconds=40) for seed in (1, 2)]
            calls += [made("loss-0", "lastmile", seed, seconds=40, commit=commit) for seed, commit in ((1, "a"), (2, "b"))]
            documented.write_text(json.dumps(calls))
            own = rivals.file_of(folder, 40, "loss-0", "googcc", 2)
            rivals.write_whole(own, {"seed": 2})
            rivals.restore(folder, documented, "b")
            # Ours of another commit are not those of this program.
            self.assertFalse(rivals.file_of(folder, 40, "loss-0", "lastmile", 1).exists())
            self.assertTrue(rivals.file_of(folder, 40, "loss-0", "lastmile", 2).exists())
            kept = [json.loads(rivals.file_of(folder, 40, "loss-0", "googcc", seed).read_text()) for seed in (1, 2)]
            self.assertEqual(kept, [calls[0], {"seed": 2}])

    def test_seeds(self):
        self.assertEqual(rivals.seeds("1-3,7"), [1, 2, 3, 7])


if __name__ == "__main__":
    unittest.main()
