"""One call: a contender over one path of the lab, and its numbers."""

import base64
import csv
import json
import os
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import capture

HERE = Path(__file__).parent
# Seconds of the lab before media begins, which browsers need to start; the paths' changes count on it.
BEGIN = 6
# Seconds of media that are not judged: the rate is being found.
SETTLING = 10
# Host b's addresses end in it.
RECEIVER = 2
SCREAM = "WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/WebRTC-Bwe-ScreamV2/Enabled,mode:always/"
BROWSERS = {"googcc": "", "scream": SCREAM}
MAX_LATE, MAX_STOLEN, MAX_STARVED, MIN_ENCODED = 0.001, 0.005, 0.02, 25


def programs(program, contender, folder, seconds, camera):
    """The lab's programs in hosts a and b; it ends with the last one."""
    if contender in BROWSERS:
        def peer(role):
            return ["node", str(HERE / "peer.mjs"), role, str(folder), f"{time.time() + BEGIN:.3f}", str(seconds), str(camera), BROWSERS[contender]]
        return ["--in", "a", "--", *peer("offer"), "--in", "b", "--", *peer("answer")]
    # Ours marks its packets as its controller's design wants it: ECT(1) for L4S, ECT(0) for what takes a mark as a loss.
    ecn = "ect1" if contender.startswith("lastmile") else "ect0"
    # Lost packets are sent again, as browsers do by themselves.
    receive = [program, "receive", "--once", "--json", "--nack", "250ms", "--output", str(folder / "frames.csv")]
    stream = [program, "stream", str(camera), "{b}", "--control", contender, "--max", "8 Mbit/s", "--ecn", ecn, "--retransmit", "250ms", "--seconds", str(seconds), "--json"]
    after = ["sh", "-c", f'out=$1; shift; sleep {BEGIN}; exec "$@" >"$out"', "sh", str(folder / "stream.json")]
    into = ["sh", "-c", 'out=$1; shift; exec "$@" >"$out"', "sh", str(folder / "receive.jsonl")]
    return ["--in", "b", "--", *into, *receive, "--in", "a", "--", *after, *stream]


def run(program, contender, path, seed, seconds, folder, camera):
    """Runs it; what it left is in the folder. True if it ended by itself; the share of time that programs waited for a processor."""
    folder.mkdir(parents=True)
    most = BEGIN + seconds + 20
    lab = [program, "lab", str(path), "--seed", str(seed), "--json", "--series", str(folder / "series.csv"), "--pcap", str(folder / "b.pcapng"),
           "--pcap-at", "b", "--max-seconds", f"{most}s", *programs(program, contender, folder, seconds, camera)]
    key = base64.b64encode(os.urandom(30)).decode()
    with open(folder / "lab.json", "w") as out, open(folder / "said", "w") as said:
        process = subprocess.Popen(lab, stdout=out, stderr=said, env={**os.environ, "LASTMILE_SRTP_KEY": key}, start_new_session=True)
        end, starved = time.monotonic() + most + 15, 0.0
        try:
            # Sleeps that end late tell that programs wait for a processor, which the lab, at real-time priority, does not feel.
            while process.poll() is None and time.monotonic() < end:
                before = time.monotonic()
                time.sleep(0.005)
                over = time.monotonic() - before - 0.005
                starved += over if over > 0.02 else 0.0
        finally:
            ended = process.poll() is not None
            if not ended:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    # Its session is its own: the browsers too.
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
    return ended, starved / (BEGIN + seconds)


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else None


def mean(values):
    return sum(values) / len(values) if values else None


def freezes(times):
    """Freezes among the times of frames: when each ended, and how long it was. libwebrtc's rule (`VideoQualityObserver`): an interval of at
    least max(3 d, d + 150 ms), d the mean of the last 30 intervals, it among them, from the fifth on."""
    intervals, found = [], []
    for before, at in zip(times, times[1:]):
        intervals = [*intervals[-29:], at - before]
        usual = mean(intervals)
        if len(intervals) >= 5 and at - before >= max(3 * usual, usual + 0.15):
            found.append((at, at - before))
    return found


def latencies(frames):
    """Of frames (when shown, RTP timestamp) that are judged: the time since the timestamp's, above the least of the run; seconds."""
    if not frames:
        return []
    stamps = [(stamp - frames[0][1] + 2**31) % 2**32 - 2**31 for _, stamp in frames]
    ages = [at - stamp / 90000 for (at, _), stamp in zip(frames, stamps)]
    return [age - min(ages) for age, stamp in zip(ages, stamps) if stamp > SETTLING * 90000]


def mbit(text):
    number, unit = text.split()
    return float(number) * {"Mbit/s": 1, "kbit/s": 1e-3}[unit]


def queues(scenario, rows, window, received):
    """The time, ms, in which what waits on the way from a to b would leave: of each step of the window."""
    rates, beside = {}, set(scenario["host"]) - {"a"}
    for link in scenario.get("link", []):
        if "rate" in link and link["from"] not in beside:
            changes = [(0.0, mbit(link["rate"]))]
            changes += [(float(change["at"].split()[0]), mbit(change["rate"])) for change in link.get("changes", [])]
            rates["link", f"{link['from']}>{link['to']}"] = changes
    if "wlan" in scenario:
        # The access point's queue has no rate of its own: what leaves it on the mean, the call's packets and the others'.
        others = [float(row["goodput_bps"]) for row in rows if row["row"] == "flow" and window[0] < float(row["at_s"]) <= window[1]]
        steps = len({row["at_s"] for row in rows if window[0] < float(row["at_s"]) <= window[1]})
        rates["wlan", "ap>b"] = [(0.0, received + sum(others) / max(1, steps) / 1e6)]
    waits = {}
    for row in rows:
        at, changes = float(row["at_s"]), rates.get((row["row"], row["name"]))
        if changes and window[0] < at <= window[1]:
            rate = [rate for since, rate in changes if since < at][-1]
            waits[at] = waits.get(at, 0.0) + float(row["queue_mean_bytes"]) * 8e-3 / rate
    return list(waits.values())


def of_browsers(folder):
    """Frames, and the statistics of both ends, as a call's facts. A browser that has no statistics of its video by then made or showed none."""
    sent, came = (json.loads((folder / f"{role}.json").read_text()) for role in ("offer", "answer"))
    def of(rows, second, kind):
        return next((one for one in rows[second] if one["type"] == kind), {})
    def grown(rows, kind, *keys):
        now, then = of(rows, -1, kind), of(rows, SETTLING - 1, kind)
        if not now or not then:
            return [0.0 for _ in keys]
        seconds = (now["timestamp"] - then["timestamp"]) / 1e3
        return [(now.get(key, 0) - then.get(key, 0)) / seconds for key in keys]
    last, settled = of(came["rows"], -1, "inbound-rtp"), of(came["rows"], SETTLING - 1, "inbound-rtp")
    decoded, dropped = grown(came["rows"], "inbound-rtp", "framesDecoded", "framesDropped")
    encoded, = grown(sent["rows"], "outbound-rtp", "framesEncoded")
    limits, before = (of(sent["rows"], second, "outbound-rtp").get("qualityLimitationDurations", {}) for second in (-1, SETTLING - 1))
    limited = {why: round(seconds - before.get(why, 0), 1) for why, seconds in limits.items()}
    facts = {
        "frame_rate": decoded - dropped,
        "encoded": encoded,
        "freezes": last.get("freezeCount", 0) - settled.get("freezeCount", 0),
        "frozen_s": last.get("totalFreezesDuration", 0) - settled.get("totalFreezesDuration", 0),
        "freezes_whole": last.get("freezeCount", 0),
        "frozen_whole_s": last.get("totalFreezesDuration", 0),
        "size": f"{last.get('frameWidth')}x{last.get('frameHeight')}",
        "limited_s": {why: s for why, s in limited.items() if s > 0 and why != "none"},
        "version": "Chromium " + came["version"],
    }
    return facts, [(at / 1e3, stamp) for at, stamp in came["frames"] if stamp is not None]


def of_ours(folder, seconds):
    frames = [(float(row["shown_s"]), int(row["rtp_timestamp"])) for row in csv.DictReader(open(folder / "frames.csv"))]
    stream = json.loads((folder / "stream.json").read_text())
    # The stream's clock begins with it.
    settled = {at for at, stamp in frames if stamp > SETTLING * 90000}
    found = freezes([at for at, _ in frames])
    judged = [long for at, long in found if at in settled]
    facts = {
        "frame_rate": len(settled) / (seconds - SETTLING),
        "left_out": stream["frames_dropped"],
        "freezes": len(judged),
        "frozen_s": sum(judged),
        "freezes_whole": len(found),
        "frozen_whole_s": sum(long for _, long in found),
        "ended": stream["ended"],
    }
    return facts, frames


def summary(contender, path, seconds, folder, starved=0.0):
    """A call's numbers, and under `why` the reasons for which they do not count."""
    lab = json.loads((folder / "lab.json").read_text())
    scenario = tomllib.loads(Path(path).read_text())
    packets = list(capture.packets((folder / "b.pcapng").read_bytes(), RECEIVER))
    media = [packet for packet in packets if not packet.sent and capture.is_media(packet)]
    if not media:
        raise ValueError("no media came")
    began = media[0].at
    window = (began + SETTLING, began + seconds)
    received = sum(p.size for p in packets if not p.sent and window[0] < p.at <= window[1]) * 8e-6 / (window[1] - window[0])
    with open(folder / "series.csv") as series:
        waits = queues(scenario, list(csv.DictReader(series)), window, received)
    facts, frames = of_browsers(folder) if contender in BROWSERS else of_ours(folder, seconds)
    delays = latencies(frames)
    p95 = percentile(delays, 0.95)
    if p95 is None:
        # A screen that showed nothing stood for as long, which the rule does not count.
        p95 = facts["frozen_s"] = seconds - SETTLING
    lateness = lab["lateness"]
    found = {
        "received_mbps": received,
        **facts,
        "p95_ms": p95 * 1e3,
        "queue_ms": mean(waits),
        "queue_p95_ms": percentile(waits, 0.95),
        "began_s": began,
        "packets": lateness["packets"],
        "late": lateness["late"],
        "stolen": lateness["stolen_share"],
        "starved": starved,
        "marked": sum(packet.ecn == 3 for packet in media) / len(media),
    }
    why = []
    if lateness["late"] > MAX_LATE * lateness["packets"]:
        why.append("late packets")
    if lateness["stolen_share"] > MAX_STOLEN:
        why.append("stolen time")
    if starved > MAX_STARVED:
        why.append("busy machine")
    if lateness["device_drops"] or lateness["refused"]:
        why.append("refused by the lab")
    # A low rate makes the encoder leave out frames too, which is the contender's doing. So are all frames that our sender leaves out.
    limited = facts.get("limited_s", {}).get("bandwidth", 0) > (seconds - SETTLING) / 4
    if facts.get("encoded", MIN_ENCODED) < MIN_ENCODED and not limited:
        why.append("slow encoder")
    if began > BEGIN + 1.5:
        why.append("late begin")
    if contender == "scream":
        ccfb = all("ack ccfb" in (folder / f"{role}.sdp").read_text() for role in ("offer", "answer"))
        found["ect1"] = sum(packet.ecn in (1, 3) for packet in media) / len(media)
        found["ccfb"] = sum(packet.sent and capture.is_ccfb(packet) for packet in packets)
        if not ccfb or found["ect1"] < 0.99 or not found["ccfb"]:
            why.append("not SCReAM")
    found["why"] = why
    return found
